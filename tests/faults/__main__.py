"""Play histories: `python -m tests.faults --seed 7`, or `--seeds 1000`.

Prints the number of histories of each kind. A history that fails is reduced to the
fewest faults that still fail, and printed with the command that plays it again.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path

from tests.tracer import compile_library

SKIPPED = "tests/faults is skipped"
"""Printed where faults cannot be brought in."""


def main() -> int:
    """Play the histories of some seeds; 0 if none failed."""
    options = parse()
    from tests.faults.runner import Runner

    runner, kinds, failed = Runner(), Counter[str](), 0
    start, played, met = os.times(), 0, 0
    for seed in range(options.seed, options.seed + options.seeds):
        if options.seconds is not None and cpu_since(start) > options.seconds:
            break
        history = runner.history(seed, options.job)
        if options.only is not None:
            history = history.only(tuple(int(k) for k in options.only.split(",") if k))
        outcome = runner.play(history)
        played, met = played + 1, met + (outcome.fired > 0)
        kinds[f"job: {history.job}"] += 1
        kinds.update(f"fault: {fault.kind}" for fault in history.faults)
        if options.log:
            print(history, *outcome.log, sep="\n", flush=True)
        if options.twice and runner.play(history).log != outcome.log:
            outcome.failures.append("a second time, it takes another course")
        if outcome.failures:
            failed += 1
            least = runner.shrink(history)
            indices = ",".join(str(history.faults.index(f)) for f in least.faults)
            print(f"FAILED {history}", *outcome.failures, sep="\n")
            print(f"fewest faults: {least}")
            job = "" if options.job is None else f" --job {options.job}"
            command = (
                f"python -m tests.faults{job} --seed {seed} --only {indices} --log"
            )
            print(f"play it again: {command}", flush=True)
    print_counts(kinds)
    print(f"{played} histories, in {met} of them a fault took effect")
    print(f"{failed} failed, {cpu_since(start):.0f} s of CPU")
    return int(failed > 0)


def parse() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--seeds", type=int, default=1, help="the number of them")
    parser.add_argument("--seconds", type=float, help="stop after this much CPU time")
    parser.add_argument("--job", help='play one job; "ray" is played only so')
    parser.add_argument("--only", help="the faults to keep, such as 0,2")
    parser.add_argument("--twice", action="store_true", help="each must take the same "
                        "course again, byte for byte")  # fmt: skip
    parser.add_argument("--log", action="store_true", help="print the course of each")
    return parser.parse_args()


def print_counts(kinds: Counter[str]) -> None:
    """Print the number of histories of each kind."""
    for kind, count in sorted(kinds.items()):
        print(f"{count:6} {kind}")
    if importlib.util.find_spec("ray") is None:
        print("       skipped: ray (not installed); lost workers are a stand-in's")


def cpu_since(start: os.times_result) -> float:
    """Return the CPU time of this process and its children since then [s]."""
    return sum(os.times()[:4]) - sum(start[:4])


def start_with_shim() -> int:
    """Start this program again with shim.c loaded, and hashes that are fixed."""
    with tempfile.TemporaryDirectory(prefix="simstate-shim-") as folder:
        shim = Path(folder) / f"shim{sysconfig.get_config_var('SHLIB_SUFFIX')}"
        missing = compile_library(Path(__file__).with_name("shim.c"), shim)
        if missing is None and not sys.platform.startswith("linux"):
            missing = f"it needs Linux, this is {sys.platform}"
        if missing is not None:
            print(f"{SKIPPED}: shim.c cannot be used: {missing}.")
            return 0
        fixed = {
            "LD_PRELOAD": str(shim), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1", "SIMSTATE_SHIM": "1",
        }  # fmt: skip
        command = [sys.executable, "-m", "tests.faults", *sys.argv[1:]]
        return os.spawnve(os.P_WAIT, sys.executable, command, {**os.environ, **fixed})


if __name__ == "__main__":
    sys.exit(main() if os.environ.get("SIMSTATE_SHIM") else start_with_shim())
