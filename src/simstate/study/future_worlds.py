"""Futures: the same worlds under different controls, without touching the worlds.

`futures` branches every world of a simulation or an environment into K futures, steps
them under given controls and reads quantities on the way. A future starts from the
complete world: actuator state, warm start, delays, targets, memory, parameters and
random streams. It has the bits that a restore of the world followed by the same calls
would give, for any K, chunk and number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor

from simstate.base.checks import (
    as_array,
    check_called_as,
    check_finite,
    has_shape,
    whole_number,
)
from simstate.base.errors import InvalidInputError, ShapeError
from simstate.base.ids import int_list
from simstate.engine.memory_budget import free_memory, native_bytes, readable
from simstate.record import reads_of
from simstate.simulation import Simulation
from simstate.state import Snapshot, take_snapshot
from simstate.step.history import Recorded
from simstate.study import scratch_worlds as scratch
from simstate.study.future_values import TASK, Futures, FutureValues
from simstate.study.rollout import advance
from simstate.study.scratch_worlds import Make, is_env, ledger_of, sim_of
from simstate.world.worlds import worlds_of

Cost: TypeAlias = Callable[[Any], Tensor]
"""`cost(sim)` returns the cost of the current state of each world; (num_envs,)."""
_RESERVED = ("cost", "diverged", "returns", "state", "seeds", "values", *TASK)
_CACHED_ROWS = 1024
"""Rows of a chunk above which larger chunks are no faster."""


def futures(
    target: Any,
    controls: Tensor,
    *,
    read: Recorded = (),
    cost: Cost | None = None,
    every: int = 1,
    seeds: Sequence[int] | Tensor | None = None,
    chunk: int | None = None,
    make: Make | None = None,
) -> Futures:
    """Run K futures of each of N worlds under the given controls.

    The worlds themselves are unchanged: after the call every slot of their ledger has
    the same bits. Futures run in scratch worlds, which are kept between calls. If force
    models, processes, events or tasks were added to the simulation and there is no
    `make`, futures run in its own worlds instead, N at a time, and these are restored.
    Curricula act on values that all worlds share, so an episode that ends in one future
    may affect others of its chunk.

    Args:
        target: a Simulation or an Env.
        controls: controls of each time step, shape (N or 1, K, H, nu); actions of each
            step of an environment, shape (N or 1, K, H, action_dim).
        read: quantities to read, as in `sim.record`: names, or own names with the name
            of a quantity or with a function of the simulation.
        cost: a function of the simulation, shape (num_envs,); its sum over the samples
            is `futures.cost`. None: minus the return of an environment, else zero.
        every: number of steps between two samples, and before the first one.
        seeds: seed of each future's random stream, shape (K,) or (N, K); None: each
            future continues the stream of its world, so that all futures of a world
            draw the same numbers.
        chunk: maximum number of futures that run at a time; None: from the free memory.
            The results do not depend on it.
        make: `make(num_envs)` builds the same simulation or environment with that many
            worlds; it is called when scratch worlds are needed and none are kept.

    Raises:
        InvalidInputError: a control is NaN or infinite, K or H is 0, or the results do
            not fit into memory.
        ShapeError: controls, seeds or a quantity have a wrong shape.
    """
    run = _Run.prepare(target, controls, read, cost, every, seeds, chunk, make)
    first = run.controls[:, 0, 0].expand(run.worlds, -1)
    host = scratch.scratch_of(target, run.rows, make, first)
    run.start = scratch.copy_rows(target)
    with scratch.quiet():
        if host is target:
            run.rows = run.worlds
            return scratch.run_ahead(target, lambda: run.all_in(target))
        return run.all_in(host)


@dataclass
class _Run:
    """One call of `futures`, checked.

    Future k of world n has the index k N + n. A chunk has a row for each of
    consecutive indices; rows beyond the last index repeat the first ones.
    """

    target: Any
    controls: Tensor
    """Shape (N or 1, K, H, width)."""
    read: Recorded
    cost: Cost | None
    every: int
    seeds: Tensor | None
    rows: int
    """Futures that run at a time."""
    worlds: int
    start: dict[str, Tensor] = field(default_factory=dict[str, Tensor])

    @classmethod
    def prepare(
        cls,
        target: Any,
        controls: Tensor,
        read: Recorded,
        cost: Cost | None,
        every: int,
        seeds: Sequence[int] | Tensor | None,
        chunk: int | None,
        make: Make | None,
    ) -> _Run:
        """Check the arguments; nothing has changed if one is rejected."""
        sim = sim_of(target)
        ledger = ledger_of(target)
        ledger.calls.recover()
        if ledger.open:
            raise InvalidInputError(
                "study.futures was called by a term, a force model or an event: a step "
                "is running.",
                name="futures",
            )
        count = sim.num_envs
        given = _shaped_controls(target, controls, count)
        every = whole_number("every", every, 1)
        _, futures_each, horizon, _ = given.shape
        if horizon % every:
            raise InvalidInputError(
                f"every={every} does not divide the horizon of {horizon} steps.",
                name="every",
            )
        if cost is not None:
            check_called_as("cost", cost, "sim", name="cost")
        if make is not None:
            check_called_as("make", make, "num_envs", name="make")
        chosen = _checked_seeds(seeds, count, futures_each)
        total = count * futures_each
        room = _room(target, read, total, horizon, every)
        check_finite(given, "actions" if is_env(target) else "controls", after="")
        given = given.to(_like(target).dtype)
        most = room if chunk is None else whole_number("chunk", chunk, 1)
        chunks = math.ceil(total / min(most, total))
        rows = math.ceil(total / chunks)
        return cls(target, given, read, cost, every, chosen, rows, count)

    def all_in(self, host: Any) -> Futures:
        """Run all futures in a host, chunk by chunk."""
        each, device = self.controls.shape[1], self.controls.device
        found = FutureValues(each * self.worlds, device)
        ends: list[Snapshot] = []
        for begin in range(0, found.total, self.rows):
            indices = torch.arange(begin, begin + self.rows, device=device)
            indices %= found.total
            found.rows = slice(begin, min(begin + self.rows, found.total))
            self._branch(host, indices)
            self._step(host, indices, found)
            worlds = worlds_of(sim_of(host))
            kept = worlds.select(slice(0, found.count))
            ends.append(take_snapshot(worlds, kept, scratch.owners_of(host)))
        found.cost.masked_fill_(found.diverged | found.cost.isnan(), math.inf)

        def by_world(values: Tensor) -> Tensor:
            shape = (each, self.worlds, *values.shape[1:])
            return values.reshape(shape).transpose(0, 1)

        return Futures(
            {name: by_world(values) for name, values in found.values.items()},
            by_world(found.cost),
            by_world(found.diverged),
            self.seeds,
            ends,
            frozenset(self.start),
        )

    def _branch(self, host: Any, indices: Tensor) -> None:
        """Set the rows of a host to the start of these futures."""
        worlds = indices % self.worlds
        scratch.branch(host, self.start, worlds, self.target)
        if self.seeds is None:
            return
        seeds = self.seeds[worlds.cpu(), (indices // self.worlds).cpu()]
        slots = ledger_of(host).slots
        first = scratch.first_world(self.target)
        slots["random/seed"].tensor.copy_(seeds)
        slots["random/world"].tensor.copy_(worlds + first)
        slots["random/count"].tensor.zero_()
        if "random/pcg64" in slots:
            pairs = zip(int_list(seeds), int_list(worlds), strict=True)
            sim_of(host).numpy_rng.seed([seed + first + w for seed, w in pairs])

    def _step(self, host: Any, indices: Tensor, found: FutureValues) -> None:
        """Step the futures of a chunk through the horizon."""
        sim = sim_of(host)
        reads = reads_of(sim, self.read, "read")
        worlds = indices % self.worlds % len(self.controls)
        controls = self.controls[worlds, indices // self.worlds]
        horizon = controls.shape[1]
        every = self.every if reads or self.cost is not None else horizon
        going = torch.ones_like(sim.diverged)
        for begin in range(0, horizon, every):
            if is_env(host):
                for h in range(begin, begin + every):
                    result = scratch.step(host, controls[:, h])
                    found.keep_task(result[1:4], h, horizon)
                    if self.cost is None:
                        reward = torch.where(going, result[1].double(), 0.0)
                        found.add_cost(-reward)
                    going &= ~(result[2] | result[3])
                    found.mark(sim.divergence.new)
            else:
                advance(sim, controls[:, begin : begin + every])
            for name, (function, _) in reads.items():
                value = _checked(function(sim), name, sim)
                found.keep(name, value, begin // every, horizon // every)
            if self.cost is not None:
                cost = _checked(self.cost(sim), "the cost", sim, ())
                check_defined("cost", cost, sim)
                found.add_cost(cost)
        found.mark(sim.diverged)


def check_defined(what: str, values: Tensor, sim: Simulation) -> None:
    """Raise if a user's function returned NaN in a world that has not diverged."""
    wrong = values.isnan().reshape(len(values), -1).any(dim=1) & ~sim.diverged
    if bool(wrong.any()):
        raise InvalidInputError(
            f"The {what} is nan at t = {float(sim.time[wrong][0]):g} s. The state is "
            "finite (a diverged future keeps its last finite state), so the function "
            "itself divides by zero, takes a root of a negative number or the like. "
            "It may return infinity for states to avoid.",
            name=what,
        )


def _checked(value: Any, name: str, sim: Simulation, tail: Any = None) -> Tensor:
    """Return the values of a read, if they have a row for each world."""
    count = sim.num_envs
    if not isinstance(value, Tensor) or value.shape[:1] != (count,):
        shape = getattr(value, "shape", None)
    elif tail is not None and value.shape[1:] != tail:
        shape = value.shape
    else:
        return value
    wanted = f"({count},)" if tail == () else f"({count}, …)"
    raise ShapeError(
        f"{name!r} must be a tensor of shape {wanted}, a row for each world; got "
        f"{type(value).__name__}{'' if shape is None else f' of {tuple(shape)}'}.",
        name=name,
        shape=shape,
    )


def _like(target: Any) -> Tensor:
    """Return the controls or the last actions of all worlds; (num_envs, width)."""
    if is_env(target):
        return target.action
    return worlds_of(sim_of(target)).engine.field("ctrl")


def _shaped_controls(target: Any, controls: Any, count: int) -> Tensor:
    """Return controls as a tensor, if their shape is (N or 1, K, H, width)."""
    what = "actions" if is_env(target) else "controls"
    like = _like(target)
    width = like.shape[1]
    values = controls if isinstance(controls, Tensor) else as_array(controls, what)
    given = torch.as_tensor(values, device=like.device).detach()
    has_shape(what, given, (count, "K", "H", width), (1, "K", "H", width))
    if not given.shape[1] or not given.shape[2]:
        raise InvalidInputError(
            f"{what} have K = {given.shape[1]} futures of H = {given.shape[2]} steps: "
            "both must be at least 1.",
            name=what,
        )
    return given


def _checked_seeds(seeds: Any, worlds: int, each: int) -> Tensor | None:
    """Return the seed of each future, int64 on the host; shape (N, K)."""
    if seeds is None:
        return None
    error = InvalidInputError(
        f"seeds must be integers from 0 to 2⁶³ − 1, got {str(seeds)[:60]}.",
        name="seeds",
    )
    try:
        given = torch.as_tensor(seeds)
    except (TypeError, ValueError, RuntimeError):
        raise error from None
    is_real = given.is_floating_point() or given.is_complex()
    if is_real or given.dtype == torch.bool or bool((given < 0).any()):
        raise error
    has_shape("seeds", given, (each,), (worlds, each))
    return given.long().cpu().expand(worlds, each)


def _room(target: Any, read: Recorded, total: int, horizon: int, every: int) -> int:
    """Return the number of futures to run at a time; raise if results do not fit."""
    sim = sim_of(target)
    reads = reads_of(sim, read, "read")
    for name in reads:
        if name in _RESERVED or not name.isidentifier():
            raise InvalidInputError(
                f"{name!r} cannot be an attribute of futures: give it another name, "
                'such as read={"height": "robot.root_link_pos_w"}.',
                name=name,
            )

    def count() -> int:
        read = {name: function(sim) for name, (function, _) in reads.items()}
        shapes = [_checked(value, name, sim).shape for name, value in read.items()]
        return sum(math.prod(shape[1:]) for shape in shapes)

    # Functions may draw random numbers, so they run in a call that is rolled back.
    width = scratch.run_ahead(target, count) if reads else 0
    slots = list(ledger_of(target).of(scratch.owners_of(target)))
    held = sum(math.prod(s.shape) * s.tensor.element_size() for s in slots)
    kept = total * (held + 8 * width * (horizon // every) + 8 * horizon)
    free = free_memory(sim.device)
    if free is None:
        return _CACHED_ROWS
    if kept > free:
        raise InvalidInputError(
            f"{total} futures of {horizon} steps with {width} values per sample need "
            f"about {readable(kept)}, and {readable(free)} are free: use fewer "
            "futures, a shorter horizon, fewer quantities or a larger every=. Nothing "
            "was done.",
            name="memory",
        )
    per_row = native_bytes(sim.model) + 4 * held
    return max(1, min(_CACHED_ROWS, (free - kept) // (2 * per_row)))
