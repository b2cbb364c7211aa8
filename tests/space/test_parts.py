"""Wheels, gyros and thrusters against independent equations of motion."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from tests.raised import raises

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation
from simstate.base.errors import InvalidInputError, ModelError, UnknownNameError
from simstate.integrate import DOP853, RK4
from simstate.space import (
    ControlMomentGyroCfg,
    ReactionWheelCfg,
    ReactionWheels,
    ThrusterCfg,
    pulses,
)

HUB = """<mujoco><worldbody><body name="hub"><freejoint name="root"/>
<inertial pos="0.02 -0.01 0.03" quat="0.9 0.1 0.3 0.2" mass="20"
 diaginertia="1.2 1.5 1.9"/></body></worldbody></mujoco>"""
F64 = torch.float64


def built(parts):
    def make():
        spec = mujoco.MjSpec.from_string(HUB)
        for part in parts:
            part.add_to(spec, "hub")
        return spec

    return make


def simulated(parts, num_envs=2, integrator=None, timestep=0.1, **state):
    start = {"ang_vel": (0.1, -0.2, 0.3), "rot": (0.5, 0.1, -0.7, 0.5), **state}
    craft = EntityCfg(model=built(parts), init_state=InitialStateCfg(**start))
    scene = SceneCfg(
        entities={"craft": craft}, ground=False, gravity=(0, 0, 0), timestep=timestep
    )
    scheme = integrator or DOP853(atol=1e-11, rtol=1e-11)
    return Simulation(scene, num_envs, integrator=scheme)


WHEELS = (
    ReactionWheelCfg(
        name="wheel_a", axis=(1, 0.2, 0), inertia=0.02, max_torque=0.5, max_speed=300.0,
        mass=2.0, position=(0.1, 0, 0), viscous=3e-4, coulomb=2e-3,
    ),
    ReactionWheelCfg(
        name="wheel_b", axis=(0, -0.5, 1), inertia=0.05, max_torque=0.2, max_speed=200,
        mass=3.0, position=(0, 0.1, -0.1), transverse_inertia=0.03,
    ),
)  # fmt: skip


def whole_body():
    """Mass, COM and inertia about it, body axes, of hub and wheels together."""
    hub_rot = Rotation.from_quat([0.9, 0.1, 0.3, 0.2], scalar_first=True).as_matrix()
    parts = [
        (20.0, np.array([0.02, -0.01, 0.03]),
         hub_rot @ np.diag([1.2, 1.5, 1.9]) @ hub_rot.T),
    ]  # fmt: skip
    for wheel in WHEELS:
        axis = np.array(wheel.axis) / np.linalg.norm(wheel.axis)
        across = wheel.transverse_inertia or wheel.inertia / 2
        inertia = across * np.eye(3) + (wheel.inertia - across) * np.outer(axis, axis)
        parts.append((wheel.mass, np.array(wheel.position), inertia))
    mass = sum(m for m, _, _ in parts)
    com = sum(m * c for m, c, _ in parts) / mass
    total = np.zeros((3, 3))
    for m, c, inertia in parts:
        d = c - com
        total += inertia + m * (d @ d * np.eye(3) - np.outer(d, d))
    return mass, com, total


def gyrostat(spin0, speeds0, torque, seconds):
    """Euler's equations with two wheels; friction as configured; rates at the end."""
    _, _, inertia = whole_body()
    axes = np.array([np.array(w.axis) / np.linalg.norm(w.axis) for w in WHEELS])
    spin = np.array([w.inertia for w in WHEELS])

    def rate(t, y):
        omega, speed = y[:3], y[3:]
        friction = np.array([w.viscous for w in WHEELS]) * speed
        friction += np.array([w.coulomb for w in WHEELS]) * np.tanh(speed / 1e-2)
        pushed = torque(t) - friction
        # d/dt (I ω + Σ Iₛ Ω a) + ω × (…) = 0 and Iₛ (Ω' + a·ω') = pushed.
        momentum = inertia @ omega + (spin * speed) @ axes
        matrix = inertia - np.einsum("k,ki,kj->ij", spin, axes, axes)
        omega_dot = np.linalg.solve(matrix, -np.cross(omega, momentum) - pushed @ axes)
        return [*omega_dot, *(pushed / spin - axes @ omega_dot)]

    found = solve_ivp(
        rate, (0, seconds), [*spin0, *speeds0], method="DOP853", rtol=1e-12, atol=1e-12
    )
    return found.y[:, -1]


def test_wheels_turn_the_hub_as_a_gyrostat():
    sim = simulated(WHEELS)
    sim.add_force(ReactionWheels("craft", WHEELS))
    speeds = np.array([[50.0, -30.0], [-80.0, 10.0]])
    torque = np.array([[0.3, -0.1], [-0.2, 0.15]])
    sim.data.qvel[:, 6:8] = torch.as_tensor(speeds)
    sim.scene["craft"].write_ctrl_to_sim(torque)
    sim.step(50)
    for world in range(2):
        want = gyrostat(
            (0.1, -0.2, 0.3) @ Rotation.from_quat(
                [0.5, 0.1, -0.7, 0.5], scalar_first=True
            ).as_matrix(),
            speeds[world], lambda t, w=world: torque[w], 5.0,
        )  # fmt: skip
        got = sim.data.qvel[world, 3:8].numpy()
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-7)


def test_a_wheel_stops_gaining_speed_but_can_slow_down():
    sim = simulated(WHEELS, integrator=RK4(), timestep=0.02)
    wheels = ReactionWheels("craft", WHEELS)
    sim.add_force(wheels)
    wheels.parameters["viscous"].zero_()
    wheels.parameters["coulomb"].zero_()
    wheels.parameters["max_speed"][1, 0] = 150.0
    sim.scene["craft"].write_ctrl_to_sim([[0.9, 0.1]])  # above the motor's 0.5 N·m
    sim.step(1500)
    speed = wheels.speeds(sim)
    assert 0.98 * 300 < float(speed[0, 0]) < 1.01 * 300  # the hub turns, too
    assert 0.98 * 150 < float(speed[1, 0]) < 1.01 * 150
    before = speed.clone()
    sim.scene["craft"].write_ctrl_to_sim([[-0.5, 0.1]])
    sim.step(50)
    fell = before[:, 0] - wheels.speeds(sim)[:, 0]
    assert fell.tolist() == pytest.approx([0.5 / 0.02] * 2, rel=0.05)
    assert sim.data.ctrl[0].tolist() == [-0.5, 0.1]  # the command is the user's again


def test_friction_changes_no_total_momentum():
    sim = simulated(WHEELS)
    sim.add_force(ReactionWheels("craft", WHEELS))
    sim.data.qvel[:, 6:8] = torch.tensor([100.0, -40.0], dtype=F64)

    def momentum():
        data = mujoco.MjData(sim.model)
        data.qpos[:], data.qvel[:] = sim.data.qpos[1], sim.data.qvel[1]
        mujoco.mj_forward(sim.model, data)
        mujoco.mj_subtreeVel(sim.model, data)
        return data.subtree_angmom[0].copy()

    start = momentum()
    sim.step(100)
    assert float(sim.data.qvel[1, 6]) < 100 - 1
    np.testing.assert_allclose(momentum(), start, atol=1e-8)


GYRO = ControlMomentGyroCfg(
    name="cmg", gimbal_axis=(0, 0, 1), spin_axis=(1, 0, 0), inertia=0.005, speed=400.0,
    max_gimbal_rate=1.0, max_gimbal_torque=20.0, mass=2.0, position=(0.1, 0.0, 0.2),
)  # fmt: skip


def test_a_control_moment_gyro_hands_over_its_momentum():
    """Hub and rotor keep their sum: what the rotor turns away, the hub takes."""
    still = {"ang_vel": (0, 0, 0), "rot": (1, 0, 0, 0), "joint_vel": GYRO.joint_vel}
    sim = simulated([GYRO], integrator=RK4(), timestep=0.001, **still)
    sim.scene["craft"].write_ctrl_to_sim([[0.5], [-0.25]])
    sim.step(200)
    for world, rate in enumerate((0.5, -0.25)):
        angle = float(sim.data.qpos[world, 7])
        assert 0.8 < angle / (0.2 * rate) < 1  # the servo takes 0.05 s to speed up
        assert float(sim.data.qvel[world, 6]) == pytest.approx(rate, rel=0.02)
        data = mujoco.MjData(sim.model)
        data.qpos[:], data.qvel[:] = sim.data.qpos[world], sim.data.qvel[world]
        mujoco.mj_forward(sim.model, data)
        mujoco.mj_subtreeVel(sim.model, data)
        np.testing.assert_allclose(
            data.subtree_angmom[0], [0.005 * 400.0, 0, 0], atol=1e-6
        )
        # What the rotor has along y, the hub has not; its inertia there is near 1.5.
        spin = np.zeros(6)
        kind = mujoco.mjtObj.mjOBJ_BODY.value
        mujoco.mj_objectVelocity(sim.model, data, kind, 1, spin, 0)
        assert spin[1] == pytest.approx(-2 * np.sin(angle) / 1.6, rel=0.1)


def test_thrusters_push_where_they_are():
    jets = (
        ThrusterCfg(name="up", position=(0.3, 0.1, -0.2), direction=(0, 1, 2),
                    max_force=4.0),
        ThrusterCfg(name="side", position=(-0.2, 0, 0.4), direction=(-1, 0, 0),
                    max_force=1.5),
    )  # fmt: skip
    sim = simulated(jets, integrator=RK4())
    sim.scene["craft"].write_ctrl_to_sim([[0.5, 1.0], [2.0, -1.0]])
    sim.forward()
    for world, share in enumerate(((0.5, 1.0), (1.0, 0.0))):
        model, data = sim.model, mujoco.MjData(sim.model)
        data.qpos[:], data.qvel[:] = sim.data.qpos[world], sim.data.qvel[world]
        mujoco.mj_forward(model, data)
        rot = data.xmat[1].reshape(3, 3)
        for jet, on in zip(jets, share, strict=True):
            along = np.array(jet.direction) / np.linalg.norm(jet.direction)
            place = data.xpos[1] + rot @ jet.position
            force = rot @ (on * jet.max_force * along)
            mujoco.mj_applyFT(
                model, data, force, np.zeros(3), place, 1, data.qfrc_applied
            )
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(sim.data.qacc[world], data.qacc, atol=1e-12)


def test_pulses_of_integers_are_those_of_numbers():
    duty = torch.tensor([[0, 1], [1, 1], [0, 0]])
    assert torch.equal(pulses(duty, 0.5, 0.1), pulses(duty.double(), 0.5, 0.1))


def test_pulses_have_the_impulse_and_the_least_length():
    duty = torch.tensor([[0.0, 0.03, 0.26], [0.06, 1.0, 1.7]], dtype=F64)
    row = pulses(duty, 0.5, 0.1, min_on_time=0.025)
    assert tuple(row.shape) == (5, 2, 3)
    on = 0.1 * row.sum(dim=0)
    want = torch.tensor([[0.0, 0.0, 0.13], [0.03, 0.5, 0.5]], dtype=F64)
    torch.testing.assert_close(on, want)
    np.testing.assert_allclose(row[:, 0, 2], [1, 0.3, 0, 0, 0], atol=1e-12)
    least = 0.1 * pulses(duty, 0.5, 0.1, min_on_time=0.025, below="least").sum(dim=0)
    assert float(least[0, 1]) == pytest.approx(0.025)
    for below in ("off", "least"):  # the shortest pulse itself is not short
        shortest = pulses([[0.05], [0.0500001]], 0.5, 0.1, 0.025, below)
        np.testing.assert_allclose(shortest[0], [[0.25], [0.2500005]])
    sim = simulated(
        [ThrusterCfg(name="jet", position=(0, 0, 0), direction=(1, 0, 0), max_force=3)],
        integrator=RK4(),
    )  # fmt: skip
    jet = sim.scene["craft"]
    sim.data.qvel[:] = 0.0
    for throttle in pulses(torch.tensor([[0.46], [0.02]], dtype=F64), 0.5, 0.1, 0.025):
        jet.write_ctrl_to_sim(throttle)
        sim.step()
    speed = jet.data.body_com_lin_vel_w[:, 0].norm(dim=-1)
    assert speed.tolist() == pytest.approx([3.0 * 0.23 / 20, 0.0], rel=1e-3)
    for wrong, name in (
        (lambda: pulses(duty, 0.55, 0.1), "period"),
        (lambda: pulses(duty, 0.5, 0.1, min_on_time=0.6), "min_on_time"),
        (lambda: pulses(duty / 0, 0.5, 0.1), "duty"),
        (lambda: pulses(duty, 0.5, 0.1, below="up"), "up"),
    ):
        with raises((InvalidInputError, UnknownNameError), name=name):
            wrong()


def test_wrong_parts_are_refused():
    base = {"name": "w", "axis": (1, 0, 0), "inertia": 0.1}
    base |= {"max_torque": 1.0, "max_speed": 10.0}
    spec = mujoco.MjSpec.from_string(HUB)
    for wrong, name in (
        (
            lambda: ReactionWheelCfg(**{**base, "inertia": 0.0}),
            "inertia",
        ),
        (lambda: ReactionWheelCfg(**{**base, "axis": (0, 0, 0)}), "axis"),
        (lambda: ReactionWheelCfg(**base, transverse_inertia=0.01), "w"),
    ):
        with raises((InvalidInputError, ModelError), name=name):
            wrong().add_to(spec, "hub")
    with raises(UnknownNameError, name="bus"):
        ReactionWheelCfg(**base).add_to(spec, "bus")
    tilted = ControlMomentGyroCfg(**{**vars(GYRO), "spin_axis": (1, 0, 1)})
    with raises(InvalidInputError, name="spin_axis"):
        tilted.add_to(spec, "hub")
    with raises(InvalidInputError, name="wheels"):
        ReactionWheels("craft", [])
    with raises(UnknownNameError, name="wheel_a"):
        simulated([]).add_force(ReactionWheels("craft", WHEELS))
