"""The elements of a model: MuJoCo's numbers for their kinds, and their fields."""

from __future__ import annotations

import mujoco

OBJECTS = {
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "joint": mujoco.mjtObj.mjOBJ_JOINT,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "site": mujoco.mjtObj.mjOBJ_SITE,
    "camera": mujoco.mjtObj.mjOBJ_CAMERA,
    "light": mujoco.mjtObj.mjOBJ_LIGHT,
    "tendon": mujoco.mjtObj.mjOBJ_TENDON,
    "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
    "sensor": mujoco.mjtObj.mjOBJ_SENSOR,
    "equality": mujoco.mjtObj.mjOBJ_EQUALITY,
    "pair": mujoco.mjtObj.mjOBJ_PAIR,
    "material": mujoco.mjtObj.mjOBJ_MATERIAL,
}
"""MuJoCo's number of each kind."""

_SHORT = {"jnt": "joint", "dof": "joint", "cam": "camera", "eq": "equality",
          "mat": "material"}  # fmt: skip

OBJECTS_OF_FIELDS = {
    prefix: OBJECTS[_SHORT.get(prefix, prefix)]
    for prefix in (
        "body", "geom", "site", "cam", "light", "jnt", "dof", "actuator", "tendon",
        "pair", "eq", "mat",
    )
}  # fmt: skip
"""Prefixes of a model's fields, and the elements that they belong to."""
