"""Joint-space matrices in one C pass over the worlds.

The formulas are those of `simstate.entity.dynamics`; tests compare the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simstate.base import compiled_core

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Points:
    """Points fixed to bodies; int32, shape (points,) each."""

    elements: Array
    """Index of each among the positions of its kind."""
    bodies: Array
    """The body that each moves with."""
    roots: Array
    """body_rootid of that body."""

    @staticmethod
    def of(elements: ArrayLike, bodies: ArrayLike, roots: ArrayLike) -> Points:
        """Create from integers of any type."""
        return Points(*(np.array(x, np.int32) for x in (elements, bodies, roots)))


def jacobians(
    points: Points, pos: Array, cdof: Array, subtree_com: Array, moves: Array
) -> Array:
    """Return Jacobians (linear, angular) of points; (worlds, points, 6, dofs).

    World axes. `pos` (worlds, elements, 3) are positions of all elements of the kind
    [m], `cdof` and `subtree_com` MuJoCo's fields, `moves` (bodies, dofs) is 0 where a
    dof does not move a body. All float64, contiguous.
    """
    worlds, dofs, count = cdof.shape[0], cdof.shape[1], len(points.elements)
    out = np.empty((worlds, count, 6, dofs))
    compiled_core.module().jacobians(
        (worlds, count, dofs, pos.shape[1], subtree_com.shape[1]),
        (
            cdof,
            pos,
            subtree_com,
            moves,
            points.elements,
            points.bodies,
            points.roots,
            out,
        ),
    )
    return out


def entries(rows: Array, places: Array) -> Array:
    """Return row values at `places` (int32, −1: zero); (worlds, *places.shape)."""
    worlds, width = rows.shape
    out = np.empty((worlds, *places.shape))
    compiled_core.module().entries((worlds, width, places.size), (rows, places, out))
    return out
