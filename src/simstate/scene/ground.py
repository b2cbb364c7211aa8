"""The default ground plane of a scene and its light."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np

_FLOORS = (mujoco.mjtGeom.mjGEOM_PLANE.value, mujoco.mjtGeom.mjGEOM_HFIELD.value)
_FREE = mujoco.mjtJoint.mjJNT_FREE.value


def wants_ground(models: Iterable[Any]) -> bool:
    """Return True if a body floats freely and no entity's model has a floor."""
    models = list(models)
    floats = any(np.any(model.jnt_type == _FREE) for model in models)
    return floats and not any(has_floor(model) for model in models)


def has_floor(model: Any) -> bool:
    """Return True if a compiled model has a plane or a heightfield."""
    return bool(np.isin(model.geom_type, _FLOORS).any())


def add_ground(parent: mujoco.MjSpec) -> None:
    """Add a checkered plane at z = 0 and a light."""
    parent.add_texture(
        name="ground",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=[0.36, 0.42, 0.48],
        rgb2=[0.30, 0.35, 0.41],
        width=256,
        height=256,
    )
    material = parent.add_material(name="ground", texrepeat=[5, 5], texuniform=True)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "ground"
    parent.worldbody.add_geom(
        name="ground",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0, 0, 0.05],
        material="ground",
    )
    add_sun(parent)


def add_sun(parent: mujoco.MjSpec) -> None:
    """Add a directional light, which is equally bright everywhere."""
    parent.worldbody.add_light(
        name="sun",
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        pos=[0, 0, 4],
        dir=[0.2, 0.1, -1],
    )
