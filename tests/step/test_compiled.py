"""Integrators in the compiled core, seen from a simulation: as without it."""

from __future__ import annotations

import re

import mujoco
import numpy as np
import pytest
import torch
from tests.engine.core_models import load, random_states
from tests.engine.test_core_loads import CRAFT, MU, RADIUS, SPEED
from tests.inside import compiled_models_of, record_forwards, slot_of
from tests.raised import raises

from simstate import Simulation, integrate
from simstate.base.errors import IntegrationError, InvalidInputError
from simstate.engine import core

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

NUM = 5
SCHEMES = [integrate.RK4("lie"), integrate.DOP853(atol=1e-8, rtol=1e-8)]


@pytest.fixture
def both(monkeypatch):
    """Makes a simulation with the core, and the same one without."""

    def make(model, scheme, **options):
        rows = torch.tensor(random_states(model, NUM, 3))
        sims = []
        for value in ("1", "0"):
            monkeypatch.setenv("SIMSTATE_CORE", value)
            sims.append(Simulation(model, NUM, integrator=scheme, **options))
            sims[-1].write_state(rows)
        return sims

    return make


def smooth(name):
    model = load(name)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT.value
    return model


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_simulation_steps_as_without_the_core(both, scheme):
    ours, plain = sims = both(smooth("small"), scheme)
    found = [compiled_models_of(sim) for sim in sims]
    assert [x is not None for x in found] == [True, False]
    for sim in sims:
        sim.step(4)
        sim.step(2, env_ids=[4, 1])
    torch.testing.assert_close(ours.state, plain.state, rtol=1e-9, atol=1e-9)
    for name in ("evaluations", "accepted", "rejected"):
        counts = [getattr(sim.integration.statistics, name) for sim in sims]
        assert torch.equal(*counts), name


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_read_after_a_step_is_of_the_new_state(both, scheme, load_row):
    model = smooth("small")
    sim, _ = both(model, scheme)
    sim.step(3)
    sim.step(1, env_ids=[3, 0])
    for world in range(NUM):
        data = load_row(model, sim.state[world])
        mujoco.mj_forward(model, data)
        for field in ("xpos", "cvel", "site_xpos", "sensordata", "qacc", "act_dot"):
            got = getattr(sim.data, field)[world].numpy()
            np.testing.assert_array_equal(got, getattr(data, field), err_msg=field)


def test_a_position_that_is_read_costs_no_evaluation(both, monkeypatch):
    sim, _ = both(smooth("small"), SCHEMES[0])
    sim.data.xpos  # noqa: B018
    sim.step()
    calls = record_forwards(sim, monkeypatch)
    sim.data.xpos  # noqa: B018
    assert not calls
    sim.data.qacc  # noqa: B018
    assert len(calls) == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_snapshot_goes_on_as_it_did(both, scheme):
    sim, _ = both(smooth("small"), scheme)
    sim.step(3)
    kept = sim.snapshot()
    sim.step(4)
    want, counts = sim.state.clone(), sim.integration.statistics.evaluations.clone()
    sim.restore(kept)
    sim.step(4)
    assert torch.equal(sim.state, want)
    assert torch.equal(sim.integration.statistics.evaluations, counts)


def test_a_force_model_is_called_from_the_next_step_on(both):
    ours, plain = sims = both(smooth("small"), SCHEMES[0])

    def push(t, sim):
        sim.data.xfrc_applied[:, 2, 0] += 3.0 + t

    for sim in sims:
        sim.step(2)
        sim.add_force(push)
        sim.step(2)
        assert compiled_models_of(sim) is None
    torch.testing.assert_close(ours.state, plain.state, rtol=1e-9, atol=1e-9)


def test_a_world_that_is_stuck_is_described_alike(both):
    scheme = integrate.DP54(atol=1e-12, rtol=1e-12, min_step=0.001)
    sims = both(smooth("small"), scheme)
    messages = []
    for sim in sims:
        sim.data.qvel[0] = 0.0
        sim.data.qfrc_applied[0] = 0.0
        before = sim.state.clone()
        with raises(IntegrationError, worlds=[0, 1, 2, 3, 4]) as error:
            sim.step(3)
        assert torch.equal(sim.state, before)
        messages.append(str(error.value))
        assert len(error.value.env_ids) >= 3
    words = [re.sub(r"\d[-+.e\d]*", "#", message) for message in messages]
    assert words[0] == words[1]
    assert "with # s the error of qvel of" in words[0]


def test_a_world_that_goes_bad_is_put_back_with_its_step(both):
    sim, _ = both(smooth("small"), SCHEMES[1], on_divergence="mask")
    sim.step()
    sim.data.qvel[2, 3] = torch.inf
    slot = slot_of(sim, "integrator/step_size")
    before, size = sim.state[2].clone(), slot[2].clone()
    others = slot.clone()
    sim.step(5)
    assert sim.diverged.tolist() == [False, False, True, False, False]
    assert torch.equal(sim.state[2], before)
    assert slot[2] == size
    assert bool((slot[[0, 1, 3, 4]] > 0).all())
    assert bool((others > 0).all())


# Force models.

MODEL_SCHEMES = [integrate.RK4("lie"), integrate.DP54(atol=1e-9, rtol=1e-9)]


def runs_in_the_core(sim):
    return compiled_models_of(sim) is not None


def craft():
    return mujoco.MjModel.from_xml_string(CRAFT)


def thruster(**options):
    """One whose numbers all differ from world to world."""
    worlds = torch.arange(NUM, dtype=torch.float64)
    return integrate.Thruster(
        *("model", "bus"),
        torch.stack([1.5 + worlds, 0.3 * worlds, -0.4 - worlds], dim=1),
        torch.stack([-0.2 + 0.1 * worlds, worlds / 9, worlds / 7], dim=1),
        **{"mass_flow": 0.1 + 0.05 * worlds, "throttle": 0.2 + worlds / 8} | options,
    )


@pytest.mark.parametrize("scheme", MODEL_SCHEMES)
def test_thrust_drag_and_gravity_are_those_of_the_models(both, scheme):
    ours, plain = sims = both(craft(), scheme)
    for sim in sims:
        push = thruster(dry_mass=torch.tensor([0.0, 11.9, 0.0, 11.5, 0.0]).double())
        sim.add_force(push)
        pull = torch.linspace(-1, 2, 3 * NUM, dtype=torch.float64).view(NUM, 3)
        sim.add_force(integrate.UniformGravity(pull))
        sim.add_force(
            integrate.Drag("model", "panel", 1.3, density=0.7, wind=(3.0, -2.0, 1.0))
        )
        sim.mass_rate[:, 3] = torch.tensor([-0.1, 0.05, -0.02, 0.0, 0.3]).double()
        sim.step(2)
        push.parameters["throttle"][3] = 0.9  # numbers are live
        sim.step(2, env_ids=[4, 3, 1])
    assert [runs_in_the_core(sim) for sim in sims] == [True, False]
    torch.testing.assert_close(ours.state, plain.state, rtol=1e-9, atol=1e-9)
    for name in ("body_mass", "body_inertia", "dof_invweight0", "body_subtreemass"):
        got, want = (sim.expand(name) for sim in sims)
        torch.testing.assert_close(got, want, rtol=1e-11, atol=0, msg=name)


@pytest.mark.parametrize("scheme", MODEL_SCHEMES)
def test_an_orbit_in_a_moving_frame_is_that_of_the_models(both, scheme):
    ours, plain = sims = both(craft(), scheme)
    start = np.array([RADIUS, 2e5, -3e5]) + 1e3 * np.arange(NUM)[:, None]
    speed = np.array([100.0, SPEED, 800.0]) - 5.0 * np.arange(NUM)[:, None]
    frames = []
    for sim in sims:
        gravity = integrate.PointMassGravity([MU, 4.9e12], [[0, 0, 0], [3.8e8, 1, 2]])
        frames.append(integrate.MovingFrame(gravity, start, speed))
        sim.add_process(frames[-1])
        sim.add_force(integrate.Drag("model", "bus", 2.0, density=1e-11))
        sim.step(3)
        sim.step(2, env_ids=[2, 0])
    assert [runs_in_the_core(sim) for sim in sims] == [True, False]
    torch.testing.assert_close(ours.state, plain.state, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(frames[0].value, frames[1].value, rtol=1e-13, atol=0)
    kept = ours.snapshot()
    ours.step(2)
    want, place = ours.state.clone(), frames[0].value.clone()
    ours.restore(kept)
    ours.step(2)
    assert torch.equal(ours.state, want)
    assert torch.equal(frames[0].value, place)


def test_functions_of_time_and_subclasses_are_pythons(both):
    class Other(integrate.UniformGravity):
        def __call__(self, t, sim):
            sim.data.xfrc_applied[:, 1, 2] += 1.0

    sim, _ = both(craft(), MODEL_SCHEMES[0])
    sim.add_force(integrate.UniformGravity((1.0, 2.0, 3.0)))
    assert runs_in_the_core(sim)
    sim.add_force(Other((1.0, 0.0, 0.0)))
    assert not runs_in_the_core(sim)
    sim, _ = both(craft(), MODEL_SCHEMES[0])
    sim.add_force(thruster(throttle=lambda t: 0.1 + 0 * t))
    assert not runs_in_the_core(sim)


def test_numbers_that_a_model_refuses_are_refused(both):
    for sim in both(craft(), MODEL_SCHEMES[0]):
        push = thruster()
        sim.add_force(push)
        sim.step()
        push.parameters["throttle"][2] = 1.5
        with raises(InvalidInputError, name="throttle"):
            sim.step()


@pytest.mark.parametrize("scheme", MODEL_SCHEMES)
def test_running_out_of_mass_is_said_alike(both, scheme):
    messages = []
    for sim in both(craft(), scheme):
        sim.add_force(thruster(mass_flow=4.0, throttle=1.0))
        before = sim.state.clone()
        with raises(InvalidInputError, name="bus") as error:
            sim.step(40)
        assert torch.equal(sim.state, before)
        # Python's loop raises at the first world, the core for the lowest one.
        messages.append(
            re.sub(
                r"world \d|at about t = .*? s|has .*? kg|loses .*? kg",
                "",
                str(error.value),
            )
        )
    assert messages[0] == messages[1]


@pytest.mark.parametrize("scheme", MODEL_SCHEMES)
def test_parts_of_steps_are_taken_by_the_core(both, scheme, monkeypatch):
    """Events, tasks and records: the same instants, steps and samples either way."""
    found = []
    for sim in both(craft(), scheme):
        evaluated = record_forwards(sim, monkeypatch)
        push = thruster(dry_mass=0.0)
        sim.add_force(push)
        sim.add_force(integrate.UniformGravity((0.3, -0.2, 1.0)))
        mass = sim.expand("body_mass")

        def burnt(sim, mass=mass):
            return mass[:, 1] - 11.7

        def drop(sim, env_ids, mass=mass, push=push):
            mass[env_ids, 1] = 9.0
            push.parameters["force"][env_ids] *= 0.5

        def control(sim, env_ids):
            sim.data.qfrc_applied[env_ids, 3] = -0.1 * sim.data.qvel[env_ids, 3]

        stage = sim.add_event(burnt, "falling", action=drop)
        turn = sim.add_event(lambda sim: sim.data.xpos[:, 1, 2] - 0.9, name="height")
        sim.add_task(control, period=0.37)
        log = sim.record(quantities=["qpos", "xpos"], every=0.45)
        sim.step(3)
        sim.run(until=6.1)
        assert stage.count.sum() >= 3
        found.append((sim, stage, turn, log, len(evaluated)))
    (ours, *events, log, few), (plain, *expected, want, many) = found
    assert runs_in_the_core(ours)
    assert few < many / 2
    for own, other in zip(events, expected, strict=True):
        assert torch.equal(own.count, other.count)
        torch.testing.assert_close(
            own.time, other.time, atol=3e-10, rtol=0, equal_nan=True
        )
    torch.testing.assert_close(ours.state, plain.state, rtol=1e-8, atol=1e-8)
    for name in ("time", "qpos", "xpos"):
        torch.testing.assert_close(
            log[name], want[name], rtol=1e-8, atol=1e-8, equal_nan=True
        )
    counts = [sim.integration.statistics.accepted for sim in (ours, plain)]
    assert torch.equal(*counts)
