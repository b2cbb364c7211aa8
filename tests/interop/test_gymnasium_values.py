"""Values that Gymnasium's interface takes and returns: seeds, masks, spaces, infos."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
from tests.raised import raises

from simstate import InvalidInputError, UnknownNameError
from simstate.env import tasks
from simstate.interop.gymnasium import GymnasiumEnv, GymnasiumVectorEnv

CARTPOLE = "Cartpole-Balance"


def test_zero_is_a_seed_and_a_mask_may_be_read_only():
    envs = GymnasiumVectorEnv(CARTPOLE, 3, autoreset_mode="Disabled")
    first, _ = envs.reset(seed=[0, 3, 0])
    mask = np.array([True, False, True])
    mask.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again, _ = envs.reset(seed=[0, 9, 0], options={"reset_mask": mask})
    np.testing.assert_array_equal(again, first)
    assert not np.array_equal(first[0], first[1])


def test_actions_without_limits_span_one():
    space = GymnasiumVectorEnv(CARTPOLE, 2).single_action_space
    assert space.low.tolist() == [-1.0]
    assert space.high.tolist() == [1.0]


def test_infos_of_a_task_are_those_of_each_world():
    one = gymnasium.make("simstate/Hopper-v5").unwrapped
    envs = gymnasium.make_vec("simstate/Hopper-v5", num_envs=3)
    _, start = one.reset(seed=4)
    _, starts = envs.reset(seed=[4, 5, 6])
    action = np.array([0.3, -0.2, 0.5])
    *_, info = one.step(action)
    *_, infos = envs.step(np.stack([action, -0.7 * action, 0.1 * action]))
    for found, wanted in ((starts, start), (infos, info)):
        assert {name for name in found if not name.startswith("_")} == set(wanted)
        for name, value in wanted.items():
            assert found[name][0] == value
            assert found[f"_{name}"].all()
        assert any(found[name][0] != found[name][1] for name in wanted)


def short_task():
    cfg = tasks.make_cfg(CARTPOLE)
    cfg.episode_length_s = 0.1
    return cfg


def arrays_in(value: object) -> list[np.ndarray]:
    if isinstance(value, dict):
        return [one for each in value.values() for one in arrays_in(each)]
    return [value] if isinstance(value, np.ndarray) else []


@pytest.mark.parametrize(
    ("task", "mode"),
    [(short_task(), "SameStep"), (short_task(), "NextStep"), ("Hopper-v5", "NextStep")],
    ids=["SameStep", "NextStep", "infos of the task"],
)
def test_no_two_returned_arrays_share_memory(task, mode):
    """Wrappers write to masks and observations of infos in place."""
    envs = GymnasiumVectorEnv(task, 3, autoreset_mode=mode)
    seen, infos = envs.reset(seed=1)
    every = [seen, *arrays_in(infos)]
    idle = np.zeros(envs.action_space.shape, np.float32)
    for _ in range(6):
        *found, infos = envs.step(idle)
        every += [*found, *arrays_in(infos)]
    kept = [one.copy() for one in every]
    for k, one in enumerate(every):
        assert not any(np.shares_memory(one, other) for other in every[:k])
    envs.step(idle)
    for one, other in zip(every, kept, strict=True):
        assert one.dtype == object or np.array_equal(one, other)


@pytest.mark.parametrize("limit", [0.25, 3.0])
def test_a_limit_of_actions_bounds_their_space(limit):
    space = GymnasiumVectorEnv(CARTPOLE, 2, action_limit=limit).single_action_space
    assert (space.low.tolist(), space.high.tolist()) == ([-limit], [limit])
    assert space.dtype == np.float32


def test_spaces_are_those_of_all_worlds():
    envs = GymnasiumVectorEnv(CARTPOLE, 3)
    assert envs.single_observation_space.shape == (4,)
    assert envs.observation_space.shape == (3, 4)
    assert envs.action_space.shape == (3, 1)
    assert envs.metadata["render_fps"] == round(1 / envs.env.step_dt) == 50
    assert GymnasiumEnv(CARTPOLE).metadata["render_fps"] == 50
    with raises(UnknownNameError, name="polic"):
        GymnasiumVectorEnv(CARTPOLE, 2, group="polic")


def test_pictures_have_the_size_that_gymnasium_calls_width_and_height():
    sizes = {"width": 40, "height": 24}
    env = GymnasiumEnv("Hopper-v5", render_mode="rgb_array", **sizes)
    env.reset(seed=1)
    assert env.render().shape == (24, 40, 3)
    alone = GymnasiumEnv("Hopper-v5", render_mode="rgb_array", height=20)
    alone.reset(seed=1)
    assert alone.render().shape == (20, 320, 3)
    wide = GymnasiumEnv("Hopper-v5", render_mode="rgb_array", width=20)
    wide.reset(seed=1)
    assert wide.render().shape == (240, 20, 3)


@pytest.mark.parametrize("name", ["camera_id", "camera_name", "max_geom"])
def test_options_of_gymnasiums_renderer_matter_only_to_pictures(name):
    GymnasiumEnv("Hopper-v5", **{name: 2})
    GymnasiumEnv("Hopper-v5", render_mode="rgb_array", **{name: None})
    with raises(InvalidInputError, name=name):
        GymnasiumEnv("Hopper-v5", render_mode="rgb_array", **{name: 2})


def test_actions_of_float64_are_exact_in_an_environment_of_float64():
    """Else they are float32, as the action space is."""
    value = 0.1 + 1e-12
    short = float(np.float32(value))
    for dtype, given, wanted in (
        ("float64", np.float64, value), ("float64", np.float32, short),
        ("float32", np.float64, short),
    ):  # fmt: skip
        cfg = short_task()
        cfg.dtype = dtype
        envs = GymnasiumVectorEnv(cfg, 1)
        envs.reset(seed=1)
        envs.step(np.array([[value]], given))
        assert envs.env.action.double().item() == wanted


def test_a_rollout_of_one_world_is_that_of_the_first_of_many():
    one, many = GymnasiumEnv(short_task()), GymnasiumVectorEnv(short_task(), 3)
    seen, _ = one.reset(seed=7)
    each, _ = many.reset(seed=[7, 8, 9])
    assert np.array_equal(seen, each[0])
    generator = np.random.default_rng(0)
    for k in range(5):
        actions = generator.normal(size=(3, 1)).astype(np.float32)
        seen, reward, terminated, truncated, info = one.step(actions[0])
        each, rewards, ends, limits, infos = many.step(actions)
        assert np.array_equal(seen, each[0])
        assert (reward, terminated, truncated) == (rewards[0], ends[0], limits[0])
        assert type(reward) is float
        assert info["episode_length"] == infos["episode_length"][0] == k + 1
    assert truncated


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rewards_of_actions_of_either_dtype_are_gymnasiums(dtype):
    """Gymnasium computes the cost of float32 actions in float32."""
    ours = GymnasiumVectorEnv("Ant-v5", 2)
    theirs = gymnasium.make_vec("Ant-v5", num_envs=2, vectorization_mode="sync")
    ours.reset(seed=7)
    theirs.reset(seed=7)
    draws = np.random.default_rng(0)
    for _ in range(5):
        action = draws.uniform(-1, 1, (2, 8)).astype(dtype)
        (_, reward, *_), (_, expected, *_) = ours.step(action), theirs.step(action)
        assert np.array_equal(reward, expected)
