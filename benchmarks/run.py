"""All benchmarks in one run: a table of ratios, and JSON with --json FILE.

--only names parts, such as `--only growth baselines`; the others are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import torch
from rich.console import Console
from rich.table import Table

import baselines
import dynamics
import entity_data
import env_step
import free_flight
import futures
import growth
import integrators
import parameters
import recording
import unified_state

HEADERS = ("what", "simstate", "other", "ratio", "spread")
Part = Callable[[Table, dict[str, float]], None]
PARTS: dict[str, tuple[Part, ...]] = {
    "baselines": (baselines.one_process, baselines.on_warp),
    "growth": (growth.throughput, growth.memory),
    "entity_data": (entity_data.importing, entity_data.reading, entity_data.stepping),
    "dynamics": (dynamics.contacts, dynamics.matrices, dynamics.scans),
    "unified_state": (unified_state.converting,),
    "parameters": (parameters.following,),
    "env_step": (env_step.stepping,),
    "futures": (futures.branching, futures.against_rollout),
    "recording": (recording.stepping, recording.again),
    "free_flight": (free_flight.flying, free_flight.one_aircraft),
    "integrators": (integrators.fixed_steps, integrators.adaptive_steps),
}
"""Everything that is measured, by module."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write rows and figures here")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    args = parser.parse_args()
    before = machine()
    begun = time.monotonic()
    table = Table(title=f"{describe(before)}; medians of interleaved repeats")
    for header in HEADERS:
        table.add_column(header)
    figures: dict[str, float] = {}
    for name in args.only:
        for part in PARTS[name]:
            part(table, figures)
        table.add_section()
    before["seconds"] = round(time.monotonic() - begun)
    Console(width=150, markup=False).print(table)
    if args.json:
        rows = list(zip(*(column.cells for column in table.columns), strict=True))
        content = {"machine": before, "rows": rows, "figures": figures}
        args.json.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def machine() -> dict[str, object]:
    """What the figures depend on: processor, versions, and what else was running."""
    return {
        "processor": _processor(),
        "cpus": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "mujoco": mujoco.__version__,
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def describe(facts: dict[str, object]) -> str:
    """The machine in one line."""
    return (
        f"{facts['cpus']} CPUs ({facts['processor']}), load {facts['load']} before the "
        f"run, MuJoCo {facts['mujoco']}, torch {facts['torch']}"
    )


def _processor() -> str:
    """The processor's name; Linux says it in a file."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
