"""Simulator: the interface of anything that steps and holds unified states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, overload, runtime_checkable

import mujoco
import torch
from torch import Tensor

from simstate.base.ids import Ids
from simstate.state import State, TensorState
from simstate.state.apply import States


class EntityNames(Protocol):
    """Names of an entity's elements; an `Entity` is one."""

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of the links, root first."""
        ...

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the 1-DoF joints."""
        ...

    @property
    def ball_joint_names(self) -> tuple[str, ...]:
        """Names of the ball joints."""
        ...

    @property
    def is_robot(self) -> bool:
        """True if unified states list it as a robot."""
        ...


@runtime_checkable
class Simulator(Protocol):
    """A simulator that steps worlds and reads and writes unified states.

    The contract of a state is the same for all simulators: poses and velocities of
    link origins along world axes, quaternions wxyz, SI units, joints by name. Targets
    are part of the state, so an action is a state that contains only targets:
    `sim.set_states([{"robots": {"arm": {"dof_pos_target": {…}}}}]); sim.step(4)`.

    Both `simstate.Simulation` and the adapters of `simstate.simulators.make` conform.
    """

    num_envs: int
    """The number of worlds."""
    dtype: torch.dtype
    """Floating-point type of the simulator's state."""

    @property
    def model(self) -> mujoco.MjModel:
        """The compiled scene, which defines names and the order of joints."""
        ...

    @property
    def scene(self) -> Mapping[str, EntityNames]:
        """The entities by name."""
        ...

    @property
    def timestep(self) -> float:
        """The physics time step [s]."""
        ...

    @property
    def time(self) -> Tensor:
        """Simulation time of each world [s]; shape (num_envs,)."""
        ...

    @overload
    def get_states(
        self,
        env_ids: Ids = None,
        mode: Literal["dict"] = "dict",
        cameras: bool = True,
    ) -> list[State]: ...
    @overload
    def get_states(
        self, env_ids: Ids = None, *, mode: Literal["tensor"], cameras: bool = True
    ) -> TensorState: ...
    def get_states(
        self,
        env_ids: Ids = None,
        mode: Literal["dict", "tensor"] = "dict",
        cameras: bool = True,
    ) -> list[State] | TensorState:
        """A copy of the unified state, as a list of dictionaries or as tensors."""
        ...

    def set_states(self, states: States, env_ids: Ids = None) -> None:
        """Write complete or partial unified states; all are checked first."""
        ...

    def reset(self, env_ids: Ids = None) -> None:
        """Reset worlds to the scene's initial state."""
        ...

    def step(self, n: int = 1, env_ids: Ids = None) -> None:
        """Advance worlds by n time steps under their present targets."""
        ...
