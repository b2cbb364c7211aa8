"""Histories of faults: drawn from seeds, repeated byte for byte, reduced if they fail.

`make test` plays as many as fit a minute, `make soak` thousands; these are a few.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.faults.__main__ import SKIPPED
from tests.faults.history import COUNTER, Fault, History, draw

ROOT = Path(__file__).parents[2]
COUNTS = dict.fromkeys(COUNTER.values(), 40)


def drawn(seeds: int, counts: dict[str, int] = COUNTS) -> list[History]:
    jobs = {"one": 2, "other": 3}
    return [draw(seed, jobs, lambda job, variant, by: counts) for seed in range(seeds)]


def test_a_seed_is_one_history():
    assert drawn(40) == drawn(40)
    assert len(set(drawn(40))) == 40


def test_all_jobs_and_kinds_are_drawn():
    histories = drawn(400)
    assert Counter(h.job for h in histories) == {"one": 200, "other": 200}
    kinds = Counter(fault.kind for h in histories for fault in h.faults)
    assert kinds.keys() == COUNTER.keys()
    assert {h.by_opcode for h in histories} == {False, True}
    assert {len(h.faults) for h in histories} == {1, 2, 3}
    assert all(h.faults[0].stage == 0 for h in histories)


def test_faults_meet_only_operations_that_a_job_has():
    few = {"step": 7, "write": 0, "open": 3}
    for history in drawn(100, few):
        for fault in history.faults:
            assert COUNTER[fault.kind] in ("step", "open")
            assert 0 <= fault.number(few) < few[COUNTER[fault.kind]]


def test_a_history_is_reduced_to_its_fewest_faults():
    pytest.importorskip("rsl_rl")
    from tests.faults.runner import Outcome, Runner

    class Fails(Runner):
        """Fails if both of two faults are there."""

        def __init__(self) -> None:
            self.played = 0

        def play(self, history: History) -> Outcome:
            self.played += 1
            both = {"kill", "fork"} <= {fault.kind for fault in history.faults}
            return Outcome(failures=["both"] if both else [])

    kinds = ("ctrl-c", "kill", "full disk", "fork")
    faults = tuple(Fault(kind, 0, 0.1 * k, 0.5) for k, kind in enumerate(kinds))
    runner = Fails()
    least = runner.shrink(History(3, "record", 0, False, 0, faults))
    assert [fault.kind for fault in least.faults] == ["kill", "fork"]
    assert runner.played < 10


def test_some_histories_twice_byte_for_byte():
    command = [sys.executable, "-m", "tests.faults", "--seeds", "2", "--twice"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900
    )
    if SKIPPED in done.stdout:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 histories" in done.stdout
    assert "0 failed" in done.stdout
    assert "1 job: record" in done.stdout
