"""Small parts of a world's state: names of bad values, rows that are gathered."""

import math
from types import SimpleNamespace

import mujoco
import pytest
import torch
from tests.conftest import SMALL
from tests.inside import engine_of

from simstate import DivergenceError, Simulation
from simstate.engine import MAX_VALUE, Stage
from simstate.world.invalid_values import (
    DESCRIBED_FIELDS,
    Found,
    bad_elements,
    describe_element,
    divergence_error,
    first_bad_element,
)
from simstate.world.state_rows import StateRows

MODEL = """<mujoco><worldbody>
  <body name="a"><joint name="slide" type="slide"/><joint name="hinge"/>
    <geom size="0.1"/></body>
  <body name="m0" mocap="true"/>
  <body name="b" pos="0 0 1"><freejoint name="free"/><geom size="0.1"/></body>
  <body name="c" pos="0 0 2"><joint type="ball"/><geom size="0.1"/>
    <body name="d" pos="0 0 1"><joint/><geom size="0.1"/></body></body>
  <body name="m1" mocap="true"/>
</worldbody><actuator>
  <motor name="motor" joint="slide"/>
  <general name="filter" joint="hinge" dyntype="filter" dynprm="1"/>
  <motor joint="hinge"/>
  <general name="late" joint="slide" dyntype="integrator" dynprm="1" actlimited="true"
           actrange="-1 1"/>
</actuator></mujoco>"""
JOINTS = (
    ("slide joint 'slide'", 1, 1),
    ("hinge 'hinge'", 1, 1),
    ("free joint 'free'", 7, 6),
    ("ball joint 3 of body 'c'", 4, 3),
    ("hinge 4 of body 'd'", 1, 1),
)


def repeated(pairs):
    return [name for name, count in pairs for _ in range(count)]


BY_DOF = repeated((name, nv) for name, _, nv in JOINTS)
NAMES = {
    "qpos": repeated((name, nq) for name, nq, _ in JOINTS),
    "qvel": BY_DOF,
    "qacc_warmstart": BY_DOF,
    "qfrc_applied": BY_DOF,
    "ctrl": ["actuator 'motor'", "actuator 'filter'", "actuator 2", "actuator 'late'"],
    "act": ["actuator 'filter'", "actuator 'late'"],
    "xfrc_applied": repeated(
        (f"body '{name}'", 6) for name in ("world", "a", "m0", "b", "c", "d", "m1")
    ),
    "mocap_pos": repeated([("body 'm0'", 3), ("body 'm1'", 3)]),
    "mocap_quat": repeated([("body 'm0'", 4), ("body 'm1'", 4)]),
    "time": ["the simulation time [s]"],
}


@pytest.mark.parametrize("field", sorted(NAMES))
def test_every_number_of_a_state_belongs_to_a_named_element(field):
    model = mujoco.MjModel.from_xml_string(MODEL)
    found = [describe_element(model, field, i) for i in range(len(NAMES[field]))]
    assert found == NAMES[field]


def test_controls_of_one_actuator_have_different_names():
    text = MODEL.replace(
        '<motor joint="hinge"/>',
        '<pid joint="hinge" kp="2"/>'
        '<pid name="servo" joint="hinge" input="pos vel ff"/>',
    )
    model = mujoco.MjModel.from_xml_string(text)
    assert [describe_element(model, "ctrl", i) for i in range(2, 8)] == [
        "actuator 2:pos", "actuator 2:vel", "actuator 'servo:pos'",
        "actuator 'servo:vel'", "actuator 'servo:ff'", "actuator 'late'",
    ]  # fmt: skip


@pytest.mark.parametrize("value", [math.nan, math.inf, -2 * MAX_VALUE, 2 * MAX_VALUE])
@pytest.mark.parametrize("field", DESCRIBED_FIELDS)
def test_the_first_bad_number_is_named_with_its_index(field, value):
    sim = Simulation(mujoco.MjModel.from_xml_string(MODEL), num_envs=3)
    engine = engine_of(sim)
    fine = {name: engine.field(name).clone() for name in DESCRIBED_FIELDS}
    bad = {name: values.clone() for name, values in fine.items()}
    row = bad[field].view(3, -1)
    last = row.shape[1] - 1
    row[1, last] = value
    row[2, 0] = value
    none = {"wind": torch.zeros(3, 2)}

    def first(before, after, world):
        return first_bad_element(engine, before, after, world, none)

    wished = f"{field}[{last}] = {value:g} ({NAMES[field][last]})"
    assert first(bad, fine, 1) == first(fine, bad, 1) == wished
    assert first(fine, bad, 2) == f"{field}[0] = {value:g} ({NAMES[field][0]})"
    assert first(bad, bad, 0) == "no single element"
    row[2, 0] = math.copysign(MAX_VALUE, value)  # the greatest that is allowed
    assert first(fine, bad, 2) == "no single element"


def test_inputs_come_before_what_they_caused_and_processes_last():
    sim = Simulation(mujoco.MjModel.from_xml_string(MODEL), num_envs=2)
    engine = engine_of(sim)
    fine = {name: engine.field(name).clone() for name in DESCRIBED_FIELDS}
    bad = {name: values.clone() for name, values in fine.items()}
    processes = {"calm": torch.zeros(2, 2), "wind": torch.tensor([[0, 0], [1, -1e11]])}
    found = first_bad_element(engine, fine, fine, 1, processes)
    assert found == "process 'wind': value[1] = -1e+11"
    for field in reversed(DESCRIBED_FIELDS):
        bad[field].view(2, -1)[1, 0] = math.nan
        found = first_bad_element(engine, fine, bad, 1, processes)
        assert found.startswith(f"{field}[0] = nan")
    assert first_bad_element(engine, bad, fine, 1, {}).startswith("ctrl[0] = nan")


@pytest.mark.parametrize("count", [1, 8, 9, 11])
def test_an_error_lists_the_first_worlds_and_counts_the_rest(count):
    sim = Simulation(mujoco.MjModel.from_xml_string(MODEL), num_envs=12)
    engine = engine_of(sim)
    fields = {name: engine.field(name).clone() for name in DESCRIBED_FIELDS}
    ids = torch.arange(1, count + 1)
    fields["qvel"][ids, 1] = math.nan
    elements = bad_elements(engine, fields, fields, ids, {})
    assert elements == ["qvel[1] = nan (hinge 'hinge')"] * min(count, 8)
    times = torch.arange(12) / 4
    found = Found(ids.tolist(), elements, times)
    error = divergence_error(engine, found, {**fields, "time": times}, 3)
    assert isinstance(error, DivergenceError)
    assert error.env_ids == ids.tolist()
    lines = str(error).splitlines()
    assert lines[0].startswith(f"{count} of 12 worlds diverged within 3 steps")
    shown = [line for line in lines if line.startswith("  world ")]
    assert [line.split(":")[0] for line in shown] == [
        f"  world {i}, from t = {i / 4:g} s" for i in range(1, min(count, 8) + 1)
    ]
    assert sum("and" in line and "more" in line for line in lines[1:-1]) == (count > 8)
    if count > 8:
        assert f"{count - 8} more" in lines[-2]


class Ledger:
    """What gathered rows need of a ledger."""

    def __init__(self):
        self.added, self.observed, self.connected = [], 0, None
        self.watch = SimpleNamespace(add=lambda *args: self.added.append(args))

    def observe(self):
        self.observed += 1

    def connect_rows(self, follow):
        self.connected = follow


class Engine:
    """An engine that keeps fields, and no rows of the whole state."""

    state_is_live = False

    def __init__(self):
        self.fields = {
            "time": torch.tensor([0.5, 1.5, 2.5]),
            "quat": torch.arange(24.0).reshape(3, 2, 4),
            "empty": torch.zeros(3, 0),
            "qvel": torch.arange(6.0).reshape(3, 2) - 3,
        }
        self.columns = {
            "time": slice(0, 1), "quat": slice(1, 9), "empty": slice(9, 9),
            "qvel": slice(9, 11),
        }  # fmt: skip

    def field(self, name):
        return self.fields[name]

    @property
    def state(self):
        return torch.cat([x.reshape(3, -1) for x in self.fields.values()], dim=1)


def test_gathered_rows_and_fields_follow_each_other():
    engine, ledger = Engine(), Ledger()
    rows = StateRows(engine, ledger)
    rows.follow()
    rows.collect()  # nothing was gathered yet
    state = rows.read()
    assert ledger.observed == 1
    ((label, watched, stage, scatter),) = ledger.added
    assert (label, stage) == ("sim.state", Stage.POSITION)
    assert watched is state
    assert torch.equal(state, engine.state)
    # A write into the rows changes these numbers of the fields, and no others.
    engine.fields["qvel"][2, 1] = 70.0  # not seen by the rows yet
    state[1, 0], state[0, 5], state[2, 9] = 9.0, -1.0, math.nan
    scatter()
    assert engine.fields["time"].tolist() == [0.5, 9.0, 2.5]
    quat = torch.arange(24.0).reshape(3, 2, 4)
    quat[0, 1, 0] = -1.0
    assert torch.equal(engine.fields["quat"], quat)
    assert engine.fields["qvel"][2].isnan().tolist() == [True, False]
    assert float(engine.fields["qvel"][2, 1]) == 70.0
    # The same NaN is no change; a number in its place is.
    engine.fields["qvel"][2, 0] = 5.0
    rows.collect()
    assert float(engine.fields["qvel"][2, 0]) == 5.0
    state[2, 9] = 6.0
    rows.collect()
    assert float(engine.fields["qvel"][2, 0]) == 6.0
    engine.fields["time"][0] = 4.0
    assert ledger.connected == rows.follow
    rows.follow()
    assert torch.equal(state, engine.state)
    engine.fields["time"][1] = 8.0
    assert rows.read() is state
    assert float(state[1, 0]) == 8.0
    assert len(ledger.added) == 1


def test_live_rows_are_those_of_the_engine():
    sim = Simulation(mujoco.MjModel.from_xml_string(SMALL), num_envs=2)
    sim.state[1, 0] = 3.5
    assert sim.time.tolist() == [0.0, 3.5]


@pytest.mark.parametrize("shared", [False, True])
def test_a_graph_in_a_users_memory_ends_with_the_step(shared):
    sim = Simulation(mujoco.MjModel.from_xml_string(SMALL), num_envs=2)
    memory = sim.memory("gain", (3,), shared=shared)
    weight = torch.ones(3, requires_grad=True, dtype=memory.dtype)
    for k in range(2):
        memory[:] = memory + 2 * weight
        assert memory.requires_grad
        sim.step()
        assert not memory.requires_grad
        assert bool((memory == 2 * (k + 1)).all())
