"""Recordings of processes that are interrupted, and forked."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.inside import delay_writes, file_of, has_finished, write_block, writer_of
from tests.raised import raises
from tests.record.conftest import drive
from tests.soak import SOAK
from tests.tracer import lines_of, traced

from simstate import FileError, RecordingError
from simstate.data.replay import replay
from simstate.env import Env, tasks
from simstate.record import Recording, recorder


def cartpole_env(num_envs: int) -> Env:
    return Env(tasks.find("Cartpole-Balance").env_cfg(), num_envs, seed=3)


def check(path: Path, samples: int, steps: int) -> None:
    """The file has all that was kept, and replays to the same bits."""
    with Recording(path) as found:
        assert found.is_whole
        assert not found.missing
        assert (found.num_samples, found.num_steps) == (samples, steps)
        proof = replay(found)
    assert proof.is_same, proof


def test_an_interruption_at_any_line_of_a_step(make_sim, tmp_path, monkeypatch):
    """Each step writes a block, a snapshot, or both; the file keeps all of them.

    Every fifth line; `make soak` takes all.
    """
    monkeypatch.setattr(recorder, "MOST_SAMPLES", 1)
    sim, path = make_sim(3), tmp_path / "a.simrec"
    random = torch.Generator().manual_seed(3)
    with sim.record(path, fields=["qpos"], snapshot_every=0.008) as recording:
        drive(sim, 3, random)
        lines = lines_of(lambda: drive(sim, 1, random))
        for line in range(0, lines, 1 if SOAK > 1 else 5):
            before = recording.samples, recording.steps
            sim.data.qvel[line % 3] += 0.01 * line
            found = traced(partial(sim.step, 1 + line % 2), line)
            taken = recording.samples - before[0], recording.steps - before[1]
            assert taken in ((0, 0), (1, 1)), found.places
            sim.step()
        samples, steps = recording.samples, recording.steps
    assert steps > lines / 5
    check(path, samples, steps)


def test_an_interruption_at_any_line_of_an_environments_step(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "MOST_SAMPLES", 2)
    env, path = cartpole_env(3), tmp_path / "a.simrec"
    action = torch.tensor([[0.3], [-0.8], [0.5]])
    with env.record(path, snapshot_every=0.1) as recording:
        lines = lines_of(lambda: env.step(action))
        for line in range(0, lines, 1 if SOAK > 1 else 7):
            before = recording.samples, recording.steps
            found = traced(lambda: env.step(action), line)
            taken = recording.samples - before[0], recording.steps - before[1]
            assert taken in ((0, 0), (1, 1)), found.places
            env.step(-action)
        samples, steps = recording.samples, recording.steps
    assert samples == steps > lines / 7
    with Recording(path) as found:
        assert found.is_whole
        assert found["step"].tolist() == list(range(samples))
        proof = replay(found, cartpole_env(3))
    assert proof.is_same, proof


def test_an_interruption_at_any_line_of_close(make_sim, tmp_path):
    sim, path = make_sim(2), tmp_path / "a.simrec"

    def recorded():
        recording = sim.record(path, fields=["qpos"])
        drive(sim, 3, torch.Generator().manual_seed(1))
        return recording

    recording = recorded()
    lines = min(lines_of(recording.close), 40)  # then it only waits
    for line in range(lines):
        recording = recorded()
        found = traced(recording.close, line)
        assert found.error is not None or line >= 5
        recording.close()
        assert not recording.is_open
        check(path, 4, 3)
        sim.step()  # nothing is attached any more


def test_an_interruption_while_the_disk_is_slow(make_sim, tmp_path, monkeypatch):
    """Ctrl-C by a signal, while the recorder waits for the writer's thread."""
    monkeypatch.setattr(recorder, "MOST_SAMPLES", 1)
    go_on = threading.Event()

    delay_writes(monkeypatch, lambda: go_on.wait(60))
    sim, path = make_sim(2), tmp_path / "a.simrec"
    recording = sim.record(path, fields=["qpos"])
    hits = 0
    for _ in range(8):
        alarm = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
        alarm.start()
        try:
            sim.step()
            alarm.cancel()
        except KeyboardInterrupt:
            hits += 1
        alarm.join()
        time.sleep(0.01)
    assert hits >= 2
    go_on.set()
    sim.step()
    samples, steps = recording.samples, recording.steps
    recording.close()
    check(path, samples, steps)
    times = sim.time / sim.timestep
    np.testing.assert_allclose(times, steps)  # no step was taken and not kept


def without_block(path: Path, number: int) -> None:
    """Remove a block of a file, as an interruption did before version 0.3."""
    whole, cut, count = path.read_bytes(), bytearray(), 0
    at = 8
    cut += whole[:at]
    while at + 9 <= len(whole) - 8:
        length = 9 + int.from_bytes(whole[at + 1 : at + 9], "little")
        record, kind = whole[at : at + length], whole[at]
        is_block = kind == 9 and b"\x05\x00\x00\x00block" in record[:40]
        if kind == 6:
            count += 1
        if not (count == number + 1 and (kind in (6, 7, 8) or is_block)):
            cut += record
        at += length
    path.write_bytes(cut + whole[at:])


@pytest.mark.parametrize("lost", [2, 5])
def test_blocks_before_a_gap_are_read(make_sim, tmp_path, monkeypatch, capsys, lost):
    from simstate.cli import main

    monkeypatch.setattr(recorder, "MOST_SAMPLES", 2)
    sim, path = make_sim(3), tmp_path / "a.simrec"
    with sim.record(path, fields=["qpos"], snapshot_every=0.02):
        drive(sim, 11, torch.Generator().manual_seed(4))
    with Recording(path) as found:
        assert len(found.blocks) == 6
        wanted = found["qpos"]
    without_block(path, lost)
    with pytest.warns(RuntimeWarning, match=f"block {lost}|ends with block 4"):
        found = Recording(path)
    with found:
        assert not found.is_whole
        assert f"block {lost}" in found.missing or "block 4" in found.missing
        assert len(found.blocks) == lost
        assert torch.equal(found["qpos"], wanted[: 2 * lost])
        assert max(found.snapshot_steps) <= found.num_steps
        proof = replay(found)
        assert proof.is_same
        assert proof.samples == 2 * lost
    assert main(["info", str(path)]) == 0
    shown = capsys.readouterr()
    assert "has a gap" in shown.err
    assert "block 4" in shown.out or f"missing: block {lost}" in shown.out


FORKED = """
import os, sys, threading
sys.path.insert(0, {root!r})
from tests.record.conftest import scene
from simstate import NativeCfg, Simulation
from simstate.record import recorder
from simstate.record.container_writer import ContainerWriter

recorder.MOST_SAMPLES = 1
started, go_on, write = threading.Event(), threading.Event(), ContainerWriter._write
def slow(self, *args):
    started.set()
    go_on.wait(60)
    write(self, *args)
ContainerWriter._write = slow
sim = Simulation(scene(), 2, engine=NativeCfg(num_threads=1))
recording = sim.record({path!r}, fields=["qpos"])
sim.step()
sim.step()
started.wait(60)
child = os.fork()
if not child:
    for _ in range(6):
        sim.step()  # more than the queue takes
    assert not recording.is_open
    recording.close()
    sys.exit(0)  # runs what is registered with atexit
_, status = os.waitpid(child, 0)
go_on.set()
sim.step()
print(os.waitstatus_to_exitcode(status))
"""


def test_a_fork_leaves_its_parents_recording_alone(tmp_path):
    path = tmp_path / "a.simrec"
    root = str(Path(__file__).parents[2])
    code = FORKED.format(root=root, path=str(path))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True, text=True, timeout=100, env=os.environ,
    )  # fmt: skip
    assert done.stdout.strip() == "0", done.stderr
    check(path, 4, 3)  # the parent's exit has closed it


def test_a_fork_writes_no_buffered_bytes_again(make_sim, tmp_path):
    """A buffer of the file that is not empty at the fork would be flushed twice."""
    path = tmp_path / "a.simrec"
    recording = make_sim(2).record(path, fields=["qpos"])
    size = path.stat().st_size
    file_of(recording).write(b"12345")
    assert path.stat().st_size == size + 5


def test_a_step_that_fails_leaves_no_snapshot(make_sim, tmp_path):
    """The snapshot of a step that was rolled back is not of the step after it."""
    sim, path, bad = make_sim(3), tmp_path / "a.simrec", []

    def force(t, sim):
        if bad:
            raise ZeroDivisionError

    sim.add_force(force)
    with sim.record(path, fields=["qpos"], snapshot_every=0.008):
        sim.step(2)
        bad.append(1)
        with pytest.raises(ZeroDivisionError):
            sim.step()
        bad.clear()
        sim.data.qvel[1] += 0.4
        sim.step(3)
    other = make_sim(3)
    other.add_force(lambda t, sim: None)
    proof = replay(path, other)
    assert proof.snapshots == 2
    assert proof.is_same, proof


def test_names_of_snapshots_that_are_none(make_sim, tmp_path, monkeypatch):
    from simstate.record import container_writer

    monkeypatch.setattr(container_writer, "SNAPSHOT", "snapshot/x")
    sim, path = make_sim(2), tmp_path / "a.simrec"
    with sim.record(path, fields=["qpos"], snapshot_every=0.004):
        sim.step()
        sim.step()
    with raises(RecordingError, file="a.simrec"):
        Recording(path)


PARAMETERS = ["actuator_gainprm", "body_mass", "dof_damping", "body_ipos"]


def sequence(sim, seed: int) -> None:
    """Writes, resets, new parameters, memory and steps in random order."""
    random = np.random.default_rng(seed)
    arm = sim.scene["arm"]
    names = iter(random.permutation(PARAMETERS).tolist())
    for _ in range(8):
        kind = random.integers(7)
        if kind == 0:
            p, v = torch.as_tensor(random.normal(size=(2, sim.num_envs, 2)))
            arm.write_joint_state_to_sim(p, v)
        elif kind == 1:
            name = next(names, None)
            if name is not None:
                sim.expand(name)[1:] *= 1.1
        elif kind == 2:
            sim.reset([int(random.integers(sim.num_envs))])
        elif kind == 3:
            sim.data.ctrl[:] = torch.as_tensor(random.normal(size=(sim.num_envs, 2)))
        else:
            sim.step(int(random.integers(1, 4)))
    sim.step()


@pytest.mark.parametrize("is_made", [True, False])
@pytest.mark.parametrize("seed", range(6 * SOAK))
def test_parameters_that_are_added_while_recording(make_sim, tmp_path, seed, is_made):
    sim, path = make_sim(3), tmp_path / "a.simrec"
    with sim.record(path, quantities=["arm.joint_vel"], snapshot_every=0.01) as taken:
        sequence(sim, seed)
        steps = taken.steps
    proof = replay(path, make_sim(3) if is_made else None)
    assert proof.is_same, proof
    assert proof.steps == steps


def test_a_parameter_that_is_added_before_the_first_step(make_sim, tmp_path):
    sim, path = make_sim(3), tmp_path / "a.simrec"
    arm = sim.scene["arm"]
    recording = sim.record(path, quantities=["arm.joint_vel"])
    p, v = torch.randn(2, 3, 2, dtype=torch.float64)
    arm.write_joint_state_to_sim(p, v)
    sim.expand("actuator_gainprm")[1:] *= 1.1
    sim.step(2)
    recording.close()
    proof = replay(path, make_sim(3))
    assert proof.is_same, proof
    with Recording(path) as found:
        (step,) = found.steps()
        assert {"qpos", "qvel"} <= {change.slot for change in step.changes}
        start = found.snapshot(0)
        assert not torch.equal(start.slots["qvel"][:, :2], v)
        assert "model/actuator_gainprm" not in start.slots


@pytest.mark.parametrize("line", range(14))
def test_an_interruption_does_not_hide_that_a_write_failed(make_sim, tmp_path, line):
    """At any line of what reports it; `close` reports it then."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    recording = make_sim(3).record(tmp_path / "a.simrec", fields=["qpos"])
    writer = writer_of(recording)
    with open("/dev/full", "wb") as full:
        os.dup2(full.fileno(), file_of(recording).fileno())
    write_block(recording)
    for _ in range(1000):
        if has_finished(recording):
            break
        time.sleep(0.01)

    def report() -> None:
        with contextlib.suppress(FileError):
            writer.next(writer.block)

    traced(report, line)
    with raises(FileError, file="a.simrec"):
        recording.close()
