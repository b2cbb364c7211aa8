"""Host: a simulation, as states and sensors see it."""

from __future__ import annotations

from typing import Protocol

import mujoco
import torch
from torch import Tensor

from simstate.engine import RawData
from simstate.entity.entity import SceneEntities
from simstate.world.random import WorldRandom


class Host(Protocol):
    """The part of `simstate.Simulation` that states and sensors use."""

    model: mujoco.MjModel
    num_envs: int
    device: torch.device
    dtype: torch.dtype
    data: RawData
    scene: SceneEntities

    @property
    def time(self) -> Tensor:
        """Simulation time of each world [s]; shape (num_envs,)."""
        ...

    @property
    def timestep(self) -> float:
        """The physics time step [s]."""
        ...

    @property
    def state(self) -> Tensor:
        """The state of all worlds; shape (num_envs, nstate)."""
        ...

    @property
    def rng(self) -> WorldRandom:
        """The worlds' random numbers."""
        ...

    @property
    def camera_names(self) -> tuple[str, ...]:
        """The names of the scene's cameras."""
        ...

    @property
    def engine_name(self) -> str:
        """The name of the engine."""
        ...

    def expand(self, name: str) -> Tensor:
        """Return the per-world values of a model parameter."""
        ...


def attach(part: object, sim: Host) -> None:
    """Attach a part of a model to a simulation, if it has a method `attach`."""
    own = getattr(part, "attach", None)
    if own is not None:
        own(sim)
