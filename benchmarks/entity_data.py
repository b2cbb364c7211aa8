"""Speed of stepping and of reading quantities, as ratios within one run."""

from __future__ import annotations

import subprocess
import sys

import mujoco
import torch
from mujoco import batch
from rich.table import Table

from inside import engine_of
from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation
from simstate.engine import EngineCfg
from timing import interleaved

SUBSTEPS = 4
KEYFRAMES = {"quadruped": "home", "humanoid": "stand"}
NINE = (
    "root_link_lin_vel_b",
    "root_link_ang_vel_b",
    "projected_gravity_b",
    "joint_pos",
    "joint_vel",
    "body_link_pose_w",
    "body_link_vel_w",
    "site_pos_w",
    "geom_pos_w",
)
MJLAB_NINE_US = 14_940
"""The same nine reads by mjlab 1.6.0, measured elsewhere on 2 cores, microseconds."""


def make(model: str, num_envs: int, engine: EngineCfg = "native") -> Simulation:
    """Return the model on a ground, with different joint velocities in each world."""
    state = InitialStateCfg(keyframe=KEYFRAMES[model])
    scene = SceneCfg(entities={"robot": EntityCfg(model=model, init_state=state)})
    sim = Simulation(scene, num_envs, engine=engine)
    robot = sim.scene["robot"]
    vel = 0.3 * sim.rng.normal(slice(None), robot.data.joint_vel.shape[1])
    robot.write_joint_velocity_to_sim(vel)
    for name in NINE:
        robot.data.read(name)
    sim.step(SUBSTEPS)
    return sim


def bare(sim: Simulation, num_envs: int | None = None) -> batch.Batch:
    """mujoco.batch with the same model and bound fields; None: the same worlds."""
    other = batch.Batch(sim.model, sim.num_envs if num_envs is None else num_envs)
    for name in engine_of(sim).fields:
        if hasattr(mujoco.MjData, name):  # "plastic" since MuJoCo 4
            other.bind(name)
    return other


def stepping(table: Table, results: dict[str, float]) -> None:
    """sim.step(4) against batch.step(nstep=4, stage=mjSTAGE_VEL), from one state."""
    stage = mujoco.mjtStage.mjSTAGE_VEL.value
    for model in KEYFRAMES:
        per_step: list[float] = []
        for num_envs in (64, 1024, 4096):
            sim = make(model, num_envs)
            other = bare(sim)
            start = sim.state.clone()

            def ours(sim: Simulation = sim, start: torch.Tensor = start) -> None:
                sim.state.copy_(start)
                sim.step(SUBSTEPS)

            def theirs(other: batch.Batch = other, start: torch.Tensor = start) -> None:
                torch.from_numpy(other.state).copy_(start)
                other.step(nstep=SUBSTEPS, stage=stage)

            repeats = max(7, 20_000 // num_envs)
            timing = interleaved({"ours": ours, "bare": theirs}, repeats)
            ratio = timing["bare"].median / timing["ours"].median
            work = num_envs * SUBSTEPS
            per_step.append(timing["ours"].median / work)
            results[f"{model} {num_envs}: step, ours / bare"] = ratio
            table.add_row(
                f"{model}, {num_envs} worlds, 4 substeps",
                f"{work / timing['ours'].median / 1e3:,.1f} k world-steps/s",
                f"{work / timing['bare'].median / 1e3:,.1f} k world-steps/s",
                f"{ratio:.3f} × bare mujoco.batch",
                timing["ours"].spread_text,
            )
        growth = per_step[-1] / per_step[0]
        results[f"{model}: time per world-step, 4096 / 64"] = growth
        table.add_row(
            f"{model}, time per world-step",
            "",
            "",
            f"{growth:.3f}: 4096 / 64 worlds",
            "",
        )


def reading(table: Table, results: dict[str, float]) -> None:
    """The nine quantities after a step, and read again in the same state."""
    sim = make("humanoid", 1024)
    data = sim.scene["robot"].data

    def read() -> None:
        for name in NINE:
            getattr(data, name)

    prepare = {"fresh": lambda: sim.step(SUBSTEPS), "again": lambda: None}
    timing = interleaved({"fresh": read, "again": read}, 40, prepare)
    fresh, again = (
        timing["fresh"].median * 1e6,
        timing["again"].median * 1e6 / len(NINE),
    )
    results["nine reads after a step [us]"] = fresh
    results["one read again [us]"] = again
    table.add_row(
        "nine quantities after a step, humanoid, 1024 worlds",
        f"{fresh:,.0f} µs",
        f"{MJLAB_NINE_US:,} µs (mjlab 1.6.0, measured elsewhere)",
        "",
        timing["fresh"].spread_text,
    )
    table.add_row("one of them again in the same state", f"{again:.2f} µs", "", "", "")


def importing(table: Table, results: dict[str, float]) -> None:
    """`from simstate import Simulation` with the time for torch taken off."""
    code = (
        "import time, torch, sys; t = time.perf_counter(); "
        "from simstate import Simulation; "
        "print(time.perf_counter() - t, 'warp' in sys.modules)"
    )
    seconds: list[float] = []
    loaded = ""
    for _ in range(5):
        out = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        seconds.append(float(out[0]))
        loaded = out[1]
    best = sorted(seconds)[2]
    results["import without torch [s]"] = best
    table.add_row("import Simulation, without torch", f"{best:.2f} s", "", "", "")
    table.add_row("  … loads warp", loaded, "", "", "")
