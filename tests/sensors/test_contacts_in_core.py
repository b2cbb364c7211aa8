"""What contact sensors remember in the compiled core, bit for bit as without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.inside import compiled_of
from tests.sensors.heap import CONTACTS, heap, stir

from simstate import NativeCfg
from simstate.engine import core

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

SLOTS = ("air_time", "contact_time", "last_air_time", "last_contact_time",
         "greatest_force", "force_history_w", "force_w")  # fmt: skip


def make_pair(monkeypatch, **options):
    """The same heap in the core and without it."""
    sims = [heap(4, **options)]
    with monkeypatch.context() as patch:
        patch.setenv("SIMSTATE_CORE", "0")
        sims.append(heap(4, **options))
    assert compiled_of(sims[0]) is not None
    assert compiled_of(sims[1]) is None
    for sim in sims:
        stir(sim, 7)
        sim.data.qvel[:, 2] -= 0.4
        sim.expand("opt.timestep")[:] = torch.tensor([0.003, 0.002, 0.0035, 0.0025])
    return sims


@pytest.mark.parametrize("rk4", [False, True])
def test_the_same_bits_on_both_paths(monkeypatch, rk4):
    """Many steps in a call, some worlds, several rounds, evaluations in between."""
    sims = make_pair(monkeypatch, engine=NativeCfg(num_threads=2))
    if rk4:  # MuJoCo's own, in which sensors are those of the first stage
        for sim in sims:
            sim.expand("opt.integrator")[:] = 1
            sim.expand("opt.timestep")[:] *= 0.15
    touched = lifted = 0
    for n, env_ids in ((3, None), (1, [2, 0]), (40, None), (5, [3]), (7, [1, 3, 0])):
        for _ in range(4):
            for sim in sims:
                sim.step(n, env_ids)
            for name in CONTACTS:
                for slot in SLOTS:
                    ours, plain = (sim.contacts[name].read(slot) for sim in sims)
                    assert torch.equal(ours, plain), (name, slot, n)
            feet, rocks = (sims[0].contacts[name] for name in ("feet", "rocks"))
            touched += int((rocks.greatest_force > 0).sum())
            touched += int((feet.last_air_time > 0).sum())
            lifted += int((feet.last_contact_time > 0).sum())
            for sim in sims:
                sim.forward()
        assert torch.equal(sims[0].state, sims[1].state)
    assert touched
    assert lifted or rk4


def test_the_last_step_alone(monkeypatch):
    """With every_step False the clocks go on by the whole call."""
    contacts = {k: replace(cfg, every_step=False) for k, cfg in CONTACTS.items()}
    sims = make_pair(monkeypatch, contacts=contacts)
    for n in (3, 21, 1, 6, 2):
        for sim in sims:
            sim.step(n)
        for name in CONTACTS:
            for slot in SLOTS:
                ours, plain = (sim.contacts[name].read(slot) for sim in sims)
                assert torch.equal(ours, plain), (name, slot, n)


@pytest.mark.parametrize("cone", [0, 1])
@pytest.mark.parametrize("integrator", [0, 1, 3])
def test_the_core_senses_as_mujoco_does(monkeypatch, cone, integrator):
    """All numbers of MuJoCo's contact sensors: of all contacts, and of the strongest.

    With one of the strongest for each element the core evaluates them itself.
    """
    contacts = {k: replace(cfg, strongest=1) for k, cfg in CONTACTS.items()}
    sims = make_pair(monkeypatch, contacts=contacts)
    for sim in sims:
        sim.step(60)
        sim.expand("opt.cone")[:] = cone
        sim.expand("opt.integrator")[:] = integrator
        sim.expand("opt.timestep")[:] *= 0.15 if integrator == 1 else 1.0
    model = sims[0].model
    net = [k for k in range(model.nsensor) if ":net:" in model.sensor(k).name]
    several = 0
    for n in (2, 5, 1, 20, 4, 30, 3):
        for sim in sims:
            sim.step(n)
        ours, plain = (sim.data.sensordata for sim in sims)
        assert torch.equal(ours, plain), n
        several += int((plain[:, model.sensor_adr[net]] > 1).sum())
    assert several


def test_a_force_that_is_not_a_number_stays(monkeypatch):
    """Whatever comes later in the call, the greatest is not a number."""
    sims = make_pair(monkeypatch, on_divergence="mask")
    for sim in sims:
        sim.step(60)
        sim.data.qfrc_applied[1, 3] = 1e300
        sim.step(3)
    for name in CONTACTS:
        ours, plain = (sim.contacts[name].greatest_force.numpy() for sim in sims)
        np.testing.assert_array_equal(ours, plain)


def test_what_does_not_fit_is_refused():
    sim = heap(3)
    batch = compiled_of(sim)
    assert batch is not None
    slots = {name: np.zeros((3, 2)) for name in core.core_contacts.SLOTS}
    slots["force_history_w"] = np.zeros((3, 1, 2, 3))
    first = sim.model.sensor("contacts:feet:net:0:0")
    sensors = np.array([[first.id], [first.id + 1]])
    columns = np.array([[first.adr[0] + 1], [first.adr[0] + 11]])
    singles = sensors + len(sim.contacts["feet"].element_names)

    shown = (np.zeros((3, 2, 3)), np.zeros((3, 2)), np.zeros((3, 2), bool))

    def make(sensors=sensors, columns=columns, **other):
        return core.make_contacts(
            batch, sensors, columns, singles, 0.0, True, {**slots, **other}, shown
        )

    made = make()
    with pytest.raises(ValueError, match="no contact sensor with a force at"):
        make(columns=np.full((2, 1), sim.model.nsensordata - 2))
    with pytest.raises(ValueError, match="no contact sensor with a force at"):
        make(sensors=np.full((2, 1), sim.model.nsensor))
    with pytest.raises(ValueError, match=r"air_time must have 2 numbers"):
        make(air_time=np.zeros((3, 4)))
    with pytest.raises(ValueError, match="float64 of shape"):
        make(air_time=np.zeros((3, 2), np.float32))
    with pytest.raises(ValueError, match="float64 of shape"):
        make(greatest_force=np.zeros((1, 2)))
    shown = (np.zeros((3, 2, 3)), np.zeros((3, 2)), np.zeros((2, 2), bool))
    with pytest.raises(ValueError, match="touching must be an array of 6"):
        make()
    other = compiled_of(heap(2))
    assert other is not None
    with pytest.raises(ValueError, match="those of this batch"):
        other.step(None, 1, contacts=(made,))
