"""Jobs that write and read files: recordings, checkpoints and replays."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import torch
from tests.faults.injection import Turns
from tests.faults.job import TRIES, Job, Note, Work, digest_of, last, opened
from tests.record.conftest import drive, scene

from simstate import NativeCfg, RecordingError, Simulation, SnapshotError
from simstate.data.replay import replay
from simstate.record import Recorder, Recording, recorder
from simstate.state import Snapshot

CALLS = 12
"""Calls of `drive` in a run, of a few steps each."""


def make(threads: int, variant: int) -> Simulation:
    """Three unlike worlds of two entities."""
    engine = NativeCfg(num_threads=threads)
    sim = Simulation(scene(3.0 + variant), 3, engine=engine, seed=5 + variant)
    sim.data.qvel[:] = torch.linspace(-1, 1, 24, dtype=sim.dtype).reshape(3, 8)
    return sim


def move(sim: Simulation, k: int) -> None:
    """Take a few steps with writes and a reset in between, the k-th time."""
    drive(sim, 2 + k % 3, torch.Generator().manual_seed(k))


class RecordJob(Job):
    """Records a simulation, and goes on with it after an interruption."""

    name = "record"
    variants = 2

    def run(self, work: Work, variant: int) -> None:
        recorder.MOST_SAMPLES, recorder.BLOCK_SECONDS = 3 + 4 * variant, 0.05
        sim, made = make(work.threads, variant), list[Recorder]()
        path = work.folder / "run.simrec"

        def start() -> None:
            made.append(
                sim.record(path, quantities=["arm.joint_pos"], fields=["qpos", "qvel"],
                           snapshot_every=0.03)
            )  # fmt: skip

        for _ in range(TRIES):
            if made or work.attempt(start):
                break
        work.note("states", digests=[self._state(sim)])
        for k in range(CALLS):
            work.attempt(lambda k=k: self._watched_move(work, sim, k))
            work.note("written", blocks=Turns.blocks)
        closed = False
        for _ in range(TRIES):
            if closed or not made or not made[0].is_open:
                break
            closed = work.attempt(made[0].close)
        kept = [(one.samples, one.steps) for one in made]
        work.note("closed", closed=closed, kept=kept)
        sim.step()
        if not work.is_stopped:
            work.note("result", digest=digest_of(sim.snapshot().slots))

    def _state(self, sim: Simulation) -> str:
        return digest_of({"qpos": sim.data.qpos, "qvel": sim.data.qvel})

    def _watched_move(self, work: Work, sim: Simulation, k: int) -> None:
        step = sim.step

        def watched(n: int = 1, env_ids: object = None) -> None:
            try:
                step(n, env_ids)
            finally:
                with work.injection.paused():
                    work.note("states", digests=[self._state(sim)])

        sim.step = watched
        try:
            move(sim, k)
        finally:
            sim.step = step

    def check(self, folder: Path, variant: int, notes: Sequence[Note]) -> None:
        """Every sample is a state that the worlds had, in order; written ones exist."""
        path = folder / "run.simrec"
        written = last(notes, "written")
        blocks = 0 if written is None else written["blocks"]
        closed = last(notes, "closed")
        found, refusal = opened(lambda: Recording(path), RecordingError)
        if found is None:
            assert str(path) in refusal
            assert not blocks, f"{blocks} blocks were written: {refusal}"
            return
        with found:
            if written is not None or closed is not None:
                assert len(found.blocks) >= blocks, (len(found.blocks), blocks)
            if closed is not None and closed["closed"]:
                assert found.is_whole
                assert [found.num_samples, found.num_steps] in closed["kept"]
            had = [d for note in notes if note["event"] == "states"
                   for d in note["digests"]]  # fmt: skip
            self._check_samples(found, had)
            if found.num_steps:
                again = replay(found)
                assert again.is_same, str(again)

    def _check_samples(self, found: Recording, had: list[str]) -> None:
        if not had:  # it was killed before it said anything
            return
        at = 0
        for qpos, qvel in zip(found["qpos"], found["qvel"], strict=True):
            state = digest_of({"qpos": qpos, "qvel": qvel})
            assert state in had[at:], f"a sample after {at} is no state of the worlds"
            at = had.index(state, at)


class CheckpointJob(Job):
    """Saves snapshots over each other, and starts from the last one."""

    name = "checkpoint"
    variants = 2

    def run(self, work: Work, variant: int) -> None:
        sim, path = make(work.threads, variant), work.folder / "last.npz"
        mine = sim.memory("calls", dtype=torch.int64, shared=True, reset=None)
        for _ in range(TRIES):
            if not path.exists() or work.attempt(lambda: self._load(sim, path)):
                break
        while int(mine) < CALLS:
            move(sim, int(mine))
            mine += 1
            work.note("saving", digest=digest_of(sim.snapshot().slots))
            for _ in range(TRIES):
                if work.attempt(lambda: sim.snapshot().save(path)):
                    work.note("saved", digest=digest_of(Snapshot.load(path).slots))
                    break
        work.note("result", digest=digest_of(sim.snapshot().slots))

    def _load(self, sim: Simulation, path: Path) -> None:
        sim.restore(Snapshot.load(path))

    def check(self, folder: Path, variant: int, notes: Sequence[Note]) -> None:
        """The file holds the snapshot that was saved last, or the one after it."""
        path = folder / "last.npz"
        saved, saving = last(notes, "saved"), last(notes, "saving")
        allowed = [note["digest"] for note in (saved, saving) if note is not None]
        found, refusal = opened(lambda: Snapshot.load(path), SnapshotError)
        if found is None:
            assert str(path) in refusal
            assert not path.exists(), "a damaged file is there"
            assert saved is None, "the saved snapshot is gone"
            return
        assert saved is None or digest_of(found.slots) in allowed


class ReplayJob(Job):
    """Plays a recording again."""

    name = "replay"
    variants = 2

    def prepare(self, folder: Path, variant: int) -> None:
        recorder.MOST_SAMPLES = 5
        sim = make(1, variant)
        with sim.record(folder / "run.simrec", quantities=["arm.joint_vel"],
                        snapshot_every=0.05):  # fmt: skip
            for k in range(CALLS):
                move(sim, k)
        self._digest_file(folder)

    def _digest_file(self, folder: Path) -> str:
        return hashlib.sha256((folder / "run.simrec").read_bytes()).hexdigest()[:16]

    def run(self, work: Work, variant: int) -> None:
        path, sim = work.folder / "run.simrec", make(work.threads, variant)
        work.note("file", digest=self._digest_file(work.folder))
        for _ in range(TRIES):
            found = []
            if work.attempt(lambda found=found: found.append(replay(path, sim))):
                assert found[0].is_same, str(found[0])
                work.note("result", digest=digest_of(sim.snapshot().slots))
                return

    def check(self, folder: Path, variant: int, notes: Sequence[Note]) -> None:
        """The recording is unchanged."""
        before = last(notes, "file")
        assert before is None or before["digest"] == self._digest_file(folder)
