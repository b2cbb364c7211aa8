"""DivergenceLog: worlds that diverged, counted and kept as snapshots."""

from __future__ import annotations

import dataclasses
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.record.recorder import write_dump
from simstate.simulation import Simulation
from simstate.world.worlds import worlds_of

DIVERGENCES = "env/divergences"
"""The slot with the number of divergences so far."""


class DivergenceLog:
    """Counts worlds that diverge, and saves their states before and after the step.

    `simstate replay …simrec` repeats the step, from a recording that ends there. The
    file `…_before.npz` holds the state before the step with the controls of that step:
    `sim.restore(Snapshot.load(path))` and `sim.step(decimation)` repeat it.
    `…_after.npz` holds the diverged state, for inspection.
    """

    def __init__(
        self, sim: Simulation, folder: str | Path | None, most: int, steps: int
    ) -> None:
        self.sim = sim
        self._steps = steps
        """Time steps of each call of `sim.step`."""
        self._count = (
            worlds_of(sim)
            .ledger.shared(DIVERGENCES, torch.zeros(1, dtype=torch.int64))
            .tensor
        )
        self.paths: list[Path] = []
        """The snapshots from before that were written."""
        self._folder = None if folder is None else _made(Path(folder))
        self._most = most
        self._earlier = 0
        """Snapshots of earlier runs in the folder, whose numbers are taken."""
        if self._folder is not None:
            self._earlier = len(list(self._folder.glob("diverged_*_before.npz")))

    @property
    def count(self) -> int:
        """Number of divergences."""
        return int(self._count)

    def record(self, env_ids: Tensor) -> None:
        """Count these worlds, which diverged in the last step, and save them."""
        bad = self.sim.divergence.cause if env_ids.numel() else None
        if bad is None:
            return
        names = bad.elements + [""] * len(bad.env_ids)
        for world, after, element in zip(bad.env_ids, bad.after, names, strict=False):
            self._count += 1
            if self._folder is not None and len(self.paths) < self._most:
                self._save(self._folder, world, after, element)

    def _save(self, folder: Path, world: int, after: Tensor, element: str) -> None:
        now = self.sim.snapshot([world])
        number = self._earlier + len(self.paths) + 1
        stem = f"diverged_{number}_world_{world}"
        path = folder / f"{stem}_before.npz"
        # It had not diverged when the step started.
        fine = {"diverged": torch.zeros(1, dtype=torch.bool)}
        before = dataclasses.replace(now, slots={**now.slots, **fine})
        before.save(path)
        if find_spec("mcap") is not None:  # without it, only snapshots are written
            dump = folder / f"{stem}.simrec"
            write_dump(dump, self.sim, before, self._steps, element)
        bad = worlds_of(self.sim).engine.split(after[None].cpu())
        dataclasses.replace(now, slots={**now.slots, **bad}).save(
            folder / f"{stem}_after.npz"
        )
        self.paths.append(path)


def _made(folder: Path) -> Path:
    """Create a folder if it is missing, and return it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"divergence_dump_dir {str(folder)!r} cannot be created: {error}.",
            name="divergence_dump_dir",
        ) from error
    return folder
