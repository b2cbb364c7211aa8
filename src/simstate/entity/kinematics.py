"""Jacobians of an entity's bodies, sites and geoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import one_of
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.ids import Values, as_values
from simstate.engine import OneTorchThread, Stage, lasting
from simstate.engine.core import matrices
from simstate.entity.convention_state import ConventionState
from simstate.entity.dynamics.dof_motion import (
    cross_motion,
    jacobian,
    jacobian_dot,
    turns_with_body,
)
from simstate.entity.reader import EntityReader
from simstate.math import compute_velocity_from_cvel, quaternion
from simstate.world.freshness import ReadOwner

Point = Literal["link", "com"]
JacobianAxes = Literal["w", "b", "own"]
"""World axes, the root link's, or those of the body, site or geom itself."""


@dataclass(frozen=True)
class _Points:
    """Points that move with bodies, in all worlds."""

    pos: Tensor
    """Along world axes [m]; (num_envs, n, 3)."""
    bodies: list[int]
    """The body of each, in the model."""


@dataclass(frozen=True)
class _CompiledPoints:
    """Points as the core takes them, with the arrays that it reads, which are live."""

    points: matrices.Points
    arrays: tuple[np.ndarray, ...]


class EntityKinematics(ConventionState, ReadOwner):
    """The part of Entity that has Jacobians."""

    _reader: EntityReader

    def jacobian(
        self,
        names: str | Sequence[str],
        at: Point | Values = "link",
        axes: JacobianAxes = "w",
    ) -> Tensor:
        """Return the map from qvel to linear then angular velocity; (num_envs, 6, nv).

        It is that of the scene: jacobian @ sim.data.qvel is the velocity [m/s, rad/s].

        Args:
            names: a body, else a site, else a geom of the entity; several of one kind
                give (num_envs, n, 6, nv).
            at: the point whose velocity it is: "link", the origin of the body (or the
                site, the geom's centre); "com", the body's centre of mass; or a point
                in the body's axes [m], shape (3,), or (num_envs, 3).
            axes: "w" is along world axes, "b" along the root link's, "own" along those
                of the body, site or geom.
        """
        with lasting():
            kind, ids = self._find_elements(names)
            self._ensure(Stage.POSITION, "jacobian")
            return self._shaped(self._jacobian(kind, ids, at), names, kind, ids, axes)

    def jacobian_dot(
        self,
        names: str | Sequence[str],
        at: Point | Values = "link",
        axes: JacobianAxes = "w",
    ) -> Tensor:
        """The time derivative of `jacobian`, of its components; (num_envs, 6, nv).

        jacobian @ qacc + jacobian_dot @ qvel is the acceleration. The axes are those of
        this instant: for "b" and "own" the derivative is taken along world axes, and
        its result is turned.
        """
        with OneTorchThread(), lasting():
            kind, ids = self._find_elements(names)
            self._ensure(Stage.VELOCITY, "jacobian_dot")
            points = self._points(kind, ids, at)
            centres = self._centres(points)
            velocity = compute_velocity_from_cvel(
                points.pos, centres, self._reader.raw("cvel")[:, points.bodies]
            )
            matrix = jacobian_dot(
                self._reader.raw("cdof"),
                self._cdof_rate(),
                points.pos - centres,
                velocity[..., :3],
                self._moves(points),
            )
            return self._shaped(matrix, names, kind, ids, axes)

    def _jacobian(self, kind: str, ids: list[int], at: Point | Values) -> Tensor:
        """Along world axes, by the core where it is in use; (N, n, 6, nv)."""
        if self._worlds.engine.compiled is None or not isinstance(at, str):
            with OneTorchThread():
                points = self._points(kind, ids, at)
                offset = points.pos - self._centres(points)
                cdof = self._reader.raw("cdof")
                return jacobian(cdof, offset, self._moves(points))
        points = self._compiled_points.get((kind, at, *ids))
        if points is None:
            points = self._compile_points(kind, ids, at)
            self._compiled_points[(kind, at, *ids)] = points
        matrix = matrices.jacobians(points.points, *points.arrays)
        return torch.from_numpy(matrix)  # pyright: ignore[reportUnknownMemberType]

    @cached_property
    def _compiled_points(self) -> dict[tuple[str | int, ...], _CompiledPoints]:
        """Compiled points so far, by kind, point and indices."""
        return {}

    def _compile_points(self, kind: str, ids: list[int], at: str) -> _CompiledPoints:
        reader = self._reader
        field, places, bodies = self._places(kind, ids, at)
        roots = self._worlds.model.body_rootid[bodies]
        fields = (reader.field(name) for name in (field, "cdof", "subtree_com"))
        tensors = (*fields, reader.all_moved_by)
        return _CompiledPoints(
            matrices.Points.of(places, bodies, roots),
            tuple(tensor.numpy() for tensor in tensors),
        )

    def _ensure(self, stage: Stage, what: str) -> None:
        self._worlds.fresh.ensure(stage, self, what)

    def label_of(self, name: str) -> str:
        """Return the name of a method in error messages."""
        return f"{self.index.name}.{name}"

    def _find_elements(self, names: str | Sequence[str]) -> tuple[str, list[int]]:
        """Return the kind of the elements, and their places in the entity."""
        if not isinstance(names, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                f"A Jacobian is of a name or of several, got {names!r}.", name="names"
            )
        wanted = [names] if isinstance(names, str) else list(names)
        try:
            return self._found_elements[tuple(wanted)]
        except (KeyError, TypeError):  # TypeError: no names, which is reported below
            pass
        kinds = {
            "body": self.index.bodies.names,
            "site": self.index.sites.names,
            "geom": self.index.geoms.names,
        }
        for kind, known in kinds.items():
            if wanted and all(name in known for name in wanted):
                found = (kind, [known.index(name) for name in wanted])
                self._found_elements[tuple(wanted)] = found
                return found
        known = [name for group in kinds.values() for name in group]
        missing = next((name for name in wanted if name not in known), None)
        if missing is not None:
            raise unknown_name("body, site or geom", str(missing), known)
        raise InvalidInputError(
            f"Jacobians of several elements are of one kind, got {wanted}.",
            name="elements",
        )

    @cached_property
    def _found_elements(self) -> dict[tuple[str, ...], tuple[str, list[int]]]:
        """Resolved names so far."""
        return {}

    def _places(
        self, kind: str, ids: list[int], at: str
    ) -> tuple[str, list[int], list[int]]:
        """The field with the points, their places there, and the body of each."""
        one_of("at", at, ("link", "com"))
        model = self._worlds.model
        elements = {
            "body": self.index.bodies,
            "site": self.index.sites,
            "geom": self.index.geoms,
        }[kind]
        places = [elements.ids[k] for k in ids]
        field = {"body": "xpos", "site": "site_xpos", "geom": "geom_xpos"}[kind]
        owner = {"site": model.site_bodyid, "geom": model.geom_bodyid}.get(kind)
        bodies = places if owner is None else [int(owner[k]) for k in places]
        return ("xipos", bodies, bodies) if at == "com" else (field, places, bodies)

    def _points(self, kind: str, ids: list[int], at: Point | Values) -> _Points:
        reader = self._reader
        if isinstance(at, str):
            field, places, bodies = self._places(kind, ids, at)
            return _Points(reader.raw(field)[:, places], bodies)
        _, _, bodies = self._places(kind, ids, "link")
        rows = self._worlds.num_envs
        point = torch.as_tensor(at)
        if point.ndim == 1:
            point = point.expand(rows, *point.shape)
        local = as_values(point, "at", rows, (3,), reader.raw("xpos"))
        quat = reader.raw("xquat")[:, bodies]
        turned = quaternion.rotate(quat, local[:, None].expand(-1, len(bodies), -1))
        return _Points(reader.raw("xpos")[:, bodies] + turned, bodies)

    def _centres(self, points: _Points) -> Tensor:
        roots = [int(self._worlds.model.body_rootid[b]) for b in points.bodies]
        return self._reader.raw("subtree_com")[:, roots]

    def _moves(self, points: _Points) -> Tensor:
        return self._reader.all_moved_by[points.bodies]

    def _cdof_rate(self) -> Tensor:
        """Rate of cdof; MuJoCo's cdof_dot leaves out how a body turns its own axes."""
        reader = self._reader
        bodies = np.asarray(self._worlds.model.dof_bodyid).tolist()
        carried = cross_motion(reader.raw("cvel")[:, bodies], reader.raw("cdof"))
        return torch.where(self._own_axes, carried, reader.raw("cdof_dot"))

    @cached_property
    def _own_axes(self) -> Tensor:
        mask = torch.as_tensor(turns_with_body(self._worlds.model))
        return mask.to(self._worlds.device)[:, None]

    def _shaped(
        self,
        matrix: Tensor,
        names: str | Sequence[str],
        kind: str,
        ids: list[int],
        axes: JacobianAxes,
    ) -> Tensor:
        """Return the matrix along the requested axes; one element drops its axis."""
        one_of("axes", axes, ("w", "b", "own"))
        if axes != "w":
            if axes == "b":
                quat = self.data.root_link_quat_w[:, None]
            else:
                point = "link_" if kind == "body" else ""
                quat = self.data.read(f"{kind}_{point}quat_w")[:, ids]
            with OneTorchThread():
                rot_bw = quaternion.to_matrix(quat).transpose(-1, -2)
                halves = matrix.view(*matrix.shape[:2], 2, 3, -1)
                matrix = torch.matmul(rot_bw[:, :, None], halves).flatten(2, 3)
        return matrix[:, 0] if isinstance(names, str) else matrix
