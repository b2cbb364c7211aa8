"""Snapshots: exact continuation, what they keep, what they refuse, and their files."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import batch_of
from tests.raised import raises

from simstate import (
    DivergenceError,
    EntityCfg,
    NativeCfg,
    SceneCfg,
    ShapeError,
    Simulation,
    SnapshotError,
)
from simstate.scene import models
from simstate.state import Snapshot
from simstate.study import oracles

QUADRUPED = SceneCfg(entities={"dog": EntityCfg(model="quadruped")}, timestep=None)


def quadruped(num_envs: int = 4, **options) -> Simulation:
    return Simulation(QUADRUPED, num_envs, **options)


def walk(sim: Simulation, steps: int) -> list[torch.Tensor]:
    """Step with random targets from the simulation's own generator."""
    dog = sim.scene["dog"]
    home = dog.data.default_joint_pos
    rows = []
    for k in range(steps):
        if k % 10 == 0:
            noise = sim.rng.uniform(slice(None), home.shape[1]).to(home)
            dog.set_joint_position_target(home + 0.6 * (noise - 0.5))
        sim.step()
        rows.append(sim.state.clone())
    return rows


def contacts(sim: Simulation, world: int) -> int:
    """The number of contacts of a world, by plain MuJoCo."""
    data = mujoco.MjData(sim.model)
    row = sim.state[world].double().numpy().copy()
    mujoco.mj_setState(sim.model, data, row, mujoco.mjtState.mjSTATE_INTEGRATION.value)
    mujoco.mj_forward(sim.model, data)
    return int(data.ncon)


def same_snapshot(left: Snapshot, right: Snapshot) -> bool:
    """Whether two snapshots are equal bit by bit."""
    return (
        left.header == right.header
        and same_tensors(vars(left) | {"header": 0}, vars(right) | {"header": 0})
    )  # fmt: skip


def same_tensors(left, right) -> bool:
    if isinstance(left, dict):
        return list(left) == list(right) and all(
            same_tensors(left[key], right[key]) for key in left
        )
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    return left == right


# Continuation.


def test_continuation_is_bit_identical_in_contact():
    sim = quadruped()
    sim.data.qpos[:, 2] += torch.linspace(0.05, 0.2, 4)
    walk(sim, 100)
    snapshot = sim.snapshot()
    assert all(contacts(sim, world) for world in range(4))
    first = walk(sim, 1000)
    assert all(contacts(sim, world) for world in range(4))
    sim.restore(snapshot)
    assert torch.equal(sim.state, snapshot.state)
    for k, (row, again) in enumerate(zip(first, walk(sim, 1000), strict=True)):
        assert torch.equal(row, again), f"step {k}"


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 2), (1, 2), (2, 1)])
def test_continuation_of_everything_a_state_has(
    make_sim, random_rows, tmp_path, before, after
):
    """Activation, mocap, equality off, warm start, at any number of threads."""
    sim = make_sim(NativeCfg(num_threads=before), num_envs=6)
    sim.write_state(random_rows(sim.model, 6, seed=3, height=-0.3))
    sim.data.eq_active[::2] = 0
    sim.step(20)
    sim.snapshot().save(tmp_path / "it.npz")
    state = sim.state.clone()
    for name in ("act", "qacc_warmstart", "ctrl", "xfrc_applied", "mocap_pos"):
        assert float(getattr(sim.data, name).abs().max()) > 0
    assert sim.data.eq_active.unique().tolist() == [0, 1]
    other = make_sim(NativeCfg(num_threads=after), num_envs=6)
    other.restore(Snapshot.load(tmp_path / "it.npz"))
    assert torch.equal(other.state, state)
    assert any(contacts(sim, world) for world in range(6))
    for _ in range(1000):
        sim.step()
        other.step()
        assert torch.equal(sim.state, other.state)
    assert torch.equal(sim.data.sensordata, other.data.sensordata)


def test_derived_quantities_are_those_of_the_restored_state(engine):
    sim = quadruped(2, engine=engine)
    oracles.randomize(sim, 0)
    want = sim.scene["dog"].data.body_link_vel_w.clone()
    snapshot = sim.snapshot()
    oracles.randomize(sim, 1)
    assert not torch.equal(sim.scene["dog"].data.body_link_vel_w, want)
    sim.restore(snapshot)
    assert torch.equal(sim.scene["dog"].data.body_link_vel_w, want)


def test_a_snapshot_is_a_copy():
    sim = quadruped()
    snapshot = sim.snapshot()
    kept = snapshot.state.clone()
    walk(sim, 5)
    sim.scene["dog"].set_encoder_bias(torch.ones(4, 12))
    assert torch.equal(snapshot.state, kept)
    assert float(snapshot.slots["entity/dog/encoder_bias"].max()) == 0.0
    sim.restore(snapshot)
    for values in snapshot.slots.values():
        values.fill_(7)
    assert torch.equal(sim.state, kept)


def test_snapshots_restore_as_often_as_wanted():
    sim = quadruped()
    snapshot = sim.snapshot()
    first = walk(sim, 30)[-1]
    for _ in range(3):
        sim.restore(snapshot)
        assert torch.equal(walk(sim, 30)[-1], first)


# What comes back.


def changed(sim: Simulation) -> None:
    """Give every world parameters of its own."""
    mass = sim.expand("body_mass")
    mass *= torch.linspace(0.8, 1.4, sim.num_envs, dtype=mass.dtype)[:, None]
    sim.set_const()
    sim.expand("opt.gravity")[:, 0] = torch.linspace(-1, 1, sim.num_envs)
    sim.expand("geom_friction")[..., 0] *= 0.7


def test_parameters_of_each_world_come_back(tmp_path):
    sim = quadruped()
    changed(sim)
    walk(sim, 50)
    sim.snapshot().save(tmp_path / "it.npz")
    want = walk(sim, 300)
    other = quadruped()
    other.restore(Snapshot.load(tmp_path / "it.npz"))
    other.forward()  # constants follow by the first read or step
    for world in range(4):
        ours, theirs = (batch_of(s).get_model(world) for s in (sim, other))
        for name in dir(ours):
            value = getattr(ours, name)
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(value, getattr(theirs, name), name)
        assert ours.stat.meaninertia == theirs.stat.meaninertia
        assert ours.opt.gravity.tolist() == theirs.opt.gravity.tolist()
    for k, (row, again) in enumerate(zip(want, walk(other, 300), strict=True)):
        assert torch.equal(row, again), f"step {k}"


def test_parameters_expanded_after_the_snapshot_go_back():
    sim, plain = quadruped(), quadruped()
    snapshot = sim.snapshot()
    changed(sim)
    walk(sim, 10)
    sim.restore(snapshot)
    for name in ("body_mass", "body_subtreemass", "dof_invweight0"):
        want = torch.as_tensor(np.array(getattr(sim.model, name)))
        assert torch.equal(sim.expand(name), want.expand_as(sim.expand(name)))
    assert sim.expand("opt.gravity")[:, 0].tolist() == [0.0] * 4
    for row, want in zip(walk(sim, 200), walk(plain, 200), strict=True):
        assert torch.equal(row, want)


def test_parameters_go_back_in_the_restored_worlds_alone():
    sim = quadruped()
    snapshot = sim.snapshot([0, 2])
    changed(sim)
    kept = {name: sim.expand(name).clone() for name in ("body_mass", "opt.gravity")}
    sim.restore(snapshot, [2, 1])
    for name, values in kept.items():
        now = sim.expand(name)
        shared = quadruped(1).expand(name)[0]
        assert torch.equal(now[[0, 3]], values[[0, 3]])
        assert torch.equal(now[1], shared)
        assert torch.equal(now[2], shared)


def test_what_the_entities_keep_comes_back(engine, tmp_path):
    sim = quadruped(engine=engine)
    dog = sim.scene["dog"]
    values = torch.arange(48, dtype=sim.dtype).reshape(4, 12) / 100
    dog.set_encoder_bias(values)
    dog.data.default_joint_pos += 2 * values
    dog.data.default_joint_vel += 3 * values
    dog.data.default_root_state[:, 0] += 5.0
    sim.step(3)
    kept = ("encoder_bias", "default_joint_pos", "default_joint_vel",
            "default_root_state")  # fmt: skip
    want = {key: dog.data.read(key).clone() for key in kept}
    time_then = sim.time.clone()
    sim.snapshot().save(tmp_path / "it.npz")
    sim.step(2)
    for key in kept:
        dog.data.read(key).zero_()
    snapshot = Snapshot.load(tmp_path / "it.npz")
    sim.restore(snapshot)
    for key in kept:
        assert torch.equal(dog.data.read(key), want[key]), key
    assert torch.equal(dog.data.encoder_bias, values)
    assert torch.equal(sim.time, time_then)
    assert torch.equal(snapshot.time, time_then)
    sim.reset()
    assert torch.equal(dog.data.joint_pos, want["default_joint_pos"])


def test_targets_come_back():
    sim = quadruped()
    targets = torch.arange(48, dtype=torch.float64).reshape(4, 12) / 100
    sim.scene["dog"].set_joint_position_target(targets)
    snapshot = sim.snapshot()
    sim.reset()
    sim.restore(snapshot)
    assert torch.equal(sim.scene["dog"].data.joint_pos_target, targets)


def test_the_random_streams_continue():
    sim = quadruped(seed=5)
    sim.rng.normal(torch.tensor([2, 0]), 7)
    snapshot = sim.snapshot()
    want = sim.rng.uniform(slice(None), 9)
    assert len(want.unique(dim=0)) == 4
    sim.restore(snapshot)
    assert torch.equal(sim.rng.uniform(slice(None), 9), want)
    other = quadruped(seed=6)
    other.restore(snapshot)
    assert torch.equal(other.rng.uniform(slice(None), 9), want)


def test_a_world_takes_its_random_stream_along():
    sim = quadruped(seed=5)
    sim.rng.uniform(slice(None), 3)
    snapshot = sim.snapshot([1])
    want = sim.rng.uniform(slice(None), 9)
    other = quadruped(seed=6)
    plain = other.rng.uniform(slice(None), 9)
    other = quadruped(seed=6)
    other.restore(snapshot, [2])
    got = other.rng.uniform(slice(None), 9)
    assert torch.equal(got[2], want[1])
    assert torch.equal(got[[0, 1, 3]], plain[[0, 1, 3]])


def test_diverged_worlds_come_back_as_such(engine):
    sim = quadruped(engine=engine, on_divergence="mask")
    sim.data.qvel[1, 0] = 1e12
    sim.step()
    assert sim.diverged.tolist() == [False, True, False, False]
    snapshot = sim.snapshot()
    sim.reset()
    assert not sim.diverged.any()
    sim.restore(snapshot)
    assert sim.diverged.tolist() == [False, True, False, False]
    still = sim.state[1].clone()
    sim.step()
    assert torch.equal(sim.state[1], still)
    sim.restore(snapshot, [1, 0, 2, 3])
    assert sim.diverged.tolist() == [True, False, False, False]


def test_restoring_heals_diverged_worlds():
    sim = quadruped(on_divergence="mask")
    snapshot = sim.snapshot()
    sim.data.qvel[1, 0] = 1e12
    sim.step()
    sim.restore(snapshot, None)
    assert not sim.diverged.any()
    sim.step()
    assert float(sim.time[1]) > 0


def test_restoring_after_a_divergence_error():
    sim = quadruped()
    walk(sim, 20)
    snapshot = sim.snapshot()
    want = walk(sim, 20)
    sim.restore(snapshot)
    sim.data.qvel[2, 0] = 1e12
    with pytest.raises(DivergenceError):
        sim.step()
    sim.restore(snapshot)
    assert all(map(torch.equal, walk(sim, 20), want))


# Worlds.


def test_other_worlds_are_left_alone(engine):
    sim = quadruped(engine=engine)
    oracles.randomize(sim, 0)
    snapshot = sim.snapshot([3, 1])
    assert snapshot.num_envs == 2
    assert torch.equal(snapshot.state, sim.state[[3, 1]])
    oracles.randomize(sim, 1)
    sim.scene["dog"].set_encoder_bias(torch.full((4, 12), 0.5, dtype=sim.dtype))
    before = sim.state.clone()
    sim.restore(snapshot, [0, 2])
    assert torch.equal(sim.state[[0, 2]], snapshot.state)
    assert torch.equal(sim.state[[1, 3]], before[[1, 3]])
    bias = sim.scene["dog"].data.encoder_bias
    assert bias[:, 0].tolist() == [0.0, 0.5, 0.0, 0.5]


def test_one_world_branches_into_all():
    sim = quadruped()
    oracles.randomize(sim, 0)
    one = sim.snapshot(2)
    sim.restore(one)
    assert torch.equal(sim.state, one.state.expand_as(sim.state))
    sim.step(50)
    assert torch.equal(sim.state, sim.state[:1].expand_as(sim.state))
    big = quadruped(7)
    big.restore(one, slice(1, 6))
    assert torch.equal(big.state[1:6], one.state.expand(5, -1))
    assert torch.equal(big.state[0], quadruped(1).state[0])


@pytest.mark.parametrize(
    ("taken", "given"), [([0, 1], None), ([0, 1, 2], [0, 1]), (None, [1])]
)
def test_a_wrong_number_of_worlds_is_refused(taken, given):
    sim = quadruped()
    oracles.randomize(sim, 0)
    snapshot = sim.snapshot(taken)
    changed(sim)
    oracles.randomize(sim, 1)
    before, mass = sim.state.clone(), sim.expand("body_mass").clone()
    with raises(ShapeError, name="snapshot"):
        sim.restore(snapshot, given)
    assert torch.equal(sim.state, before)
    assert torch.equal(sim.expand("body_mass"), mass)


# Other models.


def variant(old: str = "", new: str = "") -> mujoco.MjModel:
    text = """
    <mujoco>
      <option timestep="0.002"/>
      <size nuserdata="0"/>
      <worldbody>
        <body name="arm">
          <joint name="hinge"/><geom name="g" size=".1" mass="1"/>
          <body name="hand" pos="1 0 0">
            <joint name="wrist"/><geom size=".1" mass="2"/>
          </body>
        </body>
      </worldbody>
      <actuator><motor name="m" joint="hinge"/></actuator>
    </mujoco>"""
    assert old in text
    return mujoco.MjModel.from_xml_string(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('mass="2"', 'mass="2.5"', ["body_mass"]),
        ('timestep="0.002"', 'timestep="0.004"', ["timestep"]),
        ('timestep="0.002"', 'timestep="0.002" gravity="0 0 -1"', ["gravity"]),
        ('timestep="0.002"', 'timestep="0.002" integrator="RK4"', ["integrator"]),
        ('"wrist"', '"elbow"', ["joint", "wrist", "elbow"]),
        ('"hand"', '"claw"', ["body", "hand", "claw"]),
        ('name="m"', 'name="motor"', ["actuator", "motor"]),
        ('<joint name="wrist"/>', "", ["nq is", "wrist"]),
        ('<joint name="wrist"/>', '<joint name="wrist" type="ball"/>', ["nq is"]),
        ('joint="hinge"', 'joint="wrist"', ["actuator_trnid"]),
        ('nuserdata="0"', 'nuserdata="3"', ["nuserdata"]),
    ],
)
def test_another_model_is_refused_with_what_differs(old, new, named):
    snapshot = Simulation(variant(), 2).snapshot()
    sim = Simulation(variant(old, new), 2)
    oracles.randomize(sim, 0)
    before = sim.state.clone()
    with pytest.raises(SnapshotError) as caught:
        sim.restore(snapshot)
    for name in named:
        assert name in str(caught.value)
    assert torch.equal(sim.state, before)


def test_a_swap_of_two_joints_is_refused():
    snapshot = Simulation(variant(), 2).snapshot()
    swapped = """
    <mujoco>
      <option timestep="0.002"/>
      <worldbody>
        <body name="arm">
          <joint name="wrist"/><geom name="g" size=".1" mass="1"/>
          <body name="hand" pos="1 0 0">
            <joint name="hinge"/><geom size=".1" mass="2"/>
          </body>
        </body>
      </worldbody>
      <actuator><motor name="m" joint="wrist"/></actuator>
    </mujoco>"""
    sim = Simulation(mujoco.MjModel.from_xml_string(swapped), 2)
    with raises(SnapshotError, name="model"):
        sim.restore(snapshot)


def test_the_same_model_compiled_twice_is_the_same():
    snapshot = Simulation(variant(), 2).snapshot()
    Simulation(variant(), 2).restore(snapshot)


def test_the_other_engine_takes_a_snapshot_and_gives_it_back():
    native, warp = quadruped(), quadruped(engine="warp")
    walk(native, 20)
    mass = native.expand("body_mass")
    mass *= torch.linspace(0.9, 1.1, 4, dtype=mass.dtype)[:, None]
    native.expand("opt.gravity")[:, 1] = 0.25
    native.scene["dog"].set_encoder_bias(torch.full((4, 12), 0.1))
    snapshot = native.snapshot()
    warp.restore(snapshot)
    torch.testing.assert_close(
        warp.state.double(), snapshot.state, rtol=1e-6, atol=1e-7
    )
    torch.testing.assert_close(warp.expand("body_mass").double(), mass)
    back = warp.snapshot()
    assert back.header["engine"] == "warp"
    oracles.randomize(native, 0)
    mass.fill_(1.0)
    native.restore(back)
    torch.testing.assert_close(native.state, snapshot.state, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(
        native.expand("body_mass"), snapshot.slots["model/body_mass"], rtol=1e-6, atol=0
    )
    assert native.expand("opt.gravity")[:, 1].tolist() == [0.25] * 4
    bias = native.scene["dog"].data.encoder_bias
    torch.testing.assert_close(bias, torch.full_like(bias, 0.1), rtol=1e-6, atol=0)
    native.step(5)


def test_computed_constants_go_to_the_other_engine():
    native, warp = quadruped(), quadruped(engine="warp")
    changed(native)
    warp.restore(native.snapshot())
    torch.testing.assert_close(
        warp.expand("body_subtreemass").double(),
        native.expand("body_subtreemass"), rtol=1e-6, atol=0,
    )  # fmt: skip
    back = quadruped()
    back.restore(warp.snapshot())
    for name in ("body_mass", "body_subtreemass", "dof_invweight0", "dof_M0"):
        torch.testing.assert_close(
            back.expand(name), native.expand(name), rtol=1e-5, atol=1e-7, msg=name
        )
    warp.step()
    back.step()


# Files.


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    sim = quadruped(2)
    changed(sim)
    walk(sim, 20)
    return sim.snapshot()


def test_a_file_gives_back_the_snapshot_exactly(snapshot, tmp_path):
    snapshot.save(tmp_path / "it.npz")
    assert same_snapshot(Snapshot.load(tmp_path / "it.npz"), snapshot)
    snapshot.save(str(tmp_path / "without suffix"))
    assert same_snapshot(Snapshot.load(str(tmp_path / "without suffix")), snapshot)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["it.npz", "without suffix"]


def test_a_file_of_the_small_model_gives_back_the_snapshot(make_sim, engine, tmp_path):
    sim = make_sim(engine, num_envs=3)
    oracles.randomize(sim, 0)
    taken = sim.snapshot([2, 0])
    taken.save(tmp_path / "it.npz")
    assert same_snapshot(Snapshot.load(tmp_path / "it.npz"), taken)


def test_loading_into_a_relative_path(snapshot, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    snapshot.save("it.npz")
    assert same_snapshot(Snapshot.load("it.npz"), snapshot)


def test_the_file_is_an_npz_without_pickle(snapshot, tmp_path):
    snapshot.save(tmp_path / "it.npz")
    with np.load(tmp_path / "it.npz", allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive}
    assert not any(array.dtype.hasobject for array in arrays.values())
    assert arrays.keys() == {*snapshot.slots, "header", "digest"}
    for name, values in snapshot.slots.items():
        np.testing.assert_array_equal(arrays[name], values)
    header = json.loads(arrays["header"].tobytes())
    assert header == snapshot.header


def test_the_header_says_what_it_is(snapshot):
    header = snapshot.header
    assert header["mujoco"] == mujoco.__version__
    assert header["engine"] == "native"
    assert header["timestep"] == models.spec("quadruped").compile().opt.timestep
    names = header["model"]["names"]
    assert names["joint"][:2] == ["dog/root", "dog/FL_hip"]
    assert "dog/trunk" in names["body"]
    assert header["model"]["sizes"]["nq"] == 19
    assert "body_mass" in header["model"]["fields"]
    slots = header["slots"]
    assert slots.keys() == snapshot.slots.keys()
    assert slots["qpos"]["shape"] == [19]
    assert slots["qpos"]["elements"][7] == "hinge 'dog/FL_hip'"
    assert slots["qvel"]["axes"] == "free joint: linear world, angular body"
    assert "m/s" in slots["qvel"]["unit"]
    assert slots["time"]["unit"] == "s"
    assert slots["time"]["kind"] == slots["qpos"]["kind"] == "state"
    assert slots["ctrl"]["kind"] == "input"
    assert slots["model/body_mass"]["kind"] == "parameter"
    assert slots["entity/dog/encoder_bias"]["kind"] == "setting"
    for name in ("time", "qpos", "qvel", "xfrc_applied", "entity/dog/encoder_bias"):
        assert slots[name]["unit"], name


def refused(path: Path) -> None:
    with raises(SnapshotError, file=path.name):
        Snapshot.load(path)


def test_a_truncated_file_is_refused(snapshot, tmp_path):
    snapshot.save(tmp_path / "whole.npz")
    data = (tmp_path / "whole.npz").read_bytes()
    path = tmp_path / "cut.npz"
    lengths = {*range(64), *range(0, len(data), len(data) // 200)}
    lengths |= set(range(len(data) - 200, len(data)))
    for length in sorted(lengths):
        path.write_bytes(data[:length])
        refused(path)


def payload(path: Path) -> list[range]:
    """Where the bytes of the arrays stand in the file."""
    found = []
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            with open(path, "rb") as file:
                file.seek(info.header_offset + 26)
                name, extra = np.frombuffer(file.read(4), "<u2")
            start = info.header_offset + 30 + int(name) + int(extra)
            found.append(range(start, start + info.compress_size))
    return found


def altered(data: bytes, position: int, bits: int = 0xFF) -> bytes:
    return data[:position] + bytes([data[position] ^ bits]) + data[position + 1 :]


def test_an_altered_number_is_refused(snapshot, tmp_path):
    snapshot.save(tmp_path / "whole.npz")
    data = (tmp_path / "whole.npz").read_bytes()
    path = tmp_path / "altered.npz"
    rng = np.random.default_rng(0)
    for place in payload(tmp_path / "whole.npz"):
        some = rng.integers(place.start, place.stop, size=6)
        for position in {place.start, place.stop - 1, *map(int, some)}:
            path.write_bytes(altered(data, position, int(rng.integers(1, 256))))
            refused(path)


@pytest.mark.parametrize("name", ["qpos", "model/body_mass", "header", "extra"])
def test_an_array_exchanged_by_other_tools_is_refused(snapshot, tmp_path, name):
    """The archive is whole and its own checksums fit: only ours does not."""
    path = tmp_path / "it.npz"
    snapshot.save(path)
    with np.load(path) as archive:
        arrays = {key: archive[key].copy() for key in archive}
    if name == "extra":
        arrays["model/body_pos"] = np.zeros((2, 3))
    else:
        arrays[name].view(np.uint8).flat[-1] ^= 1
    np.savez(path, **arrays)
    refused(path)


@pytest.mark.parametrize("bits", [0x01, 0x08, 0xFF])
def test_an_altered_byte_anywhere_does_no_harm(snapshot, tmp_path, bits):
    """The container has bytes that mean nothing (dates): those may be read over."""
    snapshot.save(tmp_path / "whole.npz")
    data = (tmp_path / "whole.npz").read_bytes()
    inside = {p for place in payload(tmp_path / "whole.npz") for p in place[128:]}
    outside = [p for p in range(len(data)) if p not in inside]
    path = tmp_path / "altered.npz"
    for position in outside[:: max(1, len(outside) // 700)]:
        path.write_bytes(altered(data, position, bits))
        try:
            loaded = Snapshot.load(path)
        except SnapshotError:
            continue
        assert same_snapshot(loaded, snapshot), f"byte {position}"


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"PK\x03\x04"),
        lambda path: path.write_text("a text, no archive at all"),
        lambda path: path.write_bytes(pickle.dumps({"state": 1})),
        lambda path: path.mkdir(),
        lambda path: None,
        lambda path: np.savez(path, state=np.zeros(3)),
        lambda path: np.savez(path, header=np.zeros(3), digest=np.zeros(32)),
        lambda path: np.savez(path, a=np.array([{}], dtype=object)),
        lambda path: np.save(path.open("wb"), np.zeros(3)),
        lambda path: np.save(path.open("wb"), np.array([{}], dtype=object)),
        lambda path: torch.save({"a": torch.zeros(2)}, path),
        lambda path: zipfile.ZipFile(path, "w").writestr("notes.txt", "hello"),
    ],
)
def test_what_is_no_snapshot_is_refused(tmp_path, make):
    make(tmp_path / "it.npz")
    refused(tmp_path / "it.npz")


def test_a_pickle_is_never_executed(snapshot, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "boom"),))

    arrays = {"state": np.array([Bomb()], dtype=object), "digest": np.zeros(32)}
    np.savez(tmp_path / "it.npz", **arrays)
    refused(tmp_path / "it.npz")
    assert not (tmp_path / "boom").exists()


def test_a_newer_format_is_refused(snapshot, tmp_path):
    newer = Snapshot(
        {**snapshot.header, "format": "simstate snapshot 9"},
        *(value for key, value in vars(snapshot).items() if key != "header"),
    )
    newer.save(tmp_path / "it.npz")
    with raises(SnapshotError, file="it.npz"):
        Snapshot.load(tmp_path / "it.npz")


# A crash in the middle.


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failing_save_leaves_the_old_file_and_no_litter(
    snapshot, tmp_path, monkeypatch, call, error
):
    path = tmp_path / "it.npz"
    snapshot.save(path)
    old = path.read_bytes()

    def fail(*args):
        raise error

    other = quadruped(3).snapshot()
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(type(error)):
            other.save(path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["it.npz"]
    other.save(path)
    assert same_snapshot(Snapshot.load(path), other)


def test_saving_over_a_directory_leaves_no_litter(snapshot, tmp_path):
    (tmp_path / "it").mkdir()
    with pytest.raises((SnapshotError, OSError)):
        snapshot.save(tmp_path / "it")
    assert [p.name for p in tmp_path.iterdir()] == ["it"]


SAVER = """
import os, random, signal, sys, time
import torch
from simstate.state import Snapshot

path, snapshots = sys.argv[1], [Snapshot.load(name) for name in sys.argv[2:4]]
states = [snapshot.state for snapshot in snapshots]
random.seed(0)
for _ in range(30):
    child = os.fork()
    if not child:
        while True:
            for snapshot in snapshots:
                snapshot.save(path)
    time.sleep(random.uniform(0.0, 0.08))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    loaded = Snapshot.load(path).state
    assert any(torch.equal(loaded, state) for state in states)
print("whole every time")
"""


def test_a_process_killed_while_saving_leaves_a_whole_file(snapshot, tmp_path):
    """A file of some megabytes, so that a kill falls into the writing."""
    for name, rows in (("one.npz", 2000), ("two.npz", 3000)):
        slots = {
            key: value[:1].repeat(rows, *[1] * (value.ndim - 1))
            for key, value in snapshot.slots.items()
        }
        Snapshot(snapshot.header, slots).save(tmp_path / name)
    shutil.copy(tmp_path / "one.npz", tmp_path / "it.npz")
    names = [tmp_path / name for name in ("it.npz", "one.npz", "two.npz")]
    run = subprocess.run(
        [sys.executable, "-c", SAVER, *names],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "whole every time\n"
