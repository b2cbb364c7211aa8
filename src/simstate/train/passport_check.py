"""Faults between a policy's passport and a log, found before the robot moves.

A fault is a repair of the log that makes it consistent: with its kinematics (a joint's
velocity is the derivative of its position, a gyro measures how gravity rotates in body
axes), with the ranges of training, and with the policy, which must reproduce the logged
actions. Of all repairs, the one that explains the most is reported first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simstate.record import Log
from simstate.train.log_repairs import MAX_LAG, repairs_of
from simstate.train.passport_log import (
    GRAVITY,
    QUATERNION,
    Array,
    LogSignals,
    down_of,
    signals_of,
    turns_of,
)
from simstate.train.policy_passport import ACTION, CLOCK, PassportPolicy

MAX_FAULTS = 4
GAIN = 1.5
"""Minimum decrease of the sum of log misfits that makes a repair a fault."""
_RANGE = "training range:"
"""Relation whose violations are a separate kind of fault."""
_MARGIN = 0.15
"""Fraction of a training range by which values may exceed it."""
_SHARE = 0.05
"""Fraction of the samples that may be outside of the range."""
_UNEXPLAINED = 0.5
"""Misfit above which a relation does not hold; healthy logs have up to 0.25."""
_LONG = 50
"""Minimum number of control steps for which this holds."""
_RATE = 0.05
"""Largest relative difference of rates."""


@dataclass(frozen=True)
class Fault:
    """A difference between a passport and a log."""

    kind: str
    """"swapped", "sign", "degrees", "quaternion order", "frame", "rate", "lag",
    "offset", "range" or "unexplained"."""
    columns: tuple[str, ...]
    """Signals, or components as "signal/component"; relations that are unexplained."""
    detail: str
    evidence: str


@dataclass(frozen=True)
class LogReport:
    """Result of comparing a log with a passport."""

    faults: tuple[Fault, ...]
    """Faults, the clearest first."""
    notes: tuple[str, ...]
    """Signals and relations that could not be compared."""
    misfits: dict[str, float]
    """Misfit of each relation after all repairs; 0: it holds, 1: unrelated."""


def compare_log(policy: PassportPolicy, log: Log) -> LogReport:
    """Compare a log with a policy's passport; return its faults."""
    return _Comparison(policy, signals_of(log, policy.passport)).report()


class _Comparison:
    """A log's signals, and the relations that they must satisfy."""

    def __init__(self, policy: PassportPolicy, signals: LogSignals) -> None:
        self._policy, self._signals = policy, signals
        self._passport = policy.passport
        self._columns = {
            f"{one.source}/{one.component}": one for one in self._passport.observations
        }
        self._turn = 0.0
        """Phase of the clock at the first row [turns]."""
        self._notes = [f"{name}: not in the log." for name in signals.missing]
        self._ranges = self._training_ranges()
        self._inputs = self._network_columns()

    def report(self) -> LogReport:
        """Return the faults; rates are checked first, and end the search."""
        faults, table = list(self._rate_faults()), self._signals.table
        if not faults:
            table, faults = self._repaired(table)
        is_guess = any(one.kind in ("rate", "offset", "range") for one in faults)
        faults += self._range_faults(table)
        names, misfits, _ = self._misfits(table)
        found = dict(zip(names, misfits.tolist(), strict=True))
        if len(table) >= _LONG and not is_guess:
            faults += _unexplained(found)
        return LogReport(tuple(faults), tuple(self._notes), found)

    def _repaired(self, table: Array) -> tuple[Array, list[Fault]]:
        """Return the table after the best repairs, and the corresponding faults."""
        faults = list[Fault]()
        for _ in range(MAX_FAULTS):
            self._turn = self._best_turn(table)
            names, before, score = self._misfits(table)
            signals = dataclasses.replace(self._signals, table=table)
            runs_policy = self._inputs is not None
            repairs = list(repairs_of(signals, self._columns.values(), runs_policy))
            gains = [
                score - self._misfits(one.apply(table))[2] - one.cost for one in repairs
            ]
            if max(gains, default=0.0) < GAIN:
                break
            best = repairs[int(np.argmax(gains))]
            table = best.apply(table)
            after = self._misfits(table)[1]
            change = np.log(before + 0.02) - np.log(after + 0.02)
            evidence = "; ".join(
                f"{names[k]} {before[k]:.3g} → {after[k]:.2g}"
                for k in np.argsort(-change)[:3]
                if change[k] > 0.1
            )
            faults.append(Fault(best.kind, best.columns, best.detail, evidence))
            if best.kind in ("offset", "range"):  # only partly repaired
                break
        return table, faults

    def _misfits(self, table: Array) -> tuple[list[str], Array, float]:
        """Return names and misfits of the relations, and the sum of their logs."""
        table = table[: len(table) - MAX_LAG]  # repaired lags are valid up to there
        names, misfits, score = list[str](), list[Array](), 0.0
        for name, parts, values, floor in self._relations(table):
            names += [f"{name} {part}" for part in parts]
            misfits.append(values)
            score += float(np.log(values + floor).sum())
        return names, np.concatenate(misfits), score

    def _relations(self, table: Array) -> Iterator[tuple[str, list[str], Array, float]]:
        """Yield name, parts, misfits (0 where they hold) and a floor of each."""
        signals, dt = self._signals, self._signals.dt
        q, v = signals.joints()
        quat, gyro = signals.place(QUATERNION), signals.place("root_link_ang_vel_b")
        down = signals.place(GRAVITY)
        if q and v:
            moved = np.diff(table[:, q], axis=0) / dt
            size = _apart(moved, _between(table[:, v]), self._noise(v))
            yield "d joint_pos/dt = joint_vel:", self._parts(q), size, 0.03
        if gyro and quat:
            moved = turns_of(table[:, quat]) / dt
            size = _apart(moved, _between(table[:, gyro]), self._noise(gyro))
            yield "d quaternion/dt = angular velocity:", list("xyz"), size, 0.03
        elif gyro and down:
            turned = np.cross(_between(table[:, down]), _between(table[:, gyro]))
            moved = np.diff(table[:, down], axis=0) / dt
            size = _apart(moved, turned, self._noise(gyro))
            yield "d gravity/dt = gravity × angular velocity:", list("xyz"), size, 0.03
        if down:
            size = np.linalg.norm(table[:, down], axis=1) - 1.0
            yield "length of", ["gravity"], np.array([(size**2).mean()]), 0.01
        if down and quat:
            gap = table[:, down] - down_of(table[:, quat])
            yield "gravity of the quaternion:", list("xyz"), (gap**2).mean(0), 1e-3
        excess = self._excess(table).clip(0.0, 10.0)
        names = [f"{name}" for name in self._ranges]
        yield _RANGE, names, (excess**2).mean(0), 0.02
        if self._inputs is not None:
            at = signals.places[ACTION]
            wanted = table[self._first :, at]
            gap = ((self._acted(table) - wanted) ** 2).mean(0)
            size = (gap / (wanted.var(axis=0) + 1e-4)).clip(0.0, 100.0)
            yield "the policy's action:", self._parts(at), size, 0.01

    # The policy.

    def _network_columns(self) -> NDArray[np.int64] | None:
        """Return the table's column of each network input; None: do not run the policy.

        −1 is a clock, −2 … −4 is gravity, computed from the quaternion.
        """
        where = {name: k for k, name in enumerate(self._signals.names)}
        if self._signals.place(QUATERNION) and not self._signals.place(GRAVITY):
            derived = [name for name in self._columns if GRAVITY in name]
            where |= {name: -2 - "xyz".index(name[-1]) for name in derived}
            self._notes = [x for x in self._notes if f"{GRAVITY}: " not in x]
        columns = self._passport.observations
        where |= {
            name: -1 for name, one in self._columns.items() if one.source == CLOCK
        }
        names = [f"{one.source}/{one.component}" for one in columns]
        self._late = np.array(
            [c.age + (c.source == ACTION) + sum(c.delay) // 2 for c in columns], int
        )
        self._first = int(self._late.max(initial=0))
        is_complete = all(name in where for name in names) and not (
            self._passport.pictures
        )
        if ACTION not in self._signals.places or not is_complete:
            self._notes.append(
                "The policy was not run, which needs all of its signals and actions."
            )
            return None
        return np.array([where[name] for name in names])

    def _acted(self, table: Array) -> Array:
        """Return the policy's actions for the rows of a table, from `_first` on."""
        assert self._inputs is not None
        columns, rows = self._passport.observations, np.arange(self._first, len(table))
        quat = self._signals.place(QUATERNION)
        down = down_of(table[:, quat]) if quat else np.zeros((len(table), 3))
        # After the signals: gravity as −4 … −2, and a clock's column, set below.
        table = np.concatenate([table, down[:, ::-1], down[:, :1]], axis=1)
        seen = table[rows[:, None] - self._late, self._inputs]
        for k, one in enumerate(columns):
            if one.source == CLOCK and one.period_s:
                turns = (rows - one.age) * self._passport.step_dt / one.period_s
                wave = np.cos if one.component == "cos" else np.sin
                seen[:, k] = wave(2.0 * np.pi * (turns + self._turn))
        clip = np.array([c.clip or (-np.inf, np.inf) for c in columns])
        seen = (seen - [c.offset for c in columns]).clip(*clip.T)
        seen = (seen * [c.scale for c in columns]).astype(np.float32)
        return self._policy.actions({"obs": seen}).astype(np.float64)

    def _best_turn(self, table: Array) -> float:
        """Return the phase at the first row for which the policy fits best [turns]."""
        periods = [c.period_s for c in self._passport.observations if c.period_s]
        if self._inputs is None or not periods:
            return 0.0
        count = max(1, round(periods[0] / self._passport.step_dt))
        scores = dict[float, float]()
        for k in range(count):
            self._turn = k / count
            scores[self._turn] = self._misfits(table)[2]
        return min(scores, key=scores.__getitem__)

    # Rates and ranges.

    def _rate_faults(self) -> Iterator[Fault]:
        rates, wanted = self._signals.rates, self._passport.rate
        wrong = [ACTION] if abs(rates.get(ACTION, wanted) / wanted - 1) > _RATE else []
        slow = [name for name, rate in rates.items() if rate < wanted * (1 - _RATE)]
        for name in wrong or slow:
            yield Fault(
                "rate", (name,), f"is at {rates[name]:.4g} Hz, not {wanted:.4g} Hz",
                f"median interval {1e3 / rates[name]:.4g} ms, in training "
                f"{1e3 / wanted:.4g} ms",
            )  # fmt: skip

    def _training_ranges(self) -> dict[str, tuple[float, float]]:
        """Return the training ranges of the table's columns, with a margin."""
        known = {name: (one.low, one.high) for name, one in self._columns.items()}
        for one in self._passport.actions:
            if one.scale:  # else its range says nothing about the action
                ends = [(x - one.offset) / one.scale for x in (one.low, one.high)]
                known[f"{ACTION}/{one.name}"] = min(ends), max(ends)
        more = {n: _MARGIN * (high - low) + 1e-3 for n, (low, high) in known.items()}
        return {
            name: (known[name][0] - more[name], known[name][1] + more[name])
            for name in self._signals.names
            if name in known
        }

    def _excess(self, table: Array) -> Array:
        """Return distances from the training ranges, in widths; (steps, ranges)."""
        low, high = np.array(list(self._ranges.values())).reshape(-1, 2).T
        values = table[:, [self._signals.names.index(name) for name in self._ranges]]
        return np.maximum(low - values, values - high).clip(0.0) / (high - low)

    def _range_faults(self, table: Array) -> Iterator[Fault]:
        outside = (self._excess(table) > 0.0).mean(0)
        for (name, (low, high)), share in zip(
            self._ranges.items(), outside.tolist(), strict=True
        ):
            if share > _SHARE:
                values = table[:, self._signals.names.index(name)]
                yield Fault(
                    "range", (name,), "is outside of the training range",
                    f"{100 * share:.0f} % of the samples; {values.min():.3g} … "
                    f"{values.max():.3g}, in training {low:.3g} … {high:.3g}",
                )  # fmt: skip

    def _parts(self, at: list[int]) -> list[str]:
        return [self._signals.names[k].rpartition("/")[2] for k in at]

    def _noise(self, at: list[int]) -> float:
        """Return the standard deviation of a signal's noise in training [unit]."""
        return max(self._columns[self._signals.names[k]].noise_std for k in at)


def _unexplained(misfits: dict[str, float]) -> Iterator[Fault]:
    """Yield a fault if relations do not hold after all repairs."""
    wrong = {
        name: misfit
        for name, misfit in sorted(misfits.items(), key=lambda item: -item[1])
        if misfit > _UNEXPLAINED and not name.startswith(_RANGE)
    }
    if wrong:
        worst = list(wrong.items())[:3]
        yield Fault(
            "unexplained", tuple(wrong), "does not hold; no known fault explains it",
            "; ".join(f"{name} {misfit:.3g}" for name, misfit in worst),
        )  # fmt: skip


def _between(values: Array) -> Array:
    return (values[1:] + values[:-1]) / 2.0


def _apart(one: Array, other: Array, noise: float) -> Array:
    """Return the misfit of two signals by column: 0 if equal, 2 if opposite."""
    power = (one**2).mean(0) + (other**2).mean(0) + noise**2 + 1e-6
    return ((one - other) ** 2).mean(0) / power
