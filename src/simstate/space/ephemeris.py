"""Ephemerides of Sun, Moon and others, as Chebyshev polynomials of any source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import (
    all_of,
    as_path,
    check_finite,
    has_shape,
    instance_of,
    number,
    whole_number,
)
from simstate.base.errors import InvalidInputError
from simstate.base.extras import library
from simstate.base.ids import Values
from simstate.engine import core
from simstate.space.epoch import DAY, Epoch, load_erfa
from simstate.space.planets import ASTRONOMICAL_UNIT

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost

Source = Callable[[np.ndarray], np.ndarray]
"""Function of times [s], (n,), that returns vectors, (n, 3)."""

_MOST_SEGMENTS = 100_000


class Ephemeris:
    """A vector over time, as polynomials in segments that are fitted on demand.

    It is the same for all worlds, and its cost does not depend on the source. The fit
    is plain data: `start`, `segment` and `coefficients`.

    Args:
        source: a function of times [s], (n,), that returns (n, 3).
        segment: length of a segment [s].
        degree: degree of the polynomials.
        name: name in errors.
    """

    def __init__(
        self, source: Source, segment: float, degree: int = 13, name: str = "ephemeris"
    ) -> None:
        number("segment", segment, more_than=0, unit="s")
        whole_number("degree", degree, 1)
        self.source, self.segment, self.degree, self.name = (
            source,
            segment,
            degree,
            name,
        )
        self.start = 0.0
        """Start of the first segment [s]."""
        self.coefficients = torch.zeros(0, degree + 1, 3, dtype=torch.float64)
        """Coefficients of Chebyshev's polynomials; (segments, degree + 1, 3)."""

    def attach(self, sim: SteppingHost) -> None:
        """Go to a simulation's device."""
        self.coefficients = self.coefficients.to(sim.device)

    def fit(self, start: float, end: float) -> None:
        """Fit polynomials from one time to another [s]; existing ones are kept."""
        first, last = (int(np.floor(t / self.segment)) for t in (start, end))
        known = len(self.coefficients)
        if known:
            first = min(first, round(self.start / self.segment))
            last = max(last, round(self.start / self.segment) + known - 1)
        if last - first + 1 > _MOST_SEGMENTS:
            raise InvalidInputError(
                f"{self.name} would need {last - first + 1} segments of "
                f"{self.segment:g} s from {start:g} to {end:g} s, and at most "
                f"{_MOST_SEGMENTS} are fitted: use a larger segment.",
                name="segments",
            )
        before = first if not known else round(self.start / self.segment)
        left = self._fitted(first, before)
        right = self._fitted(before + known, last + 1)
        parts = [left, self.coefficients.cpu(), right]
        self.coefficients = torch.cat(parts).to(self.coefficients.device)
        self.start = first * self.segment

    def _fitted(self, first: int, end: int) -> Tensor:
        """Return the polynomials of segments first, …, end − 1; (n, degree + 1, 3)."""
        count = self.degree + 1
        if end <= first:
            return torch.zeros(0, count, 3, dtype=torch.float64)
        angle = np.pi * (np.arange(count) + 0.5) / count
        middle = (np.arange(first, end) + 0.5) * self.segment
        times = middle[:, None] + 0.5 * self.segment * np.cos(angle)
        values = np.asarray(self.source(times.reshape(-1)), dtype=np.float64)
        what = f"The source of {self.name}"
        has_shape(what, values, (times.size, 3))
        check_finite(torch.as_tensor(values), what, after="")
        weights = 2.0 / count * np.cos(np.outer(np.arange(count), angle))
        weights[0] *= 0.5
        found = np.einsum("kj,njc->nkc", weights, values.reshape(-1, count, 3))
        return torch.as_tensor(found)

    def _cover(self, start: float, end: float) -> None:
        """Fit what is missing between two times [s], and ahead for the next steps."""
        known = len(self.coefficients)
        if not known or start < self.start or end > self.start + known * self.segment:
            try:
                self.fit(start, end + 8 * self.segment)
            except Exception:  # the source may end before that
                self.fit(start, end)

    def polynomials(self, start: float, end: float) -> core.Polynomials | None:
        """Return the polynomials for the compiled core; None for a subclass."""
        if type(self) is not Ephemeris:
            return None
        self._cover(start, end)
        found = self.coefficients.cpu().numpy()
        return core.Polynomials(self.start, self.segment, found)

    def __call__(self, t: Values | float) -> Tensor:
        """Return the vector at times [s], a number or (n,); shape (n, 3), float64."""
        t = torch.as_tensor(t, dtype=torch.float64).reshape(-1)
        if not len(t):
            return t.new_zeros(0, 3)
        self._cover(float(t.min()), float(t.max()))
        offset = (t - self.start) / self.segment
        index = offset.floor().long().clamp(0, len(self.coefficients) - 1)
        x = (2 * (offset - index) - 1).clamp(-1.0, 1.0)
        orders = torch.arange(self.degree + 1, device=t.device, dtype=torch.float64)
        functions = torch.cos(orders * torch.acos(x)[:, None])
        return (functions[..., None] * self.coefficients[index]).sum(dim=1)


def sun(epoch: Epoch) -> Ephemeris:
    """Return the Sun from the Earth's centre, GCRS axes [m]; within 10 km of DE421.

    By ERFA's epv00; needs pyerfa (extra `space`).
    """
    instance_of("epoch", epoch, Epoch)

    def position(t: np.ndarray) -> np.ndarray:
        heliocentric, _ = load_erfa().epv00(*epoch.tt(t))
        return -heliocentric["p"] * ASTRONOMICAL_UNIT

    return Ephemeris(position, segment=4 * DAY, name="the Sun's ephemeris")


def moon(epoch: Epoch) -> Ephemeris:
    """Return the Moon from the Earth's centre, GCRS axes [m]; within 20 km of DE421.

    By ERFA's moon98; needs pyerfa (extra `space`).
    """
    instance_of("epoch", epoch, Epoch)

    def position(t: np.ndarray) -> np.ndarray:
        return load_erfa().moon98(*epoch.tt(t))["p"] * ASTRONOMICAL_UNIT

    return Ephemeris(position, segment=DAY, name="the Moon's ephemeris")


def spice_body(
    target: str,
    observer: str,
    epoch: Epoch,
    kernels: Sequence[str | Path],
    segment: float = DAY,
) -> Ephemeris:
    """Return a body from another, by SPICE kernels; J2000 axes [m], no light time.

    Needs spiceypy (extra `space`).

    Args:
        target: such as "MOON" or "301".
        observer: such as "EARTH" or "399".
        epoch: the epoch of t = 0.
        kernels: files to load (at least an SPK), or none if they are loaded already.
        segment: length of the fitted polynomials [s].
    """
    instance_of("epoch", epoch, Epoch)
    files = [as_path("kernels", one) for one in all_of("kernels", kernels, object)]
    spice = _load_spice()
    for kernel in files:
        if not kernel.is_file():
            raise InvalidInputError(
                f"There is no SPICE kernel {kernel}.", name=str(kernel)
            )
        spice.furnsh(str(kernel))

    def position(t: np.ndarray) -> np.ndarray:
        seconds = epoch.tdb_seconds(t)
        try:
            found, _ = spice.spkpos(target, seconds, "J2000", "NONE", observer)
        except spice.utils.exceptions.SpiceyError as error:
            raise InvalidInputError(
                f"The SPICE kernels have no position of {target} from {observer} from "
                f"t = {t.min():g} to {t.max():g} s, the segments to fit: load kernels "
                f"for this time, or use a smaller segment. SPICE: {error.short}",
                name="kernels",
            ) from error
        return np.asarray(found) * 1e3

    return Ephemeris(position, segment, name=f"{target} from {observer}")


def _load_spice() -> Any:
    return library("spiceypy", "space", "SPICE kernels")
