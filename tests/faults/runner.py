"""Runs histories: each run of a job is a process, and so is each check."""

from __future__ import annotations

import faulthandler
import hashlib
import importlib
import json
import os
import re
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import tracer
from tests.faults.call_jobs import CallsJob, EnvJob, RayJob, RemoteJob
from tests.faults.file_jobs import CheckpointJob, RecordJob, ReplayJob
from tests.faults.history import STAGES, Counts, Fault, History, draw
from tests.faults.injection import Clock, Injection, Turns
from tests.faults.job import Job, Note, Work
from tests.faults.run_jobs import CollectJob, ResumeJob, TrainJob

JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        RecordJob(), CollectJob(), TrainJob(), ResumeJob(), RemoteJob(),
        CheckpointJob(), ReplayJob(), CallsJob(), EnvJob(), RayJob(),
    )
}  # fmt: skip
SLOW = ("ray",)
"""Jobs that are played only on request."""
PATIENCE = 60.0
"""Longest time that a process may take [s of wall clock]."""


@dataclass
class Outcome:
    """The course of a history."""

    log: list[str] = field(default_factory=list)
    """All notes, exits and digests of files: the same for the same history."""
    failures: list[str] = field(default_factory=list)
    result: str | None = None
    """Digest of what the job came to."""
    fired: int = 0
    """Number of faults that took effect."""


class Runner:
    """Plays histories, and knows the course of each job without faults."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int, bool], Counts] = {}
        self._results: dict[tuple[str, int], str] = {}
        for name in ("mcap.writer", "mcap.stream_reader", "tensordict"):
            importlib.import_module(name)  # once, and not in each child
        tracer.compiled()

    def history(self, seed: int, only: str | None = None) -> History:
        """Return the history of a seed, of any job or of one of them."""
        chosen = [name for name in JOBS if name not in SLOW] if only is None else [only]
        jobs = {name: JOBS[name].variants for name in chosen}
        return draw(seed, jobs, self._counts_of)

    def play(self, history: History) -> Outcome:
        """Play a history; failures are in the outcome."""
        counts = self._counts_of(history.job, history.variant, history.by_opcode)
        expected = self._results[history.job, history.variant]
        outcome = self._played(history, counts, STAGES + 1)
        if outcome.result != expected and not outcome.failures:
            outcome.failures.append(
                f"it came to {outcome.result}, without faults to {expected}"
            )
        return outcome

    def shrink(self, history: History) -> History:
        """Return the history with the fewest faults that still fails."""
        indices = tuple(range(len(history.faults)))
        smaller = True
        while smaller and len(indices) > 1:
            smaller = False
            for k in indices:
                fewer = tuple(i for i in indices if i != k)
                if self.play(history.only(fewer)).failures:
                    indices, smaller = fewer, True
                    break
        return history.only(indices)

    def _counts_of(self, job: str, variant: int, by_opcode: bool) -> Counts:
        key = (job, variant, by_opcode)
        if key not in self._counts:
            clean = History(0, job, variant, by_opcode, 0, ())
            outcome = self._played(clean, {}, 1)
            if outcome.failures or outcome.result is None:
                raise RuntimeError(f"{job} fails without faults: {outcome.failures}")
            kept = self._results.setdefault((job, variant), outcome.result)
            if kept != outcome.result:
                raise RuntimeError(f"{job} does not come to the same result twice")
            counted = json.loads(outcome.log[-1])
            self._counts[key] = counted
        return self._counts[key]

    def _played(self, history: History, counts: Counts, stages: int) -> Outcome:
        job, outcome = JOBS[history.job], Outcome()
        with _temporary_folder() as outer:
            folder = outer / "files"
            folder.mkdir()
            if type(job).prepare is not Job.prepare:
                self._child(
                    outcome,
                    lambda note: _prepare(job, folder, history),
                    "prepare",
                )
            for stage in sorted(
                {fault.stage for fault in history.faults} | {stages - 1}
            ):
                faults = tuple(f for f in history.faults if f.stage == stage)
                outcome.result = None
                notes = self._child(
                    outcome,
                    lambda note, faults=faults, stage=stage: self._run(
                        job, history, folder, counts, faults, stage, note
                    ),
                    f"run {stage}",
                    job.ending_s,
                )
                for one in notes:
                    outcome.result = (
                        one.get("digest")
                        if one["event"] == "result"
                        else (outcome.result)
                    )
                outcome.log += files_in(folder)
                if type(job).check is not Job.check:
                    self._child(
                        outcome,
                        lambda note, notes=notes: job.check(
                            folder, history.variant, notes
                        ),
                        f"check {stage}",
                    )
                counted = [n for n in notes if n["event"] == "counts"]
                if counted:
                    outcome.log.append(json.dumps(counted[-1]["counts"]))
                outcome.fired += counted[-1]["fired"] if counted else 1
                if outcome.failures:
                    break
        return outcome

    def _run(
        self, job: Job, history: History, folder: Path, counts: Counts,
        faults: tuple[Fault, ...], stage: int, note: Callable[..., None],
    ) -> None:  # fmt: skip
        os.chdir(folder)
        threads = 1 + any(fault.kind == "thread count" for fault in faults)
        injection = Injection(
            folder, counts, faults, history.by_opcode, history.schedule + stage, note
        )
        before = listening()
        job.run(Work(folder, threads, injection, note), history.variant)
        note("counts", counts=injection.counts(), fired=injection.fired)
        assert listening() <= before, "a port is still open"

    def _child(
        self,
        outcome: Outcome,
        call: Callable[[Callable[..., None]], None],
        name: str,
        ending_s: float = 0.0,
    ) -> list[Note]:
        """Run a function in a child; return its notes.

        Its own processes must end with it; if it is killed, within `ending_s`.
        """
        source, sink = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if not child:
            os.close(source)
            _be_child(call, sink)
        os.close(sink)
        notes, status = _listen(source, child)
        failed = [note["text"] for note in notes if note["event"] == "failure"]
        outcome.failures += [f"{name}: {text}" for text in failed]
        outcome.log += [
            f"{name}: {json.dumps(n)}" for n in notes if n["event"] != "counts"
        ]
        outcome.log.append(f"{name}: ended with {status}")
        if status is None:
            outcome.failures.append(f"{name}: took longer than {PATIENCE:.0f} s")
        elif status not in (0, signal.SIGKILL) and not failed:
            outcome.failures.append(f"{name}: the process ended with status {status}")
        end = time.monotonic() + (ending_s if status == signal.SIGKILL else 0.0)
        while (left := members_of(child)) and time.monotonic() < end:
            time.sleep(0.1)
        if left:
            outcome.failures.append(f"{name}: processes {left} remain")
            for process in left:
                os.kill(process, signal.SIGKILL)
        return notes


def _prepare(job: Job, folder: Path, history: History) -> None:
    """Write the files that are there before a job, the same bytes each time."""
    os.chdir(folder)
    Clock().install()
    Turns.install(0)
    job.prepare(folder, history.variant)


def _be_child(call: Callable[[Callable[..., None]], None], sink: int) -> None:
    """Run a function and end as a Python process does; report what happens."""
    import atexit

    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.dump_traceback_later(PATIENCE - 10, exit=True)

    def note(event: str, **values: Any) -> None:
        os.write(sink, json.dumps({"event": event, **values}).encode() + b"\n")

    try:
        call(note)
        atexit._run_exitfuncs()
    except BaseException:
        note("failure", text=traceback.format_exc(limit=-12))
    finally:
        sys.stderr.flush()
        os._exit(0)


def _listen(source: int, child: int) -> tuple[list[Note], int | None]:
    """Return the notes of a child and its status; None: it took too long."""
    data, end = b"", time.monotonic() + PATIENCE
    while True:
        ready, _, _ = select.select([source], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(source)
            return _notes(data), None
        part = os.read(source, 1 << 16)
        if not part:
            break
        data += part
    os.close(source)
    _, status = os.waitpid(child, 0)
    return _notes(data), status


def _notes(data: bytes) -> list[Note]:
    return [json.loads(line) for line in data.splitlines()]


def files_in(folder: Path) -> list[str]:
    """Return name and digest of each file, without the ids of processes."""
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        name = re.sub(r"\.\d+-[0-9a-f]{32}", "", str(path.relative_to(folder)))
        if path.is_file():
            content = path.read_bytes().replace(os.fsencode(folder), b"")
            found.append(f"{name} {hashlib.sha256(content).hexdigest()[:16]}")
    return sorted(found)


def members_of(session: int) -> list[int]:
    """Return the processes of a session."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def listening() -> set[str]:
    """Return the sockets of this process that accept connections."""
    own = set[str]()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            own.add(os.readlink(entry))
        except OSError:
            continue
    found = set[str]()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                found.add(fields[1])
    return found


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """A folder that is removed at the end, but not when a forked child ends."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="simstate-faults-")))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
