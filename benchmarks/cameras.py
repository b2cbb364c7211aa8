"""Cameras on the CPU: on one thread, on all, and MuJoCo's own renderer by OSMesa.

python benchmarks/cameras.py
"""

from __future__ import annotations

import os
from ctypes.util import find_library

# Before MuJoCo is loaded, which looks there.
os.environ["MUJOCO_GL"] = "osmesa" if find_library("OSMesa") else ""

import mujoco
from rich.console import Console
from rich.table import Table

from simstate import CameraCfg, EntityCfg, SceneCfg, Simulation
from simstate.engine.threads import available_cpus
from simstate.sensors import ray_tracer
from timing import interleaved

WORLDS, WIDTH, HEIGHT = 64, 64, 48
HAS_OSMESA = os.environ["MUJOCO_GL"] == "osmesa"


def main() -> None:
    eye = CameraCfg(
        pos=(1.5, 0.4, 0.8), look_at=(0.0, 0.0, 0.3), width=WIDTH, height=HEIGHT
    )
    robot = EntityCfg(model="quadruped")
    sim = Simulation(SceneCfg(entities={"robot": robot}, cameras={"eye": eye}), WORLDS)
    camera = int(sim.model.camera("eye").id)
    calls = {}
    for threads in sorted({1, available_cpus()}):
        ray_tracer.available_cpus = lambda threads=threads: threads
        name = f"simstate, {threads} thread{'s' * (threads > 1)}"
        calls[name] = ray_tracer.Renderer(sim, camera, (WIDTH, HEIGHT)).render
    if HAS_OSMESA:
        calls["mujoco.Renderer, OSMesa, one thread"] = plain(sim)
    timing = interleaved(calls, 15)
    table = Table(title=f"{WORLDS} quadrupeds, {WIDTH} × {HEIGHT}: colour and depth")
    for header in ("what", "frames/s", "Mpixel/s", "spread"):
        table.add_column(header)
    for name, each in timing.items():
        rate = WORLDS / each.median
        pixels = rate * WIDTH * HEIGHT / 1e6
        table.add_row(name, f"{rate:,.0f}", f"{pixels:.2f}", each.spread_text)
    out = Console(width=120)
    out.print(table)
    if not HAS_OSMESA:
        out.print("mujoco.Renderer: not measured, there is no OSMesa on this machine.")


def plain(sim: Simulation):
    """What one writes without a library: world after world, colour, then depth."""
    renderer = mujoco.Renderer(sim.model, HEIGHT, WIDTH)
    data = mujoco.MjData(sim.model)

    def call() -> None:
        for row in sim.data.qpos.numpy():
            data.qpos[:] = row
            mujoco.mj_kinematics(sim.model, data)
            mujoco.mj_camlight(sim.model, data)
            renderer.update_scene(data, "eye")
            renderer.render()
            renderer.enable_depth_rendering()
            renderer.render()
            renderer.disable_depth_rendering()

    return call


if __name__ == "__main__":
    main()
