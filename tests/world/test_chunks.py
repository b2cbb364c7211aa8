"""Snapshots, restores and resets copy whole chunks: the results are those of slots."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import engine_of, ledger_of, worlds_of
from tests.raised import raises

from simstate import Simulation, SnapshotError, StaleReadError
from simstate.state import Snapshot, fingerprint

MODEL = """<mujoco><option timestep="0.003"/>
  <worldbody>
    <body name="target" mocap="true" pos="1 0 .5" quat=".8 0 .6 0"/>
    <body name="torso" pos="0 0 1" quat=".6 0 0 .8"><freejoint/>
      <geom type="box" size=".2 .1 .05" mass="3"/>
      <body name="arm" pos=".2 0 0"><joint name="shoulder" axis="0 1 0" damping=".1"/>
        <geom type="capsule" size=".02 .1" mass=".4"/>
        <body name="hand" pos="0 0 .2"><joint name="wrist" axis=".6 .8 0"/>
          <geom size=".03" pos=".02 0 0" mass=".2"/></body></body></body>
  </worldbody>
  <actuator>
    <position name="w" joint="wrist" kp="3" gear="-2"/>
    <position name="s" joint="shoulder" kp="5" gear="1.5"/>
  </actuator></mujoco>"""
NUM = 5


def make(**options) -> Simulation:
    """Worlds in motion, no two alike, with memory of several dtypes and a parameter."""
    sim = Simulation(mujoco.MjModel.from_xml_string(MODEL), NUM, seed=11, **options)
    rng = np.random.default_rng(2)
    sim.expand("body_mass")[:, 2] += torch.as_tensor(rng.uniform(0.1, 1.0, NUM))
    sim.memory("count", (2,), dtype=torch.int64, reset=3)
    sim.memory("grid", (2, 3), reset=[[0.5, 1.0, 2.0], [4.0, 8.0, 16.0]])
    sim.memory("flag", dtype=torch.bool, reset=None)
    sim.memory("level", (2,), reset=7.0, shared=True)
    scramble(sim, rng)
    sim.step(3)
    return sim


def scramble(sim: Simulation, rng: np.random.Generator) -> None:
    """Give all worlds other numbers."""
    ledger = ledger_of(sim)
    for name in (
        *("qpos", "qvel", "ctrl", "xfrc_applied", "mocap_pos"),
        *("memory/grid", "memory/level"),
    ):
        slot = ledger[name].tensor
        slot += torch.as_tensor(0.1 * rng.standard_normal(tuple(slot.shape)))
    ledger["memory/count"].tensor.add_(torch.as_tensor(rng.integers(1, 9, (NUM, 2))))
    ledger["memory/flag"].tensor.logical_xor_(torch.as_tensor(rng.random(NUM) < 0.5))


def everything(sim: Simulation) -> dict[str, torch.Tensor]:
    """A copy of every slot of the simulation, slot by slot."""
    slots = ledger_of(sim).slots.values()
    return {slot.name: slot.tensor.detach().clone() for slot in slots}


def assert_same(got, want) -> None:
    assert got.keys() == want.keys()
    for name, value in want.items():
        assert got[name].dtype == value.dtype, name
        assert torch.equal(got[name], value), name


ROWS = (None, 3, slice(1, 5, 2), [4, 0, 2], torch.tensor([1, 3]), [])


@pytest.mark.parametrize("env_ids", ROWS, ids=str)
def test_a_snapshot_holds_every_slot_of_its_worlds(env_ids):
    sim = make()
    rows = torch.arange(NUM)[slice(None) if env_ids is None else env_ids].reshape(-1)
    want = everything(sim)
    want |= {name: x[rows] for name, x in want.items() if name != "memory/level"}
    taken = sim.snapshot(env_ids)
    assert taken.num_envs == len(rows)
    scramble(sim, np.random.default_rng(3))  # what was taken is a copy
    assert_same(taken.slots, want)
    assert all(value.is_contiguous() for value in taken.slots.values())


@pytest.mark.parametrize("env_ids", ROWS[:-1], ids=str)
@pytest.mark.parametrize("one", [False, True], ids=["each", "one for all"])
def test_a_snapshot_as_taken_restores_what_its_file_does(env_ids, one):
    sim, other = make(), make()
    taken = sim.snapshot(2 if one else env_ids)
    data = other.snapshot(2 if one else env_ids).to_bytes()
    for each in (sim, other):
        scramble(each, np.random.default_rng(4))
        each.expand("body_mass")[:, 3] *= torch.linspace(1.1, 1.5, NUM)
    sim.restore(taken, env_ids)
    other.restore(Snapshot.from_bytes(data), env_ids)
    assert_same(everything(sim), everything(other))
    assert torch.equal(sim.expand("dof_invweight0"), other.expand("dof_invweight0"))
    sim.step(4)
    other.step(4)
    assert_same(everything(sim), everything(other))


def test_a_snapshot_that_was_changed_restores_the_change():
    sim = make()
    taken = sim.snapshot()
    taken.slots["qvel"][1, 2] = 4.25
    sim.restore(taken)
    assert sim.data.qvel[1, 2] == 4.25


def test_slots_that_are_added_later_get_their_initial_values():
    sim = make()
    taken = sim.snapshot()
    want = everything(sim)
    friction = sim.expand("geom_friction")
    start = friction.clone()
    friction[2] *= 1.5
    scramble(sim, np.random.default_rng(5))
    sim.restore(taken)
    assert torch.equal(friction, start)
    assert_same({name: everything(sim)[name] for name in want}, want)


def test_a_number_that_is_not_finite_is_refused_unless_its_world_diverged():
    sim = make()
    before = sim.snapshot()
    sim.data.qvel[3, 1] = float("inf")
    taken = sim.snapshot()
    sim.restore(before)
    want = everything(sim)
    with raises(SnapshotError, name="qvel"):
        sim.restore(taken)
    assert_same(everything(sim), want)
    taken.slots["diverged"][3] = True
    sim.restore(taken)
    assert sim.data.qvel[3, 1] == float("inf")


def test_a_snapshot_of_three_worlds_does_not_fit_two():
    sim = make()
    taken, want = sim.snapshot([0, 3, 4]), everything(sim)
    with raises(ValueError, name="snapshot"):
        sim.restore(taken, [1, 2])
    assert_same(everything(sim), want)


def test_headers_of_snapshots_share_nothing():
    sim = make()
    one = sim.snapshot()
    want = copy.deepcopy(one.header)
    one.header["slots"]["qpos"]["unit"] = "changed"
    one.header["slots"]["qpos"]["elements"].clear()
    one.header["model"]["fields"]["body_mass"] = "changed"
    one.header["model"]["names"]["body"].append("changed")
    assert sim.snapshot().header == want


@pytest.mark.parametrize("how", ["pickle", "deepcopy", "copy", "replace"])
def test_copies_of_a_snapshot_hold_the_same(how):
    sim = make()
    taken, want = sim.snapshot(), everything(sim)
    other = {
        "pickle": lambda: pickle.loads(pickle.dumps(taken)),
        "deepcopy": lambda: copy.deepcopy(taken),
        "copy": lambda: copy.copy(taken),
        "replace": lambda: dataclasses.replace(taken, header=dict(taken.header)),
    }[how]()
    assert other.header == taken.header
    assert_same(other.slots, want)
    with pytest.raises(AttributeError):
        taken.slots = {}
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = taken.nothing


def test_the_model_is_fingerprinted_once(monkeypatch):
    calls = []
    digests = fingerprint.fingerprint
    monkeypatch.setattr(
        fingerprint, "fingerprint", lambda model: calls.append(model) or digests(model)
    )
    sim = make()
    for _ in range(3):
        taken = sim.snapshot()
        sim.restore(taken)
        sim.restore(Snapshot.from_bytes(taken.to_bytes()))
    assert len(calls) == 1
    assert taken.header["model"] == digests(sim.model)


@pytest.mark.parametrize("call", ["restore", "reset"])
def test_only_the_selected_worlds_are_stale(call):
    sim = make(freshness="strict")
    sim.forward()
    data, taken = sim.scene["model"].data, sim.snapshot([0, 4])
    before = data.body_link_pos_w.clone()
    if call == "restore":
        sim.restore(taken, [3, 1])
    else:
        sim.reset([3, 1])
    with raises(StaleReadError, name="body_link_pos_w", worlds=[1, 3]):
        _ = data.body_link_pos_w
    sim.forward([3, 1])
    after = data.body_link_pos_w
    assert torch.equal(after[[0, 2, 4]], before[[0, 2, 4]])
    if call == "restore":
        assert torch.equal(after[[3, 1]], before[[0, 4]])


@pytest.mark.parametrize("env_ids", ROWS, ids=str)
def test_a_reset_writes_what_contracts_say_into_its_worlds(env_ids):
    sim, untouched = make(), Simulation(mujoco.MjModel.from_xml_string(MODEL), 1)
    rows = torch.arange(NUM)[slice(None) if env_ids is None else env_ids].reshape(-1)
    want = everything(sim)
    start = everything(untouched)
    for name in (*engine_of(sim).columns, "diverged"):
        want[name][rows] = start[name]
    want["memory/count"][rows] = 3
    grid = torch.tensor([[0.5, 1.0, 2.0], [4.0, 8.0, 16.0]], dtype=torch.float64)
    want["memory/grid"][rows] = grid
    kept = {"entity/model/joint_pos_target"}  # all of them are controls
    sim.reset(env_ids)
    got = everything(sim)
    assert_same(
        {name: x for name, x in got.items() if name not in kept},
        {name: x for name, x in want.items() if name not in kept},
    )


def test_functions_of_a_reset_run_in_the_order_of_slots():
    """One sees what is before it as it is after the reset, what follows as before."""
    sim = Simulation(mujoco.MjModel.from_xml_string(MODEL), NUM)
    seen = {}

    def draw(ids):
        seen["ids"] = ids.tolist()
        seen["first"], seen["last"] = first.clone(), last.clone()
        return torch.arange(2.0) + ids[:, None]

    first = sim.memory("first", (2,), reset=2.5)
    drawn = sim.memory("drawn", (2,), reset=draw)
    last = sim.memory("last", (2,), reset=1.5)
    first[:], last[:] = 8.0, 9.0
    sim.reset([4, 1])
    assert seen["ids"] == [4, 1]
    assert seen["first"][:, 0].tolist() == [8.0, 2.5, 8.0, 8.0, 2.5]
    assert (seen["last"] == 9.0).all()
    assert drawn[[4, 1]].tolist() == [[4.0, 5.0], [1.0, 2.0]]
    assert last[:, 1].tolist() == [9.0, 1.5, 9.0, 9.0, 1.5]


def test_a_reset_whose_function_raises_is_undone_in_all_worlds():
    sim = Simulation(mujoco.MjModel.from_xml_string(MODEL), NUM)

    def fail(ids):
        sim.data.qpos[:] = 0.5  # also worlds that are not reset
        raise RuntimeError("failed")

    sim.memory("bad", reset=fail)
    scramble_state(sim)
    want = everything(sim)
    with pytest.raises(RuntimeError, match="failed"):
        sim.reset([2])
    assert_same(everything(sim), want)


def test_a_reset_follows_an_initial_value_that_is_replaced():
    sim = make()
    slot = ledger_of(sim)["memory/grid"]
    sim.reset([1])
    slot.initial = torch.full((1, 2, 3), 6.5, dtype=torch.float64)
    sim.reset([2])
    assert (slot.tensor[2] == 6.5).all()
    slot.initial += 1.0
    sim.reset([0])
    assert (slot.tensor[0] == 7.5).all()


def scramble_state(sim: Simulation) -> None:
    rng = np.random.default_rng(6)
    sim.data.qvel[:] = torch.as_tensor(rng.standard_normal((NUM, 8)))
    sim.data.ctrl[:] = torch.as_tensor(rng.standard_normal((NUM, 2)))
    sim.step(2)


def test_a_failed_call_on_some_worlds_is_undone_by_their_rows():
    sim = make()
    ledger, mass = ledger_of(sim), sim.expand("body_mass")
    want, rows = everything(sim), worlds_of(sim).select([3, 0])

    def fail():
        ledger.reset(rows, ("sim",))
        mass.data[[3, 0]] = 2.5
        ledger["memory/flag"].tensor.data[[3, 0]] ^= True
        sim.set_const([3, 0])
        raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"):
        ledger.run("sim", "a test", fail, rows=rows)
    assert_same(everything(sim), want)
    constants = make().expand("dof_invweight0")  # which follow from the masses
    assert torch.equal(sim.expand("dof_invweight0"), constants)
