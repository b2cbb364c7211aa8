"""Cost of training: core-seconds by part, and the time on two cores.

python benchmarks/training.py [task] [updates]     # needs the extra `train`

The same run is repeated on one core and on two, in turns, in separate processes; the
weights must have the same bits. Time passes while other programs have the cores, so
that next to the time of the clock there is that of the main thread: it takes part in
everything that is done in parallel, and what it computes is the least that a clock can
show. Both exclude imports and the first update.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPEATS = 3


def measure(task: str, updates: int) -> dict[str, object]:
    """Run some updates in this process; return seconds and a digest of the weights."""
    from simstate.train.run_cfg import OutputCfg, RunCfg
    from simstate.train.training_run import TrainingRun

    output = OutputCfg(save_every=10**6, logger="none")
    cfg = RunCfg.for_task(task, seed=1, output=output)
    with tempfile.TemporaryDirectory() as folder:
        run = TrainingRun(cfg, Path(folder))
        run.learn(1)
        begin = time.perf_counter(), time.thread_time(), time.process_time()
        run.learn(1 + updates)
        end = time.perf_counter(), time.thread_time(), time.process_time()
    digest = hashlib.sha256()
    for weight in run.algorithm.get_policy().parameters():
        digest.update(weight.detach().numpy().tobytes())
    clock, main, cores = (b - a for a, b in zip(begin, end, strict=True))
    return {
        "clock": clock,
        "main": main,
        "cores": cores,
        "parts": run.core_seconds.spent,
        "weights": digest.hexdigest()[:12],
    }


def on_cores(count: int, task: str, updates: int) -> dict[str, float]:
    """Measure in another process, which may use this many cores."""
    cores = sorted(os.sched_getaffinity(0))[-count:]
    program = ["taskset", "-c", ",".join(map(str, cores)), sys.executable, __file__]
    done = subprocess.run(
        [*program, "--here", task, str(updates)],
        env={**os.environ, "OMP_NUM_THREADS": str(count)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main(task: str = "Quadruped-Velocity", updates: str = "30") -> None:
    """Print the figures."""
    found: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(REPEATS):
        for count, rows in found.items():
            rows.append(on_cores(count, task, int(updates)))
    for count, rows in found.items():
        print(f"{count} cores, {updates} updates; minimum of {REPEATS}:")
        for name in ("clock", "main", "cores"):
            print(f"  {name:6} {min(row[name] for row in rows):6.2f} s")
    for name in ("clock", "main"):
        one, two = (min(row[name] for row in found[count]) for count in (1, 2))
        print(f"two cores / one core, {name}: {two / one:.2f}")
    digests = {row["weights"] for rows in found.values() for row in rows}
    print("weights:", "the same bits" if len(digests) == 1 else sorted(digests))
    print("load:", *os.getloadavg())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
    else:
        main(*sys.argv[1:])
