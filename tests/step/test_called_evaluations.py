"""Evaluations that call Python: frames, processes, masses, adaptive steps, gravity."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import has_called_from_core, take_blocks
from tests.raised import raises
from tests.step.test_called_forces import BODY, DOF, MODEL, NUM, make, moved, spring
from tests.step.test_function_force import Function, address, numbers

from simstate import InvalidInputError, Simulation
from simstate.engine import core
from simstate.integrate import (
    DOP853,
    DP54,
    RK4,
    RKF45,
    Drag,
    Gravity,
    MovingFrame,
    PointMassGravity,
    Process,
    Thruster,
)

__all__ = ["address"]  # a fixture
pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)
MU = 3.986004418e14
FIXED = [RK4("lie"), RK4("high_order")]
ADAPTIVE = [DP54(), DOP853(), RKF45(attitude="high_order")]
SCHEMES = [*FIXED, *ADAPTIVE]
NAMES = ["RK4", "RK4-high", "DP54", "DOP853", "RKF45-high"]
schemes = pytest.mark.parametrize("scheme", SCHEMES, ids=NAMES)
adaptive = pytest.mark.parametrize("scheme", ADAPTIVE, ids=NAMES[2:])


class Lag(Process):
    """A number that follows positions, velocities and accelerations."""

    def __init__(self) -> None:
        super().__init__("lag", [0.3, -0.2])

    def rate(self, t, sim):
        data = sim.data
        drive = torch.stack([data.qacc[:, 6], data.xipos[:, BODY, 1]], dim=1)
        return drive * (1.0 + t)[:, None] - 2.0 * self.value


def same(one: Simulation, other: Simulation) -> None:
    for name, values in one.snapshot().slots.items():
        np.testing.assert_array_equal(other.snapshot().slots[name], values, name)


@pytest.mark.parametrize("scheme", FIXED, ids=NAMES[:2])
def test_each_stage_asks_for_loads_and_rates_once(scheme):
    asked = []

    class Counted(Lag):
        def rate(self, t, sim):
            asked.append("rate")
            return super().rate(t, sim)

    def force(t, sim):
        asked.append("force")
        spring(t, sim)

    sim = make(scheme)
    sim.add_force(force)
    sim.add_process(Counted())
    sim.step()
    asked.clear()
    sim.step(3)
    assert has_called_from_core(sim)
    assert asked == ["force", "rate"] * 12  # four stages of three steps


# Adaptive schemes.


@adaptive
@pytest.mark.parametrize("num", [1, NUM])
def test_a_constant_load_has_the_bits_of_the_closed_loop(scheme, num):
    """Every world takes its own steps, at its own stages."""
    called, closed = make(scheme, num), make(scheme, num)
    load = torch.as_tensor(np.random.default_rng(9).standard_normal((num, 6)))
    called.add_force(lambda t, sim: sim.data.xfrc_applied[:, BODY].add_(load))
    closed.data.xfrc_applied[:, BODY] += load
    moved(called)
    moved(closed)
    for sim in (called, closed):
        sim.step(20, env_ids=[0] if num == 1 else [3, 0])
    assert has_called_from_core(called)
    assert not has_called_from_core(closed)
    for name in ("time", "qpos", "qvel", "qacc_warmstart"):
        assert torch.equal(getattr(called.data, name), getattr(closed.data, name)), name
    ours, theirs = called.integration.statistics, closed.integration.statistics
    for name in ("evaluations", "accepted", "rejected"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name)), name
    if num > 1:
        assert len(set(ours.evaluations.tolist())) > 2
    assert torch.equal(called.integration.step_size, closed.integration.step_size)


@adaptive
def test_a_model_has_the_steps_of_the_blocks(scheme, monkeypatch):
    ours, blocks = make(scheme), make(scheme)
    take_blocks(blocks, monkeypatch)
    for sim in (ours, blocks):
        sim.add_force(spring)
        sim.step(30)
        sim.step(7, env_ids=[4, 1])
    assert has_called_from_core(ours)
    torch.testing.assert_close(ours.state, blocks.state, rtol=1e-10, atol=1e-10)
    counts = [sim.integration.statistics for sim in (ours, blocks)]
    assert torch.equal(counts[0].accepted, counts[1].accepted)
    assert torch.equal(counts[0].evaluations, counts[1].evaluations)


def test_the_force_of_each_form_gives_the_same_steps(address):
    """A C function, and the same in NumPy."""
    from tests.step.test_function_force import NumpyForce

    ends = []
    for form in (lambda sim: Function(address, numbers()), NumpyForce):
        sim = make(DP54())
        sim.add_force(form(sim))
        sim.step(25)
        ends.append(sim.state.clone())
    assert torch.equal(*ends)


def test_a_world_that_is_stuck_is_reported():
    sim = make(DP54(min_step=1e-3), on_divergence="mask")

    def wild(t, sim):
        sim.data.qfrc_applied[2, 6] += 1e7 * torch.sin(1e6 * t[2])

    sim.add_force(wild)
    sim.step()
    assert sim.diverged.tolist() == [False, False, True, False, False]


@adaptive
def test_an_event_with_a_model_in_python(scheme):
    """Steps are cut at the crossing; x = x0 − g t² / 2 + v t by a constant force."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option gravity="0 0 0" timestep="0.5"/><worldbody><body><joint '
        'type="slide" axis="0 0 1"/><geom size="0.1" mass="2.5"/></body></worldbody>'
        "</mujoco>"
    )
    sim = Simulation(model, 2, integrator=scheme)
    sim.data.qpos[:, 0] = torch.tensor([2.0, 3.0]).double()
    sim.add_force(lambda t, sim: sim.data.qfrc_applied.add_(-9.0 * 2.5))
    found: list[float] = []
    sim.add_event(
        lambda sim: sim.data.qpos[:, 0],
        action=lambda sim, env_ids: found.extend(sim.time[env_ids].tolist()),
    )
    sim.step(3)
    want = [math.sqrt(2 * 2.0 / 9), math.sqrt(2 * 3.0 / 9)]
    assert sorted(found) == pytest.approx(want, abs=1e-9)


# Moving frames.

SATELLITE = """
<mujoco><option timestep="2" gravity="0 0 0"/><worldbody>
  <body name="sat" quat="0.8 0.1 0.5 0.3"><freejoint/>
    <inertial pos="0.1 -0.2 0.05" mass="12" diaginertia="1 2 2.5"/>
    <body name="boom" pos="1 0.2 0"><joint name="hinge" axis="0 1 0.2" damping="0.3"/>
      <inertial pos="0.4 0.1 0" mass="3" diaginertia="0.2 0.5 0.6"/></body>
  </body></worldbody></mujoco>
"""
PLACE = [[7e6, 1e5, -3e5], [6.8e6, -2e6, 1e6], [7.1e6, 0.0, 2e5]]
SPEED = [[10.0, 7500.0, 300.0], [2000.0, 6500.0, 900.0], [-50.0, 7300.0, 1200.0]]


class Inverse(Gravity):
    """A point mass at the origin, as a user writes it."""

    def acceleration(self, t, pos):
        del t
        return -MU * pos / torch.linalg.vector_norm(pos, dim=-1, keepdim=True) ** 3


def orbit(gravity, scheme=FIXED[0], *, framed=True):
    sim = Simulation(mujoco.MjModel.from_xml_string(SATELLITE), 3, integrator=scheme)
    rng = np.random.default_rng(3)
    sim.data.qvel[:, 3:] = torch.as_tensor(0.01 * rng.standard_normal((3, 4)))
    if framed:
        frame = MovingFrame(gravity, PLACE, SPEED)
        sim.add_process(frame)
        return sim, frame
    sim.data.qpos[:, :3] = torch.as_tensor(PLACE)
    sim.data.qvel[:, :3] = torch.as_tensor(SPEED)
    sim.add_force(gravity)
    return sim, None


@schemes
def test_an_empty_model_changes_no_bit_of_an_orbit(scheme):
    plain, first = orbit(PointMassGravity(MU), scheme)
    called, second = orbit(PointMassGravity(MU), scheme)
    seen = []
    called.add_force(lambda t, sim: seen.append(sim.data.xfrc_applied[:, 1].clone()))
    for sim in (plain, called):
        sim.step(20)
        sim.step(2, env_ids=[2, 0])
    assert has_called_from_core(called)
    assert torch.equal(first.value, second.value)
    assert torch.equal(plain.state, called.state)
    # The model follows gravity, whose loads it sees.
    assert bool((seen[0].abs().sum(dim=1) > 0).all())
    assert not bool(called.data.xfrc_applied.any())


@schemes
@pytest.mark.parametrize("framed", [True, False], ids=["framed", "inertial"])
def test_gravity_of_a_user_is_that_of_the_core(scheme, framed):
    if scheme in ADAPTIVE and not framed:
        pytest.skip("rounding decides on the steps of an inertial orbit")
    ends = []
    for gravity in (Inverse(), PointMassGravity(MU)):
        sim, frame = orbit(gravity, scheme, framed=framed)
        sim.step(30)
        assert has_called_from_core(sim) == isinstance(gravity, Inverse)
        value = torch.zeros(3, 6).double() if frame is None else frame.value
        ends.append((sim.data.qpos.clone(), value.clone()))
    (ours, place), (theirs, want) = ends
    torch.testing.assert_close(place, want, rtol=1e-11, atol=1e-6)
    torch.testing.assert_close(ours[:, :3], theirs[:, :3], rtol=1e-9, atol=1e-5)
    loss = 1e-8 if framed else 1e-5  # MuJoCo's, at orbital speed
    torch.testing.assert_close(ours[:, 3:], theirs[:, 3:], rtol=0, atol=loss)


@schemes
def test_a_frame_that_a_subclass_moves_falls_next_to_compiled_drag(scheme):
    class Moved(MovingFrame):
        def rate(self, t, sim):
            return super().rate(t, sim)

    ends = []
    for kind in (Moved, MovingFrame):
        model = mujoco.MjModel.from_xml_string(SATELLITE)
        sim = Simulation(model, 3, integrator=scheme)
        frame = kind(PointMassGravity(MU), PLACE, SPEED)
        sim.add_process(frame)
        sim.add_force(Drag(next(iter(sim.scene)), "boom", 1.5, 2e-9))
        sim.step(10)
        ends.append(frame.value.clone())
    torch.testing.assert_close(*ends, rtol=1e-11, atol=1e-6)


@pytest.mark.parametrize("scheme", FIXED, ids=NAMES[:2])
@pytest.mark.parametrize("turns", [True, False])
def test_gravity_of_a_user_is_that_of_the_blocks(scheme, turns, monkeypatch):
    ends = []
    for by_blocks in (False, True):
        sim, frame = orbit(Inverse(gradient_torque=turns), scheme)
        if by_blocks:
            take_blocks(sim, monkeypatch)
        sim.step(40)
        ends.append((sim.data.qpos.clone(), frame.value.clone()))
    (ours, place), (theirs, want) = ends
    torch.testing.assert_close(place, want, rtol=1e-13, atol=0)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_the_gradient_of_a_user_turns_the_body():
    turned, free = (orbit(Inverse(gradient_torque=x))[0] for x in (True, False))
    for sim in (turned, free):
        sim.step(60)
    change = (turned.data.qpos[:, 3:7] - free.data.qpos[:, 3:7]).abs().amax(dim=1)
    assert bool((change > 1e-5).all())


def test_all_points_of_an_evaluation_are_one_call():
    shapes = []

    class Counted(Inverse):
        def acceleration(self, t, pos):
            shapes.append(tuple(pos.shape))
            return super().acceleration(t, pos)

    sim, _ = orbit(Counted())
    sim.step(2)
    assert shapes == [(3, 1 + 2 * 7, 3)] * 8


def test_more_than_an_acceleration_is_computed_in_python():
    """A gradient that is the user's own is called, and not replaced by differences."""
    calls = []

    class Own(Inverse):
        def gradient(self, t, pos):
            calls.append(tuple(pos.shape))
            return super().gradient(t, pos)

    own, _ = orbit(Own())
    plain, _ = orbit(Inverse())
    for sim in (own, plain):
        sim.step(3)
    assert calls == [(3, 2, 3)] * 12
    assert has_called_from_core(own)
    torch.testing.assert_close(own.state, plain.state, rtol=1e-9, atol=1e-9)


def test_an_acceleration_that_is_not_finite_is_named():
    class Broken(Inverse):
        def acceleration(self, t, pos):
            found = super().acceleration(t, pos)
            found[1] = torch.where(t[1] > 3.5, math.nan, found[1])
            return found

    sim, _ = orbit(Broken())
    before = sim.state.clone()
    with raises(InvalidInputError, name="acceleration", worlds=[1]):
        sim.step(3)
    assert torch.equal(sim.state, before)


def test_an_acceleration_of_another_shape_is_refused():
    class Flat(Inverse):
        def acceleration(self, t, pos):
            return super().acceleration(t, pos)[:, 0]

    sim, _ = orbit(Flat())
    with raises(InvalidInputError, name="acceleration"):
        sim.step()


# Processes and masses.


@schemes
def test_a_process_has_the_bits_of_the_blocks(scheme, monkeypatch):
    """Its rate reads accelerations; a model in Python reads its value."""

    def pull(t, sim):
        value = sim.integration.processes[0].value
        sim.data.qfrc_applied[:, DOF] += value[:, 0] - 0.3 * value[:, 1]

    ours, blocks = make(scheme), make(scheme)
    take_blocks(blocks, monkeypatch)
    for sim in (ours, blocks):
        sim.add_process(Lag())
        sim.add_force(pull)
        sim.add_force(Drag("model", "bus", area=0.8))
        sim.step(4)
        sim.step(2, env_ids=[3, 0])
    assert has_called_from_core(ours)
    assert not has_called_from_core(blocks)
    tolerance = (
        {"rtol": 0, "atol": 0} if scheme in FIXED else {"rtol": 1e-10, "atol": 1e-10}
    )
    for name, values in ours.snapshot().slots.items():
        want = blocks.snapshot().slots[name]
        np.testing.assert_allclose(values, want, err_msg=name, **tolerance)
    assert bool(
        (ours.integration.processes[0].value != torch.tensor([0.3, -0.2])).all()
    )
    # Reads after the step are of the new state.
    data = mujoco.MjData(ours.model)
    data.qpos[:], data.qvel[:] = ours.data.qpos[4], ours.data.qvel[4]
    mujoco.mj_forward(ours.model, data)
    np.testing.assert_allclose(ours.data.xipos[4], data.xipos, atol=1e-13)


def test_a_rate_that_is_not_finite_is_named():
    class Broken(Lag):
        def rate(self, t, sim):
            rate = super().rate(t, sim)
            rate[3] = torch.where(t[3] > 0.045, math.inf, rate[3])
            return rate

    sim = make()
    sim.add_process(Broken())
    before = sim.snapshot()
    with raises(InvalidInputError, name="lag"):
        sim.step(3)
    for name, values in before.slots.items():
        np.testing.assert_array_equal(sim.snapshot().slots[name], values, name)


@schemes
def test_masses_that_models_move(scheme, monkeypatch):
    """A model in Python changes the flow that a thruster before it has set."""

    def half(t, sim):
        sim.mass_rate[:, 1] *= 0.5
        sim.mass_rate[:, BODY] -= 0.01 * (1.0 + t)

    ours, blocks = make(scheme), make(scheme)
    take_blocks(blocks, monkeypatch)
    for sim in (ours, blocks):
        sim.mass_rate[:, 1] = torch.linspace(-0.1, 0.1, NUM).double()
        thruster = Thruster(
            "model", "bus", force=(3.0, 1.0, -2.0), position=(0.1, 0.2, 0.0),
            mass_flow=0.4, throttle=0.7,
        )  # fmt: skip
        sim.add_force(thruster)
        sim.add_force(half)
        sim.step(5)
    assert has_called_from_core(ours)
    torch.testing.assert_close(ours.state, blocks.state, rtol=1e-10, atol=1e-10)
    mass = ours.expand("body_mass")
    torch.testing.assert_close(mass, blocks.expand("body_mass"), rtol=1e-12, atol=0)
    rate = 0.5 * (torch.linspace(-0.1, 0.1, NUM).double() - 0.28)
    want = ours.model.body_mass[1] + rate * 0.1
    torch.testing.assert_close(mass[:, 1], want, rtol=1e-9, atol=0)
    assert torch.equal(ours.mass_rate[:, 1], torch.linspace(-0.1, 0.1, NUM).double())


@pytest.mark.parametrize("scheme", [FIXED[0], ADAPTIVE[0]], ids=["RK4", "DP54"])
def test_a_flow_that_is_not_finite_is_named(scheme):
    sim = make(scheme)
    sim.mass_rate[:, 1] = -0.1

    def spoil(t, sim):
        sim.mass_rate[2, BODY] = math.nan

    sim.add_force(spoil)
    before = sim.state.clone()
    with raises(InvalidInputError, name="mass_rate"):
        sim.step()
    assert torch.equal(sim.state, before)
    assert sim.mass_rate[:, 1].tolist() == [-0.1] * NUM


# Writes that only the core can detect.


@schemes
@pytest.mark.parametrize(
    "name", ["qpos", "qvel", "time", "qacc_warmstart", "mocap_pos"]
)
def test_state_that_is_written_through_numpy_is_named(scheme, name):
    xml = MODEL.replace("<worldbody>", '<worldbody><body name="target" mocap="true"/>')
    sim = Simulation(mujoco.MjModel.from_xml_string(xml), 3, integrator=scheme)
    sim.data.qvel[:, 7] = 0.3
    sim.step()
    memory = getattr(sim.data, name).numpy()

    def late_model(t, sim):
        if float(t[1]) > 0.05:
            memory[1] += 0.25

    sim.add_force(lambda t, sim: None)
    sim.add_force(late_model)
    before = sim.snapshot()
    with raises(InvalidInputError, name=name, worlds=[1]):
        sim.step(5)
    assert has_called_from_core(sim)
    for slot, values in before.slots.items():
        np.testing.assert_array_equal(sim.snapshot().slots[slot], values, slot)


def test_a_world_that_is_not_finite_does_not_hide_writes_to_another():
    sim = make(on_divergence="mask")
    sim.data.qvel[0, 3] = math.nan

    def late_model(t, sim):
        sim.data.qfrc_applied[:, 3] += sim.data.qvel[:, 3]
        sim.data.qpos.numpy()[2, 1] += 0.25

    sim.add_force(late_model)
    before = sim.data.qpos.clone()
    with raises(InvalidInputError, name="qpos"):
        sim.step()
    assert torch.equal(sim.data.qpos, before)


@schemes
@pytest.mark.parametrize("name", ["qpos", "xfrc_applied"])
def test_a_rate_that_writes_is_named(scheme, name):
    class Greedy(Lag):
        def rate(self, t, sim):
            getattr(sim.data, name).numpy()[1] += 0.25
            return super().rate(t, sim)

    sim = make(scheme)
    sim.add_process(Greedy())
    before = sim.snapshot()
    with raises(InvalidInputError, name="lag", worlds=[1]):
        sim.step(2)
    for slot, values in before.slots.items():
        np.testing.assert_array_equal(sim.snapshot().slots[slot], values, slot)
