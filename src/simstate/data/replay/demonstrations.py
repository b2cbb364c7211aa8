"""Demonstrations from existing recordings: replayed, with more columns or cameras."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simstate.base.errors import InvalidInputError, RecordingError
from simstate.data.datasets import Collection
from simstate.data.datasets.collection import (
    OnProgress,
    check_success,
    describe_folder,
    with_cameras,
    with_pictures,
    written_parts,
)
from simstate.data.replay.player import Player
from simstate.data.replay.recorded_worlds import engine_for, env_cfg_for, env_for
from simstate.env import EnvCfg, tasks
from simstate.record import Recording
from simstate.record.header import STEP
from simstate.step.history import Recorded
from simstate.study.dispersions.study import Over


def collect_from(
    files: Sequence[str | Path],
    folder: str | Path,
    *,
    success: str | None = None,
    quantities: Recorded = (),
    cameras: Sequence[str] = (),
    image_size: tuple[int, int] | None = None,
    task: str | None = None,
    on_progress: OnProgress | None = None,
    over: Over | None = None,
) -> Collection:
    """Replay recordings of an environment, and record more quantities or cameras.

    A run that was recorded without cameras gets its images, one with few quantities
    the others. The steps start at the first snapshot; recorded observations and actions
    must be reproduced bit for bit, or an error is raised.

    Args:
        files: recordings by `env.record`, with inputs.
        folder: the folder for the parts, one for each file, and their description.
        success: the term that must end an episode ("time_out"); None: any term.
        quantities: quantities to record besides observations and actions.
        cameras: cameras whose images are recorded, as in `collect`.
        image_size: width and height of the images [px]; None: those of the scene.
        task: reference of the task if it has moved; None: the recorded one.
        on_progress: called after each part.
        over: runs the parts, as in `collect`; None: here.
    """
    if not files:
        raise InvalidInputError(
            "No recordings were given: name at least one.", name="files"
        )
    again = _Again(
        [str(Path(file).absolute()) for file in files],
        with_pictures(quantities, cameras),
        tuple(cameras),
        image_size,
        task,
        success,
    )
    for file in again.files:  # before the description is written
        again.check(file)
    collection = Collection(Path(folder), success, all_episodes=True)
    describe_folder(
        collection.folder,
        {
            "from": [_digest(file) for file in again.files],
            "success": success,
            "quantities": list(again.quantities),
            "image_size": image_size,
        },
    )
    found = 0
    for part in written_parts(collection, again, range(len(files)), over):
        found += collection.count(part)
        if on_progress is not None:
            on_progress(found, part + 1)
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

    def check(self, file: str) -> None:
        """Raise if a file is not of an Env, or its task lacks the requested terms."""
        with Recording(file) as recording:
            if recording.kind != "env":
                raise RecordingError(
                    f"{file!r} is of a Simulation: demonstrations need recordings of "
                    "an Env, which has observations and actions.",
                    name=file,
                )
            self._prepared(env_cfg_for(recording, self.task))

    def __call__(self, part: int, path: Path) -> None:
        """Replay one of the files, and compare the new recording with it."""
        with Recording(self.files[part]) as recording:
            cfg = self._prepared(env_cfg_for(recording, self.task))
            env = env_for(recording, engine_for(recording, None, None), cfg)
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


def _digest(file: str) -> str:
    with Path(file).open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _check_same(then: Recording, now: Recording) -> None:
    """Raise unless the common columns are equal bit for bit.

    `now` has all worlds, `then` only the recorded ones.
    """
    first = 0
    for block in then.blocks:
        columns, end = then.read_block(block), first + block.samples
        for name, values in columns.items():
            if name not in now.names:
                continue
            again = now.read(name, first, end).numpy()
            if name != STEP:  # which has one value for all worlds
                again = again[:, then.worlds]
            if not _is_same(again, values):
                raise RecordingError(
                    f"{str(then.path)!r} is not reproduced bit for bit ({name}): "
                    f"`simstate replay {then.path}` reports the difference.",
                    name=name,
                )
        first = end


def _is_same(one: np.ndarray, other: np.ndarray) -> bool:
    """Return True if all values are equal; NaN equals only NaN."""
    if one.shape != other.shape:
        return False
    neither = np.not_equal(one, one) & np.not_equal(other, other)
    return bool((np.equal(one, other) | neither).all())
