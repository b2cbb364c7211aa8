"""Play histories: `python -m tests.faults --seed 7`, or `--seeds 1000`.

Prints the number of histories of each kind. A history that fails is reduced to the
fewest faults that still fail, and printed with the command that plays it again.
"""

from __future__ import annotations

import argparse
import os
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Play the histories of some seeds; 0 if none failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--seeds", type=int, default=1, help="the number of them")
    parser.add_argument("--seconds", type=float, help="stop after this much CPU time")
    parser.add_argument("--only", help="the faults to keep, such as 0,2")
    parser.add_argument("--log", action="store_true", help="print the course of each")
    options = parser.parse_args()

    import torch
    from tests.faults.runner import Runner

    torch.set_num_threads(1)
    runner, kinds, failed = Runner(), Counter[str](), 0
    start, played = os.times(), 0
    for seed in range(options.seed, options.seed + options.seeds):
        if options.seconds is not None and _cpu_since(start) > options.seconds:
            break
        history = runner.history(seed)
        if options.only is not None:
            kept = tuple(int(k) for k in options.only.split(",") if k)
            history = history.only(kept)
        outcome = runner.play(history)
        played += 1
        kinds[f"job: {history.job}"] += 1
        for fault in history.faults:
            kinds[f"fault: {fault.kind}"] += 1
        if options.log:
            print(history, *outcome.log, sep="\n", flush=True)
        if outcome.failures:
            failed += 1
            least = runner.shrink(history)
            indices = ",".join(str(history.faults.index(f)) for f in least.faults)
            print(f"FAILED {history}", *outcome.failures, sep="\n")
            print(f"fewest faults: {least}")
            command = f"python -m tests.faults --seed {seed} --only {indices} --log"
            print(f"play it again: {command}", flush=True)
    for kind, count in sorted(kinds.items()):
        print(f"{count:6} {kind}")
    print(f"{played} histories, {failed} failed, {_cpu_since(start):.0f} s of CPU")
    return int(failed > 0)


def _cpu_since(start: os.times_result) -> float:
    """Return the CPU time of this process and its children since then [s]."""
    now = os.times()
    return sum(now[:4]) - sum(start[:4])


def start_with_shim() -> int:
    """Start this program again with shim.c loaded and hashes that are fixed."""
    from tests.tracer import compile_library

    with tempfile.TemporaryDirectory(prefix="simstate-shim-") as folder:
        shim = Path(folder) / f"shim{sysconfig.get_config_var('SHLIB_SUFFIX') or '.so'}"
        missing = compile_library(Path(__file__).with_name("shim.c"), shim)
        if missing is not None:
            print(f"tests/faults/shim.c cannot be compiled: {missing}")
            return SKIPPED
        fixed = {
            "LD_PRELOAD": str(shim), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1", "SIMSTATE_SHIM": "1",
        }  # fmt: skip
        command = [sys.executable, "-m", "tests.faults", *sys.argv[1:]]
        return os.spawnve(os.P_WAIT, sys.executable, command, {**os.environ, **fixed})


SKIPPED = 77
"""Exit status where the shim cannot be built."""

if __name__ == "__main__":
    del time
    sys.exit(main() if os.environ.get("SIMSTATE_SHIM") else start_with_shim())
