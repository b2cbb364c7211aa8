"""The wording of the errors of `env`: which term, which world, what to do."""

import re
from operator import attrgetter

import pytest
import torch
from tests.inside import names_of_other_environments
from tests.raised import says

from simstate.base.errors import (
    InvalidInputError,
    ShapeError,
    SimStateError,
    UnknownNameError,
)
from simstate.env import (
    EventTermCfg,
    JointPositionActionCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    either,
    observations,
    tasks,
)


def observed(**options) -> dict[str, dict[str, ObservationGroupCfg]]:
    term = ObservationTermCfg(observations.joint_pos_rel, **options)
    return {"observations": {"policy": ObservationGroupCfg({"mine": term})}}


def rewarded(function) -> dict[str, dict[str, RewardTermCfg]]:
    return {"rewards": {"mine": RewardTermCfg(function, weight=1.0)}}


def nan_in_one_world(env):
    values = torch.zeros(env.num_envs)
    values[2] = torch.nan
    return values


def test_names_of_other_frameworks_lead_to_those_of_env(make_env):
    env = make_env(2)
    for name in names_of_other_environments():
        assert not hasattr(env, name)
        with says(UnknownNameError, f"no attribute {name!r}: here it is ") as error:
            getattr(env, name)
        for path in re.findall(r"env((?:\.\w+)+)", str(error.value)):
            assert attrgetter(path[1:])(env) is not None
    with pytest.raises(AttributeError, match=r"no attribute 'wheels'$"):
        _ = env.wheels


def test_an_attribute_error_of_a_property_is_raised_as_it_is(make_env, monkeypatch):
    env = make_env(2)
    faulty = property(lambda env: env.sim.wheels)
    monkeypatch.setattr(type(env), "height", faulty, raising=False)
    with pytest.raises(AttributeError, match="'wheels'"):
        _ = env.height


@either
def _norm(env):
    return env.scene["robot"].data.joint_pos.norm(dim=1)


def test_a_method_that_arrays_lack_leads_to_the_mark_of_its_term(make_env):
    with pytest.raises(AttributeError) as error:
        make_env(**rewarded(_norm)).step(torch.zeros(4, 2))
    assert "marked with @either" in error.value.__notes__[-1]


@pytest.mark.parametrize("field", ["qpos", "qvel"])
def test_a_state_that_an_event_makes_infinite_is_not_blamed_on_a_term(make_env, field):
    def spoil(env, env_ids):
        if len(env_ids) == 1:
            getattr(env.sim.data, field)[env_ids, -1] = torch.inf

    cfg = EventTermCfg(spoil, mode="reset")
    joints = (
        observations.joint_pos_rel if field == "qpos" else observations.joint_vel_rel
    )
    env = make_env(
        events={"spoil": cfg},
        observations={"policy": ObservationGroupCfg({"x": ObservationTermCfg(joints)})},
    )
    with says(InvalidInputError, "in world 2", f"has written a {field} that is not"):
        env.reset(env_ids=[2])


def test_a_question_ends_an_error_without_a_full_stop(make_env):
    env = make_env(**rewarded(lambda env: None))
    with pytest.raises(InvalidInputError, match=r"is a return statement missing\?$"):
        env.step(torch.zeros(4, 2))


ANKLE = {"asset_cfg": SceneEntityCfg("robot", joint_names="ankle")}


@pytest.mark.parametrize(
    ("parts", "error", "fragments"),
    [
        (
            rewarded(nan_in_one_world),
            InvalidInputError,
            ["The reward term 'mine' returned nan in world 2",
             "the term itself divides by zero"],
        ),
        (
            rewarded(lambda env: env.action),
            ShapeError,
            ["The reward term 'mine' must return shape (4,), got (4, 2)."],
        ),
        (
            rewarded("is_alve"),
            UnknownNameError,
            ["function of the reward term 'mine'", "Did you mean 'is_alive'?"],
        ),
        (
            observed(delay=1.5),
            InvalidInputError,
            ["'policy/mine' has delay 1.5: it must be an integer number of steps ≥ 0"],
        ),
        (
            observed(params=ANKLE),
            UnknownNameError,
            ["In the observation term 'policy/mine': Unknown joint 'ankle'."],
        ),
        (
            {"actions": {"a": JointPositionActionCfg(joint_names="hipp")}},
            UnknownNameError,
            ["In the action term 'a'", "'hipp'", "Did you mean 'hip'?"],
        ),
        (
            {"actions": {"a": JointPositionActionCfg(asset_name="rob")}},
            UnknownNameError,
            ["In the action term 'a': Unknown entity 'rob'. Did you mean 'robot'?"],
        ),
        (
            {"events": {"mine": EventTermCfg(lambda env: None, mode="reset")}},
            InvalidInputError,
            ["The event term 'mine'", "called with env, env_ids", "takes env."],
        ),
        (
            {"rewards": None},
            InvalidInputError,
            ["EnvCfg.rewards must be a dictionary of RewardTermCfg by name"],
        ),
    ],
)  # fmt: skip
def test_texts(make_env, given, parts, error, fragments):
    def run() -> None:
        env = make_env(4, **parts)
        env.step(given(env, 1)[0])

    with says(error, *fragments):
        run()


def test_text_of_an_unknown_task():
    with says(SimStateError, "Unknown task 'Cartpole-Balanse'", "path of a .py file"):
        tasks.find("Cartpole-Balanse")
