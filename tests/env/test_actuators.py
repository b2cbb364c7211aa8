"""Actuators as they are: delays, motors with a torque-speed curve, networks."""

from __future__ import annotations

import copy
import dataclasses

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import (
    DcMotorActuatorCfg,
    EntityCfg,
    InitialStateCfg,
    MotorActuatorCfg,
    PositionActuatorCfg,
    SceneCfg,
    Simulation,
)
from simstate.base.errors import InvalidInputError, ModelError
from simstate.env import (
    ActuatorNetworkActionCfg,
    ControlActionCfg,
    EventTermCfg,
    JointPdActionCfg,
    RelativeJointPositionActionCfg,
    events,
)

from .conftest import ROBOT

MOTORS = MotorActuatorCfg(joints=".*", gear=3.0)


def scene(*actuators, **entity):
    cfg = EntityCfg(
        model=ROBOT, actuators=actuators, keep_model_actuators=False, **entity
    )
    return SceneCfg(entities={"robot": cfg}, ground=None, timestep=0.005)


def test_a_delay_is_drawn_for_each_world_as_mujoco_would_have_it(make_env, engine):
    motors = dataclasses.replace(MOTORS, delay_s=0.01, max_delay_s=0.03)
    delays = EventTermCfg(
        events.randomize_delay, params={"delay_range": (0.0, 0.03)}, mode="startup"
    )
    env = make_env(
        4, engine=engine, scene=scene(motors), decimation=1,
        actions={"act": ControlActionCfg(scale=2.0)}, events={"delay": delays},
    )  # fmt: skip
    drawn = env.sim.expand("actuator_delay").double().cpu()
    assert len({float(d) for d in drawn[:, 0]}) == 4
    assert 0.0 <= float(drawn.min()) < float(drawn.max()) <= 0.03
    torch.testing.assert_close(drawn[:, 0], drawn[:, 1])
    found = []
    for k in range(10):
        env.step(torch.tensor([[0.1, -0.3]]) * torch.arange(k + 1, k + 5)[:, None])
        found.append(env.sim.data.actuator_force.double().cpu().clone())
    for world in range(4):
        model = copy.copy(env.sim.model)
        model.actuator_delay[:] = drawn[world].numpy()
        data = mujoco.MjData(model)
        for k in range(10):
            data.ctrl[:] = 2.0 * np.array([0.1, -0.3]) * (k + 1 + world)
            mujoco.mj_step(model, data)
            assert found[k][world].numpy() == pytest.approx(
                data.actuator_force, abs=1e-5
            )


def test_more_delay_than_there_is_room_for_is_refused(make_env):
    delays = EventTermCfg(
        events.randomize_delay, params={"delay_range": (0.0, 0.5)}, mode="startup"
    )
    cfg = PositionActuatorCfg(joints=".*", stiffness=7.0, max_delay_s=0.03)
    with raises(InvalidInputError, name="delay_range"):
        make_env(scene=scene(cfg), events={"delay": delays})
    with raises(InvalidInputError, name="delay_s"):
        PositionActuatorCfg(joints=".*", stiffness=7.0, delay_s=0.2, max_delay_s=0.1)


def test_a_delayed_servo_holds_the_pose_from_the_first_step_on(engine):
    cfg = PositionActuatorCfg(joints=".*", stiffness=50.0, damping=2.0, delay_s=0.05)
    start = InitialStateCfg(joint_pos={"hip": 0.3, "knee": 0.7})
    sim = Simulation(scene(cfg, init_state=start), 2, engine=engine)
    sim.step(3)
    assert sim.data.actuator_force.abs().max() < 1.0  # 35 towards zero
    assert sim.scene["robot"].data.joint_pos[0, 1] == pytest.approx(0.7, abs=0.01)
    sim.reset([1])
    sim.step(3)
    assert sim.data.actuator_force.abs().max() < 1.0


def test_a_dc_motor_gives_less_the_faster_it_turns(engine):
    motor = DcMotorActuatorCfg(
        joints=".*", motor_constant=0.5, resistance=2.0, voltage_limit=24.0, gear=6.0,
        friction=0.2,
    )  # fmt: skip
    sim = Simulation(scene(motor), 3, engine=engine)
    robot = sim.scene["robot"]
    speeds = torch.tensor([[0.0, 2.0], [-3.0, 5.0], [8.0, -8.0]])
    volts = torch.tensor([[10.0, 40.0], [-12.0, 5.0], [24.0, 24.0]])
    robot.write_joint_velocity_to_sim(speeds.to(sim.dtype))
    robot.write_ctrl_to_sim(volts.to(sim.dtype))
    sim.forward()
    shaft = 0.5 * (volts.clamp(-24.0, 24.0) - 0.5 * 6.0 * speeds) / 2.0
    expected = (6.0 * shaft).to(sim.dtype)
    torch.testing.assert_close(robot.data.qfrc_actuator, expected, rtol=1e-5, atol=1e-5)
    assert sim.model.dof_frictionloss[6:].tolist() == [0.2, 0.2]


def pd_env(make_env, action, engine="native", **parts):
    return make_env(
        3, engine=engine, scene=scene(MOTORS), actions={"act": action}, **parts
    )


def test_a_servo_of_ours_is_evaluated_in_every_substep(make_env, engine):
    servo = JointPdActionCfg(
        scale=0.5, stiffness={"hip": 30.0, "knee": 20.0}, damping=0.8,
        effort_limit=6.0, stall_effort=9.0, velocity_limit=4.0,
        use_default_offset=False, offset=0.05,
    )  # fmt: skip
    env = pd_env(make_env, servo, engine)
    action = torch.tensor([[1.0, -1.0], [0.2, 2.0], [-2.0, 0.5]])
    start = env.sim.snapshot()
    env.step(action)
    found = env.scene["robot"].data.joint_pos.clone()
    # The same by hand, with MuJoCo's own step between two evaluations.
    env.sim.restore(start)
    robot, efforts = env.scene["robot"], []
    for _ in range(env.cfg.decimation):
        q, v = robot.data.joint_pos.double(), robot.data.joint_vel.double()
        target = 0.05 + 0.5 * action.double()
        effort = torch.tensor([30.0, 20.0]) * (target - q) - 0.8 * v
        high = (9.0 * (1.0 - v / 4.0)).clamp(0.0, 6.0)
        low = (9.0 * (-1.0 - v / 4.0)).clamp(-6.0, 0.0)
        efforts.append(torch.minimum(torch.maximum(effort, low), high))
        robot.write_ctrl_to_sim((efforts[-1] / 3.0).to(env.sim.dtype))
        env.sim.step()
    assert float((efforts[0] - efforts[-1]).abs().max()) > 0.5
    torch.testing.assert_close(
        found, robot.data.joint_pos, rtol=0, atol=1e-9 if engine == "native" else 1e-5
    )


def test_a_world_that_diverges_in_an_early_substep_is_counted_and_ends(make_env):
    env = pd_env(make_env, JointPdActionCfg(stiffness=1e12, damping=0.0))
    _, _, terminated, _, _ = env.step(
        torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    )
    assert env.divergence.count >= 1
    assert bool(terminated[1])


class Linear(torch.nn.Module):
    """An actuator network that is a formula: two errors, then two velocities."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return (
            3.0 * rows[:, :1] + 2.0 * rows[:, 1:2] - rows[:, 2:3] + 0.5 * rows[:, 3:4]
        )


@pytest.mark.parametrize("kind", ["pt", "onnx"])
def test_a_network_sees_the_history_of_physics_steps(make_env, tmp_path, kind):
    path = tmp_path / f"actuator.{kind}"
    if kind == "pt":
        torch.jit.script(Linear()).save(path)
    else:
        torch.onnx.export(
            Linear(), (torch.zeros(3, 4),), path, dynamo=False,
            dynamic_axes={"rows": {0: "batch"}}, input_names=["rows"],
        )  # fmt: skip
    options = {"network_format": "torchscript"} if kind == "pt" else {}
    network = ActuatorNetworkActionCfg(
        network=path, history=(0, 2), position_scale=0.5, velocity_scale=0.1,
        effort_scale=2.0, use_default_offset=False, **options,
    )  # fmt: skip
    env = pd_env(make_env, network)
    action = torch.tensor([[1.0, -0.4], [0.2, 0.6], [-0.8, 0.5]])
    start = env.snapshot()
    for _ in range(2):
        env.step(action)
    found = env.scene["robot"].data.joint_pos.clone()
    env.restore(start)
    robot = env.scene["robot"]
    past = [(torch.zeros(3, 2), torch.zeros(3, 2))] * 2
    for _ in range(2 * env.cfg.decimation):
        q, v = robot.data.joint_pos.clone(), robot.data.joint_vel.clone()
        past.append((action.double() - q, v))
        (e0, v0), (e2, v2) = past[-1], past[-3]
        effort = 2.0 * (0.5 * (3.0 * e0 + 2.0 * e2) + 0.1 * (-v0 + 0.5 * v2))
        robot.write_ctrl_to_sim(effort / 3.0)
        env.sim.step()
    torch.testing.assert_close(found, robot.data.joint_pos, rtol=0, atol=1e-6)


def test_torchscript_is_run_only_if_it_is_named(make_env, tmp_path):
    torch.jit.script(Linear()).save(tmp_path / "a.pt")
    for name in ("a.pt", "a.onnx"):
        (tmp_path / name).write_bytes((tmp_path / "a.pt").read_bytes())
        cfg = ActuatorNetworkActionCfg(network=tmp_path / name)
        with raises(ModelError, file=name):
            pd_env(make_env, cfg)
    with raises(ModelError, file="a.pt"):
        pd_env(make_env, ActuatorNetworkActionCfg(network=tmp_path / "a.pt"))
    (tmp_path / "a.pt").write_bytes(b"nothing")
    cfg = ActuatorNetworkActionCfg(
        network=tmp_path / "a.pt", network_format="torchscript"
    )
    with raises(ModelError, file="a.pt"):
        pd_env(make_env, cfg)


def test_relative_positions_start_from_where_the_joints_are(make_env):
    env = make_env(3, actions={"act": RelativeJointPositionActionCfg(scale=0.2)})
    env.step(torch.tensor([[1.0, -1.0], [0.3, 0.7], [-1.0, 0.2]]))
    now = env.scene["robot"].data.joint_pos.clone()
    action = torch.tensor([[0.5, 0.1], [-0.3, 0.4], [0.9, -0.6]])
    env.step(action)
    torch.testing.assert_close(env.sim.data.ctrl, now + 0.2 * action.double())


def test_controls_span_their_ranges_and_others_are_as_they_are(make_env):
    xml = ROBOT.replace('kp="20" kv="1"', 'kp="20" kv="1" ctrlrange="-0.2 0.6"')
    robot = EntityCfg(model=xml)
    env = make_env(
        3,
        scene=SceneCfg(entities={"robot": robot}, ground=None, timestep=0.005),
        actions={"act": ControlActionCfg(control_names=["knee", "hip"],
                                         preserve_order=True)},
    )  # fmt: skip
    assert env.action_names == ["act/knee", "act/hip"]
    env.step(torch.tensor([[2.0, -1.0], [0.5, 0.5], [-3.0, 7.0]]))
    expected = torch.tensor([[-0.2, 2.0], [0.4, 0.5], [0.6, -3.0]]).double()
    torch.testing.assert_close(env.sim.data.ctrl, expected)
    with raises(InvalidInputError, name="act"):
        make_env(scene=scene(), actions={"act": ControlActionCfg()})
