"""Tasks of dm_control's suite against dm_control itself."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.mujoco_versions import require_dm_control
from tests.raised import raises

from simstate import InvalidInputError
from simstate.env import Env, tasks
from simstate.env.tasks.suite import SUITE

from .dm_control_suite import STATE, TOLERANCE, flat, theirs_of

require_dm_control()
NUM = 3
STEPS = 60


def adopt(theirs, env: Env, world: int):
    """Start an episode of dm_control's environment in the state of a world."""
    theirs.reset()
    physics = theirs.physics
    if "target" in physics.named.model.geom_pos.axes.row.names:  # the reacher's
        target = mujoco.mj_name2id(
            env.sim.model, mujoco.mjtObj.mjOBJ_GEOM, "model/target"
        )
        pos = env.sim.expand("geom_pos")[world, target]
        physics.named.model.geom_pos["target"] = pos.numpy()
    row = env.sim.state[world].numpy()
    mujoco.mj_setState(physics.model.ptr, physics.data.ptr, row, STATE)
    physics.after_reset()
    mujoco.mj_setState(physics.model.ptr, physics.data.ptr, row, STATE)
    return theirs.task.get_observation(physics)


@pytest.mark.parametrize("name", SUITE)
def test_observations_and_rewards_are_dm_controls(name):
    env = Env(tasks.make_cfg(name), num_envs=NUM, auto_reset=False, seed=6)
    seen, _ = env.reset(seed=11)
    theirs = [theirs_of(name) for _ in range(NUM)]
    assert theirs[0].control_timestep() == pytest.approx(env.step_dt, rel=1e-12)
    assert theirs[0]._step_limit == pytest.approx(env.max_episode_length)
    for k, other in enumerate(theirs):
        want = flat(adopt(other, env, k))
        np.testing.assert_allclose(seen["policy"][k], want, **TOLERANCE)
    spec = theirs[0].action_spec()
    rng = np.random.default_rng(5)
    rewards = []
    for _ in range(STEPS):
        action = rng.uniform(spec.minimum, spec.maximum, (NUM, *spec.shape))
        seen, reward, terminated, truncated, _ = env.step(torch.from_numpy(action))
        assert not (terminated | truncated).any()
        for k, other in enumerate(theirs):
            step = other.step(action[k])
            np.testing.assert_allclose(
                seen["policy"][k], flat(step.observation), **TOLERANCE
            )
            np.testing.assert_allclose(reward[k], step.reward, **TOLERANCE)
            rewards.append(step.reward)
    sparse = ("dm-reacher", "dm-finger", "dm-pendulum", "dm-hopper")
    assert len(set(rewards)) > 5 or name.startswith(sparse)


@pytest.mark.parametrize("name", SUITE)
def test_models_are_dm_controls(name):
    env = Env(tasks.make_cfg(name), num_envs=1)
    ours, theirs = env.sim.model, theirs_of(name)
    theirs.reset()
    model = theirs.physics.model.ptr
    for field in ("body_mass", "body_inertia", "dof_damping", "geom_size", "jnt_range",
                  "actuator_gear", "actuator_biasprm", "sensor_type", "geom_friction",
                  "dof_armature", "jnt_stiffness"):  # fmt: skip
        np.testing.assert_array_equal(
            getattr(ours, field), getattr(model, field), err_msg=field
        )


def goals_of(env: Env, name: str) -> None:
    """Move the first worlds to where a task that rewards little rewards something."""
    sim = env.sim
    if name.startswith("dm-reacher"):
        target = mujoco.mj_name2id(sim.model, mujoco.mjtObj.mjOBJ_GEOM, "model/target")
        finger = mujoco.mj_name2id(sim.model, mujoco.mjtObj.mjOBJ_GEOM, "model/finger")
        near = sim.data.geom_xpos[:2, finger].clone()
        near[:, 0] += 0.01
        sim.write_parameter("geom_pos", near[:, None], [target], [0, 1])
        return
    qpos = sim.data.qpos.clone()
    qvel = sim.data.qvel.clone()
    if name.startswith("dm-hopper"):
        qpos[:2] = torch.as_tensor(sim.model.qpos0)
        qpos[1, 3] += 0.1
        qvel[1, 0] = 2.5
    elif name == "dm-pendulum-swingup":
        qpos[:2, 0] = torch.tensor([0.05, 0.13])
    else:
        qvel[:2, 2] = torch.tensor([-30.0, -16.0])
    sim.write_field("qpos", qpos)
    sim.write_field("qvel", qvel)


@pytest.mark.parametrize(
    "name",
    ["dm-reacher-easy", "dm-reacher-hard", "dm-hopper-stand", "dm-hopper-hop",
     "dm-pendulum-swingup", "dm-finger-spin"],
)  # fmt: skip
def test_goals_are_rewarded_as_by_dm_control(name):
    env = Env(tasks.make_cfg(name), num_envs=NUM, auto_reset=False)
    env.reset(seed=2)
    goals_of(env, name)
    theirs = [theirs_of(name) for _ in range(NUM)]
    for k, other in enumerate(theirs):
        adopt(other, env, k)
    rewards = []
    for step in range(12):
        action = 0.1 * np.sin(step + np.arange(NUM * env.action_dim))
        rows = action.reshape(NUM, -1)
        _, reward, *_ = env.step(torch.from_numpy(rows))
        want = [other.step(rows[k]).reward for k, other in enumerate(theirs)]
        np.testing.assert_allclose(reward, want, **TOLERANCE)
        rewards += want
    assert max(rewards) > 0.2
    assert min(rewards) < 0.9


def test_resets_differ_by_world_and_repeat_with_the_seed():
    for name in ("dm-reacher-easy", "dm-quadruped-walk", "dm-cheetah-run"):
        env = Env(tasks.make_cfg(name), num_envs=NUM, auto_reset=False)
        first = env.reset(seed=4)[0]["policy"]
        assert not torch.equal(first[0], first[1])
        env.step(torch.zeros(NUM, env.action_dim))
        assert torch.equal(env.reset(seed=4)[0]["policy"], first)
        env.reset(env_ids=[1])
        again = env.observations["policy"]
        assert torch.equal(again[[0, 2]], first[[0, 2]])
        assert not torch.equal(again[1], first[1])


def test_without_dm_control_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr("simstate.base.extras.find_spec", lambda name: None)
    with raises(InvalidInputError, name="dm_control"):
        tasks.make_cfg("dm-cheetah-run")
