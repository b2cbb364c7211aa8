"""Units of joints, by type."""

from __future__ import annotations

import mujoco

from simstate.entity import Entity

_SLIDE = mujoco.mjtJoint.mjJNT_SLIDE.value


def joint_units(entity: Entity, per_second: bool) -> list[str]:
    """The unit of each 1-DoF joint's position, or of its velocity."""
    types = entity.sim.model.jnt_type[list(entity.index.joints.ids)]
    units = ["m" if kind == _SLIDE else "rad" for kind in types]
    return [f"{unit}/s" for unit in units] if per_second else units
