"""The unit of each component of a quantity, whose contract may name several."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mujoco

from simstate.entity import Entity

_PARTS: dict[tuple[int, str | int], tuple[int, ...]] = {
    (2, 6): (3, 3),
    (2, 7): (3, 4),
    (4, 13): (3, 4, 3, 3),
}
"""Numbers of components of each unit in "m, 1", by the counts of units and
components."""


def component_units(
    model: mujoco.MjModel, entity: Entity, unit: str, shape: Sequence[str | int]
) -> list[str]:
    """The units of the components of one world, in C order; none if they have `unit`.

    "rad or m" is one of the two for each joint, "m, 1" of a pose one after the other;
    what they are for one pose repeats for the next.
    """
    if " or " in unit and shape[:1] == ("num_joints",):
        types = model.jnt_type[list(entity.index.joints.ids)]
        each = [_of_joint(unit, int(kind)) for kind in types]
        of_one = math.prod(n for n in shape[1:] if isinstance(n, int))
        return [mine for mine in each for _ in range(of_one)]
    units = unit.split(", ")
    width = shape[-1] if shape else 1
    counts = _PARTS.get((len(units), width), ())
    return [one for one, n in zip(units, counts, strict=False) for _ in range(n)]


def _of_joint(unit: str, kind: int) -> str:
    """Which of two units a joint has: that of an angle or a moment, or the other."""
    one, other = unit.split(" or ")
    turning, sliding = (one, other) if "rad" in one or "·m" in one else (other, one)
    return turning if kind == mujoco.mjtJoint.mjJNT_HINGE.value else sliding
