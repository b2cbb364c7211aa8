"""Timeline: steps that events, tasks and records interrupt, world by world."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, SimStateError
from simstate.base.ids import int_list
from simstate.engine import OneTorchThread, Seen, Stage
from simstate.step.crossing import find_crossing
from simstate.step.crossings import Action, Event, PeriodicTask
from simstate.step.forcing import Forcing
from simstate.step.stepper import Stepper, union
from simstate.world.calls import Scope
from simstate.world.worlds import Worlds

if TYPE_CHECKING:
    from simstate.step.history import History

MOST_EVENTS = 200
"""Events in one world and one time step; more are taken for events without end."""


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
        self._bad: Tensor | None = None
        inner.timesteps()  # registers each world's time step, which a step cannot do

    def advance_by(self, stepper: Stepper) -> None:
        """Take the parts by another stepper from now on."""
        self.inner = stepper

    # What a stepper is.

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
        engine.begin_step()
        going = torch.ones_like(self.stopped)
        if rows is not None:
            going = torch.zeros_like(going).index_fill(0, rows, True)
        invalid = self._forcing.invalid_worlds()
        if invalid is not None:  # such worlds stay, and are reported afterwards
            going &= ~invalid
        self.stopped.zero_()
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
        before = [event.values(going.nonzero().flatten()) for event in self.events]
        start = self._time.clone()
        taken, failed = self.inner.attempt(limit, going)
        going = going & ~failed
        self._moved(going, self.inner.current_through)
        after = [event.values(going.nonzero().flatten()) for event in self.events]
        crossed = [
            event.crossed(values) & going
            for event, values in zip(self.events, after, strict=True)
        ]
        some = torch.stack(crossed).any(dim=0) if crossed else torch.zeros_like(going)
        if bool(some.any()) and self.inner.can_cut:
            taken = self._cut(crossed, some, before, after, taken)
            now = [event.values(going.nonzero().flatten()) for event in self.events]
            crossed = [
                event.crossed(values) & going
                for event, values in zip(self.events, now, strict=True)
            ]
        for history in self.histories:
            history.take(self, start, taken, going)
        self._arm(going & ~some)
        if bool(some.any()):
            self._happen(crossed)
            self._arm(some)
        return taken, failed

    # Crossings.

    def _cut(
        self,
        crossed: list[Tensor],
        some: Tensor,
        before: list[Tensor],
        after: list[Tensor],
        taken: Tensor,
    ) -> Tensor:
        """Move worlds back to their first crossing; returns how far they came."""
        worlds = some.nonzero().flatten()
        mask = torch.stack(crossed)[:, worlds]
        signs = torch.stack([-event.side[worlds] for event in self.events])
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
        fine = torch.finfo(self._time.dtype).eps  # float32 on warp
        least = 4 * fine * self._time[worlds].double().abs()
        tolerance = torch.stack(
            [torch.where(mask[k], e.tolerance, torch.inf)
             for k, e in enumerate(self.events)]
        ).amin(dim=0)  # fmt: skip
        h = find_crossing(
            at, taken[worlds].clone(), distance(before, everyone).clamp(max=0.0),
            distance(after, everyone), torch.maximum(tolerance, least),
        )  # fmt: skip
        self.go_to(h, worlds)
        return taken.index_copy(0, worlds, h)

    def go_to(self, h: Tensor, worlds: Tensor) -> None:
        """Bring worlds to a time after the start of the present part [s]."""
        self._restore("the start of a part", worlds)
        self.inner.move(h, worlds)
        moved = torch.zeros_like(self.stopped).index_fill(0, worlds, True)
        self._moved(moved, self.inner.current_through)

    def visit(self, h: Tensor, worlds: Tensor, look: Callable[[], None]) -> None:
        """Look at worlds at a time within the part that was taken [s].

        They go on from its end as if nobody had looked.
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
            ids = (going & task.due(self._time)).nonzero().flatten()
            if len(ids):
                task.last[ids] = task.sample(self._time)[ids]
                self._call(task.function, ids, f"Task {task.name!r}")

    def _call(self, function: Action, ids: Tensor, what: str) -> None:
        """Run a user's function; it writes the worlds that it is given, and no time."""
        sim, ledger = self._sim, self._worlds.ledger
        others = torch.ones_like(self.stopped).index_fill(0, ids, False)
        kept = ledger.backup("run", "the start of an action")
        kept.save()
        now = self._time.clone()
        function(sim, ids.clone())
        ledger.observe()
        written = kept.changed() & others
        if bool(written.any()):
            raise InvalidInputError(
                f"{what} wrote to world {int(written.nonzero()[0])}, but was called "
                f"for {_some(ids)}: write only the env_ids that it is given."
            )
        if not torch.equal(now, self._time):
            raise InvalidInputError(
                f"{what} changed the time of a world, by a reset perhaps, in the "
                "middle of a step. Let the event be terminal, and reset after the run."
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
        return SimStateError(
            f"World {int(self._num_events.argmax())} has come to {MOST_EVENTS} events "
            f"within one time step: one of {names} happens again as soon as it has "
            "happened. Let its action end that, or make it terminal."
        )


def _some(ids: Tensor) -> str:
    shown = ", ".join(map(str, int_list(ids[:5])))
    return f"worlds {shown}{' …' if len(ids) > 5 else ''}"
