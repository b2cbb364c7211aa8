"""Ray sensors: how far it is, what is there, and a scan of heights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.by_name import Named
from simstate.engine import RayFilter, RayHits, Stage
from simstate.engine.core import CarriedRays
from simstate.math import quaternion
from simstate.math.elementwise import hypot
from simstate.scene.ray_layout import BuiltRays, has_seams, tilt
from simstate.world.declared import Reading, Readings
from simstate.world.worlds import Worlds


def _reading(
    compute: Callable[[Any], Tensor], unit: str, *shape: int, axes: str = "–"
) -> Reading:
    """Declare a number of each ray."""
    return Reading(
        compute, unit=unit, shape=("rays", *shape), stage=Stage.POSITION, axes=axes
    )


class RaySensor(Readings):
    """Rays in all worlds, cast when a hit is read, once for each state; world axes."""

    def __init__(self, worlds: Worlds, name: str, built: BuiltRays) -> None:
        super().__init__(worlds, f"sim.rays[{name!r}]")
        self.name = name
        self._built = built
        # A pose times one matrix gives all rays of a world: a single product for all.
        self._to_origins = self._tensor(_expansion(built.origins, True))
        self._to_directions = self._tensor(_expansion(built.directions, False))
        self._filter = RayFilter(built.geoms)
        self._carried = _carried(built, built.directions)
        self._tilt = _TILT[worlds.dtype]
        self._seams = has_seams(worlds.model, built.geoms)
        """True if a ray can pass between two faces of what it can hit."""
        tilted = tilt(built.directions, self._tilt)
        self._tilted = _carried(built, tilted)
        self._to_tilted = self._tensor(_expansion(tilted, False))
        self._with_normals = False
        """True once normals have been read: they are computed from then on."""

    @property
    def num_rays(self) -> int:
        """Number of rays, of all parents together."""
        return len(self._built.parents) * len(self._built.origins)

    @property
    def parent_names(self) -> tuple[str, ...]:
        """The elements that carry the pattern, in the order of their rays.

        Empty if the rays stand in the world. Values of each parent are
        `values.unflatten(1, (len(parent_names), -1))`.
        """
        return self._built.names

    @property
    def max_distance(self) -> float:
        """Maximum length of a ray [m]."""
        return self._built.cfg.max_distance

    origin_w = _reading(lambda rays: rays._start(), "m", 3, axes="world")
    """Origin of each ray, world axes [m]; (num_envs, rays, 3)."""
    direction_w = _reading(lambda rays: rays._direction(), "1", 3, axes="world")
    """Unit direction of each ray, world axes; (num_envs, rays, 3)."""
    hit = _reading(lambda rays: rays._is_hit(), "1")
    """True for rays that hit something within max_distance; bool, (num_envs, rays)."""
    distance = _reading(lambda rays: rays._distance(), "m")
    """Distance to the hit along each ray, max_distance without a hit [m]; (num_envs,
    rays)."""
    hit_pos_w = _reading(lambda rays: rays._hit_pos(), "m", 3, axes="world")
    """Point of each hit, or the end of the ray without a hit, world axes [m];
    (num_envs, rays, 3)."""
    normal_w = _reading(lambda rays: rays._normal(), "1", 3, axes="world")
    """Normal of the surface that each ray hits, outwards, unit length, zero without a
    hit, world axes; (num_envs, rays, 3)."""
    geom_id = _reading(
        lambda rays: torch.where(rays.hit, rays._hits().geom.to(torch.int64), -1), "1"
    )
    """The geom of sim.model that each ray hits, −1 for none; int64, (num_envs,
    rays)."""
    height = _reading(lambda rays: rays._height(), "m")
    """Height scan: how far the point that each ray hits, or ends at, is below the
    origin of the element that carries the ray, along world z [m]; (num_envs, rays)."""

    def _tensor(self, values: Any) -> Tensor:
        worlds = self._reader.worlds
        return torch.as_tensor(values, dtype=worlds.dtype, device=worlds.device)

    def _field(self, name: str) -> Tensor:
        """Return a field of the parents; (num_envs, parents, …)."""
        return self._reader.worlds.live_field(name)[:, self._built.parents]

    def _parent_pos(self) -> Tensor:
        """Return the parents' origins, world axes [m]; (num_envs, parents, 3)."""
        kind = self._built.kind
        return self._field("xpos" if kind == "body" else f"{kind}_xpos")

    def _parent_axes(self) -> Tensor:
        """Return what takes the parents' axes to the world's; (num_envs, P, 3, 3)."""
        kind = self._built.kind
        if kind == "body":
            return quaternion.to_matrix(self._field("xquat"))
        return self._field(f"{kind}_xmat")

    def _axes(self) -> Tensor:
        """Return what takes the sensors' axes to the world's; (num_envs, P, 3, 3)."""
        alignment, rotation = self._built.cfg.alignment, self._parent_axes()
        if alignment == "yaw":
            return _yaw(rotation)
        if alignment == "world":
            return torch.eye(3).to(rotation).expand_as(rotation)
        return rotation

    def _start(self) -> Tensor:
        pos = self._parent_pos() + self._parent_axes() @ self._tensor(self._built.pos)
        pose = torch.cat([self._axes(), pos[..., None]], dim=-1)
        return self._each_ray(pose, self._to_origins)

    def _direction(self) -> Tensor:
        return self._along(self._to_directions)

    def _along(self, matrix: Tensor) -> Tensor:
        """Return directions of the sensors in world axes; (num_envs, rays, 3)."""
        return self._each_ray(self._axes(), matrix)

    def _each_ray(self, poses: Tensor, matrix: Tensor) -> Tensor:
        """Return the products of the parents' poses and a matrix; (N, rays, 3)."""
        rows = poses.flatten(0, 1).flatten(1)
        return torch.mm(rows, matrix).view(-1, self.num_rays, 3)

    def _hits(self) -> RayHits:
        return self._reader.shared("ray hits", Stage.POSITION, self._cast)

    def _cast(self) -> RayHits:
        """Return the hits of the rays, or of tilted ones where a ray slips through.

        MuJoCo tests each face by itself: by rounding, a ray exactly through a vertex
        or an edge may miss all faces that meet there.
        """
        hits = self._cast_along(self._carried, lambda: self.direction_w)
        if not self._seams:
            return hits
        tilted = self._cast_along(self._tilted, lambda: self._along(self._to_tilted))
        slips = _slips(hits, tilted, 100.0 * self._tilt)
        if not bool(slips.any()):
            return hits
        normal, height = hits.normal, hits.height
        if normal is not None and tilted.normal is not None:
            normal = torch.where(slips[..., None], tilted.normal, normal)
        distance = torch.where(slips, tilted.distance, hits.distance)
        if height is not None:  # along the ray itself, not the tilted one
            height = torch.where(slips, self._below(distance), height)
        geom = torch.where(slips, tilted.geom, hits.geom)
        return RayHits(distance, geom, normal, height)

    def _cast_along(
        self, carried: CarriedRays, directions: Callable[[], Tensor]
    ) -> RayHits:
        on_demand, normals = self._reader.worlds.engine.on_demand, self._with_normals
        hits = on_demand.cast_carried(carried, normals)
        if hits is not None:
            return hits
        return on_demand.cast(self.origin_w, directions(), self._filter, normals)

    def _normal(self) -> Tensor:
        if not self._with_normals:
            self._with_normals = True
            self._reader.memo.pop("ray hits", None)
        normal = self._hits().normal
        assert normal is not None
        return normal * self.hit[..., None]

    def _is_hit(self) -> Tensor:
        distance = self._hits().distance
        return (distance >= 0.0) & (distance <= self.max_distance)

    def _distance(self) -> Tensor:
        return torch.where(self.hit, self._hits().distance, self.max_distance)

    def _hit_pos(self) -> Tensor:
        return self.origin_w + self.distance[..., None] * self.direction_w

    def _height(self) -> Tensor:
        height = self._hits().height
        return self._below(self.distance) if height is None else height

    def _below(self, distance: Tensor) -> Tensor:
        """Return how far points on the rays are below their parents' origins [m]."""
        is_hit = (distance >= 0.0) & (distance <= self.max_distance)
        reach = torch.where(is_hit, distance, self.max_distance)
        each = len(self._built.origins)
        top = self._parent_pos()[..., 2].repeat_interleave(each, dim=1)
        return top - self.origin_w[..., 2] - reach * self.direction_w[..., 2]


class SceneRays(Named[RaySensor]):
    """The rays of a scene by name."""

    kind = "rays"
    how_to_declare = "declare them with SceneCfg(rays={{{name}: RayCastCfg(…)}})."

    def __init__(self, worlds: Worlds, built: Mapping[str, BuiltRays]) -> None:
        super().__init__({n: RaySensor(worlds, n, one) for n, one in built.items()})


_TILT = {torch.float64: 1e-6, torch.float32: 3e-5}
"""Angle of the second rays [rad], well above rounding: meshes are in float32 on native
as well, where rays through a vertex still slip at 1e-8."""


def _carried(built: BuiltRays, directions: np.ndarray) -> CarriedRays:
    """Return the rays with these directions, as the compiled core takes them."""
    return CarriedRays(
        built.kind, np.array(built.parents, np.int32), built.cfg.alignment, built.pos,
        np.ascontiguousarray(built.origins, np.float64),
        np.ascontiguousarray(directions, np.float64),
        built.geoms, built.cfg.max_distance,
    )  # fmt: skip


def _slips(hits: RayHits, tilted: RayHits, margin: float) -> Tensor:
    """Return the mask of rays next to which the tilted ones hit something nearer."""
    far = torch.where(hits.distance < 0.0, torch.inf, hits.distance)
    near = tilted.distance + margin * (1.0 + tilted.distance)
    return (tilted.distance >= 0.0) & (near < far)


def _expansion(vectors: np.ndarray, with_pos: bool) -> np.ndarray:
    """Return the map from the rows of a pose to vectors; (k, 3R).

    Row i of a pose gives component i of all of them: (R, 3) vectors times the row, and
    the position once.
    """
    parts = np.concatenate([vectors, np.ones((len(vectors), 1))], axis=1)
    parts = parts if with_pos else vectors
    matrix = np.zeros((3, parts.shape[1], len(vectors), 3))
    for component in range(3):
        matrix[component, :, :, component] = parts.T
    return matrix.reshape(3 * parts.shape[1], -1)


def _yaw(rotation: Tensor) -> Tensor:
    """Return the turns about world z that bring x to the headings; (..., 3, 3).

    An element whose x axis points straight up or down has none.
    """
    x, y = rotation[..., 0, 0], rotation[..., 1, 0]
    length = hypot(x, y)
    has = length > 1e-9
    cos = torch.where(has, x / length.clamp(min=1e-9), 1.0)
    sin = torch.where(has, y / length.clamp(min=1e-9), 0.0)
    turn = torch.zeros_like(rotation)
    turn[..., 0, 0], turn[..., 0, 1] = cos, -sin
    turn[..., 1, 0], turn[..., 1, 1] = sin, cos
    turn[..., 2, 2] = 1.0
    return turn
