"""Values that no step computes: computed on demand at the present state, not stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from simstate.engine.core import CarriedRays


@dataclass(frozen=True)
class ContactRows:
    """Contacts of some worlds, one per row, as in MuJoCo; engine's dtype."""

    world: Tensor
    """World of each contact; int64, shape (contacts,)."""
    geom: Tensor
    """Its first and second geom, −1 for a flexible body; int64, (contacts, 2)."""
    flex: Tensor
    """Its flexible bodies, −1 for a geom; int64, (contacts, 2)."""
    pos: Tensor
    """The point between the two surfaces, world axes [m]; (contacts, 3)."""
    frame: Tensor
    """Normal, from the first to the second, and two tangents as rows, world axes;
    (contacts, 3, 3)."""
    dist: Tensor
    """Distance of the surfaces, negative for penetration [m]; (contacts,)."""
    force: Tensor
    """Force then torque on the second by the first, along the rows of `frame`, about
    `pos` [N, N·m]; (contacts, 6)."""
    friction: Tensor
    """Two sliding, one torsional and two rolling coefficients; (contacts, 5)."""

    @staticmethod
    def of(
        columns: Mapping[str, Sequence[np.ndarray]],
        dtype: torch.dtype,
        device: torch.device,
    ) -> ContactRows:
        """Concatenate the contacts of several worlds."""
        empty = {
            "world": np.zeros(0), "geom": np.zeros((0, 2)), "flex": np.zeros((0, 2)),
            "pos": np.zeros((0, 3)), "frame": np.zeros((0, 3, 3)),
            "dist": np.zeros(0), "force": np.zeros((0, 6)),
            "friction": np.zeros((0, 5)),
        }  # fmt: skip
        whole = ("world", "geom", "flex")
        joined = {
            name: torch.as_tensor(
                np.concatenate([none, *columns.get(name, ())]),
                dtype=torch.int64 if name in whole else dtype,
                device=device,
            )
            for name, none in empty.items()
        }
        return ContactRows(**joined)


@dataclass(frozen=True, eq=False)
class RayFilter:
    """The geoms that rays can hit."""

    geoms: np.ndarray
    """True for geoms that can be hit; bool, shape (ngeom,)."""

    @property
    def is_open(self) -> bool:
        """True if every geom can be hit."""
        return bool(self.geoms.all())


@dataclass(frozen=True)
class RayHits:
    """Hits of rays, in the engine's dtype; (num_envs, rays, …)."""

    distance: Tensor
    """Distance from the origin along the unit direction [m]; −1: no hit."""
    geom: Tensor
    """The geom's id in the model, an integer; −1: none."""
    normal: Tensor | None
    """The surface's outward normal, world axes, zero without a hit; None if not
    requested."""
    height: Tensor | None = None
    """Height of the origin of the body that carries the ray above the hit, or above the
    end of the ray [m]; None: not computed."""


class OnDemand(ABC):
    """Values that MuJoCo computes on request, for the present state of all worlds.

    No readable value is changed: fields of the last dynamics evaluation keep their
    values. The present inputs are used.
    """

    can_call_functions: ClassVar[bool] = False
    """True if C functions can be called with an mjData; see `call_function`."""

    @abstractmethod
    def joint_wrenches(self) -> Tensor:
        """Return the wrench on each body through its joints; (num_envs, nbody, 6).

        Torque then force, about subtree_com[body_rootid[body]], world axes: MuJoCo's
        cfrc_int of the dynamics at the present state.
        """

    @abstractmethod
    def inverse(self, qacc: Tensor, env_ids: Tensor) -> Tensor:
        """Return the forces in joint space that give `qacc`, as mj_inverse; (n, nv)."""

    @abstractmethod
    def unlimited_actuation(self) -> tuple[Tensor, Tensor]:
        """Return actuator_force (num_envs, nout) and qfrc_actuator (num_envs, nv).

        The force limits of actuators, joints and tendons are ignored.
        """

    @abstractmethod
    def energies(self) -> Tensor:
        """Return potential (gravity, springs) and kinetic energy [J]; (num_envs, 2)."""

    @abstractmethod
    def contacts(self, env_ids: Tensor) -> ContactRows:
        """Return all contacts of some worlds, with the forces at the present state."""

    @abstractmethod
    def cast(
        self, origins: Tensor, directions: Tensor, to: RayFilter, normals: bool
    ) -> RayHits:
        """Return the hits of rays as mj_ray; origins, unit directions (num_envs, R, 3).

        Positions are current. Normals are optional because they take time.
        """

    def call_function(self, address: int, parameters: np.ndarray) -> dict[str, Tensor]:
        """Return the inputs after a C function has changed them, by name.

        The function is that of simstate/force.h, called for each world at its present
        state with its row of the parameters, (num_envs, k).
        """
        del address, parameters
        raise NotImplementedError("These worlds have no mjData.")

    def cast_carried(self, rays: CarriedRays, normals: bool) -> RayHits | None:
        """Return the hits of carried rays; None if this engine does not support it."""
        del rays, normals
        return None
