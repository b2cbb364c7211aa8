"""Relative: how one frame of a scene moves as seen from another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from simstate.base.errors import unknown_name
from simstate.engine import OneTorchThread, Stage
from simstate.entity.entity import Entity
from simstate.math import quaternion
from simstate.math.vector import cross
from simstate.world.worlds import Worlds

WORLD = "world"


class _Frame(NamedTuple):
    """A body, site or geom: its entity, what it is, and its place there."""

    entity: Entity
    kind: str
    name: str
    place: int


class Relative:
    """The motion of one frame as observed from another, along the axes of a third.

    Each is a body ("entity/body": its origin and axes), a site or a geom of an entity,
    or "world". An observer who moves and turns with `to` sees these numbers; they are
    those of the state at the moment of reading.
    """

    def __init__(
        self,
        worlds: Worlds,
        entities: Mapping[str, Entity],
        of: str,
        to: str,
        axes: str | None,
    ) -> None:
        self._worlds = worlds
        self._of = _find(entities, of)
        self._to = _find(entities, to)
        self._axes = self._to if axes is None else _find(entities, axes)

    @property
    def pos(self) -> Tensor:
        """From the origin of `to` to that of `of`, along `axes` [m]; (num_envs, 3)."""
        return self._turned(self._offset())

    @property
    def quat(self) -> Tensor:
        """Orientation of `of` in `to`, wxyz, whatever `axes`; (num_envs, 4)."""
        to = quaternion.conjugate(self._quat(self._to))
        return quaternion.multiply(to, self._quat(self._of))

    @property
    def lin_vel(self) -> Tensor:
        """Rate of the position as `to` sees it, along `axes` [m/s]; (num_envs, 3)."""
        return self._turned(self._velocity()[0])

    @property
    def ang_vel(self) -> Tensor:
        """Angular velocity of `of` less that of `to`, along `axes` [rad/s]; (n, 3)."""
        return self._turned(self._velocity()[1])

    @property
    def lin_acc(self) -> Tensor:
        """Second rate of the position as `to` sees it, along `axes` [m/s²]; (n, 3).

        Evaluates the dynamics of the present state.
        """
        return self._turned(self._acceleration()[0])

    @property
    def ang_acc(self) -> Tensor:
        """Rate of the relative angular velocity as `to` sees it [rad/s²]; (n, 3).

        Along `axes`. Evaluates the dynamics of the present state.
        """
        return self._turned(self._acceleration()[1])

    @property
    def jacobian(self) -> Tensor:
        """Map from qvel to lin_vel then ang_vel, along `axes`; (num_envs, 6, nv)."""
        with OneTorchThread():
            of, to = self._jacobian(self._of), self._jacobian(self._to)
            turning = cross(to[:, 3:].transpose(1, 2), self._offset()[:, None])
            linear = of[:, :3] - to[:, :3] - turning.transpose(1, 2)
            angular = of[:, 3:] - to[:, 3:]
            if self._axes is None:
                return torch.cat([linear, angular], dim=1)
            rot = quaternion.to_matrix(self._quat(self._axes)).transpose(1, 2)
            return torch.cat([rot @ linear, rot @ angular], dim=1)

    def _turned(self, vec_w: Tensor) -> Tensor:
        """Return a vector along world axes, along `axes`."""
        if self._axes is None:
            return vec_w.clone()
        return quaternion.rotate_inverse(self._quat(self._axes), vec_w)

    def _offset(self) -> Tensor:
        return self._read(self._of, "pos") - self._read(self._to, "pos")

    def _velocity(self) -> tuple[Tensor, Tensor]:
        """As seen from `to`, along world axes."""
        of, to = self._read(self._of, "vel"), self._read(self._to, "vel")
        turning = cross(to[:, 3:], self._offset())
        return of[:, :3] - to[:, :3] - turning, of[:, 3:] - to[:, 3:]

    def _acceleration(self) -> tuple[Tensor, Tensor]:
        """As seen from `to`, along world axes."""
        of, to = self._acc(self._of), self._acc(self._to)
        spin, offset = self._read(self._to, "vel")[:, 3:], self._offset()
        lin_vel, ang_vel = self._velocity()
        linear = of[:, :3] - to[:, :3] - cross(to[:, 3:], offset)
        linear = linear - cross(spin, cross(spin, offset)) - 2.0 * cross(spin, lin_vel)
        return linear, of[:, 3:] - to[:, 3:] - cross(spin, ang_vel)

    def _quat(self, frame: _Frame | None) -> Tensor:
        if frame is None:
            quat = self._zeros(4)
            quat[:, 0] = 1.0
            return quat
        return self._read(frame, "quat")

    def _read(self, frame: _Frame | None, quantity: str) -> Tensor:
        """Position, orientation or velocity of a frame, along world axes."""
        if frame is None:
            return self._zeros(6 if quantity == "vel" else 3)
        subject = "body_link" if frame.kind == "body" else frame.kind
        return frame.entity.data.read(f"{subject}_{quantity}_w")[:, frame.place]

    def _acc(self, frame: _Frame | None) -> Tensor:
        """Acceleration of a frame, along world axes; (num_envs, 6)."""
        if frame is None:
            return self._zeros(6)
        qvel = self._worlds.read_field("qvel")
        qacc = self._worlds.acceleration_now()
        jacobian = frame.entity.jacobian(frame.name)
        rate = frame.entity.jacobian_dot(frame.name)
        return (jacobian @ qacc[..., None] + rate @ qvel[..., None])[..., 0]

    def _jacobian(self, frame: _Frame | None) -> Tensor:
        if frame is None:
            return self._zeros(6, self._worlds.model.nv)
        return frame.entity.jacobian(frame.name)

    def _zeros(self, *shape: int) -> Tensor:
        worlds = self._worlds
        worlds.fresh.ensure(Stage.STATE, None, "sim.relative")
        return torch.zeros(
            worlds.num_envs, *shape, dtype=worlds.dtype, device=worlds.device
        )


def _find(entities: Mapping[str, Entity], name: str) -> _Frame | None:
    """Return the frame of a name; None: the world's."""
    if name == WORLD:
        return None
    entity_name, _, element = str(name).partition("/")
    entity = entities[entity_name]
    kinds = {
        "body": entity.body_names,
        "site": entity.site_names,
        "geom": entity.geom_names,
    }
    for kind, names in kinds.items():
        if element in names:
            return _Frame(entity, kind, element, names.index(element))
    known = [f"{entity_name}/{n}" for names in kinds.values() for n in names]
    raise unknown_name("frame (body, site or geom)", str(name), [WORLD, *known])
