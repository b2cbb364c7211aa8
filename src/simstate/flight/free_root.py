"""FreeRoot: where an aircraft is and how it moves, for one world as for thousands."""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.conventions.presets import PTERA
from simstate.engine.core import free_bodies
from simstate.entity import Entity
from simstate.flight.aircraft import EARTH


class FreeRoot:
    """The airframe of an aircraft in all worlds, in Earth axes.

    The compiled core has it in one call; without it, and for roots that are not free,
    it is a conversion between conventions, which takes some hundred calls of torch's.
    """

    def __init__(self, entity: Entity) -> None:
        self._entity = entity
        index = entity.index
        self._compiled = entity.internals.engine.compiled is not None
        self._compiled &= index.base == "free"
        if self._compiled:
            k = index.free_body_ids.index(index.root_body_id)
            q, v = index.free_qpos_adr[k], index.free_dof_adr[k]
            self._qpos, self._qvel = slice(q, q + 7), slice(v, v + 6)

    def read(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Position of the Cg, attitude, velocity and rates, as in FlightState; copies.

        Shapes (num_envs, 3), (num_envs, 3, 3), (num_envs, 3), (num_envs, 3).
        """
        if not self._compiled:
            parts = self._entity.state_in(PTERA, EARTH).parts
            return parts[0], parts[1], parts[2], parts[3]
        physics, body = self._entity.internals, self._entity.index.root_body_id
        qpos = physics.read_field("qpos").numpy()[:, self._qpos]
        qvel = physics.read_field("qvel").numpy()[:, self._qvel]
        com = physics.engine.parameter("body_ipos").numpy()[:, body]
        found = torch.from_numpy(free_bodies.describe(qpos, qvel, com))  # pyright: ignore[reportUnknownMemberType]
        attitude = found[:, 9:].view(-1, 3, 3)
        return found[:, :3], attitude, found[:, 3:6], found[:, 6:9]
