"""Logged velocities compared with the rates of logged positions: signs and units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simstate.base.errors import InvalidInputError

if TYPE_CHECKING:  # it imports this file
    from simstate.study.identification.signals import Signal

Array = NDArray[np.float64]


def check_rates(outputs: Sequence[Signal]) -> None:
    """Raise if a logged velocity is not the rate of its logged position."""
    rates: dict[tuple[str, int], tuple[str, Array, Array]] = {}
    speeds: dict[str, dict[int, tuple[str, Array, Array]]] = {}
    for signal in outputs:
        column = signal.column
        entity, _, quantity = column.name.rpartition(".")
        if quantity not in ("joint_pos", "joint_vel"):
            continue
        for k, joint in enumerate(signal.picked):
            label = column.names[k] if column.names else str(k)
            if quantity == "joint_pos":
                # Differences over several samples, since noise would hide the rate.
                step = max(1, min(10, len(column.time) // 20))
                rise = column.values[2 * step :, k] - column.values[: -2 * step, k]
                span = column.time[2 * step :] - column.time[: -2 * step]
                rates[entity, joint] = label, column.time[step:-step], rise / span
            else:
                measured = label, column.time, column.values[:, k]
                speeds.setdefault(entity, {})[joint] = measured
    for (entity, joint), rate in rates.items():
        if joint in speeds.get(entity, {}):
            _check_pair(rate, speeds[entity], joint)


def _check_pair(
    rate: tuple[str, Array, Array],
    speeds: dict[int, tuple[str, Array, Array]],
    joint: int,
) -> None:
    label, time, slope = rate
    fits = {k: _fit(slope, np.interp(time, t, v)) for k, (_, t, v) in speeds.items()}
    factor, agreement = fits[joint]
    best = max(fits, key=lambda k: fits[k][1])
    if agreement < 0.5 and best != joint and fits[best][1] > 0.95:
        raise InvalidInputError(
            f"The logged velocity of {label!r} is not the rate of its position; that "
            f"of {speeds[best][0]!r} is: name the components in their order with "
            "log.declare(column, names=[…]).",
            name=label,
        )
    if agreement < 0.9:
        return
    turn = 180.0 / math.pi
    for expected, fault in (
        (-1.0, "has the opposite sign: log.declare(column, scale=-1)"),
        (turn, "is in rad/s and the position in degrees: scale one of them"),
        (1 / turn, "is in degrees/s and the position in rad: scale one of them"),
        (1e-3, "fits if time is in ms: read_log(path, time_unit='ms')"),
        (1e-6, "fits if time is in µs: read_log(path, time_unit='us')"),
        (1e-9, "fits if time is in ns: read_log(path, time_unit='ns')"),
    ):
        if abs(factor / expected - 1.0) < 0.2:
            raise InvalidInputError(
                f"The logged velocity of {label!r} is not the rate of its position "
                f"(which is {factor:.3g} times it): it {fault}.",
                name=label,
            )


def _fit(slope: Array, speed: Array) -> tuple[float, float]:
    """Return the factor from speed to slope, and their correlation."""
    norms = float(np.linalg.norm(slope) * np.linalg.norm(speed))
    if norms == 0:
        return 1.0, 0.0
    product = float(slope @ speed)
    return product / float(speed @ speed), abs(product) / norms
