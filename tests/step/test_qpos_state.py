"""QPosState: finds every quaternion, and moves as MuJoCo or the textbook says."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import Simulation
from simstate.base.errors import InvalidInputError, ShapeError, UnknownNameError
from simstate.integrate import RK4, QPosState

TREES = """
<mujoco>
  <option timestep="0.02" gravity="0 0 -3"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="slider">
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom size="0.1 0.05 0.02" type="box" mass="1"/>
      <body name="swing" pos="0 0 0.3">
        <joint name="hinge" axis="0 1 0" damping="0.1"/>
        <geom size="0.1" pos="0.1 0 0" mass="0.5"/>
        <body name="wrist" pos="0 0.2 0">
          <joint name="ball1" type="ball"/>
          <geom size="0.1 0.04 0.02" pos="0 0.1 0" type="box" mass="0.4"/>
          <body name="hand" pos="0 0.2 0">
            <joint name="ball2" type="ball" damping="0.02"/>
            <geom size="0.05 0.1 0.02" pos="0.03 0.1 0" type="box" mass="0.3"/>
          </body>
        </body>
      </body>
    </body>
    <body name="first" pos="1 0 0">
      <freejoint name="free1"/>
      <geom size="0.1 0.2 0.05" type="box" mass="1"/>
      <body name="arm" pos="0 0.3 0">
        <joint name="ball3" type="ball"/>
        <geom size="0.1 0.03 0.05" pos="0.1 0 0" type="box" mass="0.4"/>
      </body>
    </body>
    <body name="second" pos="2 0 0">
      <freejoint name="free2"/>
      <geom size="0.1 0.2 0.3" type="box" mass="1"/>
    </body>
  </worldbody>
</mujoco>
"""
"""Quaternions at 2, 6, 13, 17 and 24 of qpos: no free joint is first."""

MODES = ("manifold", "high_order", "lie")


@pytest.fixture(scope="module")
def model():
    return mujoco.MjModel.from_xml_string(TREES)


def random_state(model, n=3, seed=0):
    rng = np.random.default_rng(seed)
    qpos = np.tile(model.qpos0, (n, 1))
    for row in qpos:
        mujoco.mj_integratePos(model, row, rng.normal(size=model.nv), 1.0)
    return torch.from_numpy(qpos), torch.from_numpy(rng.normal(size=(n, model.nv)))


def state_of(model, mode, n=3, seed=0):
    qpos, qvel = random_state(model, n, seed)
    state = QPosState(qpos.clone(), mode)
    state.configure(model)
    return state, qpos, qvel


def integrate_pos(model, qpos, qvel, h):
    rows = qpos.numpy().copy()
    steps = np.broadcast_to(h, len(rows))
    for row, vel, step in zip(rows, qvel.numpy(), steps, strict=True):
        mujoco.mj_integratePos(model, row, vel, step)
    return torch.from_numpy(rows)


def test_every_quaternion_is_found(model):
    state, _, _ = state_of(model, "lie")
    found = [(x.qpos_adr, x.qvel_adr) for x in state.quaternion_blocks]
    # By hand from the MJCF: slide 0/0, hinge 1/1, balls 2/2 and 6/5, free 10/8 (its
    # quaternion at +3), ball 17/14, free 21/17.
    assert found == [(2, 2), (6, 5), (13, 11), (17, 14), (24, 20)]
    assert state.euclidean_qpos == [0, 1, 10, 11, 12, 21, 22, 23]
    assert state.euclidean_qvel == [0, 1, 8, 9, 10, 17, 18, 19]
    assert state.num_dofs == model.nv


def test_a_scene_without_quaternions():
    text = (
        "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    hinge = mujoco.MjModel.from_xml_string(text)
    state = QPosState(torch.zeros(2, 1, dtype=torch.float64), "lie")
    state.configure(hinge)
    assert state.quaternion_blocks == []
    state.set_derivative(torch.tensor([[2.0], [3.0]], dtype=torch.float64))
    state.propagate(0.5)
    assert state.value.tolist() == [[1.0], [1.5]]


@pytest.mark.parametrize("mode", ["manifold", "lie"])
def test_one_propagation_is_mj_integrate_pos(model, mode):
    state, qpos, qvel = state_of(model, mode)
    state.set_derivative(qvel)
    state.propagate(0.3)
    want = integrate_pos(model, qpos, qvel, 0.3)
    torch.testing.assert_close(state.value, want, rtol=0, atol=1e-15)


def test_manifold_is_the_same_for_tiny_and_zero_rates(model):
    for scale in (0.0, 1e-20, 1e-9, 30.0):
        state, qpos, qvel = state_of(model, "manifold")
        state.set_derivative(scale * qvel)
        state.propagate(0.3)
        want = integrate_pos(model, qpos, scale * qvel, 0.3)
        torch.testing.assert_close(state.value, want, rtol=0, atol=3e-15)


@pytest.mark.parametrize("mode", MODES)
def test_quaternions_that_are_not_of_unit_length_are_normalised(model, mode):
    # MuJoCo takes a quaternion of any length for an orientation, and moving it
    # makes it a unit one.
    state, qpos, qvel = state_of(model, mode)
    for block in state.quaternion_blocks:
        qpos[:, block.qpos_adr : block.qpos_adr + 4] *= 1.3
    state.value.copy_(qpos)
    state.set_derivative(qvel)
    state.propagate(1e-4)
    want = integrate_pos(model, qpos, qvel, 1e-4)
    torch.testing.assert_close(state.value, want, rtol=0, atol=1e-6)


def test_each_world_has_its_own_step(model):
    for mode in ("manifold", "lie"):
        state, qpos, qvel = state_of(model, mode)
        state.set_derivative(qvel)
        h = torch.tensor([0.3, 0.0, -0.1], dtype=torch.float64)
        state.propagate(h)
        want = integrate_pos(model, qpos, qvel, h.numpy())
        torch.testing.assert_close(state.value, want, rtol=0, atol=1e-15)
        assert torch.equal(state.value[1], qpos[1])


def hamilton(p, q):
    """The quaternion product by MuJoCo."""
    out = np.zeros(4)
    mujoco.mju_mulQuat(out, p, q)
    return out


def test_high_order_rates_are_half_q_times_omega(model):
    state, qpos, qvel = state_of(model, "high_order")
    state.set_derivative(qvel)
    assert state.derivative.shape == (3, model.nq)
    for world in range(3):
        for block in state.quaternion_blocks:
            q = qpos[world, block.qpos_adr : block.qpos_adr + 4].numpy()
            omega = qvel[world, block.qvel_adr : block.qvel_adr + 3].numpy()
            want = 0.5 * hamilton(q, np.array([0.0, *omega]))
            got = state.derivative[world, block.qpos_adr : block.qpos_adr + 4]
            np.testing.assert_allclose(got.numpy(), want, atol=1e-16)
    assert torch.equal(
        state.derivative[:, state.euclidean_qpos], qvel[:, state.euclidean_qvel]
    )


def test_high_order_rates_of_length_nq_are_taken_verbatim(model):
    state, qpos, _ = state_of(model, "high_order")
    rate = torch.randn(3, model.nq, dtype=torch.float64)
    for combined in (False, True):
        state.set_derivative(rate, combined=combined)
        assert torch.equal(state.derivative, rate)
    state.propagate(0.01)
    linear = qpos + 0.01 * rate
    for block in state.quaternion_blocks:
        part = slice(block.qpos_adr, block.qpos_adr + 4)
        linear[:, part] /= linear[:, part].norm(dim=1, keepdim=True)
    torch.testing.assert_close(state.value, linear, rtol=0, atol=1e-15)


def test_combined_rates_are_not_converted_in_lie_mode(model):
    start, _, qvel = state_of(model, "lie")
    state = start.clone()
    state.set_derivative(qvel)
    state.propagate(0.5)  # now there is a rotation vector for dexp to work on
    state.set_derivative(qvel * 2, combined=True)
    assert torch.equal(state.derivative, qvel * 2)


def test_lie_rates_are_those_of_the_rotation_vector(model):
    """du/dt at u by differences of the rotation vector of q0⁻¹ q(t)."""
    start, qpos, qvel = state_of(model, "lie", seed=3)
    state = start.clone()  # a stage: its rates count from where it was cloned
    omega = torch.randn(3, model.nv, dtype=torch.float64)
    state.set_derivative(qvel, combined=True)
    state.propagate(0.6)
    at = state.value.clone()
    state.set_derivative(omega)
    eps = 1e-5

    def rotation_vector(world, block, h):
        row = at[world].numpy().copy()
        mujoco.mj_integratePos(model, row, omega[world].numpy(), h)
        part = slice(block.qpos_adr, block.qpos_adr + 4)
        start, out = qpos[world, part].numpy(), np.zeros(3)
        conjugate = start * [1, -1, -1, -1]
        mujoco.mju_quat2Vel(out, hamilton(conjugate, row[part]), 1.0)
        return out

    for world in range(3):
        for block in state.quaternion_blocks:
            ahead, back = (rotation_vector(world, block, h) for h in (eps, -eps))
            got = state.derivative[world, block.qvel_adr : block.qvel_adr + 3]
            np.testing.assert_allclose(
                got.numpy(), (ahead - back) / (2 * eps), atol=1e-8
            )


def qacc(model, data, qpos, qvel):
    out = np.zeros_like(qvel)
    for i in range(len(qpos)):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = qpos[i], qvel[i]
        mujoco.mj_forward(model, data)
        out[i] = data.qacc
    return torch.from_numpy(out)


def own_rk4(model, state, qvel, h):
    """RK4 as a user writes it with the public parts of QPosState."""
    data = mujoco.MjData(model)
    k_pos, k_vel = [], []
    at, vel = state, qvel
    for stage in range(4):
        if stage:
            part = 1.0 if stage == 3 else 0.5
            at = state.clone()
            at.set_derivative(k_pos[-1], combined=True)
            at.propagate(part * h)
            vel = qvel + part * h * k_vel[-1]
        at.set_derivative(vel)
        k_pos.append(at.derivative.clone())
        k_vel.append(qacc(model, data, at.value.numpy(), vel.numpy()))
    weights = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
    mean = sum(w * k for w, k in zip(weights, k_pos, strict=True))
    state.set_derivative(mean, combined=True)
    state.propagate(h)
    return qvel + h * sum(w * k for w, k in zip(weights, k_vel, strict=True))


def compare_with_simulation(model, mode, steps):
    state, qpos, qvel = state_of(model, mode)
    sim = Simulation(model, 3, integrator=RK4(attitude=mode))
    sim.data.qpos[:], sim.data.qvel[:] = qpos, qvel
    sim.step(steps)
    for _ in range(steps):
        qvel = own_rk4(model, state, qvel, model.opt.timestep)
    torch.testing.assert_close(state.value, sim.data.qpos.clone(), rtol=0, atol=1e-12)
    torch.testing.assert_close(qvel, sim.data.qvel.clone(), rtol=0, atol=1e-11)


@pytest.mark.parametrize("mode", MODES)
def test_a_users_own_rk4_is_the_simulations(model, mode):
    compare_with_simulation(model, mode, 1)


@pytest.mark.parametrize(
    "mode",
    [
        "manifold",
        "high_order",
        "lie",
    ],
)
def test_a_users_own_rk4_goes_on_after_its_first_step(model, mode):
    compare_with_simulation(model, mode, 10)


@pytest.mark.parametrize(
    "mode",
    [
        "manifold",
        "lie",
    ],
)
def test_a_users_euler_steps_are_mj_integrate_pos(model, mode):
    state, qpos, qvel = state_of(model, mode)
    for k in range(3):
        rate = qvel.roll(k, dims=1)
        state.set_derivative(rate)
        state.propagate(0.3)
        qpos = integrate_pos(model, qpos, rate, 0.3)
    torch.testing.assert_close(state.value, qpos, rtol=0, atol=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_clones_are_on_their_own(model, mode):
    state, qpos, qvel = state_of(model, mode)
    state.set_derivative(qvel)
    other = state.clone()
    assert torch.equal(other.derivative, state.derivative)
    assert other.quaternion_blocks == state.quaternion_blocks
    other.propagate(0.2)
    assert torch.equal(state.value, qpos)
    state.propagate(0.2)
    assert torch.equal(state.value, other.value)


def test_lie_mode_is_exact_for_a_constant_rate():
    text = """<mujoco><option timestep="0.5" gravity="0 0 0"/><worldbody><body>
      <freejoint/><inertial pos="0 0 0" mass="1" diaginertia="2 2 2"/>
    </body></worldbody></mujoco>"""
    ball = mujoco.MjModel.from_xml_string(text)
    sim = Simulation(ball, 1, integrator=RK4(attitude="lie"))
    omega = np.array([0.4, -1.1, 0.8])
    sim.data.qvel[0, 3:] = torch.from_numpy(omega)
    sim.step(20)
    want = np.zeros(4)
    mujoco.mju_axisAngle2Quat(
        want, omega / np.linalg.norm(omega), 10.0 * np.linalg.norm(omega)
    )
    np.testing.assert_allclose(sim.data.qpos[0, 3:].numpy(), want, atol=2e-14)


@pytest.mark.parametrize("mode", ["manifold", "lie"])
def test_noise_moves_on_the_manifold(model, mode):
    state, qpos, qvel = state_of(model, mode)
    sources = torch.randn(3, 2, model.nv, dtype=torch.float64)
    increments = torch.tensor(
        [[0.3, -0.2], [0.0, 0.0], [1.0, 0.5]], dtype=torch.float64
    )
    state.set_derivative(qvel)
    state.set_diffusion(sources)
    state.propagate(0.1, pseudo_step=increments)
    move = 0.1 * qvel + torch.einsum("wk,wkv->wv", increments, sources)
    want = integrate_pos(model, qpos, move, 1.0)
    torch.testing.assert_close(state.value, want, rtol=0, atol=1e-14)


def test_high_order_noise_leaves_unit_quaternions(model):
    state, _, qvel = state_of(model, "high_order")
    state.set_derivative(qvel)
    state.set_diffusion(torch.randn(3, 1, model.nv, dtype=torch.float64))
    state.propagate(0.1, pseudo_step=torch.full((3, 1), 0.4))
    for block in state.quaternion_blocks:
        part = state.value[:, block.qpos_adr : block.qpos_adr + 4]
        torch.testing.assert_close(part.norm(dim=1), torch.ones_like(part[:, 0]))


def test_float32_states_move_too(model):
    qpos, qvel = random_state(model)
    state = QPosState(qpos.float(), "manifold")
    state.configure(model)
    state.set_derivative(qvel.float())
    state.propagate(0.3)
    assert state.value.dtype == torch.float32
    want = integrate_pos(model, qpos, qvel, 0.3)
    torch.testing.assert_close(state.value.double(), want, rtol=0, atol=1e-6)


def test_what_does_not_fit_is_refused(model):
    qpos, qvel = random_state(model)
    with raises(UnknownNameError, name="euler"):
        QPosState(qpos, "euler")
    for bad in (qpos[0], qpos.int()):
        with raises(ShapeError, name="value"):
            QPosState(bad)
    with raises(ShapeError, name="value"):
        QPosState(qpos[:, :5]).configure(model)
    loose = QPosState(qpos.clone())
    calls = (
        lambda: loose.set_derivative(qvel),
        lambda: loose.propagate(0.1),
        loose.clone,
    )
    for call in calls:
        with raises(InvalidInputError, name="configure"):
            call()
    loose.configure(model)
    for bad in (qvel[:2], qvel[:, :3], qpos):
        with raises(ShapeError, name="rate"):
            loose.set_derivative(bad)
    for call in (
        lambda: loose.propagate(torch.zeros(2)),
        lambda: loose.propagate(0.1, pseudo_step=torch.zeros(3, 1)),
        lambda: loose.set_diffusion(qvel),
        lambda: loose.set_diffusion(qvel[:, None, :4]),
    ):
        with pytest.raises(ShapeError):
            call()
    assert torch.equal(loose.value, qpos)
