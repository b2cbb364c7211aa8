"""Meshes of a shared page: welded, with normals, in a compact form."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from PIL import Image

from simstate.view.geom_parts import GeomPart, part_of
from simstate.view.geometry import VISIBLE, geoms_of_bodies
from simstate.view.shot import with_own_colours

_CREASE = np.cos(np.radians(35.0))
"""Cosine of the angle above which two faces have a crease between them."""
_FINE, _COARSE = 65535, 8191
"""Number of quantisation steps of vertices along each side of a mesh."""
_MANY = 15_000
"""Number of triangles above which the coarse steps are used."""
_MOST_PIXELS = 1024
"""Maximum side of an image [px]."""
_LOOKS = ("geom_type", "geom_dataid", "geom_size", "geom_rgba", "geom_matid")


@dataclass(frozen=True)
class Welded:
    """Triangles that share vertices."""

    places: np.ndarray
    """Vertices as steps from `low`, uint16; (n, 3)."""
    low: np.ndarray
    """Lowest corner [m]; (3,)."""
    step: np.ndarray
    """Length of a step along each axis [m]; (3,)."""
    normals: np.ndarray
    """Unit vectors × 127, int8; (n, 3)."""
    extra: np.ndarray
    """Further values of the vertices; (n, k)."""
    faces: np.ndarray
    """Vertices of the triangles, uint32; (m, 3)."""


def welded(corners: np.ndarray, extra: np.ndarray) -> Welded:
    """Join the equal corners of triangles.

    Args:
        corners: positions [m]; (n, 3, 3).
        extra: further values; corners that differ in them are not joined; (n, 3, k).
    """
    low = corners.min((0, 1))
    step = np.maximum(corners.max((0, 1)) - low, 1e-9)
    step = step / (_COARSE if len(corners) > _MANY else _FINE)
    places = ((corners - low) / step).round().astype(np.int64)
    codes: np.ndarray = places @ np.array([1 << 32, 1 << 16, 1], dtype=np.int64)
    a, b, c = codes.T
    flat = (a == b) | (b == c) | (c == a)
    places, codes, extra = places[~flat], codes[~flat], extra[~flat]
    normals = (127.0 * _corner_normals(corners[~flat], codes.ravel())).round()
    rows = np.concatenate(
        [places.reshape(-1, 3), normals, extra.reshape(len(normals), -1)], axis=1
    )
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)  # the order of occurrence compresses well
    rank = np.empty(len(order), np.uint32)
    rank[order] = np.arange(len(order))
    kept = rows[first[order]]
    return Welded(
        kept[:, :3].astype(np.uint16), low, step, kept[:, 3:6].astype(np.int8),
        kept[:, 6:], rank[which.reshape(-1, 3)],
    )  # fmt: skip


def _corner_normals(corners: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """Return the normals of corners, smooth except across creases; (3 n, 3).

    Args:
        corners: positions; (n, 3, 3).
        vertices: ids of the corners' positions; (3 n,).
    """
    sides = corners[:, 1:] - corners[:, :1]
    areas = np.repeat(np.cross(sides[:, 0], sides[:, 1]), 3, axis=0)
    units = areas / np.maximum(np.linalg.norm(areas, axis=1, keepdims=True), 1e-30)
    order = np.argsort(vertices, kind="stable")
    _, starts, counts = np.unique(
        vertices[order], return_index=True, return_counts=True
    )
    each = np.repeat(counts, counts)  # corners at the vertex of each corner
    here = np.repeat(np.arange(len(order)), each)
    begin = np.cumsum(each) - each
    other = np.arange(len(here)) - np.repeat(begin, each)
    other += np.repeat(np.repeat(starts, counts), each)
    areas, units = areas[order], units[order]
    is_smooth = np.einsum("ij,ij->i", units[here], units[other]) > _CREASE
    sums = np.add.reduceat(areas[other] * is_smooth[:, None], begin, axis=0)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    found = np.empty_like(sums)
    found[order] = np.where(lengths > 1e-30, sums / np.maximum(lengths, 1e-30), units)
    return found


class PageMeshes:
    """The meshes of a page, each stored once, and the geoms that use them.

    Args:
        put: stores an array and returns its reference.
    """

    def __init__(self, put: Callable[[np.ndarray], dict[str, Any]]) -> None:
        self._put = put
        self.meshes: list[dict[str, Any]] = []
        """The meshes as the page reads them."""
        self._known: dict[tuple[bytes, ...], dict[str, Any]] = {}
        self._images: dict[bytes, Any] = {}

    def draws(
        self, model: mujoco.MjModel, left_out: Sequence[int]
    ) -> list[dict[str, Any]]:
        """Return the geoms of a world: mesh, body, pose in the body, colour.

        Args:
            model: the world's model.
            left_out: bodies to skip.
        """
        model = with_own_colours(model)
        shown = geoms_of_bodies(model).items()
        return [
            self._draw(model, geom)
            for (body, group), geoms in shown
            if group in VISIBLE and body not in left_out
            for geom in geoms
        ]

    def _draw(self, model: mujoco.MjModel, geom: int) -> dict[str, Any]:
        key = tuple(np.asarray(getattr(model, n)[geom]).tobytes() for n in _LOOKS)
        if key not in self._known:
            self._known[key] = self._add(model, geom, part_of(model, geom))
        pos: list[float] = np.array(model.geom_pos[geom]).round(7).tolist()
        quat: list[float] = np.array(model.geom_quat[geom]).round(7).tolist()
        pose = {"body": int(model.geom_bodyid[geom]), "pos": pos, "quat": quat}
        return {**self._known[key], **pose}

    def _add(self, model: mujoco.MjModel, geom: int, part: GeomPart) -> dict[str, Any]:
        """Store a mesh in its geom's axes; return its index and colour."""
        rot = np.zeros(9)
        mujoco.mju_quat2Mat(rot, model.geom_quat[geom])
        corners = (part.corners - model.geom_pos[geom]) @ rot.reshape(3, 3)
        is_plain = part.image is None and bool((part.colours == part.colours[:1]).all())
        extra = np.zeros((len(corners), 3, 0))
        if part.image is not None and part.uv is not None:
            extra = part.uv
        elif not is_plain:
            extra = np.repeat(part.colours[:, None], 3, axis=1)
        mesh = welded(corners, extra)
        kind = np.uint16 if len(mesh.places) < 65536 else np.uint32
        entry: dict[str, Any] = {
            "places": self._put(mesh.places),
            "normals": self._put(mesh.normals),
            "faces": self._put(mesh.faces.astype(kind)),
            "low": mesh.low.tolist(),
            "step": mesh.step.tolist(),
        }
        if part.image is not None:
            entry["uv"] = self._put(mesh.extra.astype(np.float32))
            entry["image"] = self._image(part.image)
        elif not is_plain:
            entry["colours"] = self._put(mesh.extra.astype(np.uint8))
        self.meshes.append(entry)
        colour = [*(part.colours[0] / 255.0).round(4).tolist(), round(part.opacity, 4)]
        if not is_plain:
            colour[:3] = [1.0, 1.0, 1.0]
        return {"mesh": len(self.meshes) - 1, "rgba": colour}

    def _image(self, pixels: np.ndarray) -> Any:
        """Store an image as PNG."""
        picture = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
        picture.thumbnail((_MOST_PIXELS, _MOST_PIXELS))
        file = io.BytesIO()
        picture.save(file, "PNG")
        data = file.getvalue()
        if data not in self._images:
            self._images[data] = self._put(np.frombuffer(data, np.uint8))
        return self._images[data]
