"""Forces of users: orders in every form, SciPy, and calls that go wrong."""

from __future__ import annotations

import math
import random
import threading

import mujoco
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from tests.inside import all_slots, has_called_from_core
from tests.raised import raises
from tests.step.test_called_evaluations import Inverse, Lag, orbit
from tests.step.test_called_forces import BODY, make
from tests.tracer import traced

from simstate import InvalidInputError, Simulation, ThreadError
from simstate.engine import core
from simstate.integrate import (
    DOP853,
    DP54,
    RK4,
    SCHEMES,
    Adaptive,
    UniformGravity,
    compile_force,
)

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)
PENDULUM = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body pos="0.1 0 2"><joint name="one" axis="0 1 0.1" pos="0.02 0 0.3"/>
    <inertial pos="0.1 0.05 -0.4" mass="2.5" diaginertia="0.1 0.2 0.15"/>
    <body pos="0 0.1 -0.8"><joint name="two" axis="0.2 1 0"/>
      <inertial pos="0.02 -0.03 -0.3" mass="0.7" diaginertia="0.02 0.03 0.01"/></body>
  </body></worldbody></mujoco>
"""
PULL = np.array([1.5, -0.7, -9.0])


def built_in(sim):
    sim.add_force(UniformGravity(PULL))


def in_python(sim):
    mass = torch.as_tensor(sim.model.body_mass[1:])[:, None]
    acc = torch.as_tensor(PULL)
    sim.add_force(lambda t, sim: sim.data.xfrc_applied[:, 1:, :3].add_(mass * acc))


def by_numba(sim):
    pytest.importorskip("numba")
    masses, pull = tuple(sim.model.body_mass.tolist()), tuple(PULL.tolist())

    def weigh(t, xfrc_applied):
        for body in range(1, 3):
            for k in range(3):
                xfrc_applied[body, k] += masses[body] * pull[k]

    sim.add_force(compile_force(weigh, sim, writes=("xfrc_applied",)))


FORMS = {"built in": built_in, "Python": in_python, "numba": by_numba}


def swing(scheme, form, steps):
    """Return the state of two worlds after half a second."""
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    model.opt.timestep = 0.5 / steps
    sim = Simulation(model, 2, integrator=scheme)
    sim.data.qpos[:] = torch.tensor([[0.7, -0.4], [-1.1, 0.9]]).double()
    sim.data.qvel[:] = torch.tensor([[1.0, 2.0], [-0.5, 0.3]]).double()
    FORMS[form](sim)
    sim.step(steps)
    assert has_called_from_core(sim) == (form == "Python")
    return torch.cat([sim.data.qpos, sim.data.qvel], dim=1).clone()


@pytest.mark.parametrize("name", SCHEMES)
def test_every_form_of_a_force_has_the_bits_and_the_order(name):
    scheme = SCHEMES[name]()
    ends = {form: swing(scheme, form, 40) for form in FORMS}
    assert torch.equal(ends["Python"], ends["built in"])
    assert torch.equal(ends["numba"], ends["built in"])
    if isinstance(scheme, Adaptive):
        return
    truth = swing(DOP853(atol=1e-13, rtol=1e-13), "built in", 1)
    fine = {form: swing(scheme, form, 80) for form in FORMS}
    for form in FORMS:
        coarse_error = float((ends[form] - truth).abs().max())
        fine_error = float((fine[form] - truth).abs().max())
        order = math.log2(coarse_error / fine_error)
        assert order == pytest.approx(scheme.tableau.order, abs=0.25), form


def test_dop853_is_scipys():
    """The same right-hand side: a hardening spring with damping and a drive."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option gravity="0 0 0" timestep="0.5"/><worldbody><body><joint '
        'type="slide" axis="1 0 0"/><geom size="0.1" mass="1.7" contype="0"/></body>'
        "</worldbody></mujoco>"
    )
    sim = Simulation(model, 2, integrator=DOP853(atol=1e-11, rtol=1e-11))
    start = np.array([[1.2, 0.3], [-0.4, 2.0]])
    sim.data.qpos[:, 0] = torch.as_tensor(start[:, 0])
    sim.data.qvel[:, 0] = torch.as_tensor(start[:, 1])

    def force(t, x, v):
        return -3.0 * x**3 - 0.2 * v + np.cos(3.0 * t)

    def spring(t, qpos, qvel, qfrc_applied):
        qfrc_applied[:, 0] += force(t, qpos[:, 0], qvel[:, 0])

    sim.add_force(spring, reads=("qpos", "qvel"), writes=("qfrc_applied",))
    sim.step(10)
    assert has_called_from_core(sim)
    for world in range(2):
        found = solve_ivp(
            lambda t, y: [y[1], force(t, y[0], y[1]) / 1.7],
            *((0.0, 5.0), start[world]), method="DOP853", rtol=1e-11, atol=1e-11,
        )  # fmt: skip
        ours = [float(sim.data.qpos[world, 0]), float(sim.data.qvel[world, 0])]
        assert ours == pytest.approx(found.y[:, -1], abs=2e-9)
        evaluations = int(sim.integration.statistics.evaluations[world])
        assert evaluations < 2 * found.nfev


# Calls that go wrong. Other tests: exceptions, writes, values that are not finite.


def cases():
    """Return simulations that call Python in every way, with different schemes."""
    framed, _ = orbit(Inverse(), DP54())
    framed.add_force(lambda t, sim: sim.data.xfrc_applied[:, 1, 0].add_(1e-3))
    slow = make(RK4())
    slow.add_process(Lag())
    slow.mass_rate[:, 1] = -0.1
    slow.add_force(lambda t, sim: sim.data.xfrc_applied[:, BODY].mul_(1.5))
    return {"adaptive, frame": framed, "process, masses": slow}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def close(one, other):
    """Compare to rounding: constants of flowing masses may be computed again."""
    return all(
        torch.allclose(one[name].double(), other[name].double(), rtol=1e-12, atol=1e-14)
        for name in one
    )


@pytest.mark.parametrize("name", ["adaptive, frame", "process, masses"])
def test_an_interrupt_at_any_line_leaves_the_worlds_unchanged(name):
    sim = cases()[name]
    sim.step()
    start = sim.snapshot()
    before = all_slots(sim)
    count = traced(sim.step).count
    after = all_slots(sim)
    undone = 0
    for line in random.Random(3).sample(range(count), min(count, 60)):
        sim.restore(start)
        result = traced(sim.step, line)
        now = all_slots(sim)
        if result.error is None or close(now, after):
            assert close(now, after), result.places
            continue
        assert isinstance(result.error, KeyboardInterrupt)
        assert same(now, before), result.places
        undone += 1
        sim.step()
        assert close(all_slots(sim), after), result.places
    assert undone > 20


@pytest.mark.parametrize("scheme", [RK4(), DP54()], ids=["RK4", "DP54"])
def test_a_model_that_steps_or_resets_is_refused(scheme):
    for act, name in (
        (Simulation.step, "sim.step"),
        (Simulation.reset, "reset"),
        (lambda sim: sim.run(until=1.0), "sim.step"),
    ):
        sim = make(scheme)
        sim.add_force(lambda t, sim, act=act: act(sim))
        before = all_slots(sim)
        with raises(InvalidInputError, name=name):
            sim.step()
        assert same(all_slots(sim), before)


@pytest.mark.parametrize("scheme", [RK4(), DP54()], ids=["RK4", "DP54"])
def test_another_thread_is_refused_and_the_step_completes(scheme):
    sim, twin, errors = make(scheme), make(scheme), []

    def other():
        for call in (sim.step, lambda: sim.data.xpos, sim.snapshot):
            try:
                call()
            except ThreadError as error:
                errors.append(error)

    def model(t, sim):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    sim.add_force(model)
    twin.add_force(lambda t, sim: None)
    sim.step()
    twin.step()
    evaluations = int(sim.integration.statistics.evaluations.max())
    assert len(errors) >= 3 * min(evaluations, 4)
    assert torch.equal(sim.state, twin.state)
