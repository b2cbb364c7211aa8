"""Actions that move a site: against the damped inverse of MuJoCo's own Jacobian."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import EntityCfg, InitialStateCfg, SceneCfg
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.env import TaskSpaceActionCfg

JOINTS = [f"joint{k}" for k in range(1, 8)]
TURNED = (math.cos(0.6), 0.0, math.sin(0.6) * 0.6, math.sin(0.6) * 0.8)


def arm_env(make_env, **given):
    term = TaskSpaceActionCfg(**{"site_name": "tcp", "joint_names": "joint.*", **given})
    arm = EntityCfg(model="arm", init_state=InitialStateCfg(rot=TURNED))
    scene = SceneCfg(entities={"robot": arm})
    env = make_env(3, scene=scene, actions={"tool": term}, decimation=20)
    robot = env.scene["robot"]
    generator = torch.Generator().manual_seed(4)
    pos = robot.data.default_joint_pos.clone()
    bent = torch.tensor([0.1, 0.6, -0.2, 1.4, 0.3, 1.1, 0.4])
    pos[:, :7] = bent + 0.2 * torch.randn(3, 7, generator=generator)
    robot.write_joint_state_to_sim(pos, torch.zeros_like(pos))
    return env


def test_targets_are_those_of_mujocos_jacobian(make_env, load_row):
    env = arm_env(make_env, translation_scale=0.02, rotation_scale=0.1, damping=0.03)
    assert env.action_names == [f"tool/{c}" for c in ("x", "y", "z", "rx", "ry", "rz")]
    action = torch.linspace(-1.3, 0.9, 18).reshape(3, 6)
    model = env.sim.model
    expected = []
    for world in range(3):
        data = load_row(model, env.sim.state[world])
        mujoco.mj_forward(model, data)
        both = np.zeros((6, model.nv))
        mujoco.mj_jacSite(model, data, both[:3], both[3:], 0)
        base = data.body("robot/base").xmat.reshape(3, 3).T
        jac = np.concatenate([base @ both[:3], base @ both[3:]])[:, :7]
        asked = np.clip(action[world].double().numpy(), -1, 1)
        asked *= [0.02, 0.02, 0.02, 0.1, 0.1, 0.1]
        step = jac.T @ np.linalg.inv(jac @ jac.T + 0.03**2 * np.eye(6)) @ asked
        expected.append(data.qpos[:7] + step)
    env.step(action)
    found = env.scene["robot"].data.joint_pos_target[:, :7]
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_the_site_follows_its_target(make_env):
    env = arm_env(make_env, translation_scale=0.01)
    robot = env.scene["robot"]
    start = robot.data.site_pos_w[:, 0].clone()
    action = torch.tensor([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.6, -0.8]])
    for _ in range(5):
        env.step(action)
    moved = robot.data.site_pos_w[:, 0] - start
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, robot.data.root_link_quat_w[0].numpy())
    asked = action.double() @ torch.tensor(matrix.reshape(3, 3)).T
    along = (moved * asked).sum(1)
    across = (moved - along[:, None] * asked).norm(dim=1)
    assert bool((along > 0.015).all())
    assert bool((across < 0.35 * along).all())


def test_targets_stay_within_the_limits(make_env):
    env = arm_env(make_env, translation_scale=5.0, damping=0.001)
    limits = env.scene["robot"].data.joint_pos_limits[:, :7]
    env.step(torch.ones(3, 3))
    target = env.scene["robot"].data.joint_pos_target[:, :7]
    low, high = limits.unbind(-1)
    assert bool(((target >= low) & (target <= high)).all())
    assert bool(((target == low) | (target == high)).any())


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"translation_scale": 0.0}, "translation_scale"),
        ({"damping": 0.0}, "damping"),
        ({"damping": math.nan}, "damping"),
        ({"limit": -1.0}, "limit"),
    ],
)
def test_bad_settings_are_refused(make_env, given, name):
    with raises(InvalidInputError, name=name):
        arm_env(make_env, **given)


def test_an_unknown_site_is_refused(make_env):
    with raises(UnknownNameError, name="tip"):
        arm_env(make_env, site_name="tip")
