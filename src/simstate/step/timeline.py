"""Timeline: steps that events, tasks and records interrupt, world by world."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, SimStateError
from simstate.base.ids import int_list
from simstate.engine import OneTorchThread, Seen, Stage
from simstate.step.crossing import find_crossing, first_change, turning_point
from simstate.step.crossings import Action, Event, PeriodicTask
from simstate.step.dense_output import DenseOutput
from simstate.step.forcing import Forcing
from simstate.step.stepper import Stepper, union
from simstate.world.calls import Scope
from simstate.world.worlds import Worlds

if TYPE_CHECKING:
    from simstate.step.history import History

MOST_EVENTS = 200
"""Events in one world and one time step; more are taken for events without end."""


class _Changes(NamedTuple):
    """The first crossings of events in a part; shape (num_events, num_envs) each."""

    start: Tensor
    """A share of the part at which it has not happened."""
    end: Tensor
    """A share at which it has; infinite: it does not."""
    side: Tensor
    """The sign at `start`."""


class Timeline:
    """Adds events, tasks and histories to a stepper.

    It takes steps in parts: to the next crossing, the next task, the end. Its scope is
    "run", since actions may write anything.
    """

    scope: Scope = "run"
    current_through = Stage.CONSTANT
    settles = False

    def __init__(
        self, worlds: Worlds, forcing: Forcing, inner: Stepper, sim: Any
    ) -> None:
        self._worlds = worlds
        self._forcing = forcing
        self.inner = inner
        """The stepper that takes the parts."""
        self._sim = sim
        self.events: list[Event] = []
        self.tasks: list[PeriodicTask] = []
        self.histories: list[History] = []
        shape, device = (worlds.num_envs,), worlds.device
        self.stopped = torch.zeros(shape, dtype=torch.bool, device=device)
        """Worlds in which a terminal event ended the last call; (num_envs,)."""
        self._num_events = torch.zeros(shape, dtype=torch.int64, device=device)
        """Number of events in the current time step; (num_envs,)."""
        self._marks: list[int] = []
        self._current: list[int] = []
        """The tokens of all stages after the last step in which nothing happened."""
        self._quiet_steps = 0
        """Steps until the next task, if nothing has been written since."""
        self._bad: Tensor | None = None
        inner.timesteps()  # registers each world's time step, which a step cannot do

    def advance_by(self, stepper: Stepper) -> None:
        """Take the parts by another stepper from now on."""
        self.inner = stepper

    @cached_property
    def _dense(self) -> DenseOutput:
        with torch.inference_mode(False):
            return DenseOutput(self._worlds)

    # What a stepper is.

    @property
    def has_dense_output(self) -> bool:
        """True if states within a step may be interpolated between its ends."""
        return self.inner.has_dense_output

    @property
    def can_cut(self) -> bool:
        """True if a step may be taken in parts."""
        return self.inner.can_cut

    @property
    def chooses_steps(self) -> bool:
        """True if the scheme chooses the length of its steps."""
        return self.inner.chooses_steps

    @property
    def evaluations(self) -> Tensor | None:
        """Number of evaluations so far, where they are counted; (num_envs,)."""
        return self.inner.evaluations

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Advance the worlds of a mask once, each by at most `limit` [s]."""
        return self.inner.attempt(limit, going)

    def move(self, h: Tensor, rows: Tensor) -> None:
        """Advance each of these worlds by exactly h [s]; shape (n,)."""
        self.inner.move(h, rows)

    def timesteps(self) -> Tensor:
        """Return the time step of each world [s], float64; (num_envs,)."""
        return self.inner.timesteps()

    def bad(self) -> Tensor | None:
        """Return the mask of worlds that the last step could not advance, or None."""
        return self._bad

    def advance(self, n: int, rows: Tensor | None, until: Tensor | None = None) -> int:
        """Advance worlds by n time steps, or `until` a time [s]; None: all worlds.

        Returns:
            Flags of `Seen`.
        """
        engine, fresh = self._worlds.engine, self._worlds.fresh
        self.stopped.zero_()
        if rows is None and until is None and self._can_be_quiet:
            while n and self._take_quiet():
                n -= 1
            if not n:
                self._bad = None
                return 0
        self._current = []
        engine.begin_step()
        going = torch.ones_like(self.stopped)
        if rows is not None:
            going = torch.zeros_like(going).index_fill(0, rows, True)
        invalid = self._forcing.invalid_worlds()
        if invalid is not None:  # such worlds stay, and are reported afterwards
            going &= ~invalid
        stuck = torch.zeros_like(going)
        self._marks = [history.mark() for history in self.histories]
        with OneTorchThread():
            span = self.inner.timesteps()
            # Where events are looked for, a step of the scheme's own ends with
            # every time step: a longer one may pass two crossings.
            if self.inner.chooses_steps and not self.events:
                n, span = 1, n * span
            for _ in range(n):
                moving = going & ~self.stopped & ~stuck
                stuck |= self._take(span, moving, until)
        is_all = rows is None and invalid is None
        moved = None if is_all else going.nonzero().flatten()
        fresh.mark_current(Stage.CONSTANT, moved, evaluated=False)
        if fresh.mode != "auto":  # in auto mode the first read does it
            self._worlds.forward(moved)
        seen = engine.seen()
        bad = union(
            engine.find_bad() if seen & Seen.BAD else None,
            stuck if bool(stuck.any()) else None,
            invalid,
            self._forcing.invalid_worlds(),
        )
        self._bad = bad
        if bad is not None:
            for history, mark in zip(self.histories, self._marks, strict=True):
                history.forget(mark, bad)
            seen |= Seen.STUCK
        return seen

    @property
    def _can_be_quiet(self) -> bool:
        """True if a step in which nothing happens may be taken by `inner` alone."""
        inner, worlds = self.inner, self._worlds
        return (
            worlds.engine.state_is_live
            and worlds.fresh.mode == "auto"
            and not inner.chooses_steps
            and not (self.events and inner.has_dense_output)
            and not self.histories
            and not self._forcing.has_state
        )

    def _take_quiet(self) -> bool:
        """Take a time step of all worlds if nothing happens within it.

        Returns:
            False if something does; only the tasks that are due have run then.
        """
        worlds = self._worlds
        is_written = self._current != worlds.fresh.tokens
        if self.tasks and (is_written or not self._quiet_steps):
            if not self._find_quiet_steps():
                self._run_tasks(torch.ones_like(self.stopped))
                if not self._find_quiet_steps():
                    return False
            is_written = True
        if is_written and not all(event.is_quiet() for event in self.events):
            self._arm(torch.ones_like(self.stopped))
        worlds.ledger.backup("step", "the start of a part").save()
        seen = self.inner.advance(1, None)
        if not seen and all(event.is_quiet() for event in self.events):
            self._current = worlds.fresh.tokens.copy()
            self._quiet_steps -= 1
            return True
        everywhere = torch.ones_like(self.stopped)
        self._restore("the start of a part", everywhere.nonzero().flatten())
        self._moved(everywhere)
        return False

    def _find_quiet_steps(self) -> int:
        """Count the steps until the next task; 0 if one is due, or within a step."""
        time, h = self._time.numpy(), self.inner.timesteps().numpy()
        self._quiet_steps = min(task.quiet_steps(time, h) for task in self.tasks)
        return self._quiet_steps

    def _take(self, span: Tensor, going: Tensor, until: Tensor | None) -> Tensor:
        """Advance worlds by a span [s] in parts; return the mask of those stuck."""
        time = self._time
        start = time.clone()
        if until is not None and self.inner.can_cut:
            span = torch.minimum(span, (until - start).clamp(min=0.0))
        elapsed = torch.zeros_like(start)
        stuck = torch.zeros_like(going)
        self._num_events.zero_()
        self._arm(going)
        while bool(going.any()):
            self._run_tasks(going)
            limit = span - elapsed
            for task in self.tasks:
                limit = torch.minimum(limit, task.until_next(time.double()))
            taken, failed = self._part(limit, going)
            elapsed += torch.where(going, taken, 0.0)
            stuck |= failed
            fine = 4 * torch.finfo(torch.float64).eps * (start + span).abs()
            done = going & (span - elapsed <= torch.maximum(fine, 1e-12 * span))
            whole = done & ~self.stopped
            time.copy_(torch.where(whole, (start + span).to(time.dtype), time))
            going = going & ~done & ~self.stopped & ~failed
            if bool((self._num_events > MOST_EVENTS).any()):
                raise self._endless()
        return stuck

    def _part(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """One part of a step, to the first crossing if there is one."""
        kept = self._worlds.ledger.backup("step", "the start of a part")
        kept.save()
        before = self._values(going)
        if self.events and self.inner.has_dense_output:
            self._dense.begin()
        start = self._time.clone()
        taken, failed = self.inner.attempt(limit, going)
        going = going & ~failed
        self._moved(going, self.inner.current_through)
        if not self.events:
            for history in self.histories:
                history.take(self, start, taken, going)
            return taken, failed
        after = self._values(going)
        changes = self._changes(before, after, taken, going)
        some = going & changes.end.amin(dim=0).isfinite()
        crossed = [torch.zeros_like(going) for _ in self.events]
        if bool(some.any()):
            if self.inner.can_cut:
                taken = self._cut(changes, some, before, after, taken)
            now = self._values(going)
            crossed = [
                event.crossed(values) & some
                for event, values in zip(self.events, now, strict=True)
            ]
        for history in self.histories:
            history.take(self, start, taken, going)
        self._arm(going & ~some)
        if bool(some.any()):
            self._happen(crossed)
            self._arm(some)
            self._arm_again(crossed)
        return taken, failed

    def _values(self, worlds: Tensor) -> list[Tensor]:
        ids = worlds.nonzero().flatten()
        return [event.values(ids) for event in self.events]

    # Crossings.

    def _changes(
        self, before: list[Tensor], after: list[Tensor], taken: Tensor, going: Tensor
    ) -> _Changes:
        """Find the first crossing of each event in a part, by samples of it."""
        ids = going.nonzero().flatten()
        one = torch.ones_like(taken)
        samples = [([one], [values]) for values in after]
        if self.inner.has_dense_output and len(ids):
            self._dense.end()
            middle = self._values_at(0.5 * one, taken, ids)
            turns = [turning_point(*x) for x in zip(before, middle, after, strict=True)]
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
            self._moved(going)  # derived values are those of the last sample
        found = [
            first_change(event.side, event.before, torch.stack(times), torch.stack(at))
            for event, (times, at) in zip(self.events, samples, strict=True)
        ]
        return _Changes(*(torch.stack(part) for part in zip(*found, strict=True)))

    def _values_at(self, share: Tensor, taken: Tensor, ids: Tensor) -> list[Tensor]:
        """Return the functions of the events at a share of the part, interpolated."""
        self._dense.go_to(share, taken, ids)
        self._moved(torch.zeros_like(self.stopped).index_fill(0, ids, True))
        return [event.values(ids) for event in self.events]

    def _cut(
        self,
        changes: _Changes,
        some: Tensor,
        before: list[Tensor],
        after: list[Tensor],
        taken: Tensor,
    ) -> Tensor:
        """Move worlds back to their first crossing; returns how far they came."""
        worlds = some.nonzero().flatten()
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
            self.go_to(h, worlds[ids])
            return distance([event.values(worlds[ids]) for event in self.events], ids)

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
        fine = torch.finfo(self._time.dtype).eps  # float32 on warp
        least = 4 * fine * self._time[worlds].double().abs()
        tolerance = torch.stack(
            [torch.where(mask[k], e.tolerance, torch.inf)
             for k, e in enumerate(self.events)]
        ).amin(dim=0)  # fmt: skip
        h = find_crossing(
            at, first * length, last * length, at_start, at_end,
            torch.maximum(tolerance, least),
        )  # fmt: skip
        h = torch.where(at_end > 0, h, length)
        self.go_to(h, worlds)  # which restores the sides, too
        for event, side, chosen in zip(self.events, changes.side, mask, strict=True):
            event.side[worlds[chosen]] = side[worlds[chosen]]
        return taken.index_copy(0, worlds, h)

    def _arm_again(self, crossed: list[Tensor]) -> None:
        """Note on which side of zero worlds will be shortly after an action.

        A body that bounces is beyond zero by rounding, and on its way back.
        """
        acting = [
            (event, worlds & ~self.stopped)
            for event, worlds in zip(self.events, crossed, strict=True)
            if event.action is not None
        ]
        if not acting or not self.inner.can_cut:
            return
        worlds = torch.stack([mask for _, mask in acting]).any(dim=0)
        ids = worlds.nonzero().flatten()
        if not len(ids):
            return
        purpose = "the time after an action"
        self._worlds.ledger.backup("step", purpose).save()
        fine = 64 * torch.finfo(self._time.dtype).eps * self._time[ids].double().abs()
        tolerance = 8 * max(event.tolerance for event, _ in acting)
        self.inner.move(fine.clamp(min=tolerance), ids)
        self._moved(worlds, self.inner.current_through)
        values = [event.values(mask.nonzero().flatten()) for event, mask in acting]
        self._restore(purpose, ids)
        self._moved(worlds)
        for (event, mask), found in zip(acting, values, strict=True):
            event.arm(found, mask.nonzero().flatten())

    def go_to(self, h: Tensor, worlds: Tensor) -> None:
        """Move worlds to a time after the start of the present part [s]."""
        self._restore("the start of a part", worlds)
        self.inner.move(h, worlds)
        moved = torch.zeros_like(self.stopped).index_fill(0, worlds, True)
        self._moved(moved, self.inner.current_through)

    def visit(self, h: Tensor, worlds: Tensor, look: Callable[[], None]) -> None:
        """Look at worlds at a time within the part that was taken [s].

        They continue from its end as if there had been no observer.
        """
        end = "the end of a part"
        self._worlds.ledger.backup("step", end).save()
        self.go_to(h, worlds)
        look()
        self._restore(end, worlds)
        self._moved(torch.zeros_like(self.stopped).index_fill(0, worlds, True))

    def _restore(self, purpose: str, worlds: Tensor) -> None:
        """Restore worlds, except for their count of evaluations."""
        counted = self.inner.evaluations
        count = None if counted is None else counted.clone()
        constants = self._worlds.ledger.backup("step", purpose).restore(worlds)
        if counted is not None and count is not None:
            counted.copy_(count)
        if constants:
            self._worlds.parameters.set_const(worlds)

    def _happen(self, crossed: list[Tensor]) -> None:
        """Count the events, run their actions, and stop where one is terminal."""
        now = self._time.clone()
        for event, worlds in zip(self.events, crossed, strict=True):
            ids = worlds.nonzero().flatten()
            if not len(ids):
                continue
            event.count[ids] += 1
            self._num_events[ids] += 1
            event.time[ids] = now[ids].double()
            event.side[ids] = -event.side[ids]
            if event.terminal:
                self.stopped |= worlds
            if event.action is not None:
                self._call(event.action, ids, f"The action of event {event.name!r}")

    def _run_tasks(self, going: Tensor) -> None:
        for task in self.tasks:
            sample = task.sample(self._time)
            ids = (going & task.is_due(sample)).nonzero().flatten()
            if len(ids):
                task.last[ids] = sample[ids]
                self._call(task.function, ids, f"Task {task.name!r}")

    def _call(self, function: Action, ids: Tensor, what: str) -> None:
        """Run a user's function; it writes the worlds that it is given, and no time."""
        sim, ledger = self._sim, self._worlds.ledger
        kept = None
        if len(ids) < self._worlds.num_envs:
            kept = ledger.backup("run", "the start of an action")
            kept.save()
        now = self._time.clone()
        function(sim, ids.clone())
        ledger.observe()
        if kept is not None:
            others = torch.ones_like(self.stopped).index_fill(0, ids, False)
            written = kept.changed() & others
            if bool(written.any()):
                raise InvalidInputError(
                    f"{what} wrote to world {int(written.nonzero()[0])}, but was "
                    f"called for {_some(ids)}: write only the env_ids that it is "
                    "given.",
                    name=what,
                )
        if not torch.equal(now, self._time):
            raise InvalidInputError(
                f"{what} changed the time of a world, by a reset perhaps, in the "
                "middle of a step. Let the event be terminal, and reset after the run.",
                name="time",
            )
        if self._worlds.fresh.constants_are_behind:  # the rest of the step needs them
            self._worlds.fresh.refresh_constants()

    # Inner parts.

    @property
    def _time(self) -> Tensor:
        return self._worlds.engine.field("time").data

    def _arm(self, worlds: Tensor) -> None:
        ids = worlds.nonzero().flatten()
        if len(ids):
            for event in self.events:
                event.arm(event.values(ids), ids)

    def _moved(self, worlds: Tensor, current_through: Stage = Stage.CONSTANT) -> None:
        """Mark derived values in these worlds as stale, beyond the current stage."""
        fresh, ids = self._worlds.fresh, worlds.nonzero().flatten()
        fresh.write(Stage.POSITION, ids, "a part of a step")
        if current_through > Stage.CONSTANT:
            fresh.mark_current(current_through, ids, evaluated=True)
        if fresh.mode != "auto":  # in auto mode the first read does it
            self._worlds.forward(ids)

    def _endless(self) -> SimStateError:
        names = ", ".join(repr(event.name) for event in self.events)
        world = int(self._num_events.argmax())
        return SimStateError(
            f"World {world} has come to {MOST_EVENTS} events "
            f"within one time step: one of {names} happens again as soon as it has "
            "happened. Let its action end that, or make it terminal.",
            name="events",
            worlds=[world],
        )


def _some(ids: Tensor) -> str:
    shown = ", ".join(map(str, int_list(ids[:5])))
    return f"worlds {shown}{' …' if len(ids) > 5 else ''}"
