"""TrainedWorlds: the interface of worlds in other processes that PPO requires."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from simstate.env import Env, EnvCfg
from simstate.env.groups import Observations
from simstate.state import Snapshot


class TrainedWorlds(Protocol):
    """The worlds of one Env in any process; names have the meaning of Env's."""

    cfg: EnvCfg
    num_envs: int
    action_dim: int
    observation_dims: dict[str, int]
    observation_specs: dict[str, Any]
    auto_reset: bool
    device: torch.device
    step_dt: float
    max_episode_length: int
    example: Env
    """A local Env of one world, for names and sizes."""

    @property
    def observations(self) -> Observations:
        """The latest observations by group."""
        ...

    @property
    def episode_length_buf(self) -> Tensor:
        """Environment steps since the last reset; int64, shape (num_envs,)."""
        ...

    @episode_length_buf.setter
    def episode_length_buf(self, steps: Tensor) -> None: ...

    def step(
        self, action: Tensor
    ) -> tuple[Observations, Tensor, Tensor, Tensor, dict[str, Any]]:
        """Apply an action and advance by `step_dt`."""
        ...

    def snapshot(self) -> Snapshot:
        """Return a snapshot of all worlds."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Restore all worlds from a snapshot."""
        ...
