"""Meshes as glTF, without gloss and in the colours of the model."""

# trimesh comes with partial type information.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
from trimesh.exchange.gltf import export_glb


def to_glb(mesh: Any) -> bytes:
    """Return a trimesh as the bytes of a .glb file.

    In glTF a mesh without a material is metallic, which ambient light leaves black, and
    vertex colours are linear; MuJoCo's colours are sRGB.
    """
    is_clear = False
    if not hasattr(mesh.visual, "material"):
        mesh = mesh.copy()
        colours = np.array(mesh.visual.vertex_colors)
        is_clear = bool((colours[:, 3] < 255).any())
        colours[:, :3] = linear_bytes(colours[:, :3])
        mesh.visual.vertex_colors = colours

    def add_material(tree: dict[str, Any]) -> None:
        pbr = {"metallicFactor": 0.0, "roughnessFactor": 1.0}
        dull: dict[str, Any] = {"pbrMetallicRoughness": pbr}
        if is_clear:
            dull["alphaMode"] = "BLEND"
        materials = tree.setdefault("materials", [])
        for primitive in (p for one in tree["meshes"] for p in one["primitives"]):
            if "material" not in primitive:
                primitive["material"] = len(materials)
        materials.append(dull)

    return export_glb(mesh.scene(), tree_postprocessor=add_material)


def linear_bytes(colours: np.ndarray) -> np.ndarray:
    """Return sRGB colours as linear light, both 0 … 255, uint8."""
    shares = np.asarray(colours) / 255.0
    bright = ((shares + 0.055) / 1.055) ** 2.4
    linear = np.where(shares <= 0.04045, shares / 12.92, bright)
    return np.round(255.0 * linear).astype(np.uint8)
