"""Epochs: the instant of a simulation's time zero."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import instance_of, number
from simstate.base.errors import InvalidInputError
from simstate.base.extras import library

DAY = 86400.0
"""[s]."""
J2000 = 2451545.0
"""Julian date of the epoch J2000.0."""


def load_erfa() -> Any:
    """Import pyerfa, which the extra `space` installs."""
    what = "Epochs, the Earth's orientation and the analytic Sun and Moon"
    return library("erfa", "space", what, package="pyerfa")


@dataclass(frozen=True)
class Epoch:
    """The instant at which the simulation's time is zero.

    A simulation's time runs in SI seconds, so a leap second is not a step in it.
    """

    tt_days: float
    """Terrestrial time at t = 0: first part of the Julian date [days]."""
    tt_fraction: float
    """Second part of the Julian date [days]."""
    ut1_minus_tt: float
    """UT1 − TT at t = 0 [s], which is held constant, also over leap seconds."""

    @classmethod
    def utc(cls, date: str, dut1: float = 0.0) -> Epoch:
        """Return the epoch of a UTC date; `dut1` is UT1 − UTC [s], |dut1| ≤ 0.9.

        Needs pyerfa (extra `space`).
        """
        instance_of("date", date, str, " A date is '2026-11-16T12:00:00'.")
        number("dut1", dut1, at_least=-0.9, at_most=0.9, unit="s")
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
        if when.year < 1960:
            raise InvalidInputError(
                f"UTC is defined from 1960 on, got {date!r}.", name="date"
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
        """Return terrestrial time as a two-part Julian date, at times [s]."""
        return np.full_like(t, self.tt_days), self.tt_fraction + t / DAY

    def tdb_seconds(self, t: np.ndarray) -> np.ndarray:
        """Return barycentric dynamical time past J2000.0 [s], SPICE's time."""
        days, fraction = self.tt(t)
        past = (days - J2000 + fraction) * DAY
        # The yearly term of the difference; the others are below 0.05 ms.
        return past + 1.657e-3 * np.sin(6.239996 + 1.99096871e-7 * past)

    def earth_rotation_angle(self, t: Tensor) -> Tensor:
        """Return the Earth rotation angle [rad] at times [s], IERS Conventions 2010."""
        seconds = t.double() + self.ut1_minus_tt
        start = (self.tt_days - J2000) % 1.0 + self.tt_fraction
        elapsed = self.tt_days - J2000 + self.tt_fraction + seconds / DAY
        turns = 0.7790572732640 + 0.00273781191135448 * elapsed
        turns = turns + start + seconds / DAY
        return 2 * torch.pi * (turns % 1.0)
