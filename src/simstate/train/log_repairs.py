"""Candidate repairs of a faulty log, which `compare_log` tries."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from simstate.train.passport_log import QUATERNION, Array, LogSignals, to_body
from simstate.train.policy_passport import ACTION, COMMAND, PassportColumn

MAX_LAG = 4
"""Longest lag to try [control steps]."""
FAR = 4.0
"""Distance from the trained policy's mean that is an offset [standard deviations]."""


class Repair(NamedTuple):
    """The inverse of a fault."""

    kind: str
    columns: tuple[str, ...]
    detail: str
    change: Callable[[Array], None]
    """Repairs a table in place."""
    cost: float = 0.0
    """Penalty on its gain, compared with simpler repairs."""

    def apply(self, table: Array) -> Array:
        """Return the repaired table."""
        table = table.copy()
        self.change(table)
        return table


def repairs_of(
    signals: LogSignals, columns: Iterable[PassportColumn], runs_policy: bool
) -> Iterator[Repair]:
    """Yield the repairs of a log's signals, given their current values.

    A common lag of several signals shows only in the policy's actions, not in their
    relations to each other: `runs_policy` is True if the actions are compared.
    """
    q, v = signals.joints()
    gyro, quat = signals.place("root_link_ang_vel_b"), signals.place(QUATERNION)
    action = signals.places.get(ACTION, [])
    width = len(q or v)
    joints = [at for at in (q, v, [*q, *v]) if at and len(at) >= width]
    joints = joints[:1] if not (q and v) else joints
    acted = [action, [*q, *v, *action]] if len(action) == width and width else []
    for at in [*joints, *acted]:
        yield from _swaps(signals, at, width)
    for at in [*joints, *acted[:1]]:
        for i in range(width):
            part = at[i::width]
            yield _linear(signals, "sign", part, -np.eye(len(part)), _SIGN)
    for name, at in signals.places.items():
        if len(at) == 3 and name != ACTION:
            for k in at:
                yield _linear(signals, "sign", [k], -np.eye(1), _SIGN)
            if not name.startswith(COMMAND):
                yield from _frames(signals, at, quat)
    down = signals.place("projected_gravity_b")
    if gyro and down:
        yield from _turns(signals, [*gyro, *down])
    for at in [*joints, gyro, [*q, *v, *gyro]]:
        if at:
            yield _linear(signals, "degrees", at, np.eye(len(at)) * np.pi / 180.0,
                          "is in degrees")  # fmt: skip
    if quat:
        yield _linear(signals, "quaternion order", quat, np.eye(4)[[1, 2, 3, 0]],
                      "is (x, y, z, w), not (w, x, y, z)")  # fmt: skip
        yield _linear(signals, "frame", quat, np.diag([1.0, -1.0, -1.0, -1.0]),
                      "rotates world to body axes, not body to world")  # fmt: skip
    sensors = [at for name, at in signals.places.items() if name != ACTION]
    together = [*joints[2:], list(itertools.chain(*sensors))] if runs_policy else []
    for at in [*sensors, *together]:
        for k in range(1, MAX_LAG + 1):
            yield _lag(signals, at, k)
    for one in columns:
        yield from _offsets(signals, one)


_SIGN = "has the opposite sign"


def _linear(
    signals: LogSignals,
    kind: str,
    at: Sequence[int],
    matrix: Array,
    text: str,
    cost: float = 0.0,
    about: Sequence[int] | None = None,
) -> Repair:
    """Return the repair that multiplies columns by a matrix from the right."""

    def change(table: Array) -> None:
        table[:, at] = table[:, at] @ matrix

    return Repair(kind, signals.named(about or at), text, change, cost)


def _swaps(signals: LogSignals, at: list[int], width: int) -> Iterator[Repair]:
    for i, j in itertools.combinations(range(width), 2):
        order = np.arange(len(at)).reshape(-1, width)
        order[:, [i, j]] = order[:, [j, i]]
        one, two = (signals.names[at[k]].rpartition("/")[2] for k in (i, j))
        yield _linear(
            signals, "swapped", at, np.eye(len(at))[order.ravel()],
            f"has {one} and {two} swapped", 0.0, [*at[i::width], *at[j::width]],
        )  # fmt: skip


def _frames(signals: LogSignals, at: list[int], quat: list[int]) -> Iterator[Repair]:
    """Yield repairs of vectors along world axes, rotated or opposite axes."""
    yield _linear(signals, "frame", at, -np.eye(3), "points the opposite way")
    yield from _turns(signals, at)
    if quat:

        def change(table: Array) -> None:
            table[:, at] = to_body(table[:, quat], table[:, at])

        yield Repair("frame", signals.named(at), "is along world axes", change)


def _turns(signals: LogSignals, at: list[int]) -> Iterator[Repair]:
    """Yield repairs of vectors along axes that are rotated by right angles."""
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            one = np.zeros((3, 3))
            one[range(3), order] = signs
            if np.linalg.det(one) > 0 and np.trace(one) < 3:
                axes = [f"{'-' if s < 0 else '+'}{'xyz'[k]}"
                        for s, k in zip(signs, order, strict=True)]  # fmt: skip
                matrix = np.kron(np.eye(len(at) // 3), one).astype(np.float64)
                text = f"has its x, y, z along {', '.join(axes)} of the passport"
                yield _linear(signals, "frame", at, matrix, text, 0.5)


def _lag(signals: LogSignals, at: list[int], k: int) -> Repair:
    def change(table: Array) -> None:
        table[:-k, at] = table[k:, at]

    text = f"is late by {k} steps ({k * signals.dt:.3g} s)"
    return Repair("lag", signals.named(at), text, change, 0.1 * k)


def _offsets(signals: LogSignals, one: PassportColumn) -> Iterator[Repair]:
    """Yield the shift of a column that is far from the trained policy's mean."""
    name = f"{one.source}/{one.component}"
    if name not in signals.names or one.age:
        return
    k = signals.names.index(name)
    values = signals.table[:, k]
    shift = float(np.median(values)) - one.mean
    is_outside = bool(((values < one.low) | (values > one.high)).mean() > 0.5)
    if abs(shift) < FAR * one.std and not is_outside:
        return

    def change(table: Array) -> None:
        table[:, k] -= shift

    text = f"is {shift:+.3g} {one.unit} off the trained policy's mean {one.mean:.3g}"
    kind = "range" if is_outside else "offset"
    yield Repair(kind, signals.named([k]), text, change, 0.3)
