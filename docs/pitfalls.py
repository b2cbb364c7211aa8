"""The pitfalls of docs/conventions.md, each as one small run.

A run returns the numbers that its figure draws (`docs/figures.py`) and that its test
checks on both engines (`tests/math/conventions/test_pitfalls.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np
from torch import Tensor

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation

HALF = np.sqrt(0.5)
QUARTER_TURN_Y = (HALF, 0.0, HALF, 0.0)
"""A quarter turn about y, wxyz: the body's x axis points along world −z."""
STEPS = 40


@dataclass(frozen=True)
class Run:
    """What was recorded: times [s] and curves by name, and single vectors by name."""

    times: np.ndarray
    curves: dict[str, np.ndarray]
    vectors: dict[str, np.ndarray]


def simulate(engine: str, model: str, **start: object) -> Simulation:
    """One free body without gravity or ground, in one world."""
    cfg = EntityCfg(model=model, init_state=InitialStateCfg(**start))
    scene = SceneCfg(
        entities={"body": cfg}, ground=False, timestep=0.005, gravity=(0, 0, 0)
    )
    return Simulation(scene, 1, engine=engine)


def row(tensor: Tensor) -> np.ndarray:
    """The one world's values, as float64."""
    return tensor[0].double().cpu().numpy().copy()


def record(
    sim: Simulation, read: dict[str, Callable[[], np.ndarray]], steps: int = STEPS
) -> Run:
    """Step, and read after each step what the functions in `read` give."""
    times, curves = [0.0], {name: [get()] for name, get in read.items()}
    for _ in range(steps):
        sim.step()
        times.append(float(sim.time[0]))
        for name, get in read.items():
            curves[name].append(get())
    return Run(np.array(times), {k: np.array(v) for k, v in curves.items()}, {})


def orientation_matrix(engine: str) -> Run:
    """xmat's columns are the body's axes in world axes; rows are not."""
    sim = simulate(engine, "cube", rot=QUARTER_TURN_Y)
    xmat = row(sim.data.xmat)[1].reshape(3, 3)
    # Where the body's x axis really points: the way from the origin to a point on it.
    quat = np.array(QUARTER_TURN_Y)
    ahead = np.array([0.0, 0.0, -1.0])
    vectors = {"column 0 of xmat": xmat[:, 0], "row 0 of xmat": xmat[0]}
    return Run(np.zeros(0), {}, {**vectors, "body x axis": ahead, "quat": quat})


def angular_velocity_axes(engine: str) -> Run:
    """qvel[3:6] = (1, 0, 0) turns about the body's x axis, here world −z."""
    sim = simulate(engine, "cube", rot=QUARTER_TURN_Y)
    sim.data.qvel[:, 3] = 1.0
    body = sim.scene["body"]
    start = row(sim.data.xmat)[1].reshape(3, 3)

    def turned() -> np.ndarray:
        """The rotation vector in world axes since the start [rad]."""
        now = row(sim.data.xmat)[1].reshape(3, 3) @ start.T
        return 0.5 * np.array(
            [now[2, 1] - now[1, 2], now[0, 2] - now[2, 0], now[1, 0] - now[0, 1]]
        )

    run = record(sim, {"sin of the angle turned about world x, y, z": turned})
    vectors = {
        "qvel[3:6]": row(sim.data.qvel)[3:],
        "angular velocity, world axes": row(body.data.root_link_ang_vel_w),
    }
    return Run(run.times, run.curves, vectors)


def force_axes(engine: str) -> Run:
    """xfrc_applied[0:3] is along world axes: a turned body goes the same way."""
    sim = simulate(engine, "cube", rot=(0.5, 0.1, -0.7, 0.5))
    body = sim.scene["body"]
    mass = float(body.data.body_mass[0, 0])
    body.write_external_wrench_to_sim([[[mass, 0, 0]]], [[[0, 0, 0]]])
    return record(sim, {"velocity, world axes": lambda: row(sim.data.qvel)[:3]})


def torque_axes(engine: str) -> Run:
    """A torque along world x turns about world x, and qvel shows it in body axes."""
    sim = simulate(engine, "cube", rot=QUARTER_TURN_Y)
    body = sim.scene["body"]
    inertia = float(body.data.body_inertia[0, 0, 0])
    body.write_external_wrench_to_sim([[[0, 0, 0]]], [[[inertia, 0, 0]]])
    read = {
        "angular velocity, world axes": lambda: row(body.data.root_link_ang_vel_w),
        "qvel[3:6], body axes": lambda: row(sim.data.qvel)[3:],
    }
    return record(sim, read)


def quaternion_order(engine: str) -> Run:
    """Read as (x, y, z, w), a quarter turn about y becomes another attitude."""
    sim = simulate(engine, "cube", rot=QUARTER_TURN_Y)
    w, x, y, z = row(sim.data.qpos)[3:7]

    def nose(w: float, x: float, y: float, z: float) -> np.ndarray:
        """The first column of the quaternion's matrix."""
        return np.array([1 - 2 * (y * y + z * z), 2 * (x * y + w * z),
                         2 * (x * z - w * y)])  # fmt: skip

    read = {"read as wxyz": nose(w, x, y, z), "read as xyzw": nose(z, w, x, y)}
    column = row(sim.data.xmat)[1].reshape(3, 3)[:, 0]
    return Run(np.zeros(0), {}, {**read, "body x axis": column})


def velocity_point(engine: str) -> Run:
    """qvel[0:3] is the origin's velocity: of a turning glider not that of its COM."""
    sim = simulate(engine, "glider", ang_vel=(0, 0, 2.0), lin_vel=(0.0, 0, 0))
    body = sim.scene["body"]
    read = {
        "origin, qvel[0:3]": lambda: row(sim.data.qvel)[:3],
        "centre of mass": lambda: row(body.data.root_com_lin_vel_w),
    }
    return record(sim, read, 4 * STEPS)


def angle_units(engine: str) -> Run:
    """qvel is in rad/s: 90 deg/s written as 90 turns 57.3 times too fast."""
    curves: dict[str, np.ndarray] = {}
    times = np.zeros(0)
    for label, rate in (("np.deg2rad(90)", np.deg2rad(90.0)), ("90", 90.0)):
        sim = simulate(engine, "cube")
        sim.data.qvel[:, 5] = rate
        run = record(
            sim, {"yaw": lambda sim=sim: row(sim.scene["body"].data.heading_w)}
        )
        times, curves[label] = run.times, np.rad2deg(run.curves["yaw"])
    return Run(times, curves, {})


def stale_matrix(engine: str) -> Run:
    """In plain MuJoCo xmat is a step behind qpos; what simstate reads is not."""
    sim = simulate(engine, "cube", ang_vel=(0, 0, 5.0))
    body = sim.scene["body"]
    before = float(body.data.heading_w[0])
    sim.step()
    quat = row(sim.data.qpos)[3:7]
    now = 2 * np.arctan2(quat[3], quat[0])
    xmat = row(sim.data.xmat)[1].reshape(3, 3)
    read = float(np.arctan2(xmat[1, 0], xmat[0, 0]))
    angles = {"before the step": before, "qpos after it": now, "sim.data.xmat": read}
    plain = mujoco.MjData(sim.model)
    plain.qvel[5] = 5.0
    mujoco.mj_step(sim.model, plain)
    angles["mj_step's xmat"] = float(np.arctan2(plain.xmat[1, 3], plain.xmat[1, 0]))
    return Run(np.zeros(0), {}, {k: np.array([v]) for k, v in angles.items()})


RUNS = {
    "orientation_matrix": orientation_matrix,
    "angular_velocity_axes": angular_velocity_axes,
    "force_axes": force_axes,
    "torque_axes": torque_axes,
    "quaternion_order": quaternion_order,
    "velocity_point": velocity_point,
    "angle_units": angle_units,
    "stale_matrix": stale_matrix,
}
"""The runs by name, in the order of the page."""
