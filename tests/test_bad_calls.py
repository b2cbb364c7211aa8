"""Calls with what makes no sense: refused by a sentence, the worlds as they were."""

from __future__ import annotations

import math

import pytest
import torch

from simstate import EntityCfg, InitialStateCfg, SceneCfg, SimStateError, Simulation

SCENE = SceneCfg(
    entities={"it": EntityCfg(model="cube", init_state=InitialStateCfg(pos=(2, 0, 1)))}
)


@pytest.fixture
def sim() -> Simulation:
    made = Simulation(SCENE, 3)
    made.data.qvel[:, 1] = torch.linspace(-1, 1, 3, dtype=made.dtype)
    made.step()
    return made


def zero(sim: Simulation) -> torch.Tensor:
    return sim.time - 1.0


CALLS = {
    "step a text": lambda sim: sim.step("2"),
    "step for ever": lambda sim: sim.step(10**400),
    "run until a text": lambda sim: sim.run("soon"),
    "run until NaN": lambda sim: sim.run(math.nan),
    "run until as many": lambda sim: sim.run(torch.ones(5)),
    "expand a number": lambda sim: sim.expand(3.5),
    "expand a list": lambda sim: sim.expand(["body_mass"]),
    "write no parameter": lambda sim: sim.write_parameter(None, [[1.0]]),
    "write for a truth": lambda sim: sim.write_parameter("body_mass", [[1.0]], 1, True),
    "write sparsely": lambda sim: sim.write_state(sim.state.to_sparse()),
    "a complex reset": lambda sim: sim.memory("m", reset=1j),
    "a dtype that is 0": lambda sim: sim.memory("m", dtype=0),
    "an event of nothing": lambda sim: sim.add_event(3),
    "an event by a number": lambda sim: sim.add_event(zero, name=7),
    "an event of tolerance 0": lambda sim: sim.add_event(zero, tolerance=0),
    "a task of nothing": lambda sim: sim.add_task(None, 0.1),
    "a task at a text": lambda sim: sim.add_task(zero, "often"),
    "a task by a number": lambda sim: sim.add_task(zero, 0.1, name=7),
    "record a number": lambda sim: sim.record(quantities=4.0),
    "record a name": lambda sim: sim.record(quantities="qpos"),
    "record numbers": lambda sim: sim.record(quantities=[4.0]),
    "record a tensor": lambda sim: sim.record(quantities=torch.tensor(1.0)),
    "record as a number": lambda sim: sim.record(quantities={"a": 4.0}),
    "record every NaN": lambda sim: sim.record(quantities=["qpos"], every=math.nan),
    "stop what is not": lambda sim: sim.stop_recording(None),
    "an entity by number": lambda sim: sim.scene[0],
    "an entity by list": lambda sim: sim.scene[["it"]],
    "rays by list": lambda sim: sim.rays[["it"]],
    "a contact by NaN": lambda sim: sim.contacts[math.nan],
    "a camera by NaN": lambda sim: sim.cameras[math.nan],
    "a Jacobian of NaN": lambda sim: sim.scene["it"].jacobian(math.nan),
    "worlds for ever": lambda sim: Simulation(SCENE, 10**400),
    "a world far away": lambda sim: Simulation(SCENE, 2, first_world=10**400),
    "a device far away": lambda sim: Simulation(SCENE, 2, device=10**400),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_it_is_refused_and_nothing_has_changed(sim, call):
    before = sim.snapshot().slots
    with pytest.raises(SimStateError) as caught:
        call(sim)
    assert 20 < len(str(caught.value)) < 400
    after = sim.snapshot().slots
    assert after.keys() == before.keys()
    for name, values in before.items():
        assert torch.equal(values, after[name]), name
