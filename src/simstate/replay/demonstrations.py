"""Demonstrations from recordings that are there: their states again, seen otherwise."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simstate.datasets import Collection
from simstate.datasets.collect import (
    Told,
    check_success,
    describe_folder,
    with_cameras,
    with_pictures,
    written_parts,
)
from simstate.dispersions.study import Over
from simstate.env import EnvCfg, tasks
from simstate.errors import InvalidInputError, RecordingError
from simstate.integrate.history import Recorded
from simstate.record import Recording
from simstate.replay.player import Player
from simstate.replay.sources import engine_for, env_for


def collect_from(
    files: Sequence[str | Path],
    folder: str | Path,
    *,
    success: str | None = None,
    quantities: Recorded = (),
    cameras: Sequence[str] = (),
    image_size: tuple[int, int] | None = None,
    task: str | None = None,
    told: Told | None = None,
    over: Over | None = None,
) -> Collection:
    """Play recordings of an environment again, and keep more of them than was kept.

    A run that was recorded without cameras gets its pictures, one with few quantities
    the others. The steps begin at the first snapshot; what was seen and done
    must come out bit for bit, or the part is refused.

    Args:
        files: recordings that `env.record` wrote, with inputs.
        folder: for the parts, one for each file, and what they are.
        success: the term that must end an episode ("time_out"); None: any does.
        quantities: what to record besides observations and actions.
        cameras: whose pictures to record, as in `collect`.
        image_size: width and height of the pictures [px]; None: what the scene says.
        task: where the task is now; None: where it was.
        told: called after each part.
        over: what runs the parts, as in `collect`; None: here.
    """
    if not files:
        raise InvalidInputError("Name a recording to take the states from.")
    again = _Again(
        [str(Path(file).absolute()) for file in files],
        with_pictures(quantities, cameras),
        tuple(cameras),
        image_size,
        task,
        success,
    )
    collection = Collection(Path(folder), success, all_episodes=True)
    describe_folder(
        collection.folder,
        {
            "from": [hashlib.sha256(Path(f).read_bytes()).hexdigest() for f in files],
            "success": success,
            "quantities": list(again.quantities),
            "image_size": image_size,
        },
    )
    found = 0
    for part in written_parts(collection, again, range(len(files)), over):
        found += collection.count(part)
        if told is not None:
            told(found, part + 1)
    return collection


@dataclass(frozen=True)
class _Again:
    """Records the steps of a file again."""

    files: Sequence[str]
    quantities: Recorded
    cameras: tuple[str, ...]
    image_size: tuple[int, int] | None
    task: str | None
    success: str | None

    def __call__(self, part: int, path: Path) -> None:
        """Play one of the files, and compare what is written with it."""
        with Recording(self.files[part]) as recording:
            if recording.kind != "env":
                raise RecordingError(
                    f"{self.files[part]!r} is of a Simulation: demonstrations are of "
                    "an Env, which has observations and actions."
                )
            env = env_for(
                recording, engine_for(recording, None, None), self.task, self._prepared
            )
            player = Player(recording, env, rebuilt=False)
            player.restore(0)
            reference = self.task or recording.header["task"]
            with env.record(
                path,
                quantities=self.quantities,
                snapshot_every=None,
                task=None if reference is None else tasks.find(reference).reference,
            ):
                for step in recording.steps():
                    player.take(step)
            with Recording(path) as now:
                _check_same(recording, now)

    def _prepared(self, cfg: EnvCfg) -> EnvCfg:
        check_success(cfg, self.success)
        return with_cameras(cfg, self.cameras, self.image_size)


def _check_same(then: Recording, now: Recording) -> None:
    """Raise unless columns that both have are the same bit for bit."""
    first = 0
    for block in then.blocks:
        columns, end = then.read_block(block), first + block.samples
        for name, values in columns.items():
            if name not in now.names or then.worlds != now.worlds:
                continue
            again = now.read(name, first, end).numpy()
            same = (again == values) | (np.not_equal(values, values))
            if not bool(same.all()):
                raise RecordingError(
                    f"{str(then.path)!r} does not come out as it was recorded "
                    f"({name}): `simstate replay {then.path}` says what is other now."
                )
        first = end
