"""Companion: the bodies of other worlds, coloured by their distance from ours."""

# mjviser and trimesh come with partial type information.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import viser
from mjviser.conversions import merge_geoms

from simstate.view.geometry import VISIBLE, geoms_of_bodies, poses
from simstate.view.one_world import vector_text
from simstate.view.paint import OnClick
from simstate.world.worlds import Worlds

HEAT = np.array([[50, 110, 230], [0, 170, 160], [240, 210, 40], [230, 60, 50]])
"""Colours from zero distance to `FAR`; (4, 3)."""
NEAR, FAR = 1e-6, 1e-1
"""Distances of the first and the last colour, relative to the size of the scene."""


class Companion:
    """The bodies of another course, in the worlds that are shown.

    Args:
        server: the server whose scene they are drawn in.
        ours: the worlds to compare with.
        theirs: the worlds to draw.
        worlds: the ids of the worlds shown.
        size: size of the moving parts [m].
        label: name of the other course.
        on_click: called with the description of a body that was clicked.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        ours: Worlds,
        theirs: Worlds,
        worlds: Sequence[int],
        size: float,
        label: str,
        on_click: OnClick,
    ) -> None:
        self._ours, self._theirs, self._worlds = ours, theirs, list(worlds)
        self._size, self._label, self._on_click = size, label, on_click
        self._parts: list[tuple[Any, int]] = []
        self._gaps = np.zeros((len(self._worlds), theirs.model.nbody, 3))
        count = len(self._worlds)
        with server.atomic():
            for (body, group), geoms in geoms_of_bodies(theirs.model).items():
                if group not in VISIBLE or not theirs.model.body_weldid[body]:
                    continue
                mesh: Any = merge_geoms(theirs.model, geoms)
                handle: Any = server.scene.add_batched_meshes_simple(
                    f"/shown/companion/{body} {group}", mesh.vertices, mesh.faces,
                    batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)),
                    batched_positions=np.zeros((count, 3)),
                    batched_colors=np.zeros((count, 3), np.uint8),
                    opacity=0.75, lod="off",
                )  # fmt: skip
                self._parts.append((handle, body))
                self._listen(handle, body)

    def update(self, offsets: np.ndarray) -> None:
        """Update all poses; offsets of the worlds: (shown, 3)."""
        pos, quat = poses(self._theirs, self._worlds)
        self._gaps = pos - poses(self._ours, self._worlds)[0]
        colours = heat(np.linalg.norm(self._gaps, axis=-1) / self._size)
        pos = pos + offsets[:, None].astype(np.float32)
        for handle, body in self._parts:
            handle.batched_positions = pos[:, body]
            handle.batched_wxyzs = quat[:, body]
            handle.batched_colors = colours[:, body]

    def remove(self) -> None:
        """Remove everything from the scene."""
        for handle, _ in self._parts:
            handle.remove()
        self._parts = []

    def _listen(self, handle: Any, body: int) -> None:
        name = self._theirs.model.body(body).name or f"body {body}"

        def clicked(event: Any) -> None:
            k = event.instance_index
            if k is not None and 0 <= k < len(self._worlds):
                gap = self._gaps[k, body]
                far = float(np.linalg.norm(gap))
                self._on_click(
                    f"**{name}** in {self._label}, world {self._worlds[k]}: "
                    f"{vector_text(gap)} m off, distance {far:.4g} m; link origin, "
                    "world axes",
                    handle.batched_positions[k],
                )

        handle.on_click(clicked)


def heat(share: np.ndarray) -> np.ndarray:
    """Return colours of relative distances, on a log scale, uint8; (…) → (…, 3)."""
    share = np.nan_to_num(share, nan=FAR, posinf=FAR)
    place = np.log(np.clip(share, NEAR, FAR) / NEAR) / np.log(FAR / NEAR)
    stops = np.linspace(0.0, 1.0, len(HEAT))
    parts: Any = [np.interp(place, stops, HEAT[:, k]) for k in range(3)]
    return np.stack(parts, axis=-1).astype(np.uint8)
