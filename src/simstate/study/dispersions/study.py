"""Study: a simulation with random parameters, its results and its runs."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import torch
from torch import Tensor

from simstate.base.checks import (
    as_path,
    check_called_as,
    has_shape,
    instance_of,
    number,
    whole_number,
)
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.files import check_text
from simstate.record.columns import is_pair
from simstate.simulation import Simulation
from simstate.state import Snapshot
from simstate.step.history import Recorded
from simstate.study.dispersions.distributions import Distribution, draw_worlds
from simstate.study.dispersions.outcome import Outcome

Item = TypeVar("Item")
Result = TypeVar("Result")

Make: TypeAlias = Callable[..., Simulation]
"""`make(draws, num_envs=…, seed=…, first_world=…)` returns a simulation in its initial
state. The keywords are Simulation's; `draws` has values (num_envs, …) by name."""
Measure: TypeAlias = "Callable[[Any], Tensor] | tuple[Callable[[Any], Tensor], str]"
"""A function of the final simulation that returns (num_envs,), or it and its unit."""


@dataclass(frozen=True)
class Study:
    """A study for `simstate dispersions`, returned by a file's `study()`.

    World k of a study has the same random values in any batch.
    """

    make: Make
    """Creates the worlds of a batch; see `Make`."""
    draws: Mapping[str, Distribution]
    """Distributions of the values that differ by world."""
    until: float
    """End time of a world [s], unless a terminal event stops it."""
    results: Mapping[str, Measure]
    """Results at the end: numbers, or bool for success."""
    record: Recorded | None = None
    """Quantities whose envelopes are plotted, as in `sim.record`."""
    every: float | None = None
    """Time between two samples of the recorded quantities [s]; None: `until` / 100."""
    worst: str | None = None
    """Result whose largest magnitude is worst; None: the first one."""
    units: dict[str, str] = field(init=False, default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if not callable(self.make):
            raise InvalidInputError(
                "make must be a function make(draws, num_envs=…, seed=…, "
                f"first_world=…), got {self.make!r}.",
                name="make",
            )
        number("until", self.until, more_than=0, unit="s")
        if self.every is not None:
            number("every", self.every, more_than=0, unit="s")
        for what, given in (("draws", self.draws), ("results", self.results)):
            if not instance_of(what, given, Mapping):
                raise InvalidInputError(f"{what} must not be empty.", name=what)
        for name, drawn in self.draws.items():
            instance_of(f"draws[{name!r}]", drawn, Distribution)
        if self.worst is not None and self.worst not in self.results:
            raise unknown_name("result of the study", self.worst, self.results)
        for name, given in self.results.items():
            function, self.units[name] = given if is_pair(given) else (given, "")
            label = f"results[{name!r}]"
            check_called_as(label, function, "sim", name=label)

    def simulation(
        self, num_envs: int, seed: int = 0, first_world: int = 0
    ) -> Simulation:
        """Return worlds in their initial state; the first has the id `first_world`."""
        drawn = draw_worlds(self.draws, num_envs, seed, first_world)
        sim = self.make(drawn, num_envs=num_envs, seed=seed, first_world=first_world)
        own = getattr(sim, "sim", sim)  # a FreeFlight contains its simulation
        if not isinstance(own, Simulation) or own.num_envs != num_envs:
            raise InvalidInputError(
                "make(draws, num_envs=…, seed=…, first_world=…) must return a "
                f"Simulation of {num_envs} worlds, got {sim!r}.",
                name="make",
            )
        return own

    def run(
        self, worlds: int, batch: int = 256, seed: int = 0, over: Over | None = None
    ) -> Outcome:
        """Run the worlds in batches; the result does not depend on their size.

        Args:
            worlds: number of worlds.
            batch: number of worlds that run at once.
            seed: seed of all draws and of the worlds' noise.
            over: a function like `map`, such as `Cluster.map` of `simstate.data.ray`,
                which runs batches on other machines; None: `map`.
        """
        worlds = whole_number("worlds", worlds, 1)
        batch = whole_number("batch", batch, 1)
        whole_number("seed", seed, 0)
        spans = [(k, min(batch, worlds - k)) for k in range(0, worlds, batch)]
        run_batch = partial(self.run_batch, seed)
        batches = list((map if over is None else over)(run_batch, spans))
        results = {n: torch.cat([b.results[n] for b in batches]) for n in self.results}
        draws = draw_worlds(self.draws, worlds, seed, 0)
        times = [batch.times for batch in batches if batch.times is not None]
        joined = {
            name: _joined([each.histories[name] for each in batches])
            for name in batches[0].histories
        }
        return Outcome(
            results, draws, self.units, max(times, key=len, default=None), joined,
            batches[0].units,
            self.worst or next(iter(self.results)), seed,
        )  # fmt: skip

    def run_batch(self, seed: int, span: tuple[int, int]) -> Batch:
        """Run the worlds of a span: its first global id and its length."""
        first, count = span
        sim = self.simulation(count, seed, first)
        history = None
        if self.record is not None:
            every = self.until / 100 if self.every is None else self.every
            history = sim.record(quantities=self.record, every=every)
        sim.run(until=self.until)
        results = self._measure(sim)
        if history is None:
            return Batch(results, None, {}, {})
        kept = {name: history[name] for name in history.names}
        times = history.time.nan_to_num(-torch.inf).amax(dim=1)
        return Batch(results, times, kept, history.units)

    def snapshot(self, world: int, seed: int = 0) -> Snapshot:
        """Return the initial snapshot of one world, to replay it."""
        world = whole_number("world", world, 0)
        return self.simulation(1, seed, world).snapshot()

    def _measure(self, sim: Simulation) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for name, given in self.results.items():
            function: Any = given[0] if is_pair(given) else given
            values: Any = function(sim)
            has_shape(f"results[{name!r}]", values, (sim.num_envs,))
            kept = torch.as_tensor(values).detach().cpu()
            found[name] = kept.clone() if kept.dtype == torch.bool else kept.double()
        return found


class Batch(NamedTuple):
    """Results of some worlds of a study."""

    results: dict[str, Tensor]
    times: Tensor | None
    """Times of the recorded samples [s]; (samples,)."""
    histories: dict[str, Tensor]
    units: dict[str, str]
    """Units of the recorded quantities."""


class Over(Protocol):
    """Applies a function to each item, in this process or on other machines."""

    def __call__(
        self, function: Callable[[Item], Result], items: Iterable[Item], /
    ) -> Iterable[Result]:
        """Return the results in the order of the items."""
        ...


def load_study(path: str | Path) -> Study:
    """Return the study that a Python file's function `study()` returns."""
    file = as_path("path", path)
    if not file.is_file():
        raise InvalidInputError(f"There is no file {str(file)!r}.", name=str(file))
    check_text(file)
    made = runpy.run_path(str(file), run_name=file.stem).get("study")
    found = made() if callable(made) else made
    if not isinstance(found, Study):
        raise InvalidInputError(
            f"{str(file)!r} must define study(), which returns a "
            "simstate.study.dispersions.Study.",
            name="study",
        )
    return found


def _joined(parts: list[Tensor]) -> Tensor:
    """Return histories of batches side by side, NaN after the end; (samples, n, …)."""
    longest = max(len(part) for part in parts)
    filled = [part.new_full((longest, *part.shape[1:]), torch.nan) for part in parts]
    for padded, part in zip(filled, parts, strict=True):
        padded[: len(part)] = part
    return torch.cat(filled, dim=1)
