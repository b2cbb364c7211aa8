"""Study: a simulation with scattered numbers, what is measured of it, and its runs."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import torch
from torch import Tensor

from simstate.base.checks import as_path, has_shape, instance_of, whole_number
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.files import check_text
from simstate.simulation import Simulation
from simstate.state import Snapshot
from simstate.step.history import Recorded
from simstate.study.dispersions.distributions import Distribution, draw_worlds
from simstate.study.dispersions.outcome import Outcome

Item = TypeVar("Item")
Result = TypeVar("Result")

Make: TypeAlias = Callable[..., Simulation]
"""`make(draws, num_envs=…, seed=…, first_world=…)` gives a simulation at its start; the
keywords are Simulation's. `draws` has (num_envs, …) of each name."""
Measure: TypeAlias = "Callable[[Any], Tensor] | tuple[Callable[[Any], Tensor], str]"
"""A function of the simulation at the end that gives (num_envs,), or with its unit."""


@dataclass(frozen=True)
class Study:
    """A study for `simstate dispersions`, returned by a file's `study()`.

    World k of a study has the same numbers in any batch.
    """

    make: Make
    """Makes the worlds of a batch; see `Make`."""
    draws: Mapping[str, Distribution]
    """Distributions of the values that differ by world."""
    until: float
    """When a world ends [s], unless a terminal event ends it."""
    results: Mapping[str, Measure]
    """Measures at the end: numbers, or bool for success."""
    record: Recorded | None = None
    """Quantities whose envelopes are drawn, as `sim.record` takes them."""
    every: float | None = None
    """The time between two samples of them [s]; None: a hundredth of `until`."""
    worst: str | None = None
    """Result whose largest magnitude is worst; None: the first one."""
    units: dict[str, str] = field(init=False, default_factory=dict[str, str])

    def __post_init__(self) -> None:
        instance_of("draws", self.draws, Mapping)
        instance_of("results", self.results, Mapping)
        if not self.results or not self.draws:
            raise InvalidInputError("A study needs draws and results.", name="draws")
        if self.worst is not None and self.worst not in self.results:
            raise unknown_name("result of the study", self.worst, self.results)
        for name, given in self.results.items():
            if not callable(given):
                instance_of(f"The result {name!r}", given, tuple)
            self.units[name] = "" if callable(given) else given[1]

    def simulation(
        self, num_envs: int, seed: int = 0, first_world: int = 0
    ) -> Simulation:
        """Worlds of the study at their start, from a global id on."""
        drawn = draw_worlds(self.draws, num_envs, seed, first_world)
        sim = self.make(drawn, num_envs=num_envs, seed=seed, first_world=first_world)
        own = getattr(sim, "sim", sim)  # a FreeFlight has its simulation in it
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
        """Run the worlds in batches; the result does not depend on the batches.

        Args:
            worlds: how many.
            batch: how many at once.
            seed: of all draws, and of the worlds' noise.
            over: what calls a function with each of some items, in order, wherever it
                does so: `Cluster.map` of `simstate.data.ray`; None: here, one after
                the other.
        """
        worlds = whole_number("worlds", worlds, 1)
        batch = whole_number("batch", batch, 1)
        whole_number("seed", seed, 0)
        spans = [(k, min(batch, worlds - k)) for k in range(0, worlds, batch)]
        run_batch = partial(self.run_batch, seed)
        batches = list((map if over is None else over)(run_batch, spans))
        results = {n: torch.cat([b.results[n] for b in batches]) for n in self.results}
        draws = draw_worlds(self.draws, worlds, seed, 0)
        times: Tensor | None = None
        for each in batches:
            times = times if each.times is None else _longest(times, each.times)
        joined = {
            name: _joined([each.histories[name] for each in batches])
            for name in batches[0].histories
        }
        return Outcome(
            results, draws, self.units, times, joined, batches[0].units,
            self.worst or next(iter(self.results)), seed,
        )  # fmt: skip

    def run_batch(self, seed: int, span: tuple[int, int]) -> Batch:
        """Run a number of worlds, starting with a global id."""
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
        return Batch(results, history.time, kept, history.units)

    def snapshot(self, world: int, seed: int = 0) -> Snapshot:
        """One world of the study at its start, to replay."""
        return self.simulation(1, seed, world).snapshot()

    def _measure(self, sim: Simulation) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for name, given in self.results.items():
            function = given if callable(given) else given[0]
            values: Tensor = function(sim)
            has_shape(f"Result {name!r}", values, (sim.num_envs,))
            kept = values.detach().cpu()
            found[name] = kept.clone() if kept.dtype == torch.bool else kept.double()
        return found


class Batch(NamedTuple):
    """Results of some worlds of a study."""

    results: dict[str, Tensor]
    times: Tensor | None
    histories: dict[str, Tensor]
    units: dict[str, str]


class Over(Protocol):
    """Calls a function with each item, in order, here or on other machines."""

    def __call__(
        self, function: Callable[[Item], Result], items: Iterable[Item], /
    ) -> Iterable[Result]:
        """The results, in the order of the items."""
        ...


def load_study(path: str | Path) -> Study:
    """The study that a Python file's function `study()` returns."""
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


def _longest(one: Tensor | None, two: Tensor) -> Tensor:
    """The times of all samples, of the batch that has most; (samples,)."""
    times = two.nan_to_num(-torch.inf).amax(dim=1)
    return times if one is None or len(times) > len(one) else one


def _joined(parts: list[Tensor]) -> Tensor:
    """Histories of batches side by side, NaN where one has ended; (samples, n, …)."""
    longest = max(len(part) for part in parts)
    whole = [part.new_full((longest, *part.shape[1:]), torch.nan) for part in parts]
    for filled, part in zip(whole, parts, strict=True):
        filled[: len(part)] = part
    return torch.cat(whole, dim=1)
