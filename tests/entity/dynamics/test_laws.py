"""Laws: J·q̇ is the velocity, energy is conserved, the parent carries the weight."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import acceleration_of
from tests.laws.zoo import SECOND_TREE
from tests.raised import raises

from simstate import (
    EntityCfg,
    InvalidInputError,
    SceneCfg,
    Simulation,
    UnknownNameError,
)
from simstate.base.errors import ShapeError, StaleReadError
from simstate.integrate import RK4
from simstate.math import quaternion

pytestmark = pytest.mark.fast

ARM = """
<mujoco><option timestep="0.001"/><worldbody>
  <body name="upper" pos="0.1 0 2" euler="10 20 0">
    <joint name="shoulder" axis="0 1 0" damping="0.3" stiffness="2"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0" mass="1.1"/>
    <body name="lower" pos="0.3 0 0">
      <joint name="elbow" axis="0 0.6 0.8"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0.2 0.1 0" mass="0.7"/>
      <site name="hand" pos="0.2 0.1 0" euler="30 0 10"/>
    </body>
  </body></worldbody>
  <actuator><position name="elbow" joint="elbow" kp="80" forcerange="-3 3"/>
  <motor name="shoulder" joint="shoulder" gear="2"/></actuator>
</mujoco>
"""


def _two(num_envs: int = 3, **options) -> Simulation:
    scene = SceneCfg(
        entities={"arm": EntityCfg(model=ARM), "rest": EntityCfg(model=SECOND_TREE)},
        ground=False,
        timestep=0.001,
    )
    sim = Simulation(scene, num_envs=num_envs, **options)
    rng = np.random.default_rng(2)
    like = sim.data.qpos
    sim.data.qpos[:] += torch.as_tensor(rng.normal(size=like.shape)).to(like) * 0.3
    like = sim.data.qvel
    sim.data.qvel[:] = torch.as_tensor(rng.normal(size=like.shape)).to(like)
    return sim


def test_the_jacobian_times_qvel_is_the_velocity() -> None:
    sim = _two()
    for entity in sim.scene.values():
        data = entity.data
        for k, name in enumerate(entity.body_names):
            for at, expected in (
                ("link", data.body_link_vel_w),
                ("com", data.body_com_vel_w),
            ):
                got = (entity.jacobian(name, at) @ sim.data.qvel[..., None])[..., 0]
                assert torch.allclose(got, expected[:, k], atol=1e-12)
    rest = sim.scene["rest"]
    got = rest.jacobian("base", "com", "b") @ sim.data.qvel[..., None]
    assert torch.allclose(got[:, :3, 0], rest.data.root_com_lin_vel_b, atol=1e-12)
    assert torch.allclose(got[:, 3:, 0], rest.data.root_com_ang_vel_b, atol=1e-12)
    several = rest.jacobian(["tip", "arm"], axes="own")
    assert tuple(several.shape) == (3, 2, 6, sim.model.nv)
    assert torch.equal(several[:, 1], rest.jacobian("arm", axes="own"))
    gyro = sim.relative("rest/arm", "world", "rest/arm").ang_vel
    own = several[:, 1, 3:] @ sim.data.qvel[..., None]
    assert torch.allclose(own[..., 0], gyro, atol=1e-12)


def test_relative_motion_is_the_rate_of_the_relative_pose() -> None:
    """Finite differences of pose and velocity, as the observer sees them."""
    sim = _two(2)
    seen = sim.relative("rest/hand", "arm/lower")
    turned = sim.relative("rest/hand", "arm/lower", "arm/hand")
    qvel, qacc = sim.data.qvel.clone(), acceleration_of(sim)
    now = [x.clone() for x in (seen.lin_vel, seen.lin_acc, seen.ang_acc)]
    spin, quat = seen.ang_vel.clone(), seen.quat.clone()
    for frame in (turned, seen, sim.relative("arm/hand", "world", "rest/tip")):
        product = (frame.jacobian @ sim.data.qvel[..., None])[..., 0]
        both = torch.cat([frame.lin_vel, frame.ang_vel], dim=-1)
        assert torch.allclose(product, both, atol=1e-12)
    hand = sim.relative("arm/hand", "arm/lower").quat
    assert torch.allclose(quaternion.rotate(hand, turned.lin_vel), seen.lin_vel)
    assert torch.allclose(quaternion.rotate(hand, turned.pos), seen.pos)
    snapshot, h = sim.snapshot(), 1e-5
    found = []
    for sign in (-1, 1):
        sim.restore(snapshot)
        _move(sim, qvel, qacc, sign * h)
        found.append([x.clone() for x in (seen.pos, seen.lin_vel, seen.ang_vel)])
        turn = quaternion.multiply(seen.quat, quaternion.conjugate(quat))
        angle = quaternion.to_rotation_vector(turn)
        assert torch.allclose(angle / (sign * h), spin, atol=3e-3)
    for low, high, rate in zip(*found, now, strict=True):
        assert torch.allclose((high - low) / (2 * h), rate, atol=1e-4)


def test_motion_in_the_world_and_of_the_world() -> None:
    """Without other axes, numbers are MuJoCo's own, and the world's are opposite."""
    sim = _two(2)
    hand, seen = sim.relative("arm/hand"), sim.relative("world", "arm/hand")
    back = sim.relative("world", "arm/hand", "world")
    qvel, qacc = sim.data.qvel.clone(), acceleration_of(sim)
    site = sim.model.site("arm/hand").id
    for world in range(2):
        data = mujoco.MjData(sim.model)
        data.qpos[:], data.qvel[:] = sim.data.qpos[world], sim.data.qvel[world]
        mujoco.mj_forward(sim.model, data)
        vel, quat = np.zeros(6), np.zeros(4)
        mujoco.mj_objectVelocity(
            sim.model, data, mujoco.mjtObj.mjOBJ_SITE, site, vel, 0
        )
        mujoco.mju_mat2Quat(quat, data.site_xmat[site])
        np.testing.assert_allclose(hand.pos[world], data.site_xpos[site], atol=1e-12)
        np.testing.assert_allclose(hand.lin_vel[world], vel[3:], atol=1e-12)
        np.testing.assert_allclose(hand.ang_vel[world], vel[:3], atol=1e-12)
        assert abs(abs(hand.quat[world].numpy() @ quat) - 1.0) < 1e-12
    assert torch.allclose(quaternion.conjugate(hand.quat), seen.quat, atol=1e-12)
    assert torch.allclose(back.pos, -hand.pos, atol=1e-12)
    assert torch.allclose(back.ang_vel, -hand.ang_vel, atol=1e-12)
    for frame in (hand, seen, back):
        product = (frame.jacobian @ sim.data.qvel[..., None])[..., 0]
        both = torch.cat([frame.lin_vel, frame.ang_vel], dim=-1)
        assert torch.allclose(product, both, atol=1e-12)
    frames, snapshot, h = (hand, seen), sim.snapshot(), 1e-5
    kept = [(one.lin_vel, one.lin_acc, one.ang_acc) for one in frames]
    wanted = [[value.clone() for value in values] for values in kept]
    found = []
    for sign in (-1, 1):
        sim.restore(snapshot)
        _move(sim, qvel, qacc, sign * h)
        found.append([(f.pos.clone(), f.lin_vel.clone()) for f in frames])
    for values, copies in zip(kept, wanted, strict=True):
        assert all(torch.equal(*pair) for pair in zip(values, copies, strict=True))
    for k in range(2):
        for order in range(2):
            rate = (found[1][k][order] - found[0][k][order]) / (2 * h)
            assert torch.allclose(rate, wanted[k][order], atol=1e-4)


def _move(sim: Simulation, qvel, qacc, h: float) -> None:
    """The state h later, to second order, by MuJoCo's own integration of positions."""
    for world in range(sim.num_envs):
        qpos = sim.data.qpos[world].numpy().copy()
        half = (qvel[world] + 0.5 * h * qacc[world]).numpy()
        mujoco.mj_integratePos(sim.model, qpos, half, h)
        sim.data.qpos[world] = torch.as_tensor(qpos)
    sim.data.qvel[:] = qvel + h * qacc


def test_energy_changes_by_the_work_of_dampers_alone() -> None:
    """A swing with a spring and a damper: E(t) + the work taken out stays."""
    scene = SceneCfg(
        entities={"arm": EntityCfg(model=ARM)}, ground=False, timestep=5e-4
    )
    sim = Simulation(scene, num_envs=2, integrator=RK4())
    sim.data.qvel[:] = torch.tensor([[2.0, -3.0], [-1.0, 4.0]])
    entity, own = sim.scene["arm"], sim.dynamics
    entity.write_ctrl_to_sim(torch.zeros(2, 2))
    sim.expand("actuator_gainprm")[:] = 0.0
    sim.expand("actuator_biasprm")[:] = 0.0
    start = own.potential_energy + own.kinetic_energy
    work = torch.zeros(2).double()
    for _ in range(400):
        power = 0.3 * sim.data.qvel[:, 0] ** 2
        sim.step()
        work += 0.5 * sim.timestep * (power + 0.3 * sim.data.qvel[:, 0] ** 2)
    end = own.potential_energy + own.kinetic_energy
    assert (work > 0.05).all()
    assert torch.allclose(end + work, start, atol=1e-6)


def test_the_wrench_from_the_parent_carries_the_weight() -> None:
    """At rest the parent pushes up; the torque about the origin holds the rest."""
    sim = Simulation(
        SceneCfg(entities={"arm": EntityCfg(model=ARM)}, ground=False, timestep=None),
        num_envs=2,
    )
    sim.data.qpos[:] = torch.tensor([[0.3, -0.4], [1.0, 0.2]])
    hold = sim.dynamics.inverse_dynamics(torch.zeros(2, 2))
    assert torch.allclose(
        hold, sim.dynamics.gravity_force - sim.dynamics.passive_force, atol=1e-12
    )
    sim.data.qfrc_applied[:] = hold
    sim.expand("actuator_gainprm")[:] = 0.0
    sim.expand("actuator_biasprm")[:] = 0.0
    wrench = sim.dynamics.incoming_wrench_w
    up = torch.tensor([1.8, 0.7], dtype=torch.float64) * 9.81
    assert torch.allclose(wrench[..., 2], up.expand(2, 2), atol=1e-9)
    assert wrench[..., :2].abs().max() < 1e-9
    data = sim.scene["arm"].data
    arm = data.body_com_pos_w[:, 1] - data.body_link_pos_w[:, 1]
    weight = torch.tensor([0.0, 0.0, -0.7 * 9.81], dtype=torch.float64).expand(2, 3)
    balance = wrench[:, 1, 3:] + torch.linalg.cross(arm, weight)
    assert balance.abs().max() < 1e-10


def test_applied_and_computed_torque_differ_by_the_limit(engine: str) -> None:
    sim = _two(3, engine=engine)
    arm = sim.scene["arm"]
    target = torch.tensor([[0.2, 0.0], [-2.0, 0.5], [1.0, -1.0]])
    arm.write_ctrl_to_sim(target)
    sim.forward()
    before = arm.dynamics.applied_actuator_force.clone()
    angle = arm.data.joint_pos[:, 1]
    expected = torch.stack(
        [2 * target[:, 1].to(angle), 80 * (target[:, 0].to(angle) - angle)], 1
    )
    computed = arm.dynamics.computed_actuator_force
    assert torch.allclose(computed, expected, rtol=1e-5)
    assert torch.allclose(before[:, 1], expected[:, 1].clamp(-3, 3), rtol=1e-5)
    assert (computed[:, 1].abs() > 3).any()
    assert torch.equal(arm.dynamics.applied_actuator_force, before)


def test_entities_are_blocks_of_the_scene() -> None:
    sim = _two()
    whole, arm, rest = (
        sim.dynamics,
        sim.scene["arm"].dynamics,
        sim.scene["rest"].dynamics,
    )
    assert arm.dof_ids + rest.dof_ids == whole.dof_ids == tuple(range(sim.model.nv))
    for part in (arm, rest):
        ids = list(part.dof_ids)
        assert torch.equal(part.mass_matrix, whole.mass_matrix[:, ids][:, :, ids])
        assert torch.equal(part.bias_force, whole.bias_force[:, ids])
    together = arm.linear_momentum_w + rest.linear_momentum_w
    assert torch.allclose(together, whole.linear_momentum_w)
    assert torch.allclose(
        arm.kinetic_energy + rest.kinetic_energy, whole.kinetic_energy
    )
    about = torch.tensor([0.3, -1.0, 0.7]).double()
    spin = arm.angular_momentum(about) + rest.angular_momentum(about)
    assert torch.allclose(spin, whole.angular_momentum(about))
    forces = torch.randn(3, sim.model.nv, 2, dtype=torch.float64)
    solved = whole.solve_mass_matrix(forces)
    assert torch.allclose(whole.mass_matrix @ solved, forces)


def test_they_are_fresh_after_writes_and_strict_mode_says_so() -> None:
    sim = _two()
    own = sim.dynamics
    before = own.mass_matrix.clone()
    sim.data.qpos[1, 1] += 0.4
    after = own.mass_matrix
    assert torch.equal(after[0], before[0])
    assert not torch.allclose(after[1], before[1])
    mass = own.com_pos_w.clone()
    sim.expand("body_mass")[:, 1] *= 1.5
    assert not torch.allclose(own.com_pos_w, mass)
    strict = _two(freshness="strict")
    strict.forward()
    _ = strict.dynamics.mass_matrix
    strict.data.qpos[:] += 0.01
    with raises(StaleReadError, name="mass_matrix"):
        _ = strict.dynamics.mass_matrix
    with raises(StaleReadError, name="jacobian"):
        strict.scene["arm"].jacobian("lower")


def test_reading_on_demand_changes_no_field() -> None:
    """Fields of the last evaluation stay, whatever else is computed."""
    sim = _two()
    sim.step(3)
    names = ("qacc", "qfrc_actuator", "qfrc_constraint", "actuator_force", "sensordata")
    before = {name: getattr(sim.data, name).clone() for name in names}
    state = sim.state.clone()
    own = sim.dynamics
    for name in own.readings:
        own.read(name)
    own.inverse_dynamics(torch.randn(3, sim.model.nv))
    for name, value in before.items():
        assert torch.equal(getattr(sim.data, name), value), name
    assert torch.equal(sim.state, state)


def test_wrong_uses_say_what_to_do() -> None:
    sim = _two()
    arm = sim.scene["arm"]
    with raises(UnknownNameError, name="lowr"):
        arm.jacobian("lowr")
    with raises(InvalidInputError, name="elements"):
        arm.jacobian(["lower", "hand"])
    with raises(UnknownNameError, name="con"):
        arm.jacobian("lower", "con")
    with raises(UnknownNameError, name="x"):
        arm.jacobian("lower", axes="x")
    with pytest.raises(ShapeError):
        arm.jacobian("lower", [1.0, 2.0])
    with raises(UnknownNameError, name="arm/hnd"):
        sim.relative("arm/hnd")
    with pytest.raises(ShapeError):
        sim.dynamics.inverse_dynamics(torch.zeros(2, 3))
    with raises(InvalidInputError, name="acceleration"):
        sim.dynamics.inverse_dynamics(torch.full((3, sim.model.nv), torch.nan))
    with raises(UnknownNameError, name="mass_matirx"):
        sim.dynamics.read("mass_matirx")
