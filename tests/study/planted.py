"""Logs of models with planted parameters, made by plain MuJoCo."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

from simstate.base.contract import Contract
from simstate.record import Log, LogColumn


def multisine(generator, count, amplitudes, lowest=0.2, highest=3.0):
    """Commands as functions of time: six sines each, with random phases."""
    low = np.exp(generator.uniform(np.log(lowest), np.log(highest), (count, 6)))
    phase = generator.uniform(0, 2 * np.pi, (count, 6))
    amplitudes = np.broadcast_to(amplitudes, (count,)) / 6**0.5

    def at(t):
        waves = np.sin(2 * np.pi * low * t + phase)
        return amplitudes * waves.sum(axis=1)

    return at


def planted_log(
    model: mujoco.MjModel,
    control: Callable[[float], np.ndarray],
    generator: np.random.Generator,
    *,
    seconds: float,
    every: int,
    noise: tuple[float, float],
    qpos: np.ndarray | None = None,
    delay_steps: int = 0,
    bias: np.ndarray | float = 0.0,
    prefix: str = "robot.",
    control_every: int = 1,
) -> Log:
    """Step a model with plain `mj_step`, and log its joints with noise.

    Commands hold for `control_every` steps and act `delay_steps` later.
    """
    data = mujoco.MjData(model)
    if qpos is not None:
        data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    step, count = model.opt.timestep, round(seconds / model.opt.timestep)
    hinges = [k for k in range(model.njnt) if model.jnt_type[k] >= 2]
    names = tuple(model.joint(k).name for k in hinges)
    at_pos, at_vel = model.jnt_qposadr[hinges], model.jnt_dofadr[hinges]
    commands = np.array(
        [control(k // control_every * control_every * step) for k in range(count)]
    )
    times, positions, velocities, roots = [], [], [], []
    for k in range(count + 1):
        if k % every == 0:
            times.append(k * step)
            positions.append(data.qpos[at_pos].copy())
            velocities.append(data.qvel[at_vel].copy())
            roots.append(data.qpos[:7].copy())
        if k < count:
            data.ctrl[:] = commands[max(k - delay_steps, 0)]
            mujoco.mj_step(model, data)
    time = np.array(times)

    def noisy(values, size):
        values = np.array(values)
        return values + size * generator.normal(size=values.shape)

    units = [("rad", "m")[int(model.jnt_type[k]) == 2] for k in hinges]
    told = [tuple(Contract(u + tail, "–") for u in units) for tail in ("", "/s")]
    columns = [
        LogColumn(
            f"{prefix}joint_pos",
            time,
            noisy(positions, noise[0]) + bias,
            names,
            told[0],
        ),
        LogColumn(
            f"{prefix}joint_vel", time, noisy(velocities, noise[1]), names, told[1]
        ),
    ]
    if model.nu:
        actuators = tuple(model.actuator(k).name for k in range(model.nu))
        ticks = np.arange(0, count, control_every)
        columns.append(LogColumn("ctrl", ticks * step, commands[ticks], actuators))
    if model.njnt and model.jnt_type[0] == 0:
        poses = noisy(roots, noise[0])
        poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
        columns.append(
            LogColumn(
                f"{prefix}root_link_pose_w",
                time,
                poses,
                ("x", "y", "z", "qw", "qx", "qy", "qz"),
            )
        )
    return Log(columns, "the planted log")
