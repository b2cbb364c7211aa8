"""Action terms: what reaches the controls, and what the robot then does."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import (
    EntityCfg,
    MotorActuatorCfg,
    SceneCfg,
    VelocityActuatorCfg,
)
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.env import (
    BodyWrenchActionCfg,
    EventTermCfg,
    JointEffortActionCfg,
    JointPositionActionCfg,
    JointVelocityActionCfg,
    events,
)

from .conftest import ROBOT


def scene(**entity: object) -> SceneCfg:
    return SceneCfg(entities={"robot": EntityCfg(model=ROBOT, **entity)})


def test_positions_are_measured_from_the_default_pose(make_env, given, engine):
    env = make_env(
        engine=engine,
        actions={
            "joints": JointPositionActionCfg(
                scale={"hip": 0.5, "knee": 0.25}, offset={"hip": 0.1}
            )
        },
    )
    (action,) = given(env, 1)
    env.step(action)
    expected = action.double() * torch.tensor([0.5, 0.25]) + torch.tensor([0.1, 0.3])
    ctrl = env.sim.data.ctrl.double()
    torch.testing.assert_close(ctrl, expected, atol=1e-6, rtol=0)
    assert env.action_names == ["joints/hip", "joints/knee"]


def test_zero_holds_the_default_pose_and_without_the_offset_it_does_not(make_env):
    def settled(**options: object) -> torch.Tensor:
        env = make_env(2, actions={"joints": JointPositionActionCfg(**options)})
        env.sim.expand("opt.gravity")[:] = 0.0
        for _ in range(80):
            env.step(torch.zeros(2, 2))
        return env.scene["robot"].data.joint_pos[0]

    held = settled()
    torch.testing.assert_close(
        held, torch.tensor([0.0, 0.3]).double(), atol=1e-3, rtol=0
    )
    straight = settled(use_default_offset=False)
    torch.testing.assert_close(straight, torch.zeros(2).double(), atol=1e-3, rtol=0)


def test_targets_have_the_digits_of_the_engines_dtype(make_env, given):
    cfg = JointPositionActionCfg(
        scale={"hip": 0.7, "knee": 0.1}, offset={"hip": 0.3}, use_default_offset=False
    )
    env = make_env(actions={"joints": cfg})
    (action,) = given(env, 1)
    env.step(action)
    want = action.double().numpy() * [0.7, 0.1] + [0.3, 0.0]
    np.testing.assert_array_equal(env.sim.data.ctrl, want)


def test_targets_are_clipped(make_env):
    env = make_env(actions={"joints": JointPositionActionCfg(clip=(-0.2, 0.4))})
    env.step(torch.tensor([[5.0, 0.0]] * 4))
    assert env.sim.data.ctrl[0].tolist() == [0.4, pytest.approx(0.3)]
    env.step(torch.tensor([[-5.0, 5.0]] * 4))
    assert env.sim.data.ctrl[0].tolist() == [-0.2, 0.4]


def test_joints_by_regex_in_the_order_asked_for(make_env, given):
    env = make_env(
        actions={
            "second": JointPositionActionCfg(joint_names="kn.*"),
            "first": JointPositionActionCfg(joint_names=["hip"]),
        }
    )
    assert env.action_names == ["second/knee", "first/hip"]
    (action,) = given(env, 1)
    env.step(action)
    expected = action.double()[:, [1, 0]] + torch.tensor([0.0, 0.3])
    torch.testing.assert_close(env.sim.data.ctrl.double(), expected)
    ordered = JointPositionActionCfg(joint_names=["knee", "hip"], preserve_order=True)
    assert make_env(actions={"a": ordered}).action_names == ["a/knee", "a/hip"]


def test_a_servo_with_a_biased_encoder_goes_astray_by_the_bias(make_env, engine):
    """The servo's own loop closes over the encoder, as on a real robot."""
    env = make_env(
        3,
        engine=engine,
        events={
            "bias": EventTermCfg(
                events.randomize_encoder_bias,
                params={"bias_range": (0.02, 0.1)},
                mode="startup",
            )
        },
        episode_length_s=10.0,
    )
    env.sim.expand("opt.gravity")[:] = 0.0
    for _ in range(100):
        env.step(torch.zeros(3, 2))
    data = env.scene["robot"].data
    torch.testing.assert_close(
        data.joint_pos_biased, data.default_joint_pos, atol=2e-3, rtol=0
    )
    assert float((data.joint_pos - data.default_joint_pos).abs().min()) > 0.015


def test_efforts_are_torques_on_the_joints(make_env, given, engine):
    actuators = (MotorActuatorCfg(joints=".*", gear=3.0),)
    env = make_env(
        engine=engine,
        scene=scene(actuators=actuators, keep_model_actuators=False),
        actions={"torque": JointEffortActionCfg(scale=2.0)},
    )
    (action,) = given(env, 1)
    env.step(action)
    torque = env.scene["robot"].data.qfrc_actuator.float()
    torch.testing.assert_close(torque, 2.0 * action, rtol=1e-5, atol=1e-6)


def test_velocities_are_reached(make_env, engine):
    actuators = (VelocityActuatorCfg(joints=".*", damping=5.0),)
    env = make_env(
        2,
        engine=engine,
        scene=scene(actuators=actuators, keep_model_actuators=False),
        actions={"speed": JointVelocityActionCfg(scale={"hip": 0.5, "knee": 0.25})},
        events={},
    )
    env.sim.expand("opt.gravity")[:] = 0.0
    for _ in range(20):
        env.step(torch.tensor([[1.0, 2.0], [-1.0, 1.0]]))
    wanted = torch.tensor([[0.5, 0.5], [-0.5, 0.25]])
    reached = env.scene["robot"].data.joint_vel.float()
    torch.testing.assert_close(reached, wanted, rtol=0.1, atol=0.02)


def test_a_wrench_acts_along_the_bodys_own_axes(make_env, engine):
    env = make_env(
        2,
        engine=engine,
        actions={
            "thrust": BodyWrenchActionCfg(
                body_name="trunk", force_scale=(5, 0, 0), torque_scale=(0, 0, 2)
            )
        },
    )
    assert env.action_names == ["thrust/force_x", "thrust/torque_z"]
    quat = np.array([0.5, 0.5, -0.5, 0.5])
    env.scene["robot"].write_root_link_pose_to_sim([[0, 0, 5, *quat]])
    env.step(torch.tensor([[0.4, -3.0], [0.0, 0.5]]))
    force, torque = np.zeros(3), np.zeros(3)
    mujoco.mju_rotVecQuat(force, np.array([2.0, 0, 0]), quat)
    mujoco.mju_rotVecQuat(torque, np.array([0, 0, -2.0]), quat)
    wrench = env.scene["robot"].data.body_external_wrench[0, 0].double()
    np.testing.assert_allclose(wrench, np.concatenate([force, torque]), atol=1e-6)


@pytest.mark.parametrize(
    ("action", "error", "name"),
    [
        (JointPositionActionCfg(joint_names="hipp"), UnknownNameError, "hipp"),
        (JointPositionActionCfg(scale={"ankle": 1.0}), UnknownNameError, "ankle"),
        (JointEffortActionCfg(), InvalidInputError, "robot"),
        (JointPositionActionCfg(clip=(1.0, -1.0)), InvalidInputError, "clip"),
        (JointPositionActionCfg(asset_name="robt"), UnknownNameError, "robt"),
        (BodyWrenchActionCfg(body_name="trunk"), InvalidInputError, "a"),
        (BodyWrenchActionCfg(body_name="tronk"), UnknownNameError, "tronk"),
    ],
)  # fmt: skip
def test_bad_action_terms_are_refused(make_env, action, error, name):
    with raises(error, name=name):
        make_env(actions={"a": action})


def test_joints_without_such_an_actuator_are_named(make_env):
    actuators = (MotorActuatorCfg(joints="hip"),)
    undriven = scene(actuators=actuators, keep_model_actuators=False)
    with raises(InvalidInputError, name="robot"):
        make_env(
            scene=undriven,
            actions={"a": JointEffortActionCfg(joint_names=".*")},
        )
    assert make_env(
        scene=undriven, actions={"a": JointEffortActionCfg()}
    ).action_names == ["a/hip"]


@pytest.mark.parametrize("use_default_offset", [True, False])
def test_a_target_is_offset_plus_scale_times_action(make_env, use_default_offset):
    cfg = JointPositionActionCfg(
        scale={"hip": 0.5, "knee": -0.25}, offset={"hip": 0.125, "knee": 0.75},
        clip=(-0.5, 0.9375), use_default_offset=use_default_offset,
    )  # fmt: skip
    env = make_env(2, actions={"a": cfg})
    env.step(torch.tensor([[0.5, -1.0], [-2.0, 0.25]]))
    wanted = np.array([[0.375, 1.0], [-0.875, 0.6875]])
    wanted[:, 1] += 0.3 * use_default_offset
    found = env.scene["robot"].data.joint_pos_target
    np.testing.assert_allclose(found, wanted.clip(-0.5, 0.9375), atol=1e-7)
