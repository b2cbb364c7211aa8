"""Quantities of frames that are read together, in one pass over the worlds.

The formulas are those of `simstate.entity.frame_quantities`; here they are in C
(reads.c), and tests hold the two against each other. The arrays are the batch's live
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simstate.base.errors import InvalidInputError
from simstate.engine.core import library

if TYPE_CHECKING:
    from simstate.engine.core import _core

Array = NDArray[Any]

_TAKE, _QUAT, _POSE, _LIN_VEL, _VEL, _LIN_VEL_B, _ANG_VEL_B, _DIRECTION_B = range(8)


@dataclass(frozen=True, eq=False)
class BodyMotion:
    """The fields that velocities come from, with their axes after the worlds'."""

    subtree_com: Array | None
    """(num_worlds, nbody, 3); None: for angular velocities."""
    cvel: Array
    """(num_worlds, nbody, 6)."""


@dataclass(frozen=True, eq=False)
class Read:
    """One quantity: what the functions below make."""

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

    def as_tuple(self) -> tuple[Any, ...]:
        """Return the arguments of the compiled module."""
        com = None if self.motion is None else self.motion.subtree_com
        cvel = None if self.motion is None else self.motion.cvel
        return (
            *(self.kind, self.count, self.width, self.each, self.first, self.base),
            *(self.source, self.quat, com, cvel, self.local),
            *(self.elements, self.bodies, self.roots),
        )


def take(
    field: Array, ids: ArrayLike, first: int = 0, width: int | None = None
) -> Read:
    """`width` numbers from `first` on of some elements of (num_worlds, n[, k])."""
    each = int(np.prod(field.shape[2:]))
    elements = _ids(ids)
    width = each - first if width is None else width
    return Read(
        *(_TAKE, len(elements), width, each, first), source=field, elements=elements
    )


def quat_w(
    xquat: Array, bodies: ArrayLike, local: Array | None = None, ids: ArrayLike = ()
) -> Read:
    """Orientations wxyz of bodies, or of elements `ids` that turn by `local` in them.

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
    """Positions of elements [m], world axes, then orientations as `quat_w`."""
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
    linear_only: bool = False,
) -> Read:
    """Velocities at positions [m/s], then angular ones [rad/s], world axes.

    `bodies` move the elements; `roots` are body_rootid of these bodies.
    """
    elements, where = _ids(ids), _ids(bodies)
    return Read(
        *((_LIN_VEL, len(elements), 3) if linear_only else (_VEL, len(elements), 6)),
        source=pos,
        motion=motion,
        elements=elements,
        bodies=where,
        roots=_broadcast(roots, len(where)),
    )


def lin_vel_b(
    pos: Array, body: int, motion: BodyMotion, root: int, xquat: Array, base: int
) -> Read:
    """The velocity at a body's point [m/s], along the base's axes; `root` as above."""
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
    """A body's angular velocity [rad/s], along the base's axes."""
    return Read(
        *(_ANG_VEL_B, 1, 3), base=base, quat=xquat, motion=motion, bodies=_ids([body])
    )


def direction_b(direction: Array, xquat: Array, base: int) -> Read:
    """A vector of the world, (num_worlds or 1, 3), along the base's axes."""
    return Read(*(_DIRECTION_B, 1, 3), base=base, source=direction, quat=xquat)


class Reads:
    """Quantities that are computed together.

    Args:
        num_worlds: the number of worlds.
        reads: the quantities; the arrays that they name are read at each run.
    """

    def __init__(self, num_worlds: int, reads: Sequence[Read]) -> None:
        try:
            make = library.module().Reads
            self._core: _core.Reads = make(
                num_worlds, tuple(read.as_tuple() for read in reads)
            )
        except ValueError as error:
            raise InvalidInputError(str(error), name="reads") from None
        self.write: Callable[[NDArray[np.float64]], None] = self._core.run
        """`write(into)` writes all quantities, one after the other, into an array."""
        self._shapes = [(num_worlds, read.count, read.width) for read in reads]
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])
        self.size = int(ends[-1]) if len(ends) else 0
        """The number of numbers of all quantities in all worlds."""
        self._parts = [
            slice(int(end) - int(np.prod(shape)), int(end))
            for shape, end in zip(self._shapes, ends, strict=True)
        ]

    def run(self, into: NDArray[np.float64] | None = None) -> list[NDArray[np.float64]]:
        """All quantities, each (num_worlds, count, width), in separate memory.

        With `into`, of shape (size,), they are views of it: memory that is used again
        costs half the time, but what was read before is overwritten.
        """
        numbers = np.empty(self.size) if into is None else into
        self.write(numbers)
        return [
            numbers[part].reshape(shape)
            for part, shape in zip(self._parts, self._shapes, strict=True)
        ]


def _ids(values: ArrayLike) -> Array:
    return np.ascontiguousarray(np.asarray(values), np.int32).reshape(-1)


def _broadcast(values: ArrayLike, count: int) -> Array:
    ids = _ids(values)
    return ids if len(ids) == count else np.repeat(ids, count)
