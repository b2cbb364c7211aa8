"""RemoteEnv: one environment whose worlds are on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import instance_of, whole_number
from simstate.base.closeable import Closing
from simstate.base.errors import InvalidInputError, SimStateError, SnapshotError
from simstate.data.ray.cluster import Cluster
from simstate.data.ray.merged_log import (
    JoinedLog,
    WorkerLog,
    joined_snapshot,
    split_snapshot,
)
from simstate.data.ray.worker_pool import Workers
from simstate.engine import EngineCfg, NativeCfg
from simstate.env import Env, EnvCfg
from simstate.env.drivers import action_rows, not_finite
from simstate.env.env_worlds import check_lengths
from simstate.env.groups import Observations, flat, nested
from simstate.state import Snapshot

SAVE_EVERY = 100
"""Default number of steps between two snapshots."""

Arrays = dict[str, np.ndarray]


class RemoteEnv(Closing):
    """The worlds of a task, distributed over workers and stepped together.

    World k has the global id k on any worker, so that observations, rewards, ends and
    snapshots are bitwise those of a single Env with all worlds. A curriculum sees only
    the worlds of its worker. A lost worker is replaced; it starts at the last snapshot
    and repeats the steps since then.

    Calls are atomic: if one raises or is interrupted, all worlds are restored to their
    state before it, including those on workers that had completed it.

    Args:
        cluster: the cluster of the workers.
        cfg: the task.
        num_envs: total number of worlds, divided among the cluster's workers.
        seed: seed of everything random.
        engine: as in Env; native uses one thread on each worker.
        save_every: steps between two snapshots, from which lost worlds resume.
    """

    def __init__(
        self,
        cluster: Cluster,
        cfg: EnvCfg,
        num_envs: int,
        *,
        seed: int = 0,
        engine: EngineCfg = "native",
        save_every: int = SAVE_EVERY,
    ) -> None:
        whole_number("save_every", save_every, 1)
        self.cfg, self.num_envs = cfg, whole_number("num_envs", num_envs, 1)
        self.example = Env(cfg, 1, engine=engine, seed=seed)
        """A local Env of one world, for names and sizes."""
        self.auto_reset, self.device = True, torch.device("cpu")
        self.action_dim = self.example.action_dim
        self._like_action = torch.zeros(
            self.num_envs, self.action_dim, dtype=self.example.dtype
        )
        self.observation_dims = self.example.observation_dims
        self.observation_specs = self.example.observation_specs
        self.step_dt = self.example.step_dt
        self.max_episode_length = self.example.max_episode_length
        self._save_every = save_every
        self._rows = shares(self.num_envs, cluster.workers)
        self._logs = JoinedLog([b - a for a, b in self._rows])
        threads = alone(engine)
        parts = [_Share(cfg, b - a, a, seed, threads) for a, b in self._rows]
        self.workers = Workers(cluster, [partial(_Worlds, part) for part in parts])
        """Workers that hold the worlds."""
        self._seen: tuple[int, Observations] = (-1, {})
        """The latest observations, with the number of calls before them."""
        try:
            self.workers.ask("observations")
        except BaseException:
            self.workers.close()
            raise

    def step(
        self, action: Tensor
    ) -> tuple[Observations, Tensor, Tensor, Tensor, dict[str, Any]]:
        """Step as an Env does, with extras that hold "log" only."""
        columns = self.example.action_names
        rows = action_rows(action, columns, self._like_action)
        if not bool(rows.isfinite().all()):
            raise not_finite(rows, columns)
        if self.workers.num_unsaved >= self._save_every:
            self.workers.save()
        replies = self.workers.attempt("step", self._split(rows))
        seen = self._grouped([one[0] for one in replies])
        rest = self._joined([one[1] for one in replies])
        log = self._logs.joined([one[2] for one in replies])
        self.workers.commit()
        self._seen = self.workers.number, seen
        return (
            dict(seen),
            rest["reward"],
            rest["terminated"],
            rest["truncated"],
            {"log": log},
        )

    @property
    def observations(self) -> Observations:
        """The latest observations by group."""
        self.workers.sync()
        if self._seen[0] != self.workers.number:
            found = self._grouped(self.workers.ask("observations"))
            self._seen = self.workers.number, found
        return self._seen[1]

    def _grouped(self, parts: Sequence[Arrays]) -> Observations:
        return nested(self._joined(parts), self.observation_specs)

    @property
    def episode_length_buf(self) -> Tensor:
        """Environment steps since the last reset, a copy; int64, (num_envs,)."""
        return torch.as_tensor(np.concatenate(self.workers.ask("lengths")))

    @episode_length_buf.setter
    def episode_length_buf(self, steps: Tensor) -> None:
        check_lengths(steps, self.num_envs)
        self.workers.call("set_lengths", self._split(steps))

    def snapshot(self) -> Snapshot:
        """Return a snapshot as of a single Env with all worlds.

        Slots that worlds share are the first worker's, except for counts, which add up.
        """
        return joined_snapshot(
            [Snapshot.from_bytes(x) for x in self.workers.ask("save")]
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Restore all worlds from a snapshot of the same number, atomically."""
        instance_of("snapshot", snapshot, Snapshot)
        if snapshot.num_envs != self.num_envs:
            raise InvalidInputError(
                f"The snapshot has {snapshot.num_envs} worlds, but this environment "
                f"has {self.num_envs}.",
                name="num_envs",
            )
        parts = [part.to_bytes() for part in split_snapshot(snapshot, self._rows)]
        refused = self.workers.attempt("try_load", parts)
        for (a, b), error in zip(self._rows, refused, strict=True):
            if error is not None:
                self.workers.sync()
                raise SnapshotError(
                    f"In the worlds {a} … {b - 1}, whose rows count from {a}: {error}",
                    name=error.name,
                ) from error
        self.workers.commit()
        self._logs.forget()
        self.workers.save()  # calls before a restore are not repeated

    def close(self) -> None:
        """End the workers."""
        self.workers.close()

    def _split(self, values: Tensor) -> list[np.ndarray]:
        whole = values.detach().cpu().numpy()
        return [whole[a:b] for a, b in self._rows]

    def _joined(self, parts: Sequence[Arrays]) -> dict[str, Tensor]:
        return {
            name: torch.as_tensor(np.concatenate([part[name] for part in parts]))
            for name in parts[0]
        }


def shares(num_envs: int, workers: int) -> list[tuple[int, int]]:
    """Return the range of worlds [first, end) of each worker; none is empty.

    With fewer worlds than workers, some workers are not used.
    """
    used = min(whole_number("num_envs", num_envs, 1), workers)
    edges = [num_envs * k // used for k in range(used + 1)]
    return list(pairwise(edges))


def alone(engine: EngineCfg) -> EngineCfg:
    """Return the engine for a worker with one processor; results are the same."""
    return NativeCfg(num_threads=1) if engine == "native" else engine


@dataclass(frozen=True)
class _Share:
    """The worlds of one worker."""

    cfg: EnvCfg
    num_envs: int
    first_world: int
    seed: int
    engine: EngineCfg


class _Worlds:
    """An Env on a worker; it exchanges arrays, which are sent without copying."""

    def __init__(self, share: _Share) -> None:
        self._env = Env(
            share.cfg,
            share.num_envs,
            engine=share.engine,
            seed=share.seed,
            first_world=share.first_world,
        )

    def observations(self) -> Arrays:
        return _arrays(flat(self._env.observations))

    def step(self, action: np.ndarray) -> tuple[Arrays, Arrays, WorkerLog]:
        """Step; return observations, reward and ends, and the log."""
        seen, reward, terminated, truncated, extras = self._env.step(
            torch.as_tensor(action.copy())
        )
        rest = {"reward": reward, "terminated": terminated, "truncated": truncated}
        ended = int((terminated | truncated).sum())
        log = WorkerLog(extras["log"], ended, self._env.divergence.count)
        return _arrays(flat(seen)), _arrays(rest), log

    def lengths(self) -> np.ndarray:
        return self._env.episode_length_buf.numpy()

    def set_lengths(self, steps: np.ndarray) -> None:
        self._env.episode_length_buf = torch.as_tensor(steps.copy())

    def save(self) -> bytes:
        return self._env.snapshot().to_bytes()

    def load(self, saved: bytes) -> None:
        self._env.restore(Snapshot.from_bytes(saved))

    def try_load(self, saved: bytes) -> SimStateError | None:
        """Load a snapshot; return the error if it is rejected."""
        try:
            self.load(saved)
        except SimStateError as error:
            return error
        return None


def _arrays(tensors: dict[str, Tensor]) -> Arrays:
    return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
