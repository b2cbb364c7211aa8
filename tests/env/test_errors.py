"""Bad terms and bad configurations: errors that name the term and say what to do."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate.base.errors import InvalidInputError, ShapeError, UnknownNameError
from simstate.env import (
    Env,
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
    events,
    observations,
    rewards,
    tasks,
    terminations,
)
from simstate.env.actions import BodyWrenchActionCfg
from simstate.env.commands import VelocityCommandCfg


def group(term: object) -> dict[str, ObservationGroupCfg]:
    return {"policy": ObservationGroupCfg({"mine": term})}


def returning(value: object) -> object:
    return lambda env: value


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (torch.zeros(4), (4,)),
        (torch.zeros(3, 2), (3, 2)),
        (torch.zeros(3, 4, 2, 2), (3, 4, 2, 2)),
        ([[0.0]] * 4, None),
        (None, None),
    ],
)
def test_an_observation_of_a_wrong_shape_is_named(make_env, value, shape):
    with raises(ShapeError, name="policy/mine") as caught:
        make_env(observations=group(ObservationTermCfg(returning(value))))
    assert caught.value.shape == shape


@pytest.mark.parametrize(("value", "shape"), [(torch.zeros(4, 1), (4, 1)), (1.0, None)])
def test_a_reward_of_a_wrong_shape_is_named(make_env, given, value, shape):
    env = make_env(rewards={"mine": RewardTermCfg(returning(value), weight=1.0)})
    with raises(ShapeError, name="mine") as caught:
        env.step(given(env, 1)[0])
    assert caught.value.shape == shape


def test_a_termination_that_is_no_truth_value_is_named(make_env, given):
    wrong = TerminationTermCfg(returning(torch.zeros(4)))
    env = make_env(terminations={"mine": wrong})
    with raises(InvalidInputError, name="mine"):
        env.step(given(env, 1)[0])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_names_term_and_world(make_env, given, bad):
    def late(env: Env) -> torch.Tensor:
        values = torch.zeros(env.num_envs)
        if env.common_step_counter == 2:
            values[2] = bad
        return values

    fine = RewardTermCfg(rewards.is_alive, weight=1.0)
    env = make_env(rewards={"fine": fine, "mine": RewardTermCfg(late, weight=0.0)})
    actions = given(env, 2)
    env.step(actions[0])
    with raises(InvalidInputError, name="mine", worlds=[2]):
        env.step(actions[1])

    terms = {
        "fine": ObservationTermCfg(observations.joint_pos_rel),
        "mine": ObservationTermCfg(lambda env: late(env)[:, None]),
    }
    env = make_env(observations={"policy": ObservationGroupCfg(terms)})
    env.step(actions[0])
    name = "policy/mine"
    with raises(InvalidInputError, name=name, worlds=[2]):
        env.step(actions[1])


def test_functions_and_parameters_that_do_not_exist(make_env):
    with raises(UnknownNameError, name="joint_pos_rl"):
        make_env(observations=group(ObservationTermCfg("joint_pos_rl")))
    with raises(UnknownNameError, name="numpy"):
        make_env(rewards={"mine": RewardTermCfg("numpy", weight=1.0)})
    with raises(UnknownNameError, name="hight"):
        make_env(
            terminations={
                "mine": TerminationTermCfg(
                    terminations.base_height_below, params={"hight": 1.0}
                )
            }
        )
    with raises(InvalidInputError, name="params"):
        make_env(
            rewards={
                "mine": RewardTermCfg(
                    rewards.track_lin_vel, params={"command_name": "a"}, weight=1.0
                )
            }
        )


def test_an_error_inside_a_term_says_in_which(make_env):
    term = EventTermCfg(
        events.randomize_mass, params={"mass_range": (-2, -1)}, mode="startup"
    )
    with pytest.raises(InvalidInputError) as raised:
        make_env(events={"mine": term})
    assert raised.value.__notes__ == ["It was raised in the event term 'mine'."]


def test_names_that_match_nothing(make_env):
    def seen(**names: object) -> dict[str, ObservationGroupCfg]:
        params = {"asset_cfg": SceneEntityCfg(**names)}
        return group(ObservationTermCfg(observations.joint_pos_rel, params=params))

    for names, name in (
        ({"name": "robot", "joint_names": "ankle"}, "ankle"),
        ({"name": "robot", "joint_names": ["hip", "nee"]}, "nee"),
        ({"name": "robot", "joint_names": "hip("}, "hip("),
        ({"name": "robot", "body_names": "foot"}, "foot"),
        ({"name": "robot", "sensor_names": "imu"}, "imu"),
        ({"name": "rowboat"}, "rowboat"),
    ):
        with raises(UnknownNameError, name=name):
            make_env(observations=seen(**names))
    with raises(InvalidInputError, name="robot"):
        _ = SceneEntityCfg("robot", joint_names="hip").joint_ids


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"delay": -1}, "delay"),
        ({"delay": (3, 1)}, "delay"),
        ({"history": 0}, "history"),
        ({"clip": (1.0, -1.0)}, "clip"),
        ({"scale": (1.0, 2.0, 3.0)}, "policy/mine"),
        ({"noise": 0.1}, "noise"),
    ],
)
def test_bad_options_of_an_observation(make_env, options, name):
    term = ObservationTermCfg(observations.joint_pos_rel, **options)
    with raises(InvalidInputError, name=name):
        make_env(observations=group(term))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"decimation": 0}, "decimation"),
        ({"decimation": 1.5}, "decimation"),
        ({"decimation": True}, "decimation"),
        ({"episode_length_s": 0.0}, "episode_length_s"),
        ({"episode_length_s": 0.005}, "episode_length_s"),
        ({"divergence_dump_dir": "/dev/null/no"}, "divergence_dump_dir"),
        ({"episode_length_s": float("nan")}, "episode_length_s"),
        ({"max_divergence_dumps": -1}, "max_divergence_dumps"),
        ({"observations": {}}, "observations"),
        ({"actions": {}}, "actions"),
        (
            {"rewards": {"a": rewards.is_alive}},
            "EnvCfg.rewards['a']",
        ),
        ({"actions": {"a": 1.0}}, "EnvCfg.actions['a']"),
        ({"observations": {"policy": {}}}, "EnvCfg.observations['policy']"),
        (
            {"observations": {"policy": ObservationGroupCfg({"a": 1})}},
            "EnvCfg.observations['policy'].terms['a']",
        ),
        ({"observations": {"policy": ObservationGroupCfg({})}}, "policy"),
        (
            {"terminations": {"diverged": TerminationTermCfg(terminations.time_out)}},
            "diverged",
        ),
        (
            {"events": {"a": EventTermCfg(lambda env, ids: None, mode="interval")}},
            "interval_s",
        ),
        (
            {
                "events": {
                    "a": EventTermCfg(
                        lambda env, ids: None, mode="interval", interval_s=(0.0, 1.0)
                    )
                }
            },
            "interval_s",
        ),
    ],
)  # fmt: skip
def test_bad_task_configurations(make_env, change, name):
    with raises(InvalidInputError, name=name):
        make_env(**change)


def test_more_that_is_no_task(make_cfg):
    with raises(InvalidInputError, name="cfg"):
        Env({})
    with raises(UnknownNameError, name="sometimes"):
        Env(make_cfg(events={"a": EventTermCfg(lambda e, i: None, mode="sometimes")}))
    with raises(UnknownNameError, name="quadruped-velocity"):
        tasks.make_cfg("quadruped-velocity")
    for wrong in (0, -1, 1.5):
        with raises(InvalidInputError, name="num_envs"):
            Env(make_cfg(), num_envs=wrong)


def test_a_configuration_is_not_changed_by_its_environment(make_cfg, given):
    cfg = make_cfg()
    before = dataclasses.asdict(cfg)
    env = Env(cfg, 2)
    env.step(given(env, 1)[0])
    env.rewards.set_weight("alive", 9.0)
    assert dataclasses.asdict(cfg) == before


@pytest.mark.parametrize(
    "options",
    [
        {"delay": 1.5},
        {"delay": (0, 1, 2)},
        {"history": 2.0},
        {"scale": [1.0, 2.0]},
        {"scale": "twice"},
        {"scale": float("nan")},
    ],
)
def test_bad_options_of_an_observation_are_reported(make_env, options):
    term = ObservationTermCfg(observations.joint_pos_rel, **options)
    with raises(InvalidInputError, name=next(iter(options))):
        make_env(observations=group(term))


def test_an_observation_whose_width_changes_is_named(make_env, given):
    def growing(env):
        return torch.zeros(4, 1 + int(env.common_step_counter > 1))

    env = make_env(observations=group(ObservationTermCfg(growing)))
    action = given(env, 1)[0]
    env.step(action)
    with raises(ShapeError, name="policy/mine"):
        env.step(action)


@pytest.mark.parametrize("value", [None, [], "rewards"])
@pytest.mark.parametrize("part", ["rewards", "events", "observations", "commands"])
def test_a_part_that_is_no_dictionary_is_named(make_env, part, value):
    with raises(InvalidInputError, name=part):
        make_env(**{part: value})


def test_numbers_that_are_none_are_reported(make_env):
    with raises(InvalidInputError, name="episode_length_s"):
        make_env(episode_length_s="10")
    heavy = RewardTermCfg(rewards.is_alive, weight="heavy")
    with raises(InvalidInputError, name="weight"):
        make_env(rewards={"mine": heavy})


def test_numbers_of_numpy_are_numbers(make_env):
    alive = RewardTermCfg(rewards.is_alive, weight=np.float32(2.0))
    env = make_env(rewards={"mine": alive}, episode_length_s=np.float32(1.0))
    assert env.rewards.weight("mine") == 2.0


def test_a_name_that_finds_several_elements_is_reported(make_env):
    wrench = BodyWrenchActionCfg(body_name="t.*", force_scale=(1.0, 0.0, 0.0))
    with raises(InvalidInputError, name="body_name"):
        make_env(actions={"mine": wrench})


@pytest.mark.parametrize("span", [(1.0, 0.0), (0.0, float("nan")), 1.0, (0.0,)])
@pytest.mark.parametrize("field", ["lin_vel_x", "heading", "resampling_time_s"])
def test_a_bad_range_of_a_command_is_reported(make_env, field, span):
    ranges = {"lin_vel_x": (0.0, 1.0), "resampling_time_s": (1.0, 2.0)} | {field: span}
    with raises(InvalidInputError, name=field):
        make_env(commands={"mine": VelocityCommandCfg(**ranges)})


def test_a_negative_friction_is_refused(make_env):
    foot = SceneEntityCfg("robot", geom_names="foot")
    params = {"friction_range": (-1.0, 0.5), "asset_cfg": foot}
    slippery = EventTermCfg(events.randomize_friction, params=params, mode="startup")
    with raises(InvalidInputError, name="friction_range"):
        make_env(events={"mine": slippery})
