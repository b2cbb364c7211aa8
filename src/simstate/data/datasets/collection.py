"""Collect: episodes of a policy, in parts that are complete or recorded again.

An episode belongs to a world, whose global id seeds it: world 37 does the same for any
number of worlds at once, and after interruptions. (Matrix products of a network may
round differently for another number of rows: then `envs` must be the same.)
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from simstate.base.checks import check_called_as, whole_number
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.files import naming_errors, write_atomically
from simstate.data.datasets.hdf5 import write_hdf5
from simstate.data.datasets.lerobot import write_lerobot
from simstate.data.datasets.recorded_episodes import Episode, episodes_of
from simstate.engine import EngineCfg
from simstate.env import Env, EnvCfg
from simstate.env.settings import described_settings
from simstate.record.columns import CAMERA
from simstate.sensors.watch_camera import VIEW, with_view
from simstate.step.history import Recorded
from simstate.study.dispersions.study import Over

Act: TypeAlias = "Callable[[dict[str, Tensor]], Tensor]"
MakeAct: TypeAlias = "Callable[[Env], Act]"
"""Returns the policy for an environment: actions from observations by group."""

OnProgress: TypeAlias = "Callable[[int, int], None]"
"""`on_progress(kept, tried)`: numbers of kept and of tried episodes so far."""

ABOUT = "collect.json"
FORMAT = "simstate collection 1"
MOST_TRIES = 100
"""Maximum number of worlds to try for each requested episode."""


@dataclass(frozen=True)
class Collection:
    """A folder of episodes: recordings of worlds, with the first episode of each."""

    folder: Path
    success: str | None
    """The term that must end an episode; None: any term."""
    all_episodes: bool = False
    """True to keep all episodes of each world, as of an existing recording."""

    def path(self, part: int) -> Path:
        """Return the path of a part."""
        return self.folder / f"part-{part:05d}.simrec"

    @property
    def parts(self) -> list[Path]:
        """The recordings, in the order of their worlds."""
        return sorted(self.folder.glob("part-*.simrec"))

    def episodes(self) -> Iterator[Episode]:
        """Yield the kept episodes, in the order of the parts and of their ends."""
        return episodes_of(self.parts, keep=self.keep)

    def export(self, to: Literal["hdf5", "lerobot"]) -> Path:
        """Write the kept episodes as demos.hdf5 or lerobot/ in the folder."""
        if to == "hdf5":
            path = self.folder / "demos.hdf5"
            write_hdf5(self.parts, path, success=self.success, keep=self.keep)
        else:
            path = self.folder / "lerobot"
            self._export_lerobot(path)
        return path

    def _export_lerobot(self, path: Path) -> None:
        """Write the data set, replacing an existing one."""
        if not (path / "meta" / "info.json").is_file():
            write_lerobot(self.parts, path, keep=self.keep)
            return
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".") as fresh:
            new, old = Path(fresh) / "new", Path(fresh) / "old"
            write_lerobot(self.parts, new, keep=self.keep)
            try:
                path.rename(old)
                new.rename(path)
            except BaseException:  # Ctrl-C between the two
                if old.exists() and not path.exists():
                    old.rename(path)
                raise

    def keep(self, episode: Episode) -> bool:
        """Return True if an episode was collected and ended by `success`."""
        wanted = self.success is None or episode.ends == (self.success,)
        return wanted and (self.all_episodes or episode.number == 0)

    def count(self, part: int) -> int:
        """Return the number of kept episodes of a part."""
        return sum(1 for _ in episodes_of(self.path(part), keep=self.keep))


def collect(
    cfg: EnvCfg,
    make_act: MakeAct,
    folder: str | Path,
    *,
    episodes: int,
    envs: int = 64,
    seed: int = 0,
    success: str | None = None,
    quantities: Recorded = (),
    cameras: Sequence[str] = (),
    image_size: tuple[int, int] | None = None,
    task: str | None = None,
    engine: EngineCfg = "native",
    on_progress: OnProgress | None = None,
    over: Over | None = None,
) -> Collection:
    """Run a policy until there are enough episodes; return the collection.

    An interrupted collection is continued in its folder: complete parts are kept, the
    last one is recorded again, and the result is bitwise the same.

    Args:
        cfg: the task.
        make_act: returns the policy for an environment.
        folder: the folder for the parts and their description.
        episodes: minimum number of episodes; all of the last part are kept.
        envs: number of worlds that run at once, each for one episode.
        seed: seed of everything random.
        success: the term that must end an episode ("time_out"); None: any term.
        quantities: quantities to record besides observations and actions.
        cameras: cameras of the task's scene whose images are recorded before each
            step; "view" looks at the first entity, and is added if it is missing.
        image_size: width and height of the images [px]; None: those of the scene.
        task: reference of the task, as in `env.record`.
        engine: as in Env.
        on_progress: called after each part.
        over: runs the parts, such as `simstate.data.ray.Cluster.map`; None: here.
    """
    whole_number("episodes", episodes, 1)
    whole_number("envs", envs, 1)
    check_called_as("make_act", make_act, "env", name="make_act")
    check_success(cfg, success)
    cfg = with_cameras(cfg, cameras, image_size)
    kept = with_pictures(quantities, cameras)
    collection = Collection(Path(folder), success)
    describe_folder(
        collection.folder,
        {
            "envs": envs,
            "seed": seed,
            "success": success,
            "quantities": list(kept),
            **({} if image_size is None else {"image_size": image_size}),
            "settings": described_settings(cfg, "env"),
        },
    )
    record = _Part(cfg, make_act, envs, seed, kept, task, engine)
    found = tried = 0
    for part in written_parts(collection, record, itertools.count(), over):
        found, tried = found + collection.count(part), tried + envs
        if on_progress is not None:
            on_progress(found, tried)
        if found >= episodes:
            break
        if tried >= MOST_TRIES * episodes:
            raise InvalidInputError(
                f"Only {found} of {tried} episodes ended by {success!r}, {episodes} "
                "are requested: the policy hardly ever succeeds.",
                name=success or "",
            )
    return collection


Record: TypeAlias = "Callable[[int, Path], None]"
"""`record(part, path)` writes the recording of a part."""


def written_parts(
    collection: Collection, record: Record, parts: Iterable[int], over: Over | None
) -> Iterator[int]:
    """Yield each part once its file exists; missing ones are recorded by `over`."""
    ours, theirs = itertools.tee(parts)
    missing = (part for part in theirs if not collection.path(part).exists())
    sent = None if over is None else iter(over(partial(_as_bytes, record), missing))
    for part in ours:
        path = collection.path(part)
        if not path.exists():
            if sent is None:
                partial_file = path.with_suffix(".begun")
                record(part, partial_file)
                with naming_errors(path, "write"):
                    partial_file.replace(path)
            else:
                write_atomically(path, next(sent))
        yield part


def _as_bytes(record: Record, part: int) -> bytes:
    """Return the recording of a part as bytes, to send it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part.simrec"
        record(part, path)
        return path.read_bytes()


def check_success(cfg: EnvCfg, success: str | None) -> None:
    """Raise unless `success` is a termination term of the task, or None."""
    if success is not None and success not in cfg.terminations:
        raise InvalidInputError(
            f"success must be a termination term of the task, one of "
            f"{', '.join(cfg.terminations)}; got {success!r}.",
            name="success",
        )


def with_cameras(
    cfg: EnvCfg, names: Sequence[str], size: tuple[int, int] | None
) -> EnvCfg:
    """Return the task with cameras of a size [px]; only "view" is added if missing."""
    scene = cfg.scene
    if VIEW in names and VIEW not in scene.cameras:
        scene = with_view(scene)
    cameras = dict(scene.cameras)
    for name in names:
        if name not in cameras:
            raise unknown_name("camera of the task", name, [*cameras, VIEW])
        if size is not None:
            width, height = size
            cameras[name] = replace(cameras[name], width=width, height=height)
    return replace(cfg, scene=replace(scene, cameras=cameras)) if names else cfg


def with_pictures(quantities: Recorded, cameras: Sequence[str]) -> Recorded:
    """Return the quantities to record, with the images of cameras."""
    if not cameras:
        return quantities
    pictures = {f"{CAMERA}{name}": f"{CAMERA}{name}" for name in cameras}
    if isinstance(quantities, Mapping):
        return {**quantities, **pictures}
    return [*quantities, *pictures]


@dataclass(frozen=True)
class _Part:
    """Records the worlds of one part, on any machine."""

    cfg: EnvCfg
    make_act: MakeAct
    envs: int
    seed: int
    quantities: Recorded
    task: str | None
    engine: EngineCfg

    def __call__(self, part: int, path: Path) -> None:
        """Run each world until its first episode has ended."""
        env = Env(
            self.cfg,
            self.envs,
            seed=self.seed,
            engine=self.engine,
            first_world=part * self.envs,
        )
        act = self.make_act(env)
        check_called_as("The policy", act, "observations", name="make_act(env)")
        going = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
        seen, _ = env.reset()
        with env.record(
            path, quantities=self.quantities, snapshot_every=None, task=self.task
        ):
            for _ in range(env.max_episode_length):
                with torch.no_grad():
                    action = act(seen)
                seen, _, terminated, truncated, _ = env.step(action)
                going &= ~(terminated | truncated)
                if not bool(going.any()):
                    break


def describe_folder(root: Path, what: Mapping[str, Any]) -> None:
    """Write the settings of a collection; raise if the folder holds another one."""
    with naming_errors(root, "write"):
        root.mkdir(parents=True, exist_ok=True)
    about = {"format": FORMAT, **what}
    file = root / ABOUT
    if not file.exists():
        if any(root.glob("part-*.simrec")):
            raise InvalidInputError(
                f"{str(root)!r} has parts of a collection but no {ABOUT}, which "
                "describes them: choose another folder."
            )
        text = json.dumps(about, indent=2, ensure_ascii=False)
        write_atomically(file, text.encode())
        return
    try:
        with naming_errors(file, "read"):
            text = file.read_text(encoding="utf-8")
        before: Any = json.loads(text)
    except ValueError as error:
        raise InvalidInputError(f"{str(file)!r} cannot be read: {error}.") from error
    now = json.loads(json.dumps(about))
    other = [k for k in {**now, **before} if before.get(k) != now.get(k)]
    if other:
        raise InvalidInputError(
            f"{str(root)!r} holds a collection with different {', '.join(other)}: "
            "choose another folder, or use the same settings.",
            name=str(root),
        )
