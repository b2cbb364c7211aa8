"""States at reset of dm_control's tasks: distributions and first readings."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy import stats
from tests.mujoco_versions import require_dm_control

from simstate.env import Env, tasks
from simstate.env.tasks.suite import SUITE

from .dm_control_suite import STATE, TOLERANCE, flat, theirs_of

require_dm_control()
SAMPLES = 120


def target_of(env: Env) -> int:
    """Index of the reacher's target; −1: there is none."""
    return mujoco.mj_name2id(env.sim.model, mujoco.mjtObj.mjOBJ_GEOM, "model/target")


def drawn_here(name: str) -> np.ndarray:
    env = Env(tasks.make_cfg(name), num_envs=SAMPLES, auto_reset=False)
    env.reset(seed=21)
    parts = [env.sim.data.qpos, env.sim.data.qvel]
    if name.startswith("dm-reacher"):
        parts.append(env.sim.expand("geom_pos")[:, target_of(env)])
    return torch.cat(parts, dim=1).numpy()


def drawn_there(name: str) -> np.ndarray:
    theirs, rows = theirs_of(name), []
    for _ in range(SAMPLES):
        theirs.reset()
        data = theirs.physics.data
        row = [data.qpos.copy(), data.qvel.copy()]
        if name.startswith("dm-reacher"):
            row.append(theirs.physics.named.model.geom_pos["target"].copy())
        rows.append(np.concatenate(row))
    return np.array(rows)


STARTS = ("cartpole-balance", "cartpole-swingup", "cheetah-run", "walker-walk",
          "hopper-hop", "humanoid-run", "quadruped-walk", "reacher-easy",
          "finger-spin", "acrobot-swingup", "pendulum-swingup")  # fmt: skip
"""Tasks with different states at reset; the others of a domain share them."""


def test_every_kind_of_start_is_compared():
    domains = {name.split("-")[1] for name in SUITE}
    assert {name.split("-")[0] for name in STARTS} == domains


@pytest.mark.parametrize("task", STARTS)
def test_states_at_reset_are_distributed_as_in_dm_control(task):
    ours, theirs = drawn_here(f"dm-{task}"), drawn_there(f"dm-{task}")
    assert ours.shape == theirs.shape
    varies = theirs.std(0) > 1e-9
    np.testing.assert_array_equal(ours.std(0) > 1e-9, varies)
    np.testing.assert_allclose(
        ours[:, ~varies].mean(0), theirs[:, ~varies].mean(0), atol=1e-9
    )
    for column in np.flatnonzero(varies):
        one, other = ours[:, column], theirs[:, column]
        assert stats.ks_2samp(one, other).pvalue > 1e-5, column
        # The supports agree up to what so many draws leave out.
        span = np.ptp(other)
        for end in (np.min, np.max):
            assert abs(end(one) - end(other)) < 0.35 * span, column


@pytest.mark.parametrize("name", SUITE)
def test_first_readings_are_those_of_dm_controls_reset(name):
    """Compare with dm_control's own reset, whose draw is replaced by ours."""
    env = Env(tasks.make_cfg(name), num_envs=3, auto_reset=False)
    seen, _ = env.reset(seed=8)
    for world in range(3):
        theirs = theirs_of(name)
        begin = theirs.task.initialize_episode

        def start(physics, begin=begin, world=world):
            begin(physics)
            if name.startswith("dm-reacher"):
                pos = env.sim.expand("geom_pos")[world, target_of(env)]
                physics.named.model.geom_pos["target"] = pos.numpy()
            row = env.sim.state[world].numpy()
            mujoco.mj_setState(physics.model.ptr, physics.data.ptr, row, STATE)

        theirs.task.initialize_episode = start
        first = theirs.reset().observation
        np.testing.assert_allclose(seen["policy"][world], flat(first), **TOLERANCE)


@pytest.mark.parametrize("name", ["dm-hopper-stand", "dm-hopper-hop"])
def test_a_hopper_above_two_metres_is_not_rewarded(name):
    """The torso stands 2 m above the foot at most: legs of other lengths show it."""
    env = Env(tasks.make_cfg(name), num_envs=3, auto_reset=False)
    env.reset(seed=5)
    foot = mujoco.mj_name2id(env.sim.model, mujoco.mjtObj.mjOBJ_BODY, "model/foot")
    qpos = torch.as_tensor(env.sim.model.qpos0).repeat(3, 1)
    qvel = torch.zeros_like(env.sim.data.qvel)
    qvel[:, 0] = 2.5
    env.sim.write_field("qpos", qpos)
    env.sim.write_field("qvel", qvel)
    nominal = torch.as_tensor(env.sim.model.body_pos[foot])
    longer = nominal.repeat(3, 1)
    longer[:, 2] -= torch.tensor([0.0, 0.8, 1.4])
    env.sim.write_parameter("body_pos", longer[:, None], [foot])
    action = np.array([[0.1, -0.2, 0.1, 0.3], [0.2, 0.1, -0.1, 0.0], [0.0] * 4])
    _, reward, *_ = env.step(torch.from_numpy(action))
    rewards, heights = [], []
    for world in range(3):
        theirs = theirs_of(name)
        theirs.reset()
        physics = theirs.physics
        physics.named.model.body_pos["foot"] = longer[world].numpy()
        with physics.reset_context():
            physics.data.qpos[:], physics.data.qvel[:] = qpos[world], qvel[world]
        step = theirs.step(action[world])
        rewards.append(step.reward)
        heights.append(physics.height())
    assert heights[1] < 2.0 < heights[2]
    np.testing.assert_allclose(reward, rewards, **TOLERANCE)
    assert rewards[2] == 0.0 < rewards[0]
