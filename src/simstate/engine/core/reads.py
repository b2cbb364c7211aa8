"""Quantities of frames, each computed in one pass over the worlds.

The formulas are those of `simstate.entity.frame_quantities`, in C (reads.c); tests
compare the two. The arrays are live arrays of the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simstate.base import compiled_core
from simstate.base.errors import InvalidInputError

Array = NDArray[Any]

_TAKE, _QUAT, _POSE, _VEL, _LIN_VEL_B, _ANG_VEL_B, _DIRECTION_B = range(7)


@dataclass(frozen=True, eq=False)
class BodyMotion:
    """The fields from which velocities are computed."""

    subtree_com: Array | None
    """Shape (num_worlds, nbody, 3); None for angular velocities."""
    cvel: Array
    """Shape (num_worlds, nbody, 6)."""


@dataclass(frozen=True, eq=False)
class Read:
    """One quantity, as the functions below return it."""

    kind: int
    count: int
    width: int
    each: int = 0
    first: int = 0
    base: int = -1
    source: Array | None = None
    quat: Array | None = None
    motion: BodyMotion | None = None
    local: Array | None = None
    elements: Array | None = None
    bodies: Array | None = None
    roots: Array | None = None

    def writer(self, num_worlds: int) -> Callable[[NDArray[np.float64]], None]:
        """Return a function that writes the quantity of all worlds into an array.

        The array has num_worlds·count·width values in any shape. The source arrays are
        read at each call.
        """
        com = None if self.motion is None else self.motion.subtree_com
        cvel = None if self.motion is None else self.motion.cvel
        numbers = (self.kind, self.count, self.width, self.each, self.first, self.base)
        sources = (self.source, self.quat, com, cvel, self.local)
        ids = (self.elements, self.bodies, self.roots)
        try:
            return compiled_core.module().Reads(num_worlds, numbers, sources, ids).run
        except ValueError as error:
            raise InvalidInputError(str(error), name="reads") from None


def take(
    field: Array, ids: ArrayLike, first: int = 0, width: int | None = None
) -> Read:
    """Read `width` values from `first` of some elements of (num_worlds, n[, k])."""
    each = int(np.prod(field.shape[2:]))
    elements = _ids(ids)
    width = each - first if width is None else width
    return Read(
        *(_TAKE, len(elements), width, each, first), source=field, elements=elements
    )


def quat_w(
    xquat: Array, bodies: ArrayLike, local: Array | None = None, ids: ArrayLike = ()
) -> Read:
    """Read orientations wxyz of bodies, or of elements `ids` at `local` in them.

    `local` is (num_worlds or 1, n, 4), as body_iquat, geom_quat and site_quat.
    """
    where = _ids(bodies)
    return Read(
        *(_QUAT, len(where), 4),
        quat=xquat,
        local=local,
        elements=None if local is None else _ids(ids),
        bodies=where,
    )


def pose_w(
    pos: Array,
    ids: ArrayLike,
    xquat: Array,
    bodies: ArrayLike,
    local: Array | None = None,
) -> Read:
    """Read positions of elements, world axes [m], then orientations as `quat_w`."""
    elements = _ids(ids)
    return Read(
        *(_POSE, len(elements), 7),
        source=pos,
        quat=xquat,
        local=local,
        elements=elements,
        bodies=_ids(bodies),
    )


def vel_w(
    pos: Array,
    ids: ArrayLike,
    motion: BodyMotion,
    bodies: ArrayLike,
    roots: ArrayLike,
) -> Read:
    """Read velocities at positions [m/s], then angular ones [rad/s], world axes.

    `bodies` move the elements; `roots` are body_rootid of these bodies.
    """
    elements, where = _ids(ids), _ids(bodies)
    return Read(
        *(_VEL, len(elements), 6),
        source=pos,
        motion=motion,
        elements=elements,
        bodies=where,
        roots=_broadcast(roots, len(where)),
    )


def lin_vel_b(
    pos: Array, body: int, motion: BodyMotion, root: int, xquat: Array, base: int
) -> Read:
    """Read the velocity at a body's point [m/s], along the base's axes."""
    return Read(
        *(_LIN_VEL_B, 1, 3),
        base=base,
        source=pos,
        quat=xquat,
        motion=motion,
        elements=_ids([body]),
        bodies=_ids([body]),
        roots=_ids([root]),
    )


def ang_vel_b(body: int, motion: BodyMotion, xquat: Array, base: int) -> Read:
    """Read a body's angular velocity [rad/s], along the base's axes."""
    return Read(
        *(_ANG_VEL_B, 1, 3), base=base, quat=xquat, motion=motion, bodies=_ids([body])
    )


def direction_b(direction: Array, xquat: Array, base: int) -> Read:
    """Read a world vector, (num_worlds or 1, 3), along the base's axes."""
    return Read(*(_DIRECTION_B, 1, 3), base=base, source=direction, quat=xquat)


def _ids(values: ArrayLike) -> Array:
    return np.ascontiguousarray(np.asarray(values), np.int32).reshape(-1)


def _broadcast(values: ArrayLike, count: int) -> Array:
    ids = _ids(values)
    return ids if len(ids) == count else np.repeat(ids, count)
