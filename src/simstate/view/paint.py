"""Paint: the shapes of an overlay as nodes of viser's scene."""

# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import trimesh
import viser

from simstate.view.glb import linear_bytes
from simstate.view.shapes import (
    Arrow,
    Axes,
    Box,
    Label,
    Path,
    Point,
    Shape,
    labels_of,
    of_kind,
    place_of,
)

OnClick = Callable[[str, np.ndarray], None]
"""Called with the text of the clicked shape and its drawn position [m]; (3,)."""


class Painting:
    """The shapes of one overlay, redrawn in every frame.

    Args:
        server: the server whose scene they are drawn in.
        node: parent of its nodes in the scene.
        size: size of the moving parts [m].
        on_click: called with the description of a clicked shape.
    """

    def __init__(
        self, server: viser.ViserServer, node: str, size: float, on_click: OnClick
    ) -> None:
        self._scene: Any = server.scene
        self._node = node
        self._size = size
        self._on_click = on_click
        self._handles: dict[str, Any] = {}
        self._shown: dict[str, Sequence[Shape]] = {}
        self._labels: list[Any] = []

    def draw(self, shapes: Sequence[Shape], values: bool = True) -> None:
        """Draw these shapes and no others.

        Args:
            shapes: the shapes, at their positions in the scene.
            values: True to draw labels, too.
        """
        self._arrows(of_kind(shapes, Arrow))
        self._points(of_kind(shapes, Point))
        self._axes(of_kind(shapes, Axes))
        self._boxes(of_kind(shapes, Box))
        self._paths(of_kind(shapes, Path))
        self._write(labels_of(shapes) if values else [])

    def clear(self) -> None:
        """Hide all shapes."""
        for handle in (*self._handles.values(), *self._labels):
            handle.visible = False

    def _arrows(self, arrows: list[Arrow]) -> None:
        """Draw shafts and heads as meshes: viser's arrows cannot be clicked."""
        shown = self._shows("shafts", arrows)
        self._shows("heads", arrows)
        if not shown:
            return
        starts = np.stack([one.start for one in arrows])
        vectors = np.stack([one.vector for one in arrows])
        lengths = np.linalg.norm(vectors, axis=1)
        heads = np.minimum(0.06 * self._size, 0.4 * lengths)
        turned = _from_z(vectors / lengths[:, None])
        tips = starts + vectors * (1.0 - heads / lengths)[:, None]
        colours = np.array([one.colour for one in arrows], dtype=np.uint8)
        thick = np.full_like(lengths, 0.007 * self._size)
        shafts = np.stack([thick, thick, lengths - heads], axis=1)
        cones = np.stack([heads / 2.5, heads / 2.5, heads], axis=1)
        self._batch("shafts", _mesh("shaft"), starts, turned, shafts, colours)
        self._batch("heads", _mesh("head"), tips, turned, cones, colours)

    def _points(self, points: list[Point]) -> None:
        if self._shows("points", points):
            places = np.stack([one.pos for one in points])
            turned = np.tile([1.0, 0.0, 0.0, 0.0], (len(points), 1))
            radii = np.array([one.radius for one in points])
            colours = np.array([one.colour for one in points], dtype=np.uint8)
            self._batch("points", _mesh("ball"), places, turned, radii, colours)

    def _boxes(self, boxes: list[Box]) -> None:
        if self._shows("boxes", boxes):
            places = np.stack([one.pos for one in boxes])
            turned = np.stack([one.quat for one in boxes])
            halves = np.stack([one.half for one in boxes])
            colours = np.array([one.colour for one in boxes], dtype=np.uint8)
            self._batch("boxes", _mesh("box"), places, turned, halves, colours, 0.5)

    def _write(self, labels: list[Label]) -> None:
        """Draw labels, which are created when first needed; hide the unused ones."""
        for k in range(len(self._labels), len(labels)):
            self._labels.append(
                self._scene.add_label(
                    f"{self._node}/label {k}", labels[k].text, anchor="bottom-left",
                    font_screen_scale=0.8,
                )
            )  # fmt: skip
        for k, handle in enumerate(self._labels):
            handle.visible = k < len(labels)
            if handle.visible:
                handle.position = labels[k].pos
                if handle.text != labels[k].text:
                    handle.text = labels[k].text

    def _batch(
        self,
        key: str,
        mesh: Any,
        places: np.ndarray,
        turned: np.ndarray,
        scales: np.ndarray,
        colours: np.ndarray,
        opacity: float = 1.0,
    ) -> None:
        """Draw instances of one mesh, each with its pose, scale and colour."""
        arrays = {
            "batched_wxyzs": turned.astype(np.float32),
            "batched_positions": places.astype(np.float32),
            "batched_scales": scales.astype(np.float32),
            "batched_colors": linear_bytes(colours),
        }
        handle = self._handles.get(key)
        if handle is None:
            handle = self._scene.add_batched_meshes_simple(
                f"{self._node}/{key}",
                mesh.vertices,
                mesh.faces,
                opacity=opacity if opacity < 1.0 else None,
                lod="off",
                cast_shadow=False,
                receive_shadow=False,
                **arrays,
            )
            self._keep(key, handle)
            return
        for name, values in arrays.items():
            setattr(handle, name, values)

    def _axes(self, axes: list[Axes]) -> None:
        if not self._shows("axes", axes):
            return
        turned = np.stack([one.quat for one in axes]).astype(np.float32)
        places = np.stack([one.pos for one in axes]).astype(np.float32)
        scales = np.array([one.length for one in axes], dtype=np.float32)
        handle = self._handles.get("axes")
        if handle is None:
            handle = self._scene.add_batched_axes(
                f"{self._node}/axes", turned, places, scales,
                axes_length=1.0, axes_radius=0.022,
            )  # fmt: skip
            self._keep("axes", handle)
            return
        handle.batched_wxyzs, handle.batched_positions = turned, places
        handle.batched_scales = scales

    def _paths(self, paths: list[Path]) -> None:
        if not self._shows("paths", paths):
            return
        pieces = [np.stack([one.points[:-1], one.points[1:]], axis=1) for one in paths]
        points = np.concatenate(pieces).astype(np.float32)
        colours = np.concatenate(
            [np.tile(np.array(one.colour, np.uint8), (len(piece), 2, 1))
             for one, piece in zip(paths, pieces, strict=True)]
        )  # fmt: skip
        handle = self._handles.get("paths")
        if handle is None:
            self._handles["paths"] = self._scene.add_line_segments(
                f"{self._node}/paths", points, colours, thickness=0.006 * self._size
            )
            return
        handle.points, handle.colors = points, colours

    def _shows(self, key: str, shapes: Sequence[Shape]) -> bool:
        """Return True if there are any of a kind; otherwise hide the previous ones."""
        self._shown[key] = shapes
        handle = self._handles.get(key)
        if handle is not None:
            handle.visible = bool(shapes)
        return bool(shapes)

    def _keep(self, key: str, handle: Any) -> None:
        """Keep a handle, and report the text of its instances when clicked."""
        self._handles[key] = handle

        def clicked(event: Any) -> None:
            shapes, k = self._shown[key], event.instance_index
            if k is not None and 0 <= k < len(shapes):
                self._on_click(shapes[k].text, place_of(shapes[k]))

        handle.on_click(clicked)


@cache
def _mesh(name: str) -> Any:
    """Return a unit mesh: a ball, a box, or an arrow's shaft or head along z."""
    make: Any = trimesh.creation
    if name == "ball":
        return make.icosphere(subdivisions=2, radius=1.0)
    if name == "box":
        return make.box(extents=[2.0, 2.0, 2.0])
    if name == "head":
        return make.cone(radius=1.0, height=1.0, sections=16)
    shaft = make.cylinder(radius=1.0, height=1.0, sections=12)
    shaft.apply_translation([0.0, 0.0, 0.5])
    return shaft


def _from_z(directions: np.ndarray) -> np.ndarray:
    """Return orientations wxyz whose z axes are unit vectors; (n, 3) → (n, 4)."""
    x, y, z = directions.T
    quats = np.stack([1.0 + z, -y, x, np.zeros_like(z)], axis=1)
    quats[z < -1.0 + 1e-9] = (0.0, 1.0, 0.0, 0.0)
    return quats / np.linalg.norm(quats, axis=1, keepdims=True)
