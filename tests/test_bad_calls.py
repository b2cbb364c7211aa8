"""Calls with what makes no sense: refused by a sentence, the worlds as they were."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from tests.raised import raises

from simstate import (
    CameraCfg,
    ContactCfg,
    EntityCfg,
    InitialStateCfg,
    MotorActuatorCfg,
    NativeCfg,
    PositionActuatorCfg,
    SceneCfg,
    SimStateError,
    Simulation,
    UnknownNameError,
)
from simstate.env import Env, tasks

SCENE = SceneCfg(
    entities={"it": EntityCfg(model="cube", init_state=InitialStateCfg(pos=(2, 0, 1)))}
)


@pytest.fixture
def sim() -> Simulation:
    made = Simulation(SCENE, 3)
    made.data.qvel[:, 1] = torch.linspace(-1, 1, 3, dtype=made.dtype)
    made.step()
    return made


@pytest.mark.parametrize(
    ("things", "declared"),
    [("contacts", "contacts={'feet': ContactCfg"), ("rays", "rays={'feet': RayC")],
)
def test_where_there_is_none_it_is_said_how_to_declare_one(sim, things, declared):
    with raises(UnknownNameError, name="feet") as caught:
        getattr(sim, things)["feet"]
    assert declared in str(caught.value)
    assert len(getattr(sim, things)) == 0


def test_where_there_are_some_they_are_reported():
    scene = replace(SCENE, contacts={"sole": ContactCfg(of="it/cube")})
    contacts = Simulation(scene, 1).contacts
    for name in ("feet", 0, None, ["sole"]):
        with pytest.raises(UnknownNameError) as caught:
            contacts[name]
        assert caught.value.known == ("sole",)
    assert list(contacts) == ["sole"]
    assert contacts["sole"] is contacts.get("sole")


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
    "fields in memory": lambda sim: sim.record(fields=["qpos"]),
    "worlds in memory": lambda sim: sim.record(quantities=["qpos"], worlds=[1]),
    "stop what is not": lambda sim: sim.stop_recording(None),
    "an entity by number": lambda sim: sim.scene[0],
    "an entity by list": lambda sim: sim.scene[["it"]],
    "rays by list": lambda sim: sim.rays[["it"]],
    "a contact by NaN": lambda sim: sim.contacts[math.nan],
    "a camera by NaN": lambda sim: sim.cameras[math.nan],
    "a Jacobian of NaN": lambda sim: sim.scene["it"].jacobian(math.nan),
    "worlds for ever": lambda sim: Simulation(SCENE, 10**400),
    "a world far away": lambda sim: Simulation(SCENE, 2, first_world=10**400),
    "a world too far": lambda sim: Simulation(SCENE, 2, first_world=2**62 + 1),
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


# What is made.


def scene(**changes) -> Simulation:
    parts = {"entities": {"it": EntityCfg(model="cube")}, **changes}
    return Simulation(SceneCfg(**parts), 2)


def entity(model: str = "cartpole", **changes) -> Simulation:
    return scene(entities={"it": EntityCfg(model=model, **changes)})


def servo(**changes) -> PositionActuatorCfg:
    return PositionActuatorCfg(**{"joints": ".*", "stiffness": 1.0, **changes})


MADE = {
    "contacts of NaN": lambda: scene(contacts={"c": ContactCfg(of=math.nan)}),
    "a threshold that is a text": lambda: scene(
        contacts={"c": ContactCfg(of="it/cube", threshold="1")}
    ),
    "a camera that is none": lambda: scene(cameras={"c": 3}),
    "a camera as wide as the world": lambda: scene(
        cameras={"c": CameraCfg(width=10**400)}
    ),
    "rays that are none": lambda: scene(rays={"r": "all"}),
    "a terrain that is none": lambda: scene(terrain=1.0),
    "some ground": lambda: scene(ground=torch.ones(2)),
    "a start that is none": lambda: entity(init_state=math.nan),
    "actuators that are none": lambda: entity(actuators=2.0),
    "actuators in a text": lambda: entity(actuators="servo"),
    "joints by a number": lambda: entity(actuators=(servo(joints=3.0),)),
    "no stiffness": lambda: servo(stiffness=None),
    "a stiffness without end": lambda: servo(stiffness=math.inf),
    "a gear that is NaN": lambda: MotorActuatorCfg(joints=".*", gear=math.nan),
    "a delay in words": lambda: servo(delay_s="long"),
    "more delay than there may be": lambda: servo(delay_s=0.2, max_delay_s=0.1),
    "threads without end": lambda: Simulation(
        SCENE, 2, engine=NativeCfg(num_threads=10**400)
    ),
    "half a thread": lambda: Simulation(SCENE, 2, engine=NativeCfg(num_threads=0.5)),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE.keys())
def test_what_makes_no_sense_is_not_made(make):
    with pytest.raises(SimStateError) as caught:
        make()
    assert 20 < len(str(caught.value)) < 500


@pytest.fixture(scope="module")
def env() -> Env:
    made = Env(tasks.make_cfg("Cartpole-Balance"), num_envs=3)
    made.step(torch.full((3, made.action_dim), 0.3))
    return made


OF_AN_ENV = {
    "a sparse action": lambda env: env.step(torch.zeros(3, env.action_dim).to_sparse()),
    "a period of 0": lambda env: env.phase(0),
    "a period of NaN": lambda env: env.phase(math.nan),
    "a period in words": lambda env: env.phase("long"),
    "a length that is a number": lambda env: setattr(env, "episode_length_buf", 3.0),
    "lengths that are none": lambda env: setattr(
        env, "episode_length_buf", torch.ones(3, dtype=torch.bool)
    ),
    "a task of a long name": lambda env: tasks.make_cfg("t" * 5000),
    "no decimation": lambda env: Env(
        replace(tasks.make_cfg("Cartpole-Balance"), decimation=10**400), num_envs=2
    ),
}


@pytest.mark.parametrize("call", OF_AN_ENV.values(), ids=OF_AN_ENV.keys())
def test_an_environment_refuses_it(env, call):
    before = env.snapshot().slots
    with pytest.raises(SimStateError):
        call(env)
    after = env.snapshot().slots
    assert all(torch.equal(values, after[name]) for name, values in before.items())
