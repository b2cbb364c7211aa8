"""Gymnasium's MuJoCo environments against Gymnasium itself, bit for bit."""

from __future__ import annotations

import inspect
from dataclasses import fields

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from tests.raised import raises

import simstate.interop.gymnasium  # noqa: F401 (registers the tasks)
from simstate import InvalidInputError, SimStateError, UnknownNameError
from simstate.env import Env, tasks
from simstate.env.tasks.classics import CLASSICS

NUM = 3
ALL = pytest.mark.parametrize("name", CLASSICS)

OPTIONS = {
    "Ant-v5": {
        "frame_skip": 3, "forward_reward_weight": 1.7, "ctrl_cost_weight": 0.3,
        "contact_cost_weight": 2e-3, "healthy_reward": 0.7,
        "main_body": "front_left_leg",
        "terminate_when_unhealthy": False, "healthy_z_range": (0.4, 0.8),
        "contact_force_range": (-0.3, 0.6), "reset_noise_scale": 0.2,
        "exclude_current_positions_from_observation": False,
        "include_cfrc_ext_in_observation": False,
    },
    "HalfCheetah-v5": {
        "frame_skip": 2, "forward_reward_weight": 0.3, "ctrl_cost_weight": 0.7,
        "reset_noise_scale": 0.3, "exclude_current_positions_from_observation": False,
    },
    "Hopper-v5": {
        "forward_reward_weight": 0.6, "ctrl_cost_weight": 0.02, "healthy_reward": 1.3,
        "terminate_when_unhealthy": False, "healthy_state_range": (-2.0, 3.0),
        "healthy_z_range": (0.9, 1.3), "healthy_angle_range": (-0.1, 0.3),
        "reset_noise_scale": 0.02, "exclude_current_positions_from_observation": False,
    },
    "Walker2d-v5": {
        "frame_skip": 3, "forward_reward_weight": 0.6, "ctrl_cost_weight": 0.02,
        "healthy_reward": 1.3, "healthy_z_range": (1.1, 1.4),
        "healthy_angle_range": (-0.4, 0.3), "reset_noise_scale": 0.02,
        "exclude_current_positions_from_observation": False,
    },
    "Swimmer-v5": {
        "forward_reward_weight": 0.6, "ctrl_cost_weight": 0.02,
        "reset_noise_scale": 0.3, "exclude_current_positions_from_observation": False,
    },
    "Humanoid-v5": {
        "forward_reward_weight": 0.6, "ctrl_cost_weight": 0.3,
        "contact_cost_weight": 3e-6, "contact_cost_range": (0.01, 0.2),
        "healthy_reward": 2.0, "terminate_when_unhealthy": False,
        "healthy_z_range": (1.2, 1.3), "reset_noise_scale": 0.05,
        "exclude_current_positions_from_observation": False,
        "include_cinert_in_observation": False,
        "include_cfrc_ext_in_observation": False,
    },
    "HumanoidStandup-v5": {
        "uph_cost_weight": 0.4, "ctrl_cost_weight": 0.3, "impact_cost_weight": 3e-6,
        "impact_cost_range": (0.01, 0.2), "reset_noise_scale": 0.05,
        "exclude_current_positions_from_observation": False,
        "include_cvel_in_observation": False,
        "include_qfrc_actuator_in_observation": False,
    },
    "InvertedPendulum-v5": {"frame_skip": 3, "reset_noise_scale": 0.05},
    "InvertedDoublePendulum-v5": {
        "frame_skip": 3, "healthy_reward": 3.0, "reset_noise_scale": 0.05,
    },
    "Pusher-v5": {
        "frame_skip": 3, "reward_near_weight": 0.2, "reward_dist_weight": 0.7,
        "reward_control_weight": 0.3,
    },
    "Reacher-v5": {
        "frame_skip": 3, "reward_dist_weight": 0.7, "reward_control_weight": 0.3,
    },
}  # fmt: skip
"""Other values than Gymnasium's own for all keyword arguments but those of pictures."""


def actions_of(name: str, seed: int = 0):
    """Yield random actions, also beyond the range; every third is in float64."""
    rng, space = np.random.default_rng(seed), gymnasium.make(name).action_space
    count = 0
    while True:
        count += 1
        dtype = np.float64 if count % 3 == 0 else np.float32
        size = (NUM, *space.shape)
        yield rng.uniform(1.2 * space.low, 1.2 * space.high, size).astype(dtype)


def assert_same(ours, theirs) -> None:
    """Compare what reset or step returned: values, infos and their dtypes."""
    *values, infos = theirs
    for got, want in zip(ours, values, strict=False):
        np.testing.assert_array_equal(got, want)
    found = ours[-1]
    assert found.keys() == infos.keys()
    for key, want in infos.items():
        if key in ("final_info", "final_obs"):
            continue
        np.testing.assert_array_equal(found[key], want, err_msg=key)
        assert np.asarray(found[key]).dtype == np.asarray(want).dtype, key


def compare(name: str, steps: int, episodes: int, **options) -> int:
    """Step a vector of each kind until there were enough steps and episodes."""
    ours = gymnasium.make_vec(
        f"simstate/{name}", num_envs=NUM, autoreset_mode="NextStep", **options
    )
    theirs = gymnasium.make_vec(
        name, num_envs=NUM, vectorization_mode="sync", **options
    )
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.single_action_space == theirs.single_action_space
    assert_same(ours.reset(seed=31), theirs.reset(seed=31))
    ended = 0
    for done, action in enumerate(actions_of(name), start=1):
        results = ours.step(action), theirs.step(action)
        assert_same(*results)
        ended += int((results[1][2] | results[1][3]).sum())
        if done >= steps and ended >= episodes:
            return ended
    raise AssertionError


@ALL
def test_bits_are_gymnasiums(name):
    assert compare(name, 110, 3, max_episode_steps=50) >= 3


@ALL
def test_keyword_arguments_have_the_same_effect(name):
    theirs = inspect.signature(type(gymnasium.make(name).unwrapped)).parameters
    known = {field.name: field.default for field in fields(CLASSICS[name])}
    assert known.keys() == theirs.keys() - {"default_camera_config", "kwargs"}
    assert known == {key: theirs[key].default for key in known}
    left = known.keys() - OPTIONS[name].keys() - {"xml_file", "frame_skip"}
    assert all(key.startswith(("include_", "terminate_")) for key in left)
    compare(name, 40, 1, max_episode_steps=17, **OPTIONS[name])


@pytest.mark.soak
@ALL
def test_bits_are_gymnasiums_over_twenty_episodes(name):
    assert compare(name, 1000, 20) >= 20


@ALL
def test_one_environment_is_gymnasiums(name):
    ours, theirs = gymnasium.make(f"simstate/{name}"), gymnasium.make(name)
    assert ours.spec.max_episode_steps == theirs.spec.max_episode_steps
    assert ours.action_space == theirs.action_space
    assert_same(ours.reset(seed=8), theirs.reset(seed=8))
    for _, action in zip(range(60), actions_of(name, 2), strict=False):
        got, want = ours.step(action[1]), theirs.step(action[1])
        assert_same(got, want)
        assert [type(x) for x in got[2:4]] == [bool, bool]
        if want[2] or want[3]:
            assert_same(ours.reset(), theirs.reset())


def test_terminated_and_truncated_in_one_step():
    kinds = [f"simstate/{name}" for name in ["Hopper-v5"]] + ["Hopper-v5"]
    ends = []
    for kind in kinds:
        env = gymnasium.make(kind, max_episode_steps=20)
        env.reset(seed=10)
        env.action_space.seed(10)
        found = []
        for _ in range(6):
            done = False
            while not done:
                _, _, *end, _ = env.step(env.action_space.sample())
                done = any(end)
            found.append(end)
            env.reset()
        ends.append(found)
    assert ends[0] == ends[1]
    both = []
    for seed in range(40):
        ours = gymnasium.make_vec(
            "simstate/Hopper-v5", num_envs=NUM, max_episode_steps=20,
            autoreset_mode="NextStep",
        )  # fmt: skip
        ours.reset(seed=seed)
        for _, action in zip(range(20), actions_of("Hopper-v5", seed), strict=False):
            _, _, terminated, truncated, _ = ours.step(action)
            both.append(terminated & truncated)
        if np.any(both):
            return
    raise AssertionError("no world was terminated and truncated at once")


def test_same_step_resets_and_final_infos_are_gymnasiums():
    name = "Hopper-v5"
    ours = gymnasium.make_vec(
        f"simstate/{name}", num_envs=NUM, autoreset_mode="SameStep",
        max_episode_steps=25,
    )  # fmt: skip
    theirs = SyncVectorEnv(
        [lambda: gymnasium.make(name, max_episode_steps=25)] * NUM,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    assert_same(ours.reset(seed=5), theirs.reset(seed=5))
    finals = 0
    for _, action in zip(range(80), actions_of(name, 3), strict=False):
        got, want = ours.step(action), theirs.step(action)
        assert_same(got, want)
        if "final_info" in want[-1]:
            finals += 1
            mine, their = got[-1]["final_info"], want[-1]["final_info"]
            assert mine.keys() == their.keys()
            for key in their:
                np.testing.assert_array_equal(mine[key], their[key], err_msg=key)
            for row, other in zip(
                got[-1]["final_obs"], want[-1]["final_obs"], strict=True
            ):
                assert (row is None) == (other is None)
                if row is not None:
                    np.testing.assert_array_equal(row, other)
    assert finals > 3


def test_seeds_by_world():
    seeds = [40, 7, 23]
    ours = gymnasium.make_vec("simstate/Ant-v5", num_envs=NUM)
    theirs = gymnasium.make_vec("Ant-v5", num_envs=NUM, vectorization_mode="sync")
    assert_same(ours.reset(seed=seeds), theirs.reset(seed=seeds))
    assert_same(ours.reset(), theirs.reset())


@pytest.mark.parametrize("name", ["Ant-v5", "Pusher-v5", "Humanoid-v5"])
def test_a_restored_environment_continues_with_the_same_bits(name):
    cfg = tasks.make_cfg(name, max_episode_steps=12)
    env = Env(cfg, num_envs=NUM, seed=4)
    source = actions_of(name)
    drawn = [torch.from_numpy(next(source)) for _ in range(30)]
    for action in drawn[:7]:
        env.step(action)
    then = env.snapshot()
    first = [env.step(action) for action in drawn[7:]]
    other = Env(cfg, num_envs=NUM, seed=90)
    other.step(drawn[0])
    other.restore(then)
    for action, (seen, reward, *_, extras) in zip(drawn[7:], first, strict=True):
        again = other.step(action)
        assert torch.equal(again[0]["policy"], seen["policy"])
        assert torch.equal(again[1], reward)
        for key, values in extras["info"].items():
            np.testing.assert_array_equal(again[4]["info"][key], values)


def test_bad_calls_are_named(tmp_path):
    with raises(UnknownNameError, name="ctrl_cost_wieght"):
        tasks.make_cfg("Ant-v5", ctrl_cost_wieght=0.1)
    with raises(UnknownNameError, name="healthy_reward"):
        gymnasium.make("simstate/Swimmer-v5", healthy_reward=2.0)
    with raises(SimStateError, name="speed"):
        tasks.make_cfg("Cartpole-Balance", speed=3)
    with raises(InvalidInputError, name="xml_file"):
        tasks.make_cfg("Ant-v5", xml_file="./no_such_file.xml")
    with raises(InvalidInputError, name="engine"):
        Env(tasks.make_cfg("Reacher-v5"), engine="warp")
    with raises(UnknownNameError, name="tail"):
        Env(tasks.make_cfg("Ant-v5", main_body="tail"))
    with raises(InvalidInputError, name="camera_name"):
        gymnasium.make("simstate/Ant-v5", camera_name="track", render_mode="rgb_array")


def test_a_model_of_ones_own(tmp_path):
    text = CLASSICS["Hopper-v5"]().model().read_text()
    path = tmp_path / "light.xml"
    path.write_text(text.replace('timestep="0.002"', 'timestep="0.003"'))
    compare("Hopper-v5", 25, 1, xml_file=str(path), max_episode_steps=20)


def test_without_gymnasium_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gymnasium", None)
    with raises(InvalidInputError, name="gymnasium"):
        tasks.make_cfg("Ant-v5")
