"""Timeline: steps that events, tasks and records interrupt, world by world."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.engine import OneTorchThread, Stage
from simstate.errors import InvalidInputError, SimStateError
from simstate.ids import int_list
from simstate.integrate.crossing import find_crossing
from simstate.integrate.events import Action, Event, Task

if TYPE_CHECKING:
    from simstate.integrate.history import History
    from simstate.integrate.integration import Integration
    from simstate.integrate.partial import PartialSteps

MOST_EVENTS = 200
"""In one world and one time step; more are taken for events without end."""


class Timeline:
    """Takes steps in parts: to the next crossing, the next task, the end."""

    def __init__(self, integration: Integration, parts: PartialSteps) -> None:
        self.sim = integration.sim
        self.parts = parts
        self.events: list[Event] = []
        self.tasks: list[Task] = []
        self.histories: list[History] = []
        self.until: Tensor | None = None
        """Where a run ends [s], in each world; None: no run."""
        self.stopped = torch.zeros(
            self.sim.num_envs, dtype=torch.bool, device=self.sim.device
        )
        """Worlds that a terminal event ended the last call in."""
        self._happened = torch.zeros_like(self.stopped, dtype=torch.int64)
        """Events in the present time step, of each world."""
        self._marks: list[int] = []

    @property
    def is_busy(self) -> bool:
        """Whether steps have anything to stop at."""
        return bool(self.events or self.tasks or self.histories) or (
            self.until is not None
        )

    def step(self, n: int, env_ids: Tensor | None) -> Tensor | None:
        """Advance by n time steps; returns worlds that could not be, or None."""
        going = torch.ones_like(self.stopped)
        if env_ids is not None:
            going = torch.zeros_like(going).index_fill(0, env_ids, True)
        self.stopped.zero_()
        stuck = torch.zeros_like(going)
        self._marks = [history.mark() for history in self.histories]
        try:
            with OneTorchThread():
                span = self.parts.timestep()
                # Where events are looked for, a step of the scheme's own ends with
                # every time step: a longer one may pass two crossings.
                if self.parts.has_own_steps and not self.events:
                    n, span = 1, n * span
                for _ in range(n):
                    stuck |= self._advance(span, going & ~self.stopped & ~stuck)
        except BaseException:
            self.forget(None)
            raise
        return stuck if bool(stuck.any()) else None

    def forget(self, worlds: Tensor | None) -> None:
        """Take samples of the last call back, of some worlds (None: all of them)."""
        for history, mark in zip(self.histories, self._marks, strict=True):
            history.forget(mark, worlds)

    def _advance(self, span: Tensor, going: Tensor) -> Tensor:
        """Move worlds on by a span [s] in parts; returns those that got stuck."""
        time = self._time
        start = time.clone()
        if self.until is not None and self.parts.can_be_cut:
            span = torch.minimum(span, (self.until - start).clamp(min=0.0))
        elapsed = torch.zeros_like(start)
        stuck = torch.zeros_like(going)
        self._happened.zero_()
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
            if bool((self._happened > MOST_EVENTS).any()):
                raise self._endless()
        return stuck

    def _part(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """One part of a step, to the first crossing if there is one."""
        kept = self.sim.internals.ledger.backup("step", "the start of a part")
        kept.save()
        before = [event.values(going.nonzero().flatten()) for event in self.events]
        start = self._time.clone()
        taken, failed = self.parts.attempt(limit, going)
        going = going & ~failed
        self._moved(going, self.parts.has_refreshed)
        after = [event.values(going.nonzero().flatten()) for event in self.events]
        crossed = [
            event.crossed(values) & going
            for event, values in zip(self.events, after, strict=True)
        ]
        some = torch.stack(crossed).any(dim=0) if crossed else torch.zeros_like(going)
        if bool(some.any()) and self.parts.can_be_cut:
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
        self._put_back("the start of a part", worlds)
        self.parts.exactly(h, worlds)
        moved = torch.zeros_like(self.stopped).index_fill(0, worlds, True)
        self._moved(moved, self.parts.has_refreshed)

    def visit(self, h: Tensor, worlds: Tensor, look: Callable[[], None]) -> None:
        """Look at worlds at a time within the part that was taken [s].

        They go on from its end as if nobody had looked.
        """
        end = "the end of a part"
        self.sim.internals.ledger.backup("step", end).save()
        self.go_to(h, worlds)
        look()
        self._put_back(end, worlds)
        self._moved(torch.zeros_like(self.stopped).index_fill(0, worlds, True))

    def _put_back(self, purpose: str, worlds: Tensor) -> None:
        """Give worlds what they had, but for the count of evaluations."""
        physics, counted = self.sim.internals, self.parts.evaluations
        count = None if counted is None else counted.clone()
        stage = physics.ledger.backup("step", purpose).put_back(worlds)
        if counted is not None and count is not None:
            counted.copy_(count)
        if stage == Stage.CONSTANT:
            physics.set_const(worlds)

    def _happen(self, crossed: list[Tensor]) -> None:
        """Count the events, run their actions, and stop where one is terminal."""
        now = self._time.clone()
        for event, worlds in zip(self.events, crossed, strict=True):
            ids = worlds.nonzero().flatten()
            if not len(ids):
                continue
            event.count[ids] += 1
            self._happened[ids] += 1
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
        sim, ledger = self.sim, self.sim.internals.ledger
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

    # Inner parts.

    @property
    def _time(self) -> Tensor:
        return self.sim.internals.engine.field("time").data

    def _arm(self, worlds: Tensor) -> None:
        ids = worlds.nonzero().flatten()
        if len(ids):
            for event in self.events:
                event.arm(event.values(ids), ids)

    def _moved(self, worlds: Tensor, is_refreshed: bool = False) -> None:
        """Let what is derived in these worlds, and not refreshed, be computed anew."""
        physics, ids = self.sim.internals, worlds.nonzero().flatten()
        physics.fresh.write(Stage.POSITION, ids, "a part of a step")
        if is_refreshed:
            physics.fresh.forwarded(ids, Stage.VELOCITY)
        if physics.fresh.mode != "auto":  # in auto mode the first read does it
            physics.forward(ids)

    def _endless(self) -> SimStateError:
        names = ", ".join(repr(event.name) for event in self.events)
        return SimStateError(
            f"World {int(self._happened.argmax())} has come to {MOST_EVENTS} events "
            f"within one time step: one of {names} happens again as soon as it has "
            "happened. Let its action end that, or make it terminal."
        )


def _some(ids: Tensor) -> str:
    shown = ", ".join(map(str, int_list(ids[:5])))
    return f"worlds {shown}{' …' if len(ids) > 5 else ''}"
