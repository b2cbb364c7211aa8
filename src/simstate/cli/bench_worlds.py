"""Worlds that `simstate bench` steps, in this process or on a cluster's workers."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from simstate.cli.model_scene import moving_worlds, scene_of
from simstate.cli.plain_loop import STEPS, PlainLoop

if TYPE_CHECKING:
    from simstate.data.ray import Cluster
    from simstate.engine import EngineCfg


LOOP_WORLDS = 64
"""The most worlds that the plain loop steps in one measurement."""


@dataclass(frozen=True)
class BenchedWorlds:
    """Which worlds are stepped: those from a global id on."""

    model: str
    engine: EngineCfg
    device: str
    noise: float
    seed: int

    def made(self, num_envs: int, first_world: int = 0) -> Stepping:
        """The worlds, to be stepped."""
        return Stepping(self, num_envs, first_world)


class Stepping:
    """Worlds that start from the same states each time."""

    def __init__(self, what: BenchedWorlds, num_envs: int, first_world: int) -> None:
        self._sim = moving_worlds(
            scene_of(what.model), num_envs, what.engine, what.device, what.noise,
            what.seed, first_world,
        )  # fmt: skip
        self._start = self._sim.state.clone()

    @property
    def loop(self) -> PlainLoop:
        """A plain loop over the first of these worlds."""
        rows = self._start[:LOOP_WORLDS].cpu().double().numpy()
        return PlainLoop(self._sim.model, rows)

    def rewind(self) -> None:
        """Restore every world to its initial state."""
        self._sim.reset()
        self._sim.write_state(self._start)

    def run(self) -> None:
        """Step every world."""
        self._sim.step(STEPS)

    def save(self) -> bytes:
        """All that the worlds are."""
        return self._sim.snapshot().to_bytes()

    def load(self, saved: bytes) -> None:
        """Be what `save` gave."""
        from simstate.state import Snapshot

        self._sim.restore(Snapshot.from_bytes(saved))


Call = tuple[Callable[[], object], Callable[[], object]]
"""A preparation, and the function that is timed."""


@contextmanager
def shared_out(cluster: Cluster, what: BenchedWorlds, num_envs: int) -> Generator[Call]:
    """The steps of worlds on the workers of a cluster, which end with the block."""
    from simstate.data.ray import Workers
    from simstate.data.ray.remote_env import alone, shares

    there = BenchedWorlds(
        what.model, alone(what.engine), what.device, what.noise, what.seed
    )
    rows = shares(num_envs, cluster.workers)
    with Workers(cluster, [partial(there.made, b - a, a) for a, b in rows]) as workers:

        def rewind() -> None:
            workers.save()  # what was before is not taken again
            workers.call("rewind")

        yield rewind, lambda: workers.call("run")
