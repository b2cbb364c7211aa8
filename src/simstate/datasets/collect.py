"""Collect: episodes of a policy, in parts that are whole or done again.

An episode belongs to a world by its global id, which seeds it: what world 37 does is
the same however many run at once, and whatever was interrupted. (Matrix products of a
network may round otherwise for another number of rows: then `envs` must be the same.)
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from simstate.checks import whole_number
from simstate.datasets.episodes import Episode, episodes_of
from simstate.datasets.hdf5 import write_hdf5
from simstate.datasets.lerobot import write_lerobot
from simstate.dispersions.study import Over
from simstate.engine import EngineCfg
from simstate.env import Env, EnvCfg
from simstate.env.settings import described, settings_of
from simstate.errors import InvalidInputError, unknown_name
from simstate.files import write_atomically
from simstate.integrate.history import Recorded
from simstate.record.columns import CAMERA
from simstate.sensors.view import VIEW, with_view

Act: TypeAlias = "Callable[[dict[str, Tensor]], Tensor]"
MakeAct: TypeAlias = "Callable[[Env], Act]"
"""Makes the policy for an environment: actions from observations by group."""

Told: TypeAlias = "Callable[[int, int], None]"
"""`told(wanted, tried)`: how many wanted episodes there are, of how many tried."""

ABOUT = "collect.json"
FORMAT = "simstate collection 1"
MOST_TRIES = 100
"""Worlds that are tried for each wanted episode, before it is given up."""


@dataclass(frozen=True)
class Collection:
    """A folder of episodes: recordings of some worlds, the first episode of each."""

    folder: Path
    success: str | None
    """The term whose end is wanted; None: any end."""

    def path(self, part: int) -> Path:
        """Where a part is, or will be."""
        return self.folder / f"part-{part:05d}.simrec"

    @property
    def parts(self) -> list[Path]:
        """The recordings, in the order of their worlds."""
        return sorted(self.folder.glob("part-*.simrec"))

    def episodes(self) -> Iterator[Episode]:
        """The wanted episodes, in the order of the parts and of their ends."""
        return episodes_of(self.parts, keep=self.keep)

    def export(self, to: Literal["hdf5", "lerobot"]) -> Path:
        """Write the wanted episodes as demos.hdf5 or lerobot/ in the folder."""
        if to == "hdf5":
            path = self.folder / "demos.hdf5"
            write_hdf5(self.parts, path, success=self.success, keep=self.keep)
        else:
            path = self.folder / "lerobot"
            write_lerobot(self.parts, path, keep=self.keep)
        return path

    def keep(self, episode: Episode) -> bool:
        """Whether an episode is the first of its world, and ended as wanted."""
        wanted = self.success is None or episode.ends == (self.success,)
        return episode.number == 0 and wanted


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
    told: Told | None = None,
    over: Over | None = None,
) -> Collection:
    """Let a policy act until there are enough episodes; returns where they are.

    A folder in which it was interrupted is gone on with: whole parts stay, the last is
    done again, and the bits are the same.

    Args:
        cfg: the task.
        make_act: makes the policy for an environment.
        folder: for the parts and what they are.
        episodes: how many are wanted.
        envs: how many worlds run at once, each for one episode.
        seed: of all that is random.
        success: the term that must end an episode ("time_out"); None: any does.
        quantities: what to record besides observations and actions.
        cameras: those of the task's scene whose pictures are recorded, before each
            step; "view" looks at the first entity, and needs not be there.
        image_size: width and height of the pictures [px]; None: what the scene says.
        task: where the task is found, as in `env.record`.
        engine: as in Env.
        told: called after each part.
        over: what runs the parts: `Cluster.map` of `simstate.distributed`; None: here.
    """
    whole_number("episodes", episodes, 1)
    whole_number("envs", envs, 1)
    if success is not None and success not in cfg.terminations:
        raise InvalidInputError(
            f"success must be a termination term of the task, one of "
            f"{', '.join(cfg.terminations)}; got {success!r}."
        )
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    cfg = with_cameras(cfg, cameras, image_size)
    if cameras:
        pictures = {f"{CAMERA}{name}": f"{CAMERA}{name}" for name in cameras}
        quantities = {**_named(quantities), **pictures}
    _check_same(root, cfg, envs, seed, success, quantities, image_size)
    collection = Collection(root, success)
    record = _Part(cfg, make_act, envs, seed, quantities, task, engine)
    missing = (k for k in itertools.count() if not collection.path(k).exists())
    sent = None if over is None else iter(over(record.as_bytes, missing))
    found = part = 0
    while found < episodes:
        if part * envs >= MOST_TRIES * episodes:
            raise InvalidInputError(
                f"{found} of {part * envs} episodes ended by {success!r}: the policy "
                "hardly ever succeeds."
            )
        path = collection.path(part)
        if not path.exists():
            if sent is None:
                begun = path.with_suffix(".begun")
                record(part, begun)
                begun.replace(path)
            else:
                write_atomically(path, next(sent))
        found += sum(1 for _ in episodes_of(path, keep=collection.keep))
        part += 1
        if told is not None:
            told(found, part * envs)
    return collection


def with_cameras(
    cfg: EnvCfg, names: Sequence[str], size: tuple[int, int] | None
) -> EnvCfg:
    """The task with cameras of this size [px], of which it must have all but "view"."""
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


def _named(quantities: Recorded) -> Mapping[str, Any]:
    """What to record, by name."""
    if isinstance(quantities, Mapping):
        return quantities
    return {name: name for name in quantities}


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

    def as_bytes(self, part: int) -> bytes:
        """The recording of a part."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "part.simrec"
            self(part, path)
            return path.read_bytes()


def _check_same(
    root: Path,
    cfg: EnvCfg,
    envs: int,
    seed: int,
    success: str | None,
    quantities: Recorded,
    image_size: tuple[int, int] | None,
) -> None:
    """Write down what is collected; raise if the folder has something else."""
    names: Sequence[str] = list(quantities)
    told: dict[str, Any] = {
        "format": FORMAT,
        "envs": envs,
        "seed": seed,
        "success": success,
        "quantities": names,
        **({} if image_size is None else {"image_size": image_size}),
        "settings": {
            path: described(setting.value)
            for path, setting in settings_of(cfg, "env").items()
        },
    }
    file = root / ABOUT
    if not file.exists():
        if any(root.glob("part-*.simrec")):
            raise InvalidInputError(f"{str(root)!r} has parts, but no {ABOUT}.")
        text = json.dumps(told, indent=2, ensure_ascii=False)
        write_atomically(file, text.encode())
        return
    try:
        before: Any = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidInputError(f"{str(file)!r} cannot be read: {error}.") from error
    now = json.loads(json.dumps(told))
    other = [k for k in {**now, **before} if before.get(k) != now.get(k)]
    if other:
        raise InvalidInputError(
            f"{str(root)!r} holds a collection with other {', '.join(other)}: choose "
            "another folder, or ask for the same."
        )
