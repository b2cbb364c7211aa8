"""The compiled core against MuJoCo's own batch and steps, and scipy; equal threads.

`python benchmarks/core.py [--threads N] [--only part …]`: interleaved medians. On one
thread it is the CPU's time, which a busy machine disturbs least, else wall time.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
from mujoco import batch
from rich.console import Console
from rich.table import Table
from scipy.integrate import solve_ivp

from integrators import INERTIA, SPIN, free_body, satellite
from simstate import integrate
from simstate.engine import core
from simstate.engine.fields import EVALUATED_FIELDS
from simstate.scene import models
from timing import Timing, interleaved

VELOCITY = mujoco.mjtStage.mjSTAGE_VEL.value
GYMNASIUM = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
ROBOTS = {
    "quadruped": Path(models.path("quadruped")),
    "humanoid": Path(models.path("humanoid")),
    "Gymnasium's half_cheetah": GYMNASIUM / "half_cheetah.xml",
    "Gymnasium's ant (RK4)": GYMNASIUM / "ant.xml",
}
FIELDS = (
    *EVALUATED_FIELDS,
    *("xpos", "xquat", "cvel", "subtree_com", "site_xpos", "geom_xpos"),
)
"""What is bound in a simulation whose nine quantities are read."""
WORLDS = (1, 16, 64, 1024)
MU, RADIUS = 3.986004418e14, 6.9e6


def measure(
    calls: dict[str, Callable[[], object]], repeats: int, threads: int
) -> dict[str, Timing]:
    """Interleaved medians, by the CPU's clock on one thread."""
    clock = time.process_time if threads == 1 else time.perf_counter
    return interleaved(calls, repeats, clock=clock)


def fresh_steps(table: Table, threads: int) -> None:
    """Step, then positions and velocities of the new state, from the same states."""
    for name, path in ROBOTS.items():
        model = mujoco.MjModel.from_xml_path(str(path))
        for num in WORLDS:
            for n in (1, 4):
                times = _fresh(model, num, n, threads)
                label = f"{name}, {num} worlds, {n} substeps"
                _row(table, label, times, num * n)


def _fresh(model: mujoco.MjModel, num: int, n: int, threads: int) -> dict[str, Timing]:
    ours = core.CoreBatch(_as_the_engine_runs_it(model), num, threads)
    theirs = batch.Batch(model, num, threads)
    start = _moving(model, num)
    for each in (ours, theirs):
        each.state[:] = start
        for field in FIELDS:
            each.bind(field)
    theirs.step(None, 100, VELOCITY)
    start = theirs.state.copy()
    rounds = max(1, 256 // (num * n))

    def run(each: core.CoreBatch | batch.Batch) -> Callable[[], None]:
        stage = (VELOCITY,) if isinstance(each, batch.Batch) else ()

        def call() -> None:
            each.state[:] = start
            for _ in range(rounds):
                each.step(None, n, *stage)

        return call

    times = measure({"core": run(ours), "other": run(theirs)}, 25, threads)
    return {name: time.per(rounds) for name, time in times.items()}


def _as_the_engine_runs_it(model: mujoco.MjModel) -> mujoco.MjModel:
    from simstate.engine import native

    return native._neutral_settings(model)


def _moving(model: mujoco.MjModel, num: int) -> np.ndarray:
    """States near the model's first keyframe or start; (num, nstate)."""
    rng = np.random.default_rng(0)
    spec = mujoco.mjtState.mjSTATE_INTEGRATION.value
    rows = np.zeros((num, mujoco.mj_stateSize(model, spec)))
    data = mujoco.MjData(model)
    for row in rows:
        mujoco.mj_resetData(model, data)
        if model.nkey:
            mujoco.mj_resetDataKeyframe(model, data, 0)
        data.qvel[:] += 0.3 * rng.standard_normal(model.nv)
        mujoco.mj_getState(model, data, row, spec)
    return rows


def one_step(table: Table, threads: int) -> None:
    """What a fresh step of one world costs over a bare mj_step."""
    del threads
    for name, path in ROBOTS.items():
        model = mujoco.MjModel.from_xml_path(str(path))
        worlds = core.CoreBatch(_as_the_engine_runs_it(model), 1, 1)
        data = mujoco.MjData(model)
        start = _moving(model, 1)
        spec = mujoco.mjtState.mjSTATE_INTEGRATION.value
        for field in FIELDS:
            worlds.bind(field)

        def plain(model=model, data=data, start=start, spec=spec) -> None:
            mujoco.mj_setState(model, data, start[0], spec)
            for _ in range(100):
                mujoco.mj_step(model, data)

        def ours(worlds=worlds, start=start) -> None:
            worlds.state[:] = start
            for _ in range(100):
                worlds.step()

        times = measure({"core": ours, "other": plain}, 25, 1)
        label = f"{name}, one world: CoreBatch.step() and a mj_step"
        _row(table, label, {k: v.per(100) for k, v in times.items()}, 1)


def runge_kutta(table: Table, threads: int) -> None:
    """RK4 with full order in attitude against mj_step's own RK4."""
    for name, make in (("free body", free_body), ("satellite", satellite)):
        model = make()
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        for num in (1, 64, 1024):
            ours = core.CoreBatch(model, num, threads)
            theirs = batch.Batch(model, num, threads)
            start = _moving(model, num)
            n = max(4, 2048 // num)
            scheme = core.Integrator(ours, integrate.RK4().tableau, "lie")

            def lie(ours=ours, start=start, scheme=scheme, n=n, h=model.opt.timestep):
                ours.state[:] = start
                scheme.step(n, h)

            def own(theirs=theirs, start=start, n=n):
                theirs.state[:] = start
                theirs.step(None, n)

            times = measure({"core": lie, "other": own}, 25, threads)
            _row(table, f"RK4 lie, {name}, {num} worlds, {n} steps", times, num * n)


def dop853(table: Table, threads: int) -> None:
    """Ten seconds of a tumbling body at 1e-10 in one world, and by scipy."""
    del threads
    worlds = core.CoreBatch(free_body(), 1, 1)
    blocks = dict.fromkeys(("qpos", "qvel", "act"), 1e-10)
    scheme = core.AdaptiveIntegrator(
        worlds, integrate.DOP853().tableau, atol=blocks, rtol=blocks
    )

    def ours() -> None:
        worlds.bind("qpos")[0] = [0, 0, 0, 1, 0, 0, 0]
        worlds.bind("qvel")[0] = [0, 0, 0, *SPIN]
        scheme.step_size[:] = 0
        scheme.advance(10.0)

    def rate(_: float, y: np.ndarray) -> tuple[float, ...]:
        a, b, c, d, p, q, r = y
        return (
            *(0.5 * (-b * p - c * q - d * r), 0.5 * (a * p + c * r - d * q)),
            *(0.5 * (a * q - b * r + d * p), 0.5 * (a * r + b * q - c * p)),
            (INERTIA[1] - INERTIA[2]) * q * r / INERTIA[0],
            (INERTIA[2] - INERTIA[0]) * r * p / INERTIA[1],
            (INERTIA[0] - INERTIA[1]) * p * q / INERTIA[2],
        )

    def theirs() -> None:
        start = [1, 0, 0, 0, *SPIN]
        solve_ivp(rate, (0, 10), start, "DOP853", rtol=1e-10, atol=1e-10)

    times = measure({"core": ours, "other": theirs}, 15, 1)
    _row(table, "DOP853 at 1e-10, one body, 10 s; other: scipy", times, 1)


def orbit(table: Table, threads: int) -> None:
    """RK4 steps of a craft in a moving frame, and of the same craft at rest."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep="1" gravity="0 0 0"/><worldbody><body><freejoint/>'
        '<inertial pos="0 0 0" mass="100" diaginertia="10 20 30"/></body></worldbody>'
        "</mujoco>"
    )
    for num in (1, 64, 1024):
        n = max(4, 2048 // num)
        orbiting = core.CoreBatch(model, num, threads)
        resting = core.CoreBatch(model, num, threads)
        start = _moving(model, num)
        frame = np.tile([RADIUS, 0, 0, 0, np.sqrt(MU / RADIUS), 0.0], (num, 1))
        scheme = core.Integrator(
            *(orbiting, integrate.RK4().tableau),
            loads=[_gravity()],
            processes=[core.CoreProcess("frame", frame)],
        )
        free = core.Integrator(resting, integrate.RK4().tableau)

        def fly(orbiting=orbiting, start=start, scheme=scheme, n=n) -> None:
            orbiting.state[:] = start
            scheme.step(n, 1.0)

        def rest(resting=resting, start=start, free=free, n=n) -> None:
            resting.state[:] = start
            free.step(n, 1.0)

        times = measure({"core": fly, "other": rest}, 25, threads)
        label = f"RK4 lie in a moving frame, {num} worlds; other: no loads, core"
        _row(table, label, times, num * n)


def _gravity() -> core.CoreLoad:
    """The gravity of a point mass at the origin, in the first moving frame."""
    numbers = np.array([[0.0, MU, 0.0, 0.0, 0.0]])
    bodies = np.array([1], np.int32)
    return core.CoreLoad(core.LoadKind.POINT_GRAVITY, bodies, numbers, frame=0)


def _row(table: Table, label: str, times: dict[str, Timing], work: int) -> None:
    ours, other = times["core"], times["other"]
    table.add_row(
        label,
        f"{ours.median / work * 1e6:.2f}",
        f"{other.median / work * 1e6:.2f}",
        f"{other.median / ours.median:.2f}",
        ours.spread_text,
    )


PARTS = {
    "fresh": fresh_steps,
    "one": one_step,
    "rk4": runge_kutta,
    "dop853": dop853,
    "orbit": orbit,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    args = parser.parse_args()
    table = Table(
        title=f"µs a world and step, {args.threads} threads each, load "
        f"{os.getloadavg()[0]:.1f} before, MuJoCo {mujoco.__version__}"
    )
    for header in ("what", "core", "other", "other / core", "spread"):
        table.add_column(header)
    for name in args.only:
        PARTS[name](table, args.threads)
        table.add_section()
    Console(width=130, markup=False).print(table)


if __name__ == "__main__":
    main()
