"""Random states of any model: joints within their limits, unit quaternions."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.simulation import Simulation


def randomize(sim: Simulation, seed: int) -> None:
    """Write a random state with random velocities and inputs into every world."""
    rng = np.random.default_rng(seed)
    model = sim.model
    for world in range(sim.num_envs):
        for joint in range(model.njnt):
            _random_joint(sim.data.qpos[world], model, joint, rng)
    sim.data.qvel.copy_(_normal(sim.data.qvel, rng))
    sim.data.act.copy_(0.1 * _normal(sim.data.act, rng).abs())
    sim.data.ctrl.copy_(_random_controls(sim, rng))
    sim.data.xfrc_applied[:, 1:] = _normal(sim.data.xfrc_applied[:, 1:], rng)
    sim.data.qfrc_applied.copy_(_normal(sim.data.qfrc_applied, rng))
    sim.data.mocap_pos.copy_(_normal(sim.data.mocap_pos, rng))
    quat = _normal(sim.data.mocap_quat, rng)
    sim.data.mocap_quat.copy_(quat / (quat * quat).sum(-1, keepdim=True).sqrt())


def moved(sim: Simulation, qvel: Tensor, duration: float) -> Tensor:
    """Return qpos after `duration` [s] at constant qvel, by mj_integratePos.

    Its shape is (num_envs, nq).
    """
    qpos = sim.data.qpos.to(torch.float64).cpu().numpy().copy()
    rates = qvel.to(torch.float64).cpu().numpy()
    for world in range(sim.num_envs):
        mujoco.mj_integratePos(sim.model, qpos[world], rates[world], duration)
    return torch.as_tensor(qpos, dtype=sim.dtype, device=sim.device)


def _random_joint(
    qpos: Tensor, model: mujoco.MjModel, joint: int, rng: np.random.Generator
) -> None:
    """Write one joint's random position into a world's qpos."""
    adr = int(model.jnt_qposadr[joint])
    kind = int(model.jnt_type[joint])
    if kind in (mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value):
        quat = rng.normal(size=4)
        values = quat / np.linalg.norm(quat)
        if kind == mujoco.mjtJoint.mjJNT_FREE.value:
            pos = rng.uniform([-1.0, -1.0, 1.0], [1.0, 1.0, 3.0])
            values = np.concatenate([pos, values])
    elif model.jnt_limited[joint]:
        low, high = model.jnt_range[joint]
        values = rng.uniform(low, high, size=1)
    else:
        values = rng.uniform(-1.0, 1.0, size=1)
    qpos[adr : adr + len(values)] = torch.as_tensor(values).to(qpos)


def _random_controls(sim: Simulation, rng: np.random.Generator) -> Tensor:
    """Return controls within their ranges, or within −1 … 1 where there are none."""
    model: Any = sim.model
    low, high = model.actuator_ctrlrange.T.copy()
    free = low >= high
    low[free], high[free] = -1.0, 1.0
    return torch.as_tensor(rng.uniform(low, high, size=(sim.num_envs, model.nu))).to(
        sim.data.ctrl
    )


def _normal(like: Tensor, rng: np.random.Generator) -> Tensor:
    return torch.as_tensor(rng.normal(size=tuple(like.shape))).to(like)
