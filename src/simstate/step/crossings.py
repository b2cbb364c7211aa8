"""Search for the first zero crossings in a step, for all worlds at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simstate.engine import Stage
from simstate.step.dense_output import DenseOutput
from simstate.step.step_parts import StepParts
from simstate.step.timeline_events import Event
from simstate.world.worlds import Worlds

MOST_ITERATIONS = 120
"""Limit of a search; bisection of a day to 1e-10 s takes 50."""


class _Changes(NamedTuple):
    """Intervals of events' first crossings; shape (num_events, num_envs) each."""

    start: Tensor
    """Fraction of the part at which the event has not happened yet."""
    end: Tensor
    """Fraction at which it has happened; infinite if it does not."""
    side: Tensor
    """The sign at `start`."""


class FirstCrossings(NamedTuple):
    """The first crossings of zero in a part of a step; shape (num_envs,) each."""

    taken: Tensor
    """Time by which each world has advanced in the part [s]."""
    worlds: Tensor
    """Mask of the worlds that are at a crossing."""
    crossed: Sequence[Tensor]
    """For each event, the mask of worlds in which it happens."""


class CrossingSearch:
    """Finds the first crossings of events in a part of a step, and moves worlds there.

    Events are compared at the ends of the part. If the scheme has dense output, the
    part is also sampled in between, which detects functions that cross zero and return.
    """

    def __init__(
        self, worlds: Worlds, parts: StepParts, events: Sequence[Event]
    ) -> None:
        self._worlds, self._parts, self._events = worlds, parts, events
        self._before: list[Tensor] = []
        self._quiet: list[NDArray[np.float64]] | None = None
        """The events' functions at the start of a step in which none may happen."""

    @cached_property
    def _dense(self) -> DenseOutput:
        with torch.inference_mode(False):
            return DenseOutput(self._worlds)

    def begin(self, going: Tensor) -> None:
        """Start a part with the worlds of a mask."""
        self._before = self._values(going.nonzero().flatten())
        if self._events and self._parts.stepper.has_dense_output:
            self._dense.begin()

    def go_to_first(self, taken: Tensor, going: Tensor) -> FirstCrossings:
        """Move worlds back to their first crossing in a part that was taken.

        Args:
            taken: the length of the part in each world [s]; (num_envs,).
            going: the mask of worlds that took it.
        """
        ids = going.nonzero().flatten()
        after = self._values(ids)
        changes = self._changes(after, taken, going)
        some = going & changes.end.amin(dim=0).isfinite()
        if not bool(some.any()):
            return FirstCrossings(taken, some, [some for _ in self._events])
        if self._parts.stepper.can_cut:
            taken = self._cut(changes, some, after, taken)
        now = self._values(ids)
        crossed = [
            event.crossed(values) & some
            for event, values in zip(self._events, now, strict=True)
        ]
        return FirstCrossings(taken, some, crossed)

    def begin_quiet(self, is_written: bool) -> bool:
        """Start a time step of all worlds, which may be taken in one call.

        Args:
            is_written: True if anything was written since the last step.

        Returns:
            False if an event may be at a crossing already.
        """
        is_sampled = self._parts.stepper.has_dense_output
        if is_written or len(self._quiet or ()) != len(self._events):
            self._quiet = self._quiet_values()
            if self._quiet is None:
                self.arm(torch.ones_like(self._events[0].side, dtype=torch.bool))
                self._quiet = self._quiet_values() if is_sampled else []
        if is_sampled:
            self._dense.begin()
        return self._quiet is not None

    def is_quiet(self) -> bool:
        """Return True if no event happened in a time step of all worlds.

        With dense output, neither a sample at its middle nor the parabola through the
        samples may reach zero; derived values are then stale.
        """
        before, self._quiet = self._quiet, self._quiet_values()
        after = self._quiet
        if before is None or after is None or not self._events:
            return after is not None
        if not self._parts.stepper.has_dense_output:
            return True
        self._dense.end()
        h = self._parts.stepper.timesteps()
        self._dense.go_to(torch.full_like(h, 0.5), h, None)
        self._mark_sampled()
        middle = self._quiet_values()
        self._dense.restore(None)
        self._mark_sampled()
        # A parabola is between the values at its ends and its second Bézier
        # coefficient, which is half of this.
        return middle is not None and all(
            ((4 * y - x - z) * event.side.numpy() >= 0).all()
            for event, x, y, z in zip(self._events, before, middle, after, strict=True)
        )

    def _quiet_values(self) -> list[NDArray[np.float64]] | None:
        """Return the events' functions; None if one does not have its last sign."""
        found: list[NDArray[np.float64]] = []
        for event in self._events:
            values = event.quiet_values()
            if values is None:
                return None
            found.append(values)
        return found

    def _mark_sampled(self) -> None:
        """Mark derived values in all worlds as those of another state."""
        self._worlds.fresh.write(Stage.POSITION, None, "a part of a step")

    def arm(self, worlds: Tensor) -> None:
        """Record the sides of zero from which the next crossings are detected."""
        ids = worlds.nonzero().flatten()
        if len(ids):
            for event in self._events:
                event.arm(event.values(ids), ids)

    def _changes(self, after: list[Tensor], taken: Tensor, going: Tensor) -> _Changes:
        """Find the first crossing of each event in a part, by samples of it."""
        ids = going.nonzero().flatten()
        one = torch.ones_like(taken)
        samples = [([one], [values]) for values in after]
        if self._parts.stepper.has_dense_output and len(ids):
            self._dense.end()
            middle = self._values_at(0.5 * one, taken, ids)
            turns = [
                turning_point(*x) for x in zip(self._before, middle, after, strict=True)
            ]
            for k, turn in enumerate(turns):
                times, values = samples[k]
                times.append(0.5 * one)
                values.append(middle[k])
                there = (going & turn.isfinite()).nonzero().flatten()
                if len(there):
                    at = turn.nan_to_num(nan=1.0)
                    found = self._values_at(at, taken, there)[k]
                    times.append(at)
                    values.append(torch.where(turn.isfinite(), found, after[k]))
            self._dense.restore(ids)
            self._parts.mark_moved(ids)  # derived values are those of the last sample
        found = [
            first_change(event.side, event.before, torch.stack(times), torch.stack(at))
            for event, (times, at) in zip(self._events, samples, strict=True)
        ]
        return _Changes(*(torch.stack(part) for part in zip(*found, strict=True)))

    def _values_at(self, share: Tensor, taken: Tensor, ids: Tensor) -> list[Tensor]:
        """Return the events' functions at a fraction of the part, interpolated."""
        self._dense.go_to(share, taken, ids)
        self._parts.mark_moved(ids)
        return self._values(ids)

    def _cut(
        self, changes: _Changes, some: Tensor, after: list[Tensor], taken: Tensor
    ) -> Tensor:
        """Move worlds back to their first crossing; return their advance [s]."""
        worlds, before = some.nonzero().flatten(), self._before
        starts, ends = changes.start[:, worlds], changes.end[:, worlds]
        last = ends.amin(dim=0)
        mask = ends == last
        first = torch.where(mask, starts, 0.0).amax(dim=0)
        signs = -changes.side[:, worlds]
        scale = (torch.stack(before)[:, worlds].abs()
                 + torch.stack(after)[:, worlds].abs())  # fmt: skip

        def distance(values: list[Tensor], ids: Tensor) -> Tensor:
            """Above zero where any of the crossings has happened; (m,)."""
            beyond = signs[:, ids] * torch.stack(values)[:, worlds[ids]] / scale[:, ids]
            return torch.where(mask[:, ids], beyond, -torch.inf).amax(dim=0)

        def at(h: Tensor, ids: Tensor) -> Tensor:
            self._parts.go_to(h, worlds[ids])
            return distance(self._values(worlds[ids]), ids)

        everyone = torch.arange(len(worlds), device=worlds.device)
        length = taken[worlds]
        at_end = distance(after, everyone)
        at_start = distance(before, everyone)
        # Interpolated samples are only a hint: masses and processes have none.
        within = (first > 0).nonzero().flatten()
        if len(within):
            at_start[within] = at((first * length)[within], within)
        within = (last < 1).nonzero().flatten()
        if len(within):
            there = torch.full_like(at_end, torch.inf)
            there[within] = at((last * length)[within], within)
            is_later = there <= 0
            at_start = torch.where(is_later, there, at_start)
            at_end = torch.where(is_later | there.isinf(), at_end, there)
            first = torch.where(is_later, last, first)
            last = torch.where(is_later, 1.0, last)
        # After an action the start may be beyond zero, and on its way back.
        at_start = torch.where(at_start < 0, at_start, -1.0)
        fine = torch.finfo(self._parts.time.dtype).eps  # float32 on warp
        least = 4 * fine * self._parts.time[worlds].double().abs()
        tolerance = torch.stack(
            [torch.where(mask[k], e.tolerance, torch.inf)
             for k, e in enumerate(self._events)]
        ).amin(dim=0)  # fmt: skip
        h = find_crossing(
            at, first * length, last * length, at_start, at_end,
            torch.maximum(tolerance, least),
        )  # fmt: skip
        h = torch.where(at_end > 0, h, length)
        self._parts.go_to(h, worlds)  # which restores the sides, too
        for event, side, chosen in zip(self._events, changes.side, mask, strict=True):
            event.side[worlds[chosen]] = side[worlds[chosen]]
        return taken.index_copy(0, worlds, h)

    def arm_after_actions(self, crossed: Sequence[Tensor], stopped: Tensor) -> None:
        """Record on which side of zero worlds will be shortly after an action.

        A bouncing body is beyond zero by rounding, and on its way back.
        """
        acting = [
            (event, mask & ~stopped)
            for event, mask in zip(self._events, crossed, strict=True)
            if event.action is not None
        ]
        if not acting or not self._parts.stepper.can_cut:
            return
        ids = torch.stack([mask for _, mask in acting]).any(dim=0).nonzero().flatten()
        if not len(ids):
            return
        time = self._parts.time
        fine = 64 * torch.finfo(time.dtype).eps * time[ids].double().abs()
        tolerance = 8 * max(event.tolerance for event, _ in acting)
        found: list[Tensor] = []

        def look() -> None:
            found.extend(
                event.values(mask.nonzero().flatten()) for event, mask in acting
            )

        self._parts.look_ahead(fine.clamp(min=tolerance), ids, look)
        for (event, mask), values in zip(acting, found, strict=True):
            event.arm(values, mask.nonzero().flatten())

    def _values(self, ids: Tensor) -> list[Tensor]:
        return [event.values(ids) for event in self._events]


# One crossing.


def find_crossing(
    function: Callable[[Tensor, Tensor], Tensor],
    start: Tensor,
    end: Tensor,
    at_start: Tensor,
    at_end: Tensor,
    tolerance: Tensor,
) -> Tensor:
    """Return times at which functions are positive, at most `tolerance` after a root.

    Inverse quadratic interpolation, or bisection where that converges faster: T. R.
    Chandrupatla, Advances in Engineering Software 28 (1997).

    Args:
        function: maps times and the indices of the intervals, (m,) both, to values.
        start: the start of each interval; (n,).
        end: its end; (n,).
        at_start: the values at the start, which are ≤ 0; (n,).
        at_end: the values at the end, which are > 0; (n,).
        tolerance: the maximum width of the last interval; (n,).
    """
    last, f_last = end.clone(), at_end.clone()
    other, f_other = start.clone(), at_start.clone()
    share = torch.full_like(end, 0.5)
    going = (last - other).abs() > tolerance
    for _ in range(MOST_ITERATIONS):
        ids = going.nonzero().flatten()
        if not len(ids):
            break
        x = last[ids] + share[ids] * (other[ids] - last[ids])
        f = function(x, ids)
        same = (f > 0) == (f_last[ids] > 0)
        older = torch.where(same, last[ids], other[ids])
        f_older = torch.where(same, f_last[ids], f_other[ids])
        other[ids] = torch.where(same, other[ids], last[ids])
        f_other[ids] = torch.where(same, f_other[ids], f_last[ids])
        last[ids], f_last[ids] = x, f
        width = (other[ids] - x).abs()
        least = (0.5 * tolerance[ids] / width).clamp(max=0.5)
        share[ids] = _interpolated(
            x, f, other[ids], f_other[ids], older, f_older
        ).clamp(least, 1 - least)
        going[ids] = width > tolerance[ids]
    return torch.where(f_last > 0, last, other)


def _interpolated(
    a: Tensor, fa: Tensor, b: Tensor, fb: Tensor, c: Tensor, fc: Tensor
) -> Tensor:
    """Return the position of the next point from a (0) to b (1); 0.5 by default."""
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    fits = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
    share = fa / (fb - fa) * fc / (fb - fc)
    share = share + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return torch.where(fits & share.isfinite(), share, 0.5)


def first_change(
    side: Tensor, wanted: int, times: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the first interval between samples in which a function crosses zero.

    Args:
        side: the sign at the start, 0 if it is not known; (n,).
        wanted: the sign before the crossing: 1 falling, −1 rising, 0 either.
        times: of the samples; (k, n).
        values: of the function; (k, n).

    Returns:
        The start and the end of the interval, infinite if there is none, and the sign
        at its start; (n,) each.
    """
    times, order = times.sort(dim=0)
    signs = values.gather(0, order).nan_to_num().sign().long()
    start, end = torch.zeros_like(times[0]), torch.full_like(times[0], torch.inf)
    side = side.clone()
    for time, sign in zip(times, signs, strict=True):
        open_ = end.isinf()
        changes = open_ & (sign * side < 0)
        found = changes & (side == wanted) if wanted else changes
        end = torch.where(found, time, end)
        passes = open_ & ~found & (sign != 0)
        start = torch.where(passes, time, start)
        side = torch.where(passes, sign, side)
    return start, end, side


def turning_point(first: Tensor, middle: Tensor, last: Tensor) -> Tensor:
    """Return the extremum of the parabola through samples at 0, ½ and 1; (n,).

    NaN if it is outside the interval or has the sign of all three samples.
    """
    bend = 2 * (first - 2 * middle + last)
    slope = last - first - bend
    at = -slope / (2 * bend)
    value = first + at * (slope + at * bend)
    differs = (value * first < 0) | (value * middle < 0) | (value * last < 0)
    return torch.where((at > 0) & (at < 1) & differs, at, torch.nan)
