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
"""Maximum number of worlds that the plain loop steps in one measurement."""


@dataclass(frozen=True)
class BenchedWorlds:
    """Definition of the worlds to step; `made` creates a range of them."""

    model: str
    engine: EngineCfg
    device: str
    noise: float
    seed: int

    def made(self, num_envs: int, first_world: int = 0) -> Stepping:
        """Create `num_envs` worlds, starting at the global id `first_world`."""
        return Stepping(self, num_envs, first_world)


class Stepping:
    """Worlds that start each measurement from the same states."""

    def __init__(self, what: BenchedWorlds, num_envs: int, first_world: int) -> None:
        self._sim = moving_worlds(
            scene_of(what.model), num_envs, what.engine, what.device, what.noise,
            what.seed, first_world,
        )  # fmt: skip
        self._start = self._sim.state.clone()

    @property
    def loop(self) -> PlainLoop:
        """A plain loop over the first `LOOP_WORLDS` of these worlds."""
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
        """Return a snapshot of the worlds."""
        return self._sim.snapshot().to_bytes()

    def load(self, saved: bytes) -> None:
        """Restore a snapshot that `save` returned."""
        from simstate.state import Snapshot

        self._sim.restore(Snapshot.from_bytes(saved))


Call = tuple[Callable[[], object], Callable[[], object]]
"""A preparation (not timed) and the function to time."""


@contextmanager
def shared_out(cluster: Cluster, what: BenchedWorlds, num_envs: int) -> Generator[Call]:
    """Context manager that yields the calls stepping worlds on a cluster's workers."""
    from simstate.data.ray import Workers
    from simstate.data.ray.remote_env import alone, shares

    there = BenchedWorlds(
        what.model, alone(what.engine), what.device, what.noise, what.seed
    )
    rows = shares(num_envs, cluster.workers)
    with Workers(cluster, [partial(there.made, b - a, a) for a, b in rows]) as workers:

        def rewind() -> None:
            workers.save()  # a restarted worker does not repeat earlier calls
            workers.call("rewind")

        yield rewind, lambda: workers.call("run")
