"""Triangles of geoms with their colours, for renderers that do not use OpenGL."""

# mjviser and trimesh come with partial type information.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from mjviser.conversions import merge_geoms

from simstate.view.shot import rgba_of


@dataclass(frozen=True)
class GeomPart:
    """The triangles of a geom, in its body's axes."""

    body: int
    corners: np.ndarray
    """Corners of the triangles [m]; (n, 3, 3)."""
    colours: np.ndarray
    """Colours of the triangles, 0 … 255; (n, 3)."""
    opacity: float
    image: np.ndarray | None = None
    """Texture, 0 … 255; (height, width, 3)."""
    uv: np.ndarray | None = None
    """Texture coordinates of the corners; (n, 3, 2)."""


def part_of(model: mujoco.MjModel, geom: int) -> GeomPart:
    """Return the triangles of a geom."""
    mesh: Any = merge_geoms(model, [geom])
    visual = mesh.visual
    image, uv = _image_of(mesh)
    if not hasattr(visual, "face_colors"):
        visual = visual.to_color()
        visual.mesh = mesh
    colours = np.asarray(visual.face_colors)[:, :3].astype(np.float64)
    if colours.shape[0] != len(mesh.faces):
        colours = np.tile(colours[:1], (len(mesh.faces), 1))
    alpha = float(rgba_of(model, geom)[3])
    opacity = 1.0 - (1.0 - alpha) ** 2  # MuJoCo draws glass twice
    corners = np.asarray(mesh.triangles)
    body = int(model.geom_bodyid[geom])
    return GeomPart(body, corners, colours, opacity, image, uv)


def _image_of(mesh: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the texture of a mesh and its corners' coordinates in it, or None."""
    material: Any = getattr(mesh.visual, "material", None)
    image = getattr(material, "baseColorTexture", None)
    uv = getattr(mesh.visual, "uv", None)
    if image is None or uv is None:
        return None, None
    factor = material.baseColorFactor
    tint = np.ones(3) if factor is None else np.asarray(factor)[:3] / 255.0
    pixels = np.asarray(image.convert("RGB"), dtype=np.float64) * tint
    return pixels, np.asarray(uv)[np.asarray(mesh.faces)]
