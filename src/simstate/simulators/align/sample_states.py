"""States at which simulators are compared: random states for each purpose."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from simstate.simulators.adapted_simulator import Array
from simstate.simulators.drives import Drive, drives
from simstate.simulators.mechanics import MechanicalState

_FREE, _BALL = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
_SPREAD = 0.3
"""Spread of free bodies, ball joints and joints without range about rest [m, rad]."""
_SPEED = 0.5
"""Standard deviation of velocities [m/s, rad/s]."""
_SETTLE_S = 0.5
"""Time for the scene to settle before its contacts are compared [s]."""


@dataclass(frozen=True)
class SampleStates:
    """States by purpose."""

    smooth: list[MechanicalState]
    """States with joints inside their ranges and reachable servo targets."""
    saturated: list[MechanicalState]
    """The same, with controls beyond the force limits of servos, if there are any."""
    beyond_limits: list[MechanicalState]
    """The same as smooth, with some joints beyond their ranges, if there are any."""
    touching: list[MechanicalState]
    """The settled scene, or its state of deepest contact if it has none then."""


def sample_states(
    model: mujoco.MjModel, start: MechanicalState, count: int, seed: int
) -> SampleStates:
    """Return `count` states of each kind; `start` is the scene's initial state."""
    rng = np.random.default_rng(seed)
    found = drives(model)
    smooth = [_smooth(model, found, rng) for _ in range(count)]
    return SampleStates(
        smooth=smooth,
        saturated=[_saturated(model, found, state, rng) for state in smooth]
        if any(np.isfinite(drive.limit) for drive in found)
        else [],
        beyond_limits=[_beyond(model, found, state, rng) for state in smooth]
        if model.jnt_limited.any()
        else [],
        touching=_settled(model, start),
    )


def _smooth(
    model: mujoco.MjModel, found: list[Drive], rng: np.random.Generator
) -> MechanicalState:
    qpos: Array = model.qpos0.copy()
    qvel: Array = rng.normal(size=int(model.nv)) * _SPEED
    mujoco.mj_integratePos(model, qpos, rng.normal(size=int(model.nv)), _SPREAD)
    for j in range(model.njnt):
        adr = model.jnt_qposadr[j]
        if model.jnt_type[j] == _FREE:
            # Near the origin, as float32 resolves large positions less.
            qpos[adr : adr + 3] = rng.uniform(-_SPREAD, _SPREAD, 3)
        elif model.jnt_type[j] != _BALL and model.jnt_limited[j]:
            low, high = model.jnt_range[j]
            qpos[adr] = low + (high - low) * rng.uniform(0.3, 0.7)
    ctrl = _motor_controls(model, rng)
    for drive in found:
        _set_targets(model, drive, qpos, qvel, ctrl, rng)
    return MechanicalState(qpos, qvel, ctrl)


def _motor_controls(model: mujoco.MjModel, rng: np.random.Generator) -> Array:
    """Return controls within the middle third of their ranges."""
    limited = model.actuator_ctrllimited.astype(bool)
    low, high = model.actuator_ctrlrange.T
    middle = np.where(limited, (low + high) / 2, 0.0)
    width = np.where(limited, (high - low) / 2, 1.0)
    return middle + width * rng.uniform(-0.3, 0.3, int(model.nu))


def _set_targets(
    model: mujoco.MjModel,
    drive: Drive,
    qpos: Array,
    qvel: Array,
    ctrl: Array,
    rng: np.random.Generator,
) -> None:
    """Set targets of a joint's servos that need less than their force limits."""
    dof = model.jnt_dofadr[drive.joint]
    position = qpos[model.jnt_qposadr[drive.joint]]
    limit = drive.limit if np.isfinite(drive.limit) else 10.0
    if drive.damping:
        max_rate = 0.2 * limit / drive.damping
        qvel[dof] = np.clip(qvel[dof], -max_rate, max_rate)
    for column, kind, factor in drive.inputs:
        if kind == "position":
            offset = rng.uniform(-0.2, 0.2) * limit / drive.stiffness
            ctrl[column] = drive.stiffness / factor * (position + offset)
        elif kind == "velocity":
            ctrl[column] = drive.damping / factor * qvel[dof] * rng.uniform(0.5, 1.5)
        else:
            most = abs(rng.uniform(-0.2, 0.2) * limit / factor)
            if np.isfinite(drive.limit):
                ctrl[column] = np.clip(ctrl[column], -most, most)


def _saturated(
    model: mujoco.MjModel,
    found: list[Drive],
    state: MechanicalState,
    rng: np.random.Generator,
) -> MechanicalState:
    """Return controls that demand three times the force limits."""
    ctrl = state.ctrl.copy()
    for drive in found:
        for column, _, factor in drive.inputs:
            if np.isfinite(drive.limit):
                sign = rng.choice([-1.0, 1.0])
                ctrl[column] += sign * 3.0 * drive.limit / factor
    return MechanicalState(state.qpos, state.qvel, ctrl)


def _beyond(
    model: mujoco.MjModel,
    found: list[Drive],
    state: MechanicalState,
    rng: np.random.Generator,
) -> MechanicalState:
    """Return a state with every other limited joint slightly beyond a limit."""
    qpos, flip = state.qpos.copy(), int(rng.integers(2))
    for j in np.flatnonzero(model.jnt_limited):
        if model.jnt_type[j] not in (_FREE, _BALL) and (j + flip) % 2:
            low, high = model.jnt_range[j]
            past = 0.005 * (high - low)
            qpos[model.jnt_qposadr[j]] = rng.choice([low - past, high + past])
    qvel, ctrl = state.qvel.copy(), state.ctrl.copy()
    for drive in found:
        _set_targets(model, drive, qpos, qvel, ctrl, rng)
    return MechanicalState(qpos, qvel, ctrl)


def _settled(model: mujoco.MjModel, start: MechanicalState) -> list[MechanicalState]:
    """Return the scene after it has settled; empty if nothing touched until then.

    If nothing touches at that moment, it is the earlier state of deepest contact.
    """
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = start.qpos, start.qvel, start.ctrl
    touching: list[MechanicalState] = []
    least = np.inf
    steps = round(_SETTLE_S / model.opt.timestep)
    for step in range(1, steps + 1):
        mujoco.mj_step(model, data)
        mujoco.mj_fwdPosition(model, data)
        if data.ncon and (step == steps or data.contact.dist.min() < least):
            least = float(data.contact.dist.min())
            state = data.qpos.copy(), data.qvel.copy(), data.ctrl.copy()
            touching = [MechanicalState(*state)]
    return touching
