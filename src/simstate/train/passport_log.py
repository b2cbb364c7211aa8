"""Signals of a log under the names of a policy's passport, at control steps."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simstate.base.errors import InvalidInputError, unknown_name
from simstate.record import Log, LogColumn
from simstate.train.policy_passport import ACTION, CLOCK, Passport, PassportColumn

Array = NDArray[np.float64]
QUATERNION, GRAVITY = "root_link_quat_w", "projected_gravity_b"
LARGEST = 1e100
"""Maximum magnitude of values, so that their squares are finite."""
STEPS = 400
"""Maximum number of control steps to compare."""


@dataclass
class LogSignals:
    """Signals of a log at control steps, in the units of the passport."""

    table: Array
    """A row for each step, a column for each component; shape (steps, columns)."""
    names: list[str] = field(default_factory=list[str])
    """"signal/component" of each column."""
    places: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Columns of each signal."""
    dt: float = 0.0
    """Time between two rows [s]."""
    rates: dict[str, float] = field(default_factory=dict[str, float])
    """Samples per second of each signal in the log [Hz]."""
    missing: list[str] = field(default_factory=list[str])
    """Signals of the passport that the log does not have."""

    def place(self, short: str) -> list[int]:
        """Return the columns of a signal, named without its entity; [] if missing."""
        found = [at for name, at in self.places.items() if name.endswith(short)]
        return found[0] if found else []

    def joints(self) -> tuple[list[int], list[int]]:
        """Return the columns of joint_pos and joint_vel, of the same joints if both."""
        q, v = self.place("joint_pos"), self.place("joint_vel")
        if not (q and v):
            return q, v
        of = {self.names[k].rpartition("/")[2]: k for k in v}
        pairs = [(k, of.get(self.names[k].rpartition("/")[2])) for k in q]
        both = [(k, j) for k, j in pairs if j is not None]
        return [k for k, _ in both], [j for _, j in both]

    def named(self, at: Sequence[int]) -> tuple[str, ...]:
        """Return names of columns; complete signals are named by the signal."""
        found = list[str]()
        for name, columns in self.places.items():
            inside = [k for k in at if k in columns]
            is_complete = len(inside) == len(columns) > 1
            found += [name] if is_complete else [self.names[k] for k in inside]
        return tuple(found)


def signals_of(log: Log, passport: Passport) -> LogSignals:
    """Return the signals of a passport that a log has, and the quaternion.

    Raise if there is none, or if components of a column have other names.
    """
    wanted: dict[str, dict[str, PassportColumn]] = {}
    for one in passport.observations:
        if one.source not in (CLOCK, ACTION):
            wanted.setdefault(one.source, {})[one.component] = one
    found: dict[str, tuple[Array, Array, list[str]]] = {}
    for source, parts in wanted.items():
        column = _column(log, source, wanted)
        if column is not None:
            found[source] = column.time, _ordered(log, column, list(parts)), list(parts)
        elif (seen := _observed(log, parts)) is not None:
            found[source] = (*seen, list(parts))
    quaternion = _column(log, QUATERNION)
    if quaternion is not None:
        values = _ordered(log, quaternion, list("wxyz"))
        found[quaternion.name] = quaternion.time, values, list("wxyz")
    names = [one.name for one in passport.actions]
    acted = _column(log, ACTION) or _column(log, "actions")
    target = _column(log, passport.actions[0].source)
    scale = np.array([one.scale for one in passport.actions])
    if acted is not None:
        found[ACTION] = acted.time, _ordered(log, acted, names), names
    elif target is not None and scale.all():
        parts = [one.component for one in passport.actions]
        zero = np.array([one.offset for one in passport.actions])
        values = (_ordered(log, target, parts) - zero) / scale
        found[ACTION] = target.time, values, names
    if not found:
        raise InvalidInputError(
            f"{log.source} has none of the passport's signals, which are "
            f"{', '.join([*wanted, QUATERNION, ACTION])}; it has "
            f"{', '.join(log.columns)}. Rename its columns (--rename q=joint_pos); "
            "headings of a table are joint_pos[NAME], with the joint's name.",
            name=log.source,
        )
    missing = [name for name in (*wanted, ACTION) if name not in found]
    known = {*found, *([target.name] if target is not None else [])}
    _check_names([name for name in log.columns if name not in known], missing, log)
    signals = _at_steps(found, passport.step_dt)
    signals.missing = missing
    return signals


def _check_names(unused: list[str], missing: list[str], log: Log) -> None:
    """Raise if the name of an unused column resembles that of a missing signal."""
    shorts = [name.rpartition(".")[2] for name in missing]
    for name in unused:
        short = name.rpartition(".")[2]
        near = difflib.get_close_matches(short, shorts, 1, 0.7)
        if near:
            raise InvalidInputError(
                f"The passport does not know column {name!r} of {log.source}. If it is "
                f"{near[0]!r}, rename it: --rename {name}={near[0]}.",
                name=name,
                known=shorts,
            )


def _column(log: Log, name: str, others: Collection[str] = ()) -> LogColumn | None:
    """Return a column by name; its entity may differ, if it is not one of `others`.

    Raise if its values are not finite.
    """
    short = name.rpartition(".")[2]
    ends = [
        column
        for other, column in log.columns.items()
        if other.rpartition(".")[2] == short and other not in others
    ]
    found = log.columns.get(name) or (ends[0] if len(ends) == 1 else None)
    if found is not None:
        _check_values(log, found)
    return found


def _check_values(log: Log, column: LogColumn) -> None:
    """Raise if a column has values that are not finite, or too large to square."""
    rows, parts = np.nonzero(~(np.abs(column.values) < LARGEST))
    if len(rows):
        row, part = int(rows[0]), int(parts[0])
        name = f"{column.name}[{column.names[part] if column.names else part}]"
        raise InvalidInputError(
            f"Column {name!r} of {log.source} is {column.values[row, part]:g} at "
            f"{column.time[row]:g} s, the first of {len(rows)} values that are not "
            "finite: cut them off (--start, --end), or repair the log.",
            name=column.name,
        )


def _ordered(log: Log, column: LogColumn, parts: list[str]) -> Array:
    """Return the values of components in the order of the passport."""
    if column.names and column.width > 1:
        short = {name.rpartition("/")[2]: k for k, name in enumerate(column.names)}
        full = {name: k for k, name in enumerate(column.names)}
        ids = [full.get(part, short.get(part.rpartition("/")[2])) for part in parts]
        if None in ids:
            part = parts[ids.index(None)]
            raise unknown_name(
                f"component of {column.name!r} of {log.source}",
                part,
                column.names,
            )
        return column.values[:, [k for k in ids if k is not None]]
    if column.width != len(parts):
        raise InvalidInputError(
            f"Column {column.name!r} of {log.source} has {column.width} components "
            f"without names, but the passport has {len(parts)}: {', '.join(parts)}. "
            "Name them in the log.",
            name=column.name,
        )
    return column.values


def _observed(log: Log, parts: dict[str, PassportColumn]) -> tuple[Array, Array] | None:
    """Return times and values of a signal from a recorded observation, or None."""
    for name, column in log.columns.items():
        if name.startswith("observation/") and all(
            one.name in column.names and not one.age for one in parts.values()
        ):
            each = [one.value_of(column.component(one.name)) for one in parts.values()]
            return column.time, np.stack(each, 1)
    return None


def _at_steps(
    found: dict[str, tuple[Array, Array, list[str]]], step_dt: float
) -> LogSignals:
    """Return signals at the times of actions, or at the passport's rate.

    Each is sampled by zero-order hold: the latest sample at or before the time.
    """
    start = max(time[0] for time, _, _ in found.values())
    end = min(time[-1] for time, _, _ in found.values())
    grid = np.arange(start, end + 1e-9, step_dt)
    if ACTION in found:
        times = found[ACTION][0]
        grid = times[(times >= start - 1e-9) & (times <= end + 1e-9)]
    grid = grid[:STEPS]
    if len(grid) < 10:
        raise InvalidInputError(
            f"The log has {len(grid)} control steps with all signals, from "
            f"{start:g} to {end:g} s; at least 10 are needed."
        )
    signals = LogSignals(np.empty((len(grid), 0)), dt=float(np.median(np.diff(grid))))
    tables = list[Array]()
    for name, (time, values, parts) in found.items():
        rows = np.searchsorted(time, grid + 1e-6 * step_dt, side="right") - 1
        tables.append(values[rows.clip(0)])
        first = len(signals.names)
        signals.places[name] = list(range(first, first + len(parts)))
        signals.names += [f"{name}/{part}" for part in parts]
        signals.rates[name] = 1.0 / float(np.median(np.diff(time)))
    signals.table = np.concatenate(tables, axis=1)
    return signals


def to_body(quat: Array, vector: Array) -> Array:
    """Return world vectors in body axes, given (w, x, y, z); shape (steps, 3)."""
    w, u = _unit(quat)[:, :1], -_unit(quat)[:, 1:]
    turned = 2.0 * np.cross(u, vector)
    return vector + w * turned + np.cross(u, turned)


def down_of(quat: Array) -> Array:
    """Return the direction of gravity in body axes; shape (steps, 3)."""
    return to_body(quat, np.broadcast_to([0.0, 0.0, -1.0], (len(quat), 3)))


def turns_of(quat: Array) -> Array:
    """Return rotation vectors between consecutive attitudes, body axes [rad]."""
    one, other = _unit(quat)[:-1], _unit(quat)[1:]
    w = (one * other).sum(1, keepdims=True)
    u = one[:, :1] * other[:, 1:] - other[:, :1] * one[:, 1:]
    u -= np.cross(one[:, 1:], other[:, 1:])
    sine = np.linalg.norm(u, axis=1, keepdims=True)
    return np.sign(w) * u / (sine + 1e-12) * 2.0 * np.arctan2(sine, np.abs(w))


def _unit(quat: Array) -> Array:
    return quat / (np.linalg.norm(quat, axis=-1, keepdims=True) + 1e-12)
