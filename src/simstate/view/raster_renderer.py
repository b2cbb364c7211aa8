"""The renderer without OpenGL: meshes of the model as triangles for `raster.Canvas`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from simstate.view.floor import Shadow, floor_of
from simstate.view.geom_parts import GeomPart, part_of
from simstate.view.geometry import VISIBLE, geoms_of_bodies
from simstate.view.one_world import OneWorld, model_of_world
from simstate.view.raster import Canvas, Texels
from simstate.view.shape_meshes import shape_triangles
from simstate.view.shot import (
    Placed,
    Shot,
    floors,
    rgba_of,
    sky_of,
    sun_of,
    with_own_colours,
)
from simstate.view.soft import soft_of
from simstate.world.worlds import Worlds, worlds_of

_SOLID = 0.9999
"""Opacity above which a part is drawn as opaque."""


@dataclass(frozen=True)
class _Drawn:
    """Triangles at their positions in the picture, world axes [m]."""

    corners: np.ndarray
    colours: np.ndarray
    part: GeomPart | None = None
    casts: bool = True
    """True if they cast a shadow."""


class RasterRenderer:
    """Renderer that uses NumPy; meshes are created once.

    Args:
        shot: the first picture.
    """

    name = "software"

    def __init__(self, shot: Shot) -> None:
        self._looks = _looks(shot)
        model = shot.worlds[0].world.model
        self._sky = sky_of(model)
        self._soft = [soft for soft in soft_of(model) if soft.group in VISIBLE]
        shared = None if self._looks else _parts(model)
        self._parts = {
            placed.world.world: shared or _parts(_own_model(placed.world))
            for placed in shot.worlds
        }
        self._shared = shared

    def fits(self, shot: Shot) -> bool:
        """Return True if the meshes are also those of another shot's worlds."""
        known = all(one.world.world in self._parts for one in shot.worlds)
        return _looks(shot) == self._looks and (known or self._shared is not None)

    def draw(self, shot: Shot) -> np.ndarray:
        """Return a picture with straight alpha, uint8; (height, width, 4)."""
        model = shot.worlds[0].world.model
        sun = sun_of(model)
        canvas = Canvas(shot.eye, -sun)
        drawn = [one for placed in shot.worlds for one in self._drawn(shot, placed)]
        if not shot.transparent:
            canvas.paint(
                np.arange(len(canvas.depth)), self._sky.at(shot.eye.rays()), np.inf
            )
            self._draw_floors(canvas, shot, drawn, sun)
        solid = [one for one in drawn if one.part is None or one.part.opacity > _SOLID]
        if solid:  # all at once: each call processes the entire picture
            corners = np.concatenate([one.corners for one in solid])
            colours = np.concatenate([one.colours for one in solid])
            canvas.triangles(corners, colours, _texels(solid))
        glass = [one for one in drawn if one.part and one.part.opacity <= _SOLID]
        eye = shot.eye.position
        glass.sort(
            key=lambda one: -float(np.linalg.norm(one.corners - eye, axis=2).min())
        )
        for one in glass:
            assert one.part is not None
            canvas.triangles(one.corners, one.colours, _texels([one]), one.part.opacity)
        return canvas.picture()

    def _drawn(self, shot: Shot, placed: Placed) -> list[_Drawn]:
        """Return the triangles of a world and of its overlays."""
        one, offset = placed.world, placed.offset
        fixed = one.model.body_weldid == 0
        pos, mat = one.field("xpos") + offset, one.field("xmat").reshape(-1, 3, 3)
        repeated = shot.on_one_ground and placed is not shot.worlds[0]
        drawn = [
            _Drawn(part.corners @ mat[part.body].T + pos[part.body], part.colours, part)
            for part in self._shared or self._parts[one.world]
            if not (repeated and fixed[part.body])
        ]
        for soft in self._soft:
            corners = soft.corners(one)[soft.faces] + offset
            for side in (corners,) if soft.is_closed else (corners, corners[:, ::-1]):
                drawn.append(_Drawn(side, np.tile(soft.colour, (len(side), 1))))
        for corners, colours in shape_triangles(placed.shapes, shot.size):
            drawn.append(_Drawn(corners + offset, colours, casts=False))
        return drawn

    def _draw_floors(
        self, canvas: Canvas, shot: Shot, drawn: Sequence[_Drawn], sun: np.ndarray
    ) -> None:
        first, model = shot.worlds[0].world, shot.worlds[0].world.model
        several = len(shot.worlds) > 1 and not shot.on_one_ground
        moving = [
            one.corners
            for one in drawn
            if one.casts and (one.part is None or one.part.opacity >= 0.5)
        ]
        for geom in floors(model):
            if model.geom_group[geom] not in VISIBLE or not rgba_of(model, geom)[3]:
                continue
            pos = first.field("geom_xpos")[geom] + shot.worlds[0].offset
            mat = first.field("geom_xmat")[geom]
            floor = floor_of(model, int(geom), pos, mat.reshape(3, 3), several)
            lit = 0.55 + 0.45 * max(float(-sun @ floor.rot_wf[:, 2]), 0.0)
            shadow = Shadow(floor, np.concatenate(moving), sun) if moving else None
            fade = 8.0 * shot.radius
            pixels, colours, depth = floor.draw(
                shot.eye, lit, shadow, fade, self._sky.low
            )
            near = depth < canvas.depth[pixels]
            canvas.paint(pixels[near], colours[near], depth[near])


def _looks(shot: Shot) -> bytes:
    """Return the geoms' parameters that differ by world, to detect a change."""
    parts = worlds_of(shot.worlds[0].world.worlds)
    expanded = parts.engine.expanded
    names = sorted(name for name in expanded if name.startswith("geom_"))
    return b"".join(expanded[name].detach().cpu().numpy().tobytes() for name in names)


def _own_model(one: OneWorld) -> mujoco.MjModel:
    parts: Worlds = worlds_of(one.worlds)
    return model_of_world(parts, one.world)


def _parts(model: mujoco.MjModel) -> list[GeomPart]:
    """Return the triangles of all visible geoms."""
    model = with_own_colours(model)
    shown = (g for (_, group), g in geoms_of_bodies(model).items() if group in VISIBLE)
    return [part_of(model, geom) for geoms in shown for geom in geoms]


def _texels(drawn: Sequence[_Drawn]) -> Texels | None:
    """Return the images on triangles that are drawn together; None without images."""
    count = sum(len(one.corners) for one in drawn)
    which, uv = np.full(count, -1), np.zeros((count, 3, 2))
    images: list[np.ndarray] = []
    known: dict[int, int] = {}
    begin = 0
    for one in drawn:
        span = slice(begin, begin + len(one.corners))
        begin = span.stop
        if one.part is not None and one.part.image is not None:
            if id(one.part.image) not in known:
                known[id(one.part.image)] = len(images)
                images.append(one.part.image)
            which[span], uv[span] = known[id(one.part.image)], one.part.uv
    return Texels(images, which, uv) if images else None
