"""Speed and memory over the number of worlds, 1 to 8192."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rich.table import Table

from entity_data import KEYFRAMES, SUBSTEPS, make
from timing import interleaved, rest

WORLDS = (1, 8, 64, 512, 2048, 8192)
WORK = 16_384
"""World-steps of one measurement, about."""
FEW, MANY = 256, 8192


def throughput(table: Table, results: dict[str, float]) -> None:
    """World-steps per second for each number of worlds, and time against one world."""
    for model in KEYFRAMES:
        sims = {count: make(model, count) for count in WORLDS}
        starts = {count: sim.state.clone() for count, sim in sims.items()}

        def advance(count: int, sims: dict = sims, starts: dict = starts) -> None:
            for _ in range(max(1, WORK // (count * SUBSTEPS))):
                sims[count].state.copy_(starts[count])
                sims[count].step(SUBSTEPS)

        calls = {str(n): lambda n=n, go=advance: go(n) for n in WORLDS}
        timing = interleaved(calls, 7, dict.fromkeys(calls, rest))
        first = 0.0
        for count in WORLDS:
            work = max(1, WORK // (count * SUBSTEPS)) * count * SUBSTEPS
            rate = work / timing[str(count)].median
            first = first or rate
            results[f"{model} {count}: world-steps/s"] = rate
            table.add_row(
                f"{model}, {count} world{'s' * (count > 1)}",
                f"{rate / 1e3:,.1f} k world-steps/s",
                "",
                f"{rate / first:.2f} × one world",
                timing[str(count)].spread_text,
            )


def memory(table: Table, results: dict[str, float]) -> None:
    """What a world more takes of memory, each in a process of its own."""
    for model in KEYFRAMES:
        per_world = {
            what: (_resident(what, model, MANY) - _resident(what, model, FEW))
            / (MANY - FEW)
            / 1024
            for what in ("simstate", "batch")
        }
        ours, other = per_world["simstate"], per_world["batch"]
        results[f"{model}: memory per world [KiB]"] = ours
        table.add_row(
            f"{model}, memory per world, {FEW} to {MANY} worlds",
            f"{ours:.1f} KiB",
            f"{other:.1f} KiB",
            f"{ours / other:.2f} × mujoco.batch",
            "",
        )


def _resident(what: str, model: str, num_envs: int) -> int:
    """Resident memory of a process that has stepped so many worlds [bytes]."""
    code = f"import growth; growth.print_resident({what!r}, {model!r}, {num_envs})"
    out = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return int(out)


def print_resident(what: str, model: str, num_envs: int) -> None:
    """Step worlds after reading the nine quantities, and print what that takes."""
    import gc

    import mujoco

    from entity_data import NINE, bare

    if what == "simstate":
        sim = make(model, num_envs)
        for name in NINE:
            sim.scene["robot"].data.read(name)
    else:
        other = bare(make(model, 1), num_envs)
        other.step(nstep=SUBSTEPS, stage=mujoco.mjtStage.mjSTAGE_VEL.value)
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    print(pages * 4096)
