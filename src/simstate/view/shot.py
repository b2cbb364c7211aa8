"""Shot: the contents of a picture, laid out for all renderers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import mujoco
import numpy as np

from simstate.view.eye import Eye
from simstate.view.one_world import OneWorld
from simstate.view.shapes import Shape

RendererName = Literal["auto", "opengl", "software"]
"""The first renderer that works; MuJoCo's, which needs OpenGL; or the NumPy one."""
SUN = np.array([0.0, 0.4, -0.9165])
"""Direction of the light of models without lights, world axes, of unit length.

Its horizontal part is along an axis, as the rows of shadow maps are; light at an angle
to these speckles the floor.
"""
_DIRECTIONAL = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL.value
_SKYBOX = mujoco.mjtTexture.mjTEXTURE_SKYBOX.value
_PLANE = mujoco.mjtGeom.mjGEOM_PLANE.value


@dataclass(frozen=True)
class Placed:
    """A world, its position in the picture and the shapes drawn into it."""

    world: OneWorld
    offset: np.ndarray
    """Offset of all positions, world axes [m]; (3,)."""
    shapes: Sequence[Shape]
    """Shapes of the overlays, without the offset."""


@dataclass(frozen=True)
class Shot:
    """Worlds with overlays, seen by a camera."""

    eye: Eye
    worlds: Sequence[Placed]
    size: float
    """Size of the moving parts of a world [m]; overlays are scaled with it."""
    centre: np.ndarray
    """Centre of the scene, world axes [m]; (3,)."""
    radius: float
    """Radius of the scene about its centre [m]."""
    on_one_ground: bool
    """True if the worlds overlap, so that fixed geoms are drawn once."""
    transparent: bool
    """True if floor and sky are omitted."""


def is_fixed(model: mujoco.MjModel) -> np.ndarray:
    """Return a mask of the geoms that cannot move, bool; (ngeom,)."""
    fixed: np.ndarray = model.body_weldid[model.geom_bodyid] == 0
    return fixed


def floors(model: mujoco.MjModel) -> np.ndarray:
    """Return the ids of the plane geoms that cannot move; (n,)."""
    return np.flatnonzero((model.geom_type == _PLANE) & is_fixed(model))


def rgba_of(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Return colour and opacity of a geom as MuJoCo draws it, 0 … 1; (4,).

    The material's colour is used unless the geom specifies another one.
    """
    own = np.array(model.geom_rgba[geom], dtype=np.float64)
    material = int(model.geom_matid[geom])
    if material < 0 or not np.array_equal(own, (0.5, 0.5, 0.5, 1.0)):
        return own
    return np.array(model.mat_rgba[material], dtype=np.float64)


def with_own_colours(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a model in which geoms with a colour of their own have no material.

    mjviser prefers the material's colour. Materials with a texture are kept.
    """
    default = np.array([0.5, 0.5, 0.5, 1.0])
    changed = [
        geom
        for geom in np.flatnonzero(model.geom_matid >= 0)
        if (model.geom_rgba[geom] != default).any()
        and (model.mat_texid[model.geom_matid[geom]] < 0).all()
    ]
    if changed:
        model = copy.copy(model)
        model.geom_matid[changed] = -1
    return model


def has_lights(model: mujoco.MjModel) -> bool:
    """Return True if a model has lights besides the one added with the ground."""
    return any(model.light(k).name != "sun" for k in range(model.nlight))


def sun_of(model: mujoco.MjModel) -> np.ndarray:
    """Return the direction of the light that casts shadows, world axes, unit; (3,)."""
    fixed = model.body_weldid[model.light_bodyid] == 0
    lights = np.flatnonzero(fixed & (model.light_type == _DIRECTIONAL))
    steep = [k for k in lights if model.light_dir[k, 2] < -0.3]
    if not steep or not has_lights(model):
        return SUN
    direction: np.ndarray = model.light_dir[steep[0]].astype(np.float64)
    return direction / np.linalg.norm(direction)


@dataclass(frozen=True)
class Sky:
    """A sky between two colours, 0 … 255; (3,) each."""

    low: np.ndarray = field(default_factory=lambda: np.array([236.0, 240.0, 245.0]))
    """Colour at the horizon, where the floor fades into it."""
    high: np.ndarray = field(default_factory=lambda: np.array([150.0, 182.0, 222.0]))
    """Colour at the zenith."""

    def at(self, rays: np.ndarray) -> np.ndarray:
        """Return colours in directions, world axes; (n, 3) → (n, 3)."""
        up = np.clip(rays[:, 2] / np.linalg.norm(rays, axis=1), 0.0, 1.0)[:, None]
        return self.low + (self.high - self.low) * np.sqrt(up)


def sky_of(model: mujoco.MjModel) -> Sky:
    """Return a sky between a model's haze and the top of its skybox, if it has one."""
    boxes = np.flatnonzero(model.tex_type == _SKYBOX)
    if not len(boxes):
        return Sky()
    box = int(boxes[0])
    width, channels = int(model.tex_width[box]), int(model.tex_nchannel[box])
    begin = int(model.tex_adr[box])
    faces = model.tex_data[begin : begin + 6 * width * width * channels]
    top = faces.reshape(6, -1, channels)[2]
    high = np.resize(top.mean(0), 3)
    return Sky(255.0 * np.array(model.vis.rgba.haze[:3], dtype=np.float64), high)
