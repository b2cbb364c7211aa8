"""Derivatives of a step against mjd_transitionFD: CPU time, on equal threads.

Run it by `python benchmarks/derivatives.py`. Both give A and B of every world by
centred differences of the same width. simstate also reports where constraints switch
and, in the second row of each robot, estimates errors. The row on threads needs two
free CPUs.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import mujoco
import numpy as np
from rich.console import Console
from rich.table import Table

from simstate import EntityCfg, SceneCfg, Simulation, study
from simstate.engine import NativeCfg
from timing import interleaved

WORLDS, REPEATS, WIDTH = 64, 15, 1e-6
ROBOTS = ("cartpole", "arm", "quadruped", "humanoid")
FULL = mujoco.mjtState.mjSTATE_INTEGRATION


def worlds_of(robot: str, threads: int) -> Simulation:
    """Worlds that differ, after half a second of motion, on the ground if there is one.

    An implicit integrator, since mjd_transitionFD has none of Runge-Kutta's.
    """
    entities = {"robot": EntityCfg(model=robot)}
    scene = SceneCfg(entities=entities, timestep=0.004, ground=None)
    sim = Simulation(scene, WORLDS, engine=NativeCfg(num_threads=threads))
    draw = np.random.default_rng(0)
    sim.data.ctrl += 0.05 * sim.data.ctrl.new_tensor(
        draw.normal(size=tuple(sim.data.ctrl.shape))
    )
    sim.step(125)
    return sim


class Peer:
    """A and B of all worlds by mjd_transitionFD, on some threads."""

    def __init__(self, sim: Simulation, threads: int) -> None:
        self.model, self.rows = sim.model, sim.state.numpy().copy()
        self.datas = [mujoco.MjData(sim.model) for _ in range(threads)]
        size, nu = 2 * sim.model.nv + sim.model.na, sim.model.nu
        count = sim.num_envs
        self.a, self.b = np.zeros((count, size, size)), np.zeros((count, size, nu))
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def _run(self, thread: int) -> None:
        data, step = self.datas[thread], len(self.datas)
        for k in range(thread, len(self.rows), step):
            mujoco.mj_setState(self.model, data, self.rows[k], FULL)
            mujoco.mjd_transitionFD(
                self.model, data, WIDTH, True, self.a[k], self.b[k], None, None
            )

    def __call__(self) -> None:  # noqa: D102
        if self.pool is None:
            self._run(0)
        else:
            list(self.pool.map(self._run, range(len(self.datas))))


def against_mujoco(table: Table, results: dict[str, float]) -> None:
    """One thread: without and with error estimates."""
    for robot in ROBOTS:
        sim = worlds_of(robot, 1)
        peer = Peer(sim, 1)
        peer()
        found = study.derivatives(sim, step=WIDTH, error=False)
        apart = np.abs(found.A.numpy() - peer.a).max() / np.abs(peer.a).max()
        assert apart < 1e-8, f"not the same derivatives: {apart:.1e}"

        def plain(sim: Simulation = sim) -> study.Derivatives:
            return study.derivatives(sim, step=WIDTH, error=False)

        def estimated(sim: Simulation = sim) -> object:
            return study.derivatives(sim, step=WIDTH).error

        calls = {"plain": plain, "estimated": estimated, "peer": peer}
        times = interleaved(calls, REPEATS, clock=time.process_time)
        for name, text in (("plain", "A, B"), ("estimated", "A, B, errors")):
            one, other = times[name].per(WORLDS), times["peer"].per(WORLDS)
            results[f"derivatives_{robot}_{name}"] = one.median / other.median
            table.add_row(
                f"{text} of {robot}, each of {WORLDS} worlds",
                f"{1e6 * one.median:.0f} µs (least {1e6 * one.least:.0f})",
                f"{1e6 * other.median:.0f} µs (mjd_transitionFD; "
                f"{1e6 * other.least:.0f})",
                f"{one.median / other.median:.2f} "
                f"(least {one.least / other.least:.2f})",
                one.spread_text,
            )


def one_world(table: Table, results: dict[str, float]) -> None:
    """Include the cost of the call, which a batch of worlds shares."""
    scene = SceneCfg(entities={"robot": EntityCfg(model="quadruped")}, ground=None)
    sim = Simulation(scene, 1)
    sim.step(125)
    peer = Peer(sim, 1)
    calls = {"ours": lambda: study.derivatives(sim, error=False), "peer": peer}
    times = interleaved(calls, 20 * REPEATS, clock=time.process_time)
    one, other = times["ours"], times["peer"]
    results["derivatives_one_world"] = one.median / other.median
    table.add_row(
        "A, B of quadruped, a single world",
        f"{1e6 * one.median:.0f} µs (least {1e6 * one.least:.0f})",
        f"{1e6 * other.median:.0f} µs (mjd_transitionFD; {1e6 * other.least:.0f})",
        f"{one.median / other.median:.2f} (least {one.least / other.least:.2f})",
        one.spread_text,
    )


def on_threads(table: Table, results: dict[str, float]) -> None:
    """Elapsed time on two threads, relative to one."""
    sims = {threads: worlds_of("humanoid", threads) for threads in (1, 2)}
    peers = {threads: Peer(sims[1], threads) for threads in (1, 2)}
    calls = {}
    for threads in (1, 2):
        sim = sims[threads]
        calls[f"ours {threads}"] = lambda sim=sim: study.derivatives(sim, error=False)
        calls[f"peer {threads}"] = peers[threads]
    times = interleaved(calls, REPEATS)
    ours = times["ours 2"].median / times["ours 1"].median
    peer = times["peer 2"].median / times["peer 1"].median
    results["derivatives_two_threads"] = ours
    table.add_row(
        f"elapsed time on 2 threads, of 1: A, B of {WORLDS} humanoids",
        f"{ours:.2f}",
        f"{peer:.2f} (mjd_transitionFD in a pool)",
        f"{times['ours 2'].median / times['peer 2'].median:.2f}",
        times["ours 2"].spread_text,
    )


if __name__ == "__main__":
    printed = Table("what", "simstate", "other", "ratio", "spread")
    figures: dict[str, float] = {}
    against_mujoco(printed, figures)
    one_world(printed, figures)
    on_threads(printed, figures)
    Console(width=150, markup=False).print(printed)
