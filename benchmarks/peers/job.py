"""What the scripts of this folder share: a rate on one thread, as a line of JSON.

A script is called with the side ("peer" or "simstate") and the number of worlds. The
rate is by the CPU's time of all threads, so that a busy machine and threads that
nobody asked for change no comparison.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

SECONDS = 1.0


def cpu_rate(call: Callable[[], object], work: int, seconds: float = SECONDS) -> float:
    """Work per CPU second of a call that does `work`, after one to warm up."""
    call()
    calls = 0
    begun = time.process_time()
    while (spent := time.process_time() - begun) < seconds or calls < 3:
        call()
        calls += 1
    return work * calls / spent


def report(peer: str, sides: dict[str, Callable[[int], float]]) -> None:
    """Run the side that the command line asks for and print its rate and version."""
    side, worlds = sys.argv[1], int(sys.argv[2])
    package = peer if side == "peer" else "simstate"
    rate = sides[side](worlds)
    print(json.dumps({"rate": rate, "version": version(package)}))


def one_thread() -> object:
    """Our engine on one thread."""
    from simstate import NativeCfg

    return NativeCfg(num_threads=1)
