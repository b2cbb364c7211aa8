"""Futures of a quadruped against mujoco.rollout: CPU time, on equal threads.

Run it by `python benchmarks/futures.py`, or as a part of `run.py`. Both step 512 rows
by 30 × 4 time steps under the same controls and give the same joint positions. The
futures' time includes branching, the reads of a quantity and the last states.
"""

from __future__ import annotations

import time

import mujoco
import numpy as np
import torch
from mujoco import rollout
from rich.console import Console
from rich.table import Table

from simstate import EntityCfg, SceneCfg, Simulation, study
from simstate.engine import NativeCfg
from simstate.study import scratch_worlds
from timing import interleaved

FUTURES, SAMPLES, HELD, REPEATS = 512, 30, 4, 15


def against_rollout(table: Table, results: dict[str, float]) -> None:
    """Controls that are held between samples, and controls of every time step."""
    for held in (True, False):
        _compare(table, results, held)


def _compare(table: Table, results: dict[str, float], held: bool) -> None:
    scene = SceneCfg(entities={"robot": EntityCfg(model="quadruped")}, timestep=0.004)
    sim = Simulation(scene, 1, engine=NativeCfg(num_threads=1))
    sim.step(50)
    model, nstep = sim.model, SAMPLES * HELD
    generator = torch.Generator().manual_seed(0)
    shape = (1, FUTURES, SAMPLES if held else nstep, model.nu)
    noise = torch.randn(shape, generator=generator, dtype=torch.float64)
    controls = sim.data.ctrl + 0.2 * noise
    if held:
        controls = controls.repeat_interleave(HELD, dim=2)
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    data = mujoco.MjData(model)
    whole = mujoco.mjtState.mjSTATE_INTEGRATION
    mujoco.mj_setState(model, data, sim.state[0].numpy(), whole)
    start = np.zeros(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, start, spec)
    starts = np.repeat(start[None], FUTURES, axis=0)
    warm = np.repeat(data.qacc_warmstart[None], FUTURES, axis=0)
    inputs = controls[0].numpy()
    datas = [mujoco.MjData(model)]

    def peer() -> np.ndarray:
        return rollout.rollout(
            model, datas, starts, inputs, initial_warmstart=warm, nstep=nstep
        )[0]

    def ours() -> study.Futures:
        read = {"place": "robot.root_link_pos_w"}
        return study.futures(sim, controls, read=read, every=HELD)

    places = torch.from_numpy(peer()[:, HELD - 1 :: HELD, 1:4])
    assert torch.equal(ours().place[0], places), "not the same motion"
    found = interleaved({"ours": ours, "peer": peer}, REPEATS, clock=time.process_time)
    one, other = found["ours"], found["peer"]
    name = "held" if held else "varying"
    results[f"futures_{name}"] = one.median / other.median
    table.add_row(
        f"{FUTURES} futures × {SAMPLES} × {HELD} steps, quadruped, controls {name}",
        f"{1e3 * one.median:.0f} ms (least {1e3 * one.least:.0f})",
        f"{1e3 * other.median:.0f} ms (mujoco.rollout; {1e3 * other.least:.0f})",
        f"{one.median / other.median:.2f} (least {one.least / other.least:.2f})",
        one.spread_text,
    )


def branching(table: Table, results: dict[str, float]) -> None:
    """One world into 512 rows, all slots."""
    scene = SceneCfg(entities={"robot": EntityCfg(model="quadruped")}, timestep=0.004)
    sim = Simulation(scene, 1)
    sim.step(20)
    controls = torch.zeros(1, FUTURES, 1, sim.model.nu, dtype=torch.float64)
    study.futures(sim, controls)
    host = scratch_worlds.scratch_of(sim, FUTURES, None, controls[0, 0])
    worlds = torch.zeros(FUTURES, dtype=torch.int64)

    def branch() -> None:
        scratch_worlds.branch(host, scratch_worlds.copy_rows(sim), worlds, sim)

    found = interleaved({"ours": branch}, 200, clock=time.process_time)["ours"]
    results["futures_branch_ms"] = 1e3 * found.median
    table.add_row(
        f"one world into {FUTURES} rows, quadruped",
        f"{1e3 * found.median:.2f} ms (least {1e3 * found.least:.2f})",
        "0.3 ms (target)",
        f"{found.median / 0.3e-3:.2f}",
        found.spread_text,
    )


if __name__ == "__main__":
    printed = Table("what", "simstate", "other", "ratio", "spread")
    figures: dict[str, float] = {}
    branching(printed, figures)
    against_rollout(printed, figures)
    Console(width=150, markup=False).print(printed)
