"""Rays that bodies, sites or geoms carry, cast in all worlds in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simstate.engine.core.batch import CoreBatch

Array = NDArray[Any]
Alignment = Literal["full", "yaw", "world"]
ParentKind = Literal["body", "site", "geom"]
_ALIGNMENTS: tuple[Alignment, ...] = ("full", "yaw", "world")
_KINDS: tuple[ParentKind, ...] = ("body", "site", "geom")


@dataclass(frozen=True, eq=False)
class CarriedRays:
    """Rays that are fixed relative to each parent, the same in all worlds."""

    kind: ParentKind
    parents: Array
    """Ids of the elements that carry the rays, int32; (parents,)."""
    alignment: Alignment
    """Axes of the rays: the parent's, its heading's, or the world's."""
    pos: tuple[float, float, float]
    """Position of the sensor from the parent's origin, parent's axes [m]."""
    origins: Array
    """Origins from the sensor, in the aligned axes [m], float64; (rays, 3)."""
    directions: Array
    """Unit directions in the aligned axes, float64; (rays, 3)."""
    geoms: Array
    """True for geoms that can be hit; bool, (ngeom,)."""
    max_distance: float
    """Maximum length of a ray [m]."""


@dataclass(frozen=True, eq=False)
class Hits:
    """Hits of the rays in each world, by parent; (num_worlds, parents·rays, …)."""

    distance: Array
    """Distance as in mj_ray [m]; −1: no hit."""
    geom: Array
    """Id of the geom, int32; −1: none."""
    height: Array
    """Depth of the hit, or of the end of the ray, below the parent's origin [m]."""
    normal: Array | None
    """The surface's normal; None if not requested."""


def cast(batch: CoreBatch, rays: CarriedRays, with_normals: bool) -> Hits:
    """Cast the rays at the present state; no readable value is changed."""
    shape = (batch.nsim, len(rays.parents) * len(rays.origins))
    distance, height = np.empty(shape), np.empty(shape)
    geom = np.empty(shape, np.int32)
    normal = np.empty((*shape, 3)) if with_normals else None
    groups = None
    if not rays.geoms.all():
        groups = np.where(rays.geoms, 0, 1).astype(np.int32)
    failed = batch.core.carried_rays(
        (
            len(rays.parents),
            len(rays.origins),
            _KINDS.index(rays.kind),
            _ALIGNMENTS.index(rays.alignment),
        ),
        rays.pos,
        rays.max_distance,
        (
            rays.parents,
            *(rays.origins, rays.directions, groups, distance, geom, height, normal),
        ),
    )
    batch.check(None, failed)
    return Hits(distance, geom, height, normal)
