"""DivergenceLog: worlds that diverged, counted and kept as snapshots."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch

from simstate.ids import int_list
from simstate.simulation import Simulation


class DivergenceLog:
    """Counts worlds that diverge, and saves the state in which the step began.

    A snapshot holds the state before the step, with the controls of that step:
    `sim.restore(Snapshot.load(path))` and `sim.step(decimation)` show it again.
    """

    def __init__(self, sim: Simulation, folder: str | Path | None, most: int) -> None:
        self.count = 0
        """How many times a world has diverged."""
        self.paths: list[Path] = []
        """The snapshots that were written."""
        self._folder = None if folder is None else Path(folder)
        self._most = most
        self._known = torch.zeros_like(sim.diverged)

    def note(self, sim: Simulation, step: int) -> None:
        """Take note of the worlds that diverged in the last step."""
        new = sim.diverged & ~self._known
        self._known.copy_(sim.diverged)
        for world in int_list(new.nonzero().flatten()):
            self.count += 1
            if self._folder is not None and len(self.paths) < self._most:
                self._save(sim, self._folder, world, step)

    def _save(self, sim: Simulation, folder: Path, world: int, step: int) -> None:
        path = folder / f"diverged_step{step}_world{world}.npz"
        folder.mkdir(parents=True, exist_ok=True)
        kept = sim.snapshot([world])
        # It had not diverged when the step began.
        kept = dataclasses.replace(kept, diverged=torch.zeros_like(kept.diverged))
        kept.save(path)
        self.paths.append(path)
