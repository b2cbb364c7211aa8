"""Geometry: the bodies of all worlds shown, as few meshes with many instances each."""

# mjviser and trimesh come with partial type information.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import torch
import viser
from mjviser.conversions import (
    group_geoms_by_visual_compat,
    is_fixed_body,
    merge_geoms,
    merge_sites,
)

from simstate.view.floor import floor_colour
from simstate.view.glb import to_glb
from simstate.view.one_world import model_of_world, on_host
from simstate.view.shot import rgba_of, with_own_colours
from simstate.view.surroundings import DIM
from simstate.world.worlds import Worlds

GROUPS = 6
VISIBLE = (0, 1, 2)
"""The groups that are shown initially, as in MuJoCo's viewer."""
_PLANE = mujoco.mjtGeom.mjGEOM_PLANE.value
_LOOKS = (
    "geom_type", "geom_dataid", "geom_matid", "geom_size", "geom_rgba", "geom_pos",
    "geom_quat",
)  # fmt: skip
"""Fields that determine a geom's mesh; worlds in which they differ have separate
meshes."""


@dataclass(frozen=True)
class Instance:
    """The world and the body of one instance of a mesh."""

    row: int
    """Index of the world among those shown."""
    body: int


@dataclass(frozen=True)
class Mesh:
    """One mesh, drawn for some bodies of some worlds."""

    handle: Any
    """viser's batched mesh."""
    instances: tuple[Instance, ...]
    rows: np.ndarray
    bodies: np.ndarray
    group: int
    is_site: bool


OnMesh = Callable[[Mesh], None]


class Geometry:
    """All geoms and sites of the worlds shown.

    Args:
        server: the server whose scene they are drawn in.
        parts: the worlds.
        worlds: the ids of the worlds shown.
        shared: True if these are all at one position, so that what is fixed in the
            world is drawn once.
        size: size of the moving parts [m].
        on_mesh: called with each new mesh, to listen to clicks.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        parts: Worlds,
        worlds: Sequence[int],
        shared: bool,
        size: float,
        on_mesh: OnMesh,
    ) -> None:
        self._server = server
        self._parts = parts
        self._worlds = list(worlds)
        self._shared, self._size = shared, size
        self._geoms_shown = {group: group in VISIBLE for group in range(GROUPS)}
        self._sites_shown = dict.fromkeys(range(GROUPS), False)
        self.meshes: list[Mesh] = []
        self._grounds: list[tuple[Any, int]] = []
        with server.atomic():
            self._make()
        for mesh in self.meshes:
            on_mesh(mesh)

    def _make(self) -> None:
        """Create one mesh for all bodies and worlds that look alike."""
        model = self._parts.model
        models = self._models()
        alike: dict[tuple[object, ...], tuple[Any, list[int], list[Instance]]] = {}
        for row, own in enumerate(models):
            for (body, group), geoms in geoms_of_bodies(own).items():
                if row and self._shared and is_fixed_body(model, body):
                    continue
                for part in group_geoms_by_visual_compat(own, geoms):
                    key = (group, *(_look(own, geom) for geom in part))
                    _, _, instances = alike.setdefault(key, (own, part, []))
                    instances.append(Instance(row, body))
        for key, (own, part, instances) in alike.items():
            self._add(merge_geoms(own, part), instances, int(str(key[0])), False)
        self._make_sites()
        for geom in range(model.ngeom):
            if _is_ground(model, geom):
                self._grounds.append((self._ground(geom), geom))

    def _make_sites(self) -> None:
        model = self._parts.model
        for body in range(model.nbody):
            of_body = [s for s in range(model.nsite) if model.site_bodyid[s] == body]
            for group in sorted({int(model.site_group[s]) for s in of_body}):
                ids = [s for s in of_body if model.site_group[s] == group]
                instances = [Instance(row, body) for row in range(len(self._worlds))]
                self._add(merge_sites(model, ids), instances, group, True)

    def _models(self) -> list[mujoco.MjModel]:
        """Return a model with the appearance of each world shown."""
        expanded = self._parts.engine.expanded
        if not any(name in expanded for name in _LOOKS):
            return [with_own_colours(self._parts.model)] * len(self._worlds)
        own = (model_of_world(self._parts, world) for world in self._worlds)
        return [with_own_colours(one) for one in own]

    def _add(
        self, mesh: Any, instances: list[Instance], group: int, is_site: bool
    ) -> None:
        count = len(instances)
        share = 1000.0 / max(len(mesh.vertices), 1)
        handle = self._server.scene.add_batched_glb(
            f"/shown/worlds/{'site' if is_site else 'geom'} {len(self.meshes)}",
            to_glb(mesh),
            batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)),
            batched_positions=np.zeros((count, 3)),
            lod=((2.0, share),) if share < 0.5 else "off",
            visible=self._is_shown(group, is_site),
        )
        rows = np.array([one.row for one in instances])
        bodies = np.array([one.body for one in instances])
        self.meshes.append(Mesh(handle, tuple(instances), rows, bodies, group, is_site))

    def _ground(self, geom: int) -> Any:
        """Add a grid for a fixed plane; it is infinite if worlds are side by side.

        It is drawn once: planes of several worlds would hide one another.
        """
        model = self._parts.model
        x, y = (float(side) for side in model.geom_size[geom, :2])
        infinite = x <= 0.0 or y <= 0.0 or not self._shared
        cell = 10.0 ** round(math.log10(self._size / 2.0))
        return self._server.scene.add_grid(
            f"/shown/worlds/ground {geom}",
            infinite_grid=infinite,
            width=2.0 * x or 10.0,
            height=2.0 * y or 10.0,
            cell_size=cell,
            section_size=5.0 * cell,
            fade_distance=30.0 * self._size,
            shadow_opacity=0.45,
            plane_opacity=1.0,
        )

    def set_dark(self, dark: bool) -> None:
        """Draw floors in dark mode, or in light mode."""
        for handle, geom in self._grounds:
            colour = floor_colour(self._parts.model, geom) * (2 * DIM if dark else 1.0)
            line = 1.0 if colour.mean() < 110.0 else 0.0
            handle.plane_color = _bytes(colour)
            handle.cell_color = _bytes(colour + 0.08 * (255.0 * line - colour))
            handle.section_color = _bytes(colour + 0.2 * (255.0 * line - colour))

    def update(self, offsets: np.ndarray) -> None:
        """Update all poses; offsets of the worlds: (shown, 3)."""
        pos, quat = poses(self._parts, self._worlds)
        pos += offsets[:, None].astype(np.float32)
        for mesh in self.meshes:
            if mesh.handle.visible:
                mesh.handle.batched_positions = pos[mesh.rows, mesh.bodies]
                mesh.handle.batched_wxyzs = quat[mesh.rows, mesh.bodies]
        for handle, geom in self._grounds:
            place = on_host(self._parts.read_field("geom_xpos")[self._worlds[0]])
            matrix = on_host(self._parts.read_field("geom_xmat")[self._worlds[0]])
            wxyz = np.zeros(4)
            mujoco.mju_mat2Quat(wxyz, matrix[geom].reshape(9))
            handle.position, handle.wxyz = place[geom], wxyz

    def show_group(self, group: int, is_site: bool, shown: bool) -> None:
        """Show or hide a group of geoms or of sites."""
        (self._sites_shown if is_site else self._geoms_shown)[group] = shown
        for mesh in self.meshes:
            if mesh.group == group and mesh.is_site == is_site:
                mesh.handle.visible = shown

    def _is_shown(self, group: int, is_site: bool) -> bool:
        shown = self._sites_shown if is_site else self._geoms_shown
        return shown.get(group, False)

    def remove(self) -> None:
        """Remove everything from the scene."""
        for mesh in self.meshes:
            mesh.handle.remove()
        for handle, _ in self._grounds:
            handle.remove()
        self.meshes, self._grounds = [], []


def poses(parts: Worlds, worlds: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the poses of all bodies, world axes [m]; (n, nbody, 3), (n, nbody, 4)."""
    ids = torch.as_tensor(worlds, device=parts.device)
    pos, quat = (
        on_host(parts.read_field(name)[ids]).astype(np.float32)
        for name in ("xpos", "xquat")
    )
    return pos, quat


def geoms_of_bodies(model: mujoco.MjModel) -> dict[tuple[int, int], list[int]]:
    """Return the visible geoms, other than the ground, of each body and group."""
    found: dict[tuple[int, int], list[int]] = {}
    for geom in range(model.ngeom):
        if _is_ground(model, geom) or not rgba_of(model, geom)[3]:
            continue
        key = int(model.geom_bodyid[geom]), int(model.geom_group[geom])
        found.setdefault(key, []).append(geom)
    return found


def _is_ground(model: mujoco.MjModel, geom: int) -> bool:
    is_plane = int(model.geom_type[geom]) == _PLANE
    return is_plane and is_fixed_body(model, int(model.geom_bodyid[geom]))


def _look(model: mujoco.MjModel, geom: int) -> tuple[object, ...]:
    """Return the appearance of a geom, for comparison."""
    return tuple(np.asarray(getattr(model, name)[geom]).tobytes() for name in _LOOKS)


def _bytes(colour: np.ndarray) -> tuple[int, int, int]:
    red, green, blue = (round(float(x)) for x in np.clip(colour, 0.0, 255.0))
    return red, green, blue


def rgb(model: mujoco.MjModel, own: np.ndarray, material: int) -> tuple[int, int, int]:
    """Return a thing's own colour, 0 … 255; that of its material where it has one."""
    rgba = model.mat_rgba[material] if material >= 0 else own
    red, green, blue = (round(255 * float(x)) for x in np.clip(rgba[:3], 0.0, 1.0))
    return red, green, blue
