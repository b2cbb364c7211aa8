"""Mistakes in a user's first task: each is refused by name, or has no effect."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate.base.errors import InvalidInputError, ShapeError, SimStateError
from simstate.env import (
    AttitudeCommandCfg,
    BodyWrenchActionCfg,
    CurriculumTermCfg,
    Env,
    EventTermCfg,
    GaussianNoise,
    JointPositionActionCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SensorNoise,
    UniformNoise,
    VelocityCommandCfg,
    curricula,
    observations,
    rewards,
)
from simstate.env.env_cfg import TermCfg

pytestmark = pytest.mark.fast


def returning(value: object):
    return lambda env, *more: value


def parts_with(part: str, **options):
    """Parts of a configuration in which one setting is `options`."""
    match part:
        case "observation":
            term = ObservationTermCfg(observations.joint_pos_rel, **options)
            return {"observations": {"policy": ObservationGroupCfg({"a": term})}}
        case "event":
            event = EventTermCfg(returning(None), mode="interval", **options)
            return {"events": {"a": event}}
        case "target":
            return {"actions": {"a": JointPositionActionCfg(**options)}}
        case "wrench":
            wrench = BodyWrenchActionCfg(body_name="trunk", **options)
            return {"actions": {"a": wrench}}
        case "attitude":
            command = AttitudeCommandCfg(resampling_time_s=(1.0, 2.0), **options)
            return {"commands": {"a": command}}
        case _:
            chosen = {"resampling_time_s": (1.0, 2.0), "lin_vel_x": (0.1, 0.2)}
            return {"commands": {"a": VelocityCommandCfg(**(chosen | options))}}


SETTINGS = [
    ("observation", "clip", (5.0, (None, 1.0), (1.0,)), ((-1.0, math.inf), [0.0, 1.0])),
    ("observation", "scale", (torch.ones(2), [1.0, 2.0]), (0, (1.0, 2.0))),
    ("event", "interval_s", (2.0, (2.0,), "2", (1.0, math.inf)), ((0.5, 2),)),
    ("target", "clip", (1.0, (0.1, None)), ((-0.5, math.inf),)),
    ("target", "scale", ([0.5, 0.2], torch.ones(2), "1", math.nan, {"hip": math.inf}),
     (2, np.float32(0.5), {"hip": 0.5})),
    ("target", "offset", ((0.1, 0.2), {"hip": None}), ({"knee": 0.1},)),
    ("wrench", "force_scale", (10.0, (1.0, 2.0), (1.0, math.nan, 0.0)),
     ([1.0, 0.0, 2.0],)),
    ("attitude", "axis", ((0.0, 1.0), (0.0, 0.0, 0.0), 1.0), ((0, 1, 0),)),
    ("attitude", "max_angle", (-0.1, math.nan), (0.0,)),
    ("velocity", "standing_share", (1.5, -0.1, "1"), (1.0,)),
    ("velocity", "heading_share", (1.5,), (0.0,)),
    ("velocity", "forward_share", (math.nan,), (0.5,)),
    ("velocity", "heading_stiffness", (math.nan, None), (0.5,)),
]  # fmt: skip


@pytest.mark.parametrize(("part", "name", "wrong", "right"), SETTINGS)
def test_settings_of_a_wrong_kind_are_named(make_env, part, name, wrong, right):
    for value in right:
        own = {"force_scale": (1.0, 0.0, 0.0)} if part == "wrench" else {}
        make_env(1, **parts_with(part, **(own | {name: value})))
    for value in wrong:
        with raises(SimStateError, name=name):
            make_env(1, **parts_with(part, **{name: value}))


def test_noise_has_a_range_and_a_deviation():
    for low, high in ((0.1, -0.1), (0.0, math.nan), ("0", 1.0)):
        with raises(InvalidInputError, name="(low, high)"):
            UniformNoise(low, high)
    for std in (-0.1, "0.1", math.inf):
        with raises(InvalidInputError, name="std"):
            GaussianNoise(std)
    with raises(InvalidInputError, name="mean"):
        GaussianNoise(0.1, math.nan)
    with raises(InvalidInputError, name="limits"):
        SensorNoise(limits=1.0)


def test_an_entity_is_no_text(make_env):
    parts = parts_with("observation", params={"asset_cfg": "robot"})
    with raises(InvalidInputError, name="asset_cfg"):
        make_env(1, **parts)


def test_names_are_texts_and_switches_are_bools(make_env, make_cfg):
    alive = RewardTermCfg(rewards.is_alive, weight=1.0)
    with pytest.raises(InvalidInputError):
        make_env(1, rewards={1: alive})
    with raises(InvalidInputError, name="auto_reset"):
        Env(make_cfg(), auto_reset="no")


COMPLEX = torch.zeros(4, dtype=torch.complex64)
WHOLE_REWARDS = {
    "nothing": None, "complex numbers": COMPLEX, "texts": np.full(4, "a"),
    "another device": torch.zeros(4, device="meta"),
    "three parts": (torch.zeros(4), {}, 1), "a list": (torch.zeros(4), [1]),
    "no infos": (torch.zeros(4), None),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WHOLE_REWARDS)
def test_a_reward_of_one_function_is_checked(make_env, given, mistake):
    reward = TermCfg(returning(WHOLE_REWARDS[mistake]))
    env = make_env(4, rewards={}, reward=reward)
    before = env.snapshot()
    with raises(SimStateError, name="reward"):
        env.step(given(env, 1)[0])
    after = env.snapshot()
    for name, values in before.slots.items():
        assert torch.equal(values, after.slots[name]), name


def test_infos_are_a_dictionary_of_rows(make_env, given):
    for infos, name in (
        (None, "info"), (torch.zeros(4), "info"),
        ({"a": torch.zeros(4, device="meta")}, "a"),
    ):  # fmt: skip
        env = make_env(4, info=TermCfg(returning(infos)))
        with raises(InvalidInputError, name=name):
            env.step(given(env, 1)[0])


@pytest.mark.parametrize(
    "value", [torch.zeros(4), "level 2", {"a": torch.zeros(4)}, (1, 2)]
)
def test_a_curriculum_returns_numbers(make_env, given, value):
    env = make_env(4, curricula={"mine": CurriculumTermCfg(returning(value))})
    env.step(given(env, 1)[0])
    with raises(InvalidInputError, name="mine"):
        env.reset(env_ids=[2, 0])
    assert env.episode_length_buf.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("name", ["ended", "diverged", "command gait", "command/a"])
def test_an_interval_event_may_have_any_name(make_env, given, name):
    """The worlds that are due are those of the event, and not of something else."""
    happened = []

    def note(env: Env, env_ids: torch.Tensor) -> None:
        happened.append((env.common_step_counter, env_ids.tolist()))

    parts = parts_with("velocity")
    event = EventTermCfg(note, mode="interval", interval_s=(0.035, 0.035))
    env = make_env(3, events={name: event}, **parts)
    for action in given(env, 5):
        env.step(action)
    assert happened == [(2, [0, 1, 2]), (4, [0, 1, 2])]


def test_terms_of_one_function_may_differ_in_a_tensor(make_env, given):
    def weighted(env: Env, weights: torch.Tensor) -> torch.Tensor:
        return env.scene["robot"].data.joint_pos * weights

    both = [torch.tensor([2.0, -3.0]), torch.tensor([0.5, 4.0])]
    terms = {
        name: ObservationTermCfg(weighted, params={"weights": weights})
        for name, weights in zip("ab", both, strict=True)
    }
    env = make_env(3, observations={"policy": ObservationGroupCfg(terms)})
    found = env.step(given(env, 1)[0])[0]["policy"]
    joints = env.scene["robot"].data.joint_pos
    torch.testing.assert_close(found.to(joints), joints.repeat(1, 2) * torch.cat(both))


def test_an_error_of_torch_names_the_term(make_env, given):
    def wrong(env: Env) -> torch.Tensor:
        return torch.ones(3) + torch.ones(env.num_envs)

    env = make_env(4, rewards={"mine": RewardTermCfg(wrong, weight=1.0)})
    with pytest.raises(RuntimeError) as raised:
        env.step(given(env, 1)[0])
    assert raised.value.__notes__ == ["It was raised in the reward term 'mine'."]


def test_hints_for_frequent_shapes(make_env, given):
    for value, hint in ((torch.zeros(4, 1), "[:, 0]"), (None, "return")):
        env = make_env(4, rewards={"a": RewardTermCfg(returning(value), weight=1.0)})
        with pytest.raises(ShapeError) as raised:
            env.step(given(env, 1)[0])
        assert hint in str(raised.value)
    term = ObservationTermCfg(returning(torch.zeros(4)))
    with pytest.raises(ShapeError) as raised:
        make_env(4, observations={"policy": ObservationGroupCfg({"a": term})})
    assert "[:, None]" in str(raised.value)


def logged(function):
    """A decorator as users write it, without functools.wraps."""

    def wrapper(*args, **params):
        return function(*args, **params)

    return wrapper


def test_terms_may_take_any_arguments(make_env, given):
    seen = {}

    def reward(env: Env, *unused: object, scale: float, **others: float):
        seen["reward"] = unused, scale, others
        return torch.full((env.num_envs,), scale * others["more"])

    def event(env: Env, env_ids: torch.Tensor, speed: float) -> None:
        seen["event"] = env_ids.tolist(), speed

    term = RewardTermCfg(reward, weight=1.0, params={"scale": 2.0, "more": 3.0})
    push = EventTermCfg(logged(event), mode="step", params={"speed": 0.5})
    env = make_env(2, rewards={"a": term}, events={"a": push})
    reward_of_step = env.step(given(env, 1)[0])[1]
    assert seen == {"reward": ((), 2.0, {"more": 3.0}), "event": ([0, 1], 0.5)}
    torch.testing.assert_close(reward_of_step, torch.full((2,), 6.0 * env.step_dt))


def test_stages_of_curricula_may_be_in_any_order(make_env, given):
    terms = {
        "weight": CurriculumTermCfg(
            curricula.reward_weight,
            params={"term_name": "alive", "stages": ((2, 5.0), (1, 3.0), (9, 7.0))},
        ),
        "speed": CurriculumTermCfg(
            curricula.velocity_stages,
            params={
                "command_name": "a",
                "stages": [(2, (0.5, 2.0)), (1, {"lin_vel_x": (0.0, 1.0)})],
            },
        ),
    }
    env = make_env(2, curricula=terms, **parts_with("velocity"))
    for action in given(env, 3):
        env.step(action)
    log = env.reset()[1]["log"]
    assert log["Curriculum/weight"] == env.rewards.weight("alive") == 5.0
    assert log["Curriculum/speed/lin_vel_x"] == 2.0
    assert env.commands["a"].range("lin_vel_x") == (0.5, 2.0)


def test_a_clock_has_a_period_above_zero(make_env, given):
    env = make_env(2)
    for action in given(env, 3):
        env.step(action)
    for view in (env, env.host):
        for wrong in (0.0, -0.5, 0, math.nan, math.inf, "1", None):
            with raises(InvalidInputError, name="period_s"):
                view.phase(wrong)
        for period in (1, 0.5, 2.0, np.float32(0.25)):
            expected = np.full(2, (3 * env.step_dt / float(period)) % 1.0)
            np.testing.assert_allclose(view.phase(period), expected, atol=1e-12)
