"""Cameras on the CPU: colours alone, and with depth and segmentation.

python benchmarks/cameras.py
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from ctypes.util import find_library
from statistics import median

# Before MuJoCo is loaded, which looks there.
os.environ["MUJOCO_GL"] = "osmesa" if find_library("OSMesa") else ""

import mujoco
import torch
from rich.console import Console
from rich.table import Table

from simstate import CameraCfg, EntityCfg, SceneCfg, Simulation
from simstate.sensors import ray_tracer

WORLDS, WIDTH, HEIGHT, ROUNDS = 64, 64, 48, 15
HAS_OSMESA = os.environ["MUJOCO_GL"] == "osmesa"
ALL = ("rgb", "depth", "segmentation")


def main() -> None:
    torch.set_num_threads(1)
    ray_tracer.available_cpus = lambda: 1
    few = torch.arange(0, WORLDS, 16)
    calls = {
        "rgb (target 40)": looked(("rgb",)),
        "rgb, depth, segmentation (target 60)": looked(ALL),
        "depth, segmentation": looked(ALL[1:]),
        "rgb, each world its field of view": looked(("rgb",), fovy=True),
        f"rgb, after {len(few)} worlds were reset": looked(("rgb",), few),
    }
    if HAS_OSMESA:
        calls["mujoco.Renderer, OSMesa: rgb"] = plain()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.process_time()
            call()
            times[name].append(1e3 * (time.process_time() - start))
    table = Table(title=f"{WORLDS} quadrupeds, {WIDTH} × {HEIGHT}, one thread")
    for header in ("images", "CPU ms per frame", "least", "Mpixel/s"):
        table.add_column(header)
    for name, each in times.items():
        rate = WORLDS * WIDTH * HEIGHT / median(each) / 1e3
        table.add_row(name, f"{median(each):.1f}", f"{min(each):.1f}", f"{rate:.1f}")
    out = Console(width=120)
    out.print(table)
    if not HAS_OSMESA:
        out.print("mujoco.Renderer: not measured, there is no OSMesa on this machine.")


def worlds() -> Simulation:
    eye = CameraCfg(
        pos=(1.5, 0.4, 0.8), look_at=(0.0, 0.0, 0.3), width=WIDTH, height=HEIGHT
    )
    robot = EntityCfg(model="quadruped")
    return Simulation(SceneCfg(entities={"robot": robot}, cameras={"eye": eye}), WORLDS)


def looked(
    images: tuple[str, ...], moved: torch.Tensor | None = None, fovy: bool = False
) -> Callable[[], None]:
    """Move some worlds, None: all, and read images of all."""
    sim = worlds()
    if fovy:
        sim.expand("cam_fovy")[:] = torch.linspace(40.0, 60.0, WORLDS)[:, None]
    rows = torch.arange(WORLDS) if moved is None else moved

    def call() -> None:
        sim.data.qpos[rows, 0] += 1e-4
        for image in images:
            getattr(sim.cameras["eye"], image)

    call()
    return call


def plain() -> Callable[[], None]:
    """What one writes without a library: world after world."""
    sim = worlds()
    renderer = mujoco.Renderer(sim.model, HEIGHT, WIDTH)
    data = mujoco.MjData(sim.model)

    def call() -> None:
        for row in sim.data.qpos.numpy():
            data.qpos[:] = row
            mujoco.mj_kinematics(sim.model, data)
            mujoco.mj_camlight(sim.model, data)
            renderer.update_scene(data, "eye")
            renderer.render()

    return call


if __name__ == "__main__":
    main()
