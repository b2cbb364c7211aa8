"""Epochs: which instant the simulation's time zero is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.base.extras import library

DAY = 86400.0
"""[s]."""
J2000 = 2451545.0
"""Julian date of the epoch J2000.0."""


def load_erfa() -> Any:
    """Pyerfa, which the extra `space` brings."""
    what = "Epochs, the Earth's orientation and the analytic Sun and Moon"
    return library("erfa", "space", what, package="pyerfa")


@dataclass(frozen=True)
class Epoch:
    """The instant at which the simulation's time is zero.

    A simulation's time runs in SI seconds, so a leap second is not a step in it.
    """

    tt_days: float
    """Terrestrial time at t = 0, whole Julian days."""
    tt_fraction: float
    """The rest of it [days]."""
    ut1_minus_tt: float
    """UT1 − TT at t = 0 [s]; kept, so leap seconds after it do not matter."""

    @classmethod
    def utc(cls, date: str, dut1: float = 0.0) -> Epoch:
        """A date as "2026-11-16T12:00:00", UTC; `dut1` is UT1 − UTC [s], |dut1| < 0.9.

        Needs pyerfa (extra `space`).
        """
        try:
            when = datetime.fromisoformat(date)
        except ValueError as error:
            raise InvalidInputError(
                f"An epoch is a date such as '2026-11-16T12:00:00', got {date!r}.",
                name="date",
            ) from error
        if when.utcoffset():
            raise InvalidInputError(
                f"An epoch is in UTC, got {date!r}: convert it first.", name="date"
            )
        erfa = load_erfa()
        second = when.second + when.microsecond * 1e-6
        day = (when.year, when.month, when.day, when.hour, when.minute, second)
        utc = erfa.dtf2d("UTC", *day)
        days, fraction = erfa.taitt(*erfa.utctai(*utc))
        ut1 = erfa.utcut1(*utc, dut1)
        apart = ((ut1[0] - days) + (ut1[1] - fraction)) * DAY
        return cls(float(days), float(fraction), float(apart))

    def tt(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Terrestrial time as a two-part Julian date, at times [s] after the epoch."""
        return np.full_like(t, self.tt_days), self.tt_fraction + t / DAY

    def tdb_seconds(self, t: np.ndarray) -> np.ndarray:
        """Barycentric dynamical time past J2000.0 [s], as SPICE counts it."""
        days, fraction = self.tt(t)
        past = (days - J2000 + fraction) * DAY
        # The yearly term of the difference; the others are below 0.05 ms.
        return past + 1.657e-3 * np.sin(6.239996 + 1.99096871e-7 * past)

    def earth_rotation_angle(self, t: Tensor) -> Tensor:
        """The Earth rotation angle [rad] at times [s]; IERS Conventions (2010)."""
        seconds = t.double() + self.ut1_minus_tt
        start = (self.tt_days - J2000) % 1.0 + self.tt_fraction
        whole = self.tt_days - J2000 + self.tt_fraction + seconds / DAY
        turns = 0.7790572732640 + 0.00273781191135448 * whole
        turns = turns + start + seconds / DAY
        return 2 * torch.pi * (turns % 1.0)
