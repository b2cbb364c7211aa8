"""Soft: skins and flexible bodies, whose vertices move individually."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import viser

from simstate.view.geometry import rgb
from simstate.view.grid import flex_corners
from simstate.view.one_world import OneWorld
from simstate.view.paint import OnClick
from simstate.view.shapes import Colour

_SKIN = mujoco.mjtObj.mjOBJ_SKIN.value
_FLEX = mujoco.mjtObj.mjOBJ_FLEX.value


@dataclass(frozen=True)
class Soft:
    """A surface whose vertices depend on the state of a world."""

    name: str
    group: int
    colour: Colour
    faces: np.ndarray
    """Vertices of the triangles; (n, 3)."""
    is_closed: bool
    """True if only its outside is visible."""
    corners: Callable[[OneWorld], np.ndarray]
    """Return the vertices in a world, world axes [m]; (vertices, 3)."""


def soft_of(model: mujoco.MjModel) -> list[Soft]:
    """Return all skins and flexible bodies of a model."""
    found = [_skin(model, k) for k in range(model.nskin)]
    return found + [_flex(model, k) for k in range(model.nflex)]


class SoftThings:
    """The skins and flexible bodies of the worlds shown.

    Args:
        server: the server whose scene they are drawn in.
        model: the compiled scene.
        groups: the visible groups.
        worlds: the ids of the worlds shown.
        on_click: called with the description of a clicked surface.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        model: mujoco.MjModel,
        groups: Sequence[int],
        worlds: Sequence[int],
        on_click: OnClick,
    ) -> None:
        self._parts: list[tuple[int, Soft, Any]] = []
        self._on_click = on_click
        shown = [soft for soft in soft_of(model) if soft.group in groups]
        for row, world in enumerate(worlds):
            for soft in shown:
                handle: Any = server.scene.add_mesh_simple(
                    f"/shown/worlds/{soft.name} {row}",
                    np.zeros((int(soft.faces.max()) + 1, 3), np.float32),
                    soft.faces.astype(np.uint32),
                    color=soft.colour,
                    side="double",
                )
                self._parts.append((row, soft, handle))
                self._listen(handle, soft, world)

    def update(self, seen: Sequence[OneWorld], offsets: np.ndarray) -> None:
        """Update all vertices; given the worlds shown, and their offsets [m]."""
        for row, soft, handle in self._parts:
            corners = soft.corners(seen[row]) + offsets[row]
            if np.isfinite(corners).all():
                handle.vertices = corners.astype(np.float32)

    def remove(self) -> None:
        """Remove everything from the scene."""
        for _, _, handle in self._parts:
            handle.remove()
        self._parts = []

    def __len__(self) -> int:
        return len(self._parts)

    def _listen(self, handle: Any, soft: Soft, world: int) -> None:
        def clicked(_: Any) -> None:
            count = len(handle.vertices)
            text = f"**{soft.name}**, world {world}: {count} vertices"
            self._on_click(text, np.asarray(handle.vertices).mean(axis=0))

        handle.on_click(clicked)


def _skin(model: mujoco.MjModel, k: int) -> Soft:
    """Return a skin, whose vertices follow their bones, by weights."""
    first, count = int(model.skin_vertadr[k]), int(model.skin_vertnum[k])
    rest = model.skin_vert.reshape(-1, 3)[first : first + count].astype(np.float64)
    start, faces = int(model.skin_faceadr[k]), int(model.skin_facenum[k])
    triangles = model.skin_face.reshape(-1, 3)[start : start + faces].astype(int)
    inflate = float(model.skin_inflate[k])
    bones = range(
        int(model.skin_boneadr[k]), int(model.skin_boneadr[k] + model.skin_bonenum[k])
    )

    def corners(seen: OneWorld) -> np.ndarray:
        pos, mat = seen.field("xpos"), seen.field("xmat").reshape(-1, 3, 3)
        found = np.zeros_like(rest)
        for bone in bones:
            at, size = int(model.skin_bonevertadr[bone]), model.skin_bonevertnum[bone]
            ids = model.skin_bonevertid[at : at + size]
            weights = model.skin_bonevertweight[at : at + size, None]
            bound = np.zeros(9)
            quat = model.skin_bonebindquat[bone].astype(np.float64)
            mujoco.mju_quat2Mat(bound, quat)
            body = int(model.skin_bonebodyid[bone])
            turn = mat[body] @ bound.reshape(3, 3).T
            local = rest[ids] - model.skin_bonebindpos[bone]
            found[ids] += weights * (local @ turn.T + pos[body])
        return found + inflate * _normals(found, triangles) if inflate else found

    return Soft(
        _name(model, _SKIN, k, "skin"), int(model.skin_group[k]),
        rgb(model, model.skin_rgba[k], int(model.skin_matid[k])), triangles, True,
        corners,
    )  # fmt: skip


def _flex(model: mujoco.MjModel, k: int) -> Soft:
    """Return a flexible body: a cable as prisms, a sheet, or the shell of a solid."""
    first, count = int(model.flex_vertadr[k]), int(model.flex_vertnum[k])
    dim, radius = int(model.flex_dim[k]), float(model.flex_radius[k])
    at, size = int(model.flex_elemdataadr[k]), int(model.flex_elemnum[k])
    elements = model.flex_elem[at : at + size * (dim + 1)].reshape(-1, dim + 1)
    if dim == 3:
        at, size = int(model.flex_shelldataadr[k]), int(model.flex_shellnum[k])
        elements = model.flex_shell[at : at + 3 * size].reshape(-1, 3)
    faces = elements.astype(int) if dim > 1 else _prism_faces(len(elements))

    def corners(seen: OneWorld) -> np.ndarray:
        places = flex_corners(seen)[first : first + count]
        return places if dim > 1 else _prisms(places[elements], radius)

    return Soft(
        _name(model, _FLEX, k, "flex"), int(model.flex_group[k]),
        rgb(model, model.flex_rgba[k], int(model.flex_matid[k])), faces, dim != 2,
        corners,
    )  # fmt: skip


def _prisms(ends: np.ndarray, radius: float) -> np.ndarray:
    """Return the vertices of triangular prisms about lines; (n, 2, 3) → (6 n, 3)."""
    along = ends[:, 1] - ends[:, 0]
    along = along / np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
    other = np.where(np.abs(along[:, 2:]) < 0.9, [0.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    aside = np.cross(along, other)
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    third = np.cross(along, aside)
    turns = np.array([0.0, 2.0, 4.0]) * np.pi / 3.0
    round_it = [np.cos(t) * aside + np.sin(t) * third for t in turns]
    ring = radius * np.stack(round_it, axis=1)  # (n, 3, 3)
    return (ends[:, :, None] + ring[:, None]).reshape(-1, 3)


def _prism_faces(count: int) -> np.ndarray:
    """Return the faces of n prisms, counter-clockwise from outside; (6 n, 3)."""
    sides = [
        triangle
        for i, j in ((0, 1), (1, 2), (2, 0))
        for triangle in ((i, j, j + 3), (i, j + 3, i + 3))
    ]
    return (6 * np.arange(count)[:, None, None] + np.array(sides)).reshape(-1, 3)


def _normals(corners: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return unit normals at the vertices: means over faces, by area; (n, 3)."""
    a, b, c = (corners[faces[:, i]] for i in range(3))
    flat = np.cross(b - a, c - a)
    found = np.zeros_like(corners)
    for i in range(3):
        np.add.at(found, faces[:, i], flat)
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)


def _name(model: mujoco.MjModel, kind: int, k: int, what: str) -> str:
    return f"{what} {mujoco.mj_id2name(model, kind, k) or k}"
