"""CPU time of pictures and films: `python benchmarks/pictures.py [GO2.xml]`.

Prints CPU seconds of a frame of 640 × 480 by both renderers, with bare MuJoCo in the
same run, and of a film of four quadrupeds, with its encoder.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation
from simstate.cli import main as simstate
from simstate.view import opengl


def seconds_of(draw: Callable[[], object], repeats: int = 12) -> tuple[float, float]:
    """Median and minimum of the CPU time of a call [s]; the first is left out."""
    draw()
    times: list[float] = []
    for _ in range(repeats):
        start = time.process_time()
        draw()
        times.append(time.process_time() - start)
    return statistics.median(times), min(times)


def bare(sim: Simulation, context: opengl.Context) -> tuple[float, float]:
    """MuJoCo's own functions, with its default free camera and settings."""
    model = sim.model
    data = mujoco.MjData(model)
    data.qpos[:] = sim.data.qpos[0].numpy()
    mujoco.mj_forward(model, data)
    scene, option = mujoco.MjvScene(model, 10_000), mujoco.MjvOption()
    camera, area = mujoco.MjvCamera(), mujoco.MjrRect(0, 0, 640, 480)
    mujoco.mjv_defaultFreeCamera(model, camera)
    with context.current():
        drawing = mujoco.MjrContext(model, 150)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, drawing)
        pixels = np.empty((480, 640, 3), np.uint8)

        def draw() -> None:
            mujoco.mjv_updateScene(model, data, option, None, camera, 7, scene)
            mujoco.mjr_render(area, scene, drawing)
            mujoco.mjr_readPixels(pixels, None, area, drawing)

        found = seconds_of(draw)
        drawing.free()
    return found


def frames(name: str, sim: Simulation) -> None:
    """Print the CPU time of a frame by each renderer."""
    context = opengl.context()
    rows: list[tuple[str, tuple[float, float]]] = []
    if context is not None:
        rows.append((f"bare MuJoCo, {context.name}", bare(sim, context)))
        rows.append(("opengl", seconds_of(lambda: sim.render(renderer="opengl"))))
    rows.append(("software", seconds_of(lambda: sim.render(renderer="software"), 4)))
    for kind, (median, least) in rows:
        print(f"{name:10s} {kind:20s} {median:7.3f} s median {least:7.3f} s minimum")


def cpu_seconds() -> float:
    """CPU time of this process and of those that it waited for [s]."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--film-seconds", type=float, default=10.0)
    options = parser.parse_args()
    stand = InitialStateCfg(keyframe="home")
    robot = EntityCfg(model="quadruped", init_state=stand)
    frames("quadruped", Simulation(SceneCfg(entities={"robot": robot})))
    for path in options.models:
        entity = EntityCfg(model=path)
        scene = SceneCfg(entities={"robot": entity}, timestep=None, ground=None)
        frames(path.parent.name[-10:], Simulation(scene))
    with tempfile.TemporaryDirectory() as folder:
        start = cpu_seconds()
        simstate(
            ["run", "quadruped", "--envs", "4", "--noise", "1", "--no-check", "--film",
             f"{folder}/a.mp4", "--seconds", f"{options.film_seconds:g}"]
        )  # fmt: skip
        took = cpu_seconds() - start
    print(
        f"film of 4 quadrupeds, {options.film_seconds:g} s at 25 frames/s: {took:.1f} s"
    )


if __name__ == "__main__":
    main()
