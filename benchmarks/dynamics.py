"""Contact sensors, Jacobians, the mass matrix and height scans: what they cost."""

from __future__ import annotations

import numpy as np
from mujoco import batch
from rich.table import Table

from simstate import (
    ContactCfg,
    EntityCfg,
    InitialStateCfg,
    RayCastCfg,
    SceneCfg,
    Simulation,
)
from timing import Timing, interleaved, rest

NUM_ENVS = 1024
SUBSTEPS = 4
FEET = ["FL_calf", "FR_calf", "RL_calf", "RR_calf"]


def _quadrupeds(**scene: object) -> Simulation:
    robot = EntityCfg(model="quadruped", init_state=InitialStateCfg(keyframe="home"))
    sim = Simulation(
        SceneCfg(entities={"robot": robot}, ground=True, timestep=0.005, **scene),  # pyright: ignore
        num_envs=NUM_ENVS,
    )
    sim.step(40)
    return sim


def contacts(table: Table, results: dict[str, float]) -> None:
    """sim.step(4) with a feet contact sensor against the same without."""
    sims = {"without": _quadrupeds()}
    for name, every_step in (("every step", True), ("last step", False)):
        cfg = ContactCfg(of="robot/.*_calf", every_step=every_step)
        sims[name] = _quadrupeds(contacts={"feet": cfg})
    starts = {name: sim.state.clone() for name, sim in sims.items()}

    def step(name: str) -> None:
        sim = sims[name]
        sim.step(SUBSTEPS)
        if name != "without":
            _ = sim.contacts["feet"].force_w

    timing = interleaved(
        {name: (lambda name=name: step(name)) for name in sims},
        15,
        {name: (lambda n=name: sims[n].state.copy_(starts[n])) for name in sims},
    )
    for name in ("every step", "last step"):
        ratio = timing[name].median / timing["without"].median
        results[f"feet contact sensor, {name}: step(4) with / without"] = ratio
        _row(table, f"feet contact sensor, {name}, sim.step(4) and a read",
             timing[name], timing["without"], f"{ratio:.3f} × without")  # fmt: skip


def matrices(table: Table, results: dict[str, float]) -> None:
    """The Jacobian of four feet and the mass matrix, after a step."""
    sim = _quadrupeds()
    robot = sim.scene["robot"]
    _ = sim.dynamics.mass_matrix

    def settle() -> None:
        sim.step()
        rest()

    calls = {
        "Jacobian of four feet": lambda: robot.jacobian(FEET),
        "mass matrix": lambda: sim.dynamics.mass_matrix,
    }
    timing = interleaved(calls, 25, dict.fromkeys(calls, settle))
    for name, found in timing.items():
        results[f"{name} [ms]"] = found.median * 1e3
        table.add_row(
            f"{name}, quadruped × {NUM_ENVS}", f"{found.median * 1e3:.2f} ms", "", "",
            found.spread_text,
        )  # fmt: skip


def scans(table: Table, results: dict[str, float]) -> None:
    """A height scan of 187 rays against bare Batch.ray with the same filter."""
    cfg = RayCastCfg(body="robot/trunk", offset=(0.0, 0.0, 1.0), alignment="yaw")
    sim = _quadrupeds(rays={"scan": cfg})
    scan = sim.rays["scan"]
    other = batch.Batch(sim.model, NUM_ENVS)
    other.state[:] = sim.state.numpy()
    groups = other.expand("geom_group")
    groups[:] = 1
    groups[:, sim.model.geom("ground").id] = 0
    only = np.array([1, 0, 0, 0, 0, 0], dtype=np.uint8)
    origins, directions = scan.origin_w.numpy(), scan.direction_w.numpy()
    calls = {
        "ours": lambda: scan.height,
        "bare": lambda: other.ray(origins, directions, geomgroup=only),
    }

    def move() -> None:
        sim.data.qpos[:, 0] += 1e-6
        _ = sim.data.xpos
        rest()

    timing = interleaved(calls, 15, {"ours": move, "bare": rest})
    ratio = timing["ours"].median / timing["bare"].median
    results["height scan of 187 rays: ours / bare Batch.ray"] = ratio
    _row(table, f"height scan, 187 rays × {NUM_ENVS}", timing["ours"], timing["bare"],
         f"{ratio:.3f} × bare Batch.ray")  # fmt: skip


def _row(table: Table, what: str, ours: Timing, other: Timing, ratio: str) -> None:
    table.add_row(
        what, f"{ours.median * 1e3:.1f} ms", f"{other.median * 1e3:.1f} ms", ratio,
        ours.spread_text,
    )  # fmt: skip
