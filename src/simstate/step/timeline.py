"""Timeline: steps that are divided at events, tasks and samples of each world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, SimStateError
from simstate.base.ids import int_list
from simstate.engine import OneTorchThread, Seen, Stage
from simstate.step.crossings import CrossingSearch
from simstate.step.forcing import Forcing
from simstate.step.step_parts import StepParts
from simstate.step.stepper import Stepper, union
from simstate.step.timeline_events import Action, Event, PeriodicTask
from simstate.world.calls import Scope
from simstate.world.worlds import Worlds

if TYPE_CHECKING:
    from simstate.step.history import History

MOST_EVENTS = 200
"""Maximum number of events in one world and one time step; more raise an error."""


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
        self.parts = StepParts(worlds, inner)
        """Moves worlds within the current part of a step."""
        self._sim = sim
        self.events: list[Event] = []
        self.tasks: list[PeriodicTask] = []
        self.histories: list[History] = []
        self._search = CrossingSearch(worlds, self.parts, self.events)
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
        self.parts.advance_by(stepper)

    # The stepper interface.

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
        self._marks = [history.mark() for history in self.histories]
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
        with OneTorchThread():
            span = self.inner.timesteps()
            # With events, an adaptive scheme ends a step at every time step: a longer
            # step may pass two crossings.
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
        """True if `inner` may take a time step without events in one call."""
        inner, worlds = self.inner, self._worlds
        return (
            worlds.engine.state_is_live
            and worlds.fresh.mode == "auto"
            and not inner.chooses_steps
            and not self._forcing.has_state
        )

    def _take_quiet(self) -> bool:
        """Take a time step of all worlds if it contains no event and no task.

        Returns:
            False if it does; only the tasks that are due have then run.
        """
        worlds = self._worlds
        is_written = self._current != worlds.fresh.tokens
        if self.tasks and (is_written or not self._quiet_steps):
            if not self._find_quiet_steps():
                self._run_tasks(torch.ones_like(self.stopped))
                if not self._find_quiet_steps():
                    return False
            is_written = True
        if self.events and not self._search.begin_quiet(is_written):
            return False
        self.parts.begin()
        start = self.parts.time.clone() if self.histories else self.parts.time
        seen = self.inner.advance(1, None)
        # MuJoCo's step leaves contacts and forces of the state before it.
        worlds.fresh.write(Stage.ACCELERATION, None, "a step")
        if not seen and self._search.is_quiet():
            for history in self.histories:
                h = self.inner.timesteps()
                history.take(self.parts, start, h, torch.ones_like(self.stopped))
            self._current = worlds.fresh.tokens.copy()
            self._quiet_steps -= 1
            return True
        self.parts.return_to_start(torch.ones_like(self.stopped).nonzero().flatten())
        return False

    def _find_quiet_steps(self) -> int:
        """Return the number of steps before the next task; 0 if it is within one."""
        time, h = self.parts.time.numpy(), self.inner.timesteps().numpy()
        self._quiet_steps = min(task.quiet_steps(time, h) for task in self.tasks)
        return self._quiet_steps

    def _take(self, span: Tensor, going: Tensor, until: Tensor | None) -> Tensor:
        """Advance worlds by a span [s] in parts; return the mask of those stuck."""
        time = self.parts.time
        start = time.clone()
        if until is not None and self.inner.can_cut:
            span = torch.minimum(span, (until - start).clamp(min=0.0))
        elapsed = torch.zeros_like(span)  # float64: float32 could not reach the span
        stuck = torch.zeros_like(going)
        self._num_events.zero_()
        self._search.arm(going)
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
        """Take one part of a step, up to the first crossing if any."""
        self.parts.begin()
        self._search.begin(going)
        start = self.parts.time.clone()
        taken, failed = self.inner.attempt(limit, going)
        going = going & ~failed
        self.parts.mark_moved(going.nonzero().flatten(), self.inner.current_through)
        found = None
        if self.events:
            found = self._search.go_to_first(taken, going)
            taken = found.taken
        for history in self.histories:
            history.take(self.parts, start, taken, going)
        if found is not None:
            self._search.arm(going & ~found.worlds)
            if bool(found.worlds.any()):
                self._happen(found.crossed)
                self._search.arm(found.worlds)
                self._search.arm_after_actions(found.crossed, self.stopped)
        return taken, failed

    # Events and tasks.

    def _happen(self, crossed: Sequence[Tensor]) -> None:
        """Count the events, run their actions, and stop where one is terminal."""
        now = self.parts.time.clone()
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
                self._call(event.action, ids, "The action of event", event.name)

    def _run_tasks(self, going: Tensor) -> None:
        for task in self.tasks:
            sample = task.sample(self.parts.time)
            ids = (going & task.is_due(sample)).nonzero().flatten()
            if len(ids):
                task.last[ids] = sample[ids]
                self._call(task.function, ids, "Task", task.name)

    def _call(self, function: Action, ids: Tensor, kind: str, name: str) -> None:
        """Run a user's function, which may only write its worlds, and not the time."""
        sim, ledger = self._sim, self._worlds.ledger
        kept = None
        if len(ids) < self._worlds.num_envs:
            kept = ledger.backup("run", "the start of an action")
            kept.save()
        now = self.parts.time.clone()
        function(sim, ids.clone())
        ledger.observe()
        if kept is not None:
            others = torch.ones_like(self.stopped).index_fill(0, ids, False)
            written = int_list((kept.changed() & others).nonzero().flatten())
            if written:
                raise InvalidInputError(
                    f"{kind} {name!r} wrote to world {written[0]}, but was called for "
                    f"{_some(ids)}: only write to the given env_ids.",
                    name=name,
                    worlds=written,
                )
        if not torch.equal(now, self.parts.time):
            raise InvalidInputError(
                f"{kind} {name!r} changed the time of a world, by a reset perhaps, in "
                "the middle of a step. Let the event be terminal, and reset after "
                "the run.",
                name="time",
            )
        if self._worlds.fresh.constants_are_behind:  # the rest of the step needs them
            self._worlds.fresh.refresh_constants()

    def _endless(self) -> SimStateError:
        names = ", ".join(repr(event.name) for event in self.events)
        world = int(self._num_events.argmax())
        return SimStateError(
            f"World {world} had more than {MOST_EVENTS} events within one time step: "
            f"one of {names} recurs immediately. Change its action so that it does "
            "not, or make it terminal.",
            name="events",
            worlds=[world],
        )


def _some(ids: Tensor) -> str:
    shown = ", ".join(map(str, int_list(ids[:5])))
    return f"worlds {shown}{' …' if len(ids) > 5 else ''}"
