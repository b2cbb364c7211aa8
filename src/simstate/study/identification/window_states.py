"""States of windows: estimated from the log, and displaced along tangents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from simstate.study.identification.signals import Signal
from simstate.study.identification.windows import Windows

Array = NDArray[np.float64]

_EXPLAINED = 1.5
"""A parabola explains samples if its misfit is below this multiple of the noise."""


@dataclass(frozen=True)
class States:
    """Complete physics states of windows: one row each."""

    qpos: Array
    qvel: Array
    act: Array

    @property
    def width(self) -> int:
        """Degrees of freedom of a state: positions, velocities, activations."""
        return 2 * self.qvel.shape[-1] + self.act.shape[-1]

    def of_windows(self, windows: NDArray[np.intp]) -> States:
        """Return the states of some windows in all columns."""
        return States(
            self.qpos[:, windows], self.qvel[:, windows], self.act[:, windows]
        )


def measured_states(windows: Windows, model: mujoco.MjModel, default: Array) -> States:
    """Return the states at the starts of windows, estimated from the log.

    Positions and velocities are parabolas through the nearest samples. Velocities that
    were not logged are rates of positions, and positions that were not logged are the
    model's default.

    Args:
        windows: the windows.
        model: the model.
        default: positions that are used if none were logged; shape (nq,).
    """
    count, tick = len(windows), 1e-4
    found = {
        "qpos": np.tile(default, (count, 1)),
        "qvel": np.zeros((count, model.nv)),
        "act": np.zeros((count, model.na)),
    }
    later = found["qpos"].copy()
    is_known = np.zeros(model.nv, bool)
    outputs = range(len(windows.signals[0].outputs))
    noise = [[one.outputs[k].noise() for one in windows.signals] for k in outputs]
    for k in range(len(windows.signals[0].outputs)):
        for w, log in enumerate(windows.log):
            signal = windows.signals[log].outputs[k]
            value, slope = _parabola(signal, windows.start[w], noise[k][log])
            for i, (field, address) in enumerate(signal.addresses):
                if field:
                    found[field][w, address] = value[i]
                if field == "qpos":
                    later[w, address] = value[i] + tick * slope[i]
                elif field == "qvel":
                    is_known[address] = True
    rates = np.zeros(model.nv)
    for before, after, qvel in zip(found["qpos"], later, found["qvel"], strict=True):
        mujoco.mj_normalizeQuat(model, before)
        mujoco.mj_normalizeQuat(model, after)
        mujoco.mj_differentiatePos(model, rates, tick, before, after)
        qvel[~is_known] = rates[~is_known]
    return States(**found)


def state_noise(
    windows: Windows, model: mujoco.MjModel, noise: Sequence[Array]
) -> Array:
    """Return the noise of states from that of the outputs; shape (2 nv + na,)."""
    of_pos, of_vel = np.full(model.nv, 1e-3), np.full(model.nv, np.nan)
    rate = 100.0
    for signal, sizes in zip(windows.signals[0].outputs, noise, strict=True):
        for (field, address), size in zip(signal.addresses, sizes, strict=True):
            if field == "qpos":
                of_pos[_dof_of_qpos(model, address)] = size
                rate = signal.column.rate
            elif field == "qvel":
                of_vel[address] = size
    of_vel = np.where(np.isnan(of_vel), of_pos * rate, of_vel)
    return np.concatenate([of_pos, of_vel, np.full(model.na, 1e-3)])


def _dof_of_qpos(model: mujoco.MjModel, address: int) -> int:
    """Return the degree of freedom that a component of qpos is nearest to."""
    joint = int(np.flatnonzero(model.jnt_qposadr <= address)[-1])
    within = address - int(model.jnt_qposadr[joint])
    first = int(model.jnt_dofadr[joint])
    last = model.nv if joint + 1 == model.njnt else int(model.jnt_dofadr[joint + 1])
    return min(first + within, last - 1)


def _parabola(signal: Signal, time: float, noise: Array) -> tuple[Array, Array]:
    """Return value and rate at a time [s] by a parabola through the nearest samples.

    It uses as many samples as a parabola explains: more samples reduce the noise, but
    bias the state of sudden motions.
    """
    column = signal.column
    at = int(np.searchsorted(column.time, time))
    found = np.zeros((3, column.width))
    for reach in (8, 4, 2, 1):
        first = max(0, min(at - reach, len(column.time) - 2 * reach - 1))
        near = slice(first, first + 2 * reach + 1)
        values = column.values[near]
        if signal.is_quaternion:
            same = values @ values[len(values) // 2] < 0
            values = values * np.where(same, -1.0, 1.0)[:, None]
        offsets = column.time[near] - time
        basis = offsets[:, None] ** np.arange(min(3, len(offsets)))
        found = np.linalg.lstsq(basis, values, rcond=None)[0]
        misfit = np.sqrt(((basis @ found - values) ** 2).mean(axis=0))
        if (misfit < _EXPLAINED * noise).all():
            break
    return found[0], found[1]


def _is_flat(model: mujoco.MjModel) -> bool:
    return model.nq == model.nv


def moved(model: mujoco.MjModel, base: States, tangents: Array) -> States:
    """Return states moved along tangents (…, windows, 2 nv + na)."""
    nv = model.nv
    turn = tangents[..., :nv]
    qvel = base.qvel + tangents[..., nv : 2 * nv]
    act = base.act + tangents[..., 2 * nv :]
    if _is_flat(model):
        return States(base.qpos + turn, qvel, act)
    qpos = np.broadcast_to(base.qpos, (*turn.shape[:-1], model.nq)).copy()
    flat, turns = qpos.reshape(-1, model.nq), turn.reshape(-1, nv)
    for row, by in zip(flat, turns, strict=True):
        mujoco.mj_integratePos(model, row, np.ascontiguousarray(by), 1.0)
    return States(flat.reshape(qpos.shape), qvel, act)


def differences(model: mujoco.MjModel, start: States, end: States) -> Array:
    """Return the tangents from `start` to `end`; shape (…, 2 nv + na)."""
    if _is_flat(model):
        turn = end.qpos - start.qpos
    else:
        first = np.broadcast_to(start.qpos, end.qpos.shape).reshape(-1, model.nq)
        last = end.qpos.reshape(-1, model.nq)
        turn = np.zeros((len(last), model.nv))
        for row, a, b in zip(turn, first, last, strict=True):
            mujoco.mj_differentiatePos(
                model, row, 1.0, np.ascontiguousarray(a), np.ascontiguousarray(b)
            )
        turn = turn.reshape(*end.qpos.shape[:-1], model.nv)
    return np.concatenate([turn, end.qvel - start.qvel, end.act - start.act], axis=-1)
