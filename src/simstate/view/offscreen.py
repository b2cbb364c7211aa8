"""Offscreen: pictures of worlds with overlays, without a browser or a display."""

# mjviser and trimesh come with partial type information.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from mjviser.conversions import is_fixed_body, merge_geoms
from PIL import Image, ImageDraw, ImageFont

from simstate.base.errors import InvalidInputError, unknown_name
from simstate.view.course import Course
from simstate.view.geometry import VISIBLE, geoms_of_bodies
from simstate.view.grid import bounds, offsets, shares_ground
from simstate.view.one_world import OneWorld, current, model_of_world
from simstate.view.overlays import OVERLAYS
from simstate.view.picture import DIRECTIONS
from simstate.view.raster import Canvas, Eye, Texels
from simstate.view.shape_meshes import shape_triangles
from simstate.view.shapes import Label, labels_of
from simstate.view.soft import flex_corners, soft_of
from simstate.world.worlds import worlds_of

_INK, _PAPER = (30, 30, 30), (250, 250, 250)
_PLANE = mujoco.mjtGeom.mjGEOM_PLANE.value


@dataclass(frozen=True)
class _Part:
    """The triangles of a body's geoms, in its own axes."""

    body: int
    corners: np.ndarray
    """[m]; (n, 3, 3)."""
    colours: np.ndarray
    """0 … 255; (n, 3)."""
    image: np.ndarray | None = None
    """0 … 255; (height, width, 3)."""
    uv: np.ndarray | None = None
    """Places of the corners in it; (n, 3, 2)."""


class Offscreen:
    """Draws some worlds of a course; meshes are made once.

    Args:
        course: what is drawn.
        worlds: the ids of the worlds, side by side; the first has the overlays.
        overlays: their names, as `simstate.view.overlays` has them.
        size: width and height [px].
        camera: "corner", "front", "side" or "above", or where the camera stands and
            what it looks at, world axes [m].
        follow: whether the camera goes along with what moves.
        values: whether the values of forces are written at them.
    """

    def __init__(
        self,
        course: Course,
        worlds: Sequence[int],
        overlays: Sequence[str],
        size: tuple[int, int],
        camera: str | tuple[Sequence[float], Sequence[float]],
        follow: bool,
        values: bool,
    ) -> None:
        own = {name: draw for name, (_, draw) in course.overlays().items()}
        draws = {name: overlay.draw for name, overlay in OVERLAYS.items()} | own
        for name in overlays:
            if name not in draws:
                raise unknown_name("overlay", name, draws)
        if isinstance(camera, str) and camera not in DIRECTIONS:
            raise unknown_name("camera", camera, DIRECTIONS)
        if min(size) < 8 or max(size) > 8192:
            raise InvalidInputError(
                f"A picture has 8 … 8192 pixels a side, got {size}."
            )
        parts = worlds_of(course.worlds)
        if not worlds or not all(0 <= w < parts.num_envs for w in worlds):
            raise InvalidInputError(
                f"Worlds to draw are some of 0 … {parts.num_envs - 1}, got "
                f"{list(worlds)}."
            )
        self._course, self._worlds = course, list(worlds)
        self._draws = [draws[name] for name in overlays]
        self._pixels, self._camera, self._follow = size, camera, follow
        self._values = values
        with current(parts):
            first = self._seen(self._worlds[0], 1.0)
            low, high = bounds(
                parts.model, first.field("geom_xpos"), flex_corners(first)
            )
        self._middle = (low + high) / 2.0
        self._size = max(float(np.linalg.norm(high - low)) / 1.8, 1e-3)
        spacing = 0.0 if shares_ground(parts.model) else 1.6 * self._size
        self._offsets = offsets(len(worlds), spacing)
        self._spacing = spacing
        differ = any(name.startswith("geom_") for name in parts.engine.expanded)
        shared = None if differ else _parts(parts.model)
        self._soft = [soft for soft in soft_of(parts.model) if soft.group in VISIBLE]
        self._parts = [
            _parts(model_of_world(parts, world)) if shared is None else shared
            for world in self._worlds
        ]

    def picture(self) -> np.ndarray:
        """The present state, uint8; (height, width, 3)."""
        with current(worlds_of(self._course.worlds)):
            return self._draw()

    def _draw(self) -> np.ndarray:
        model = self._course.worlds.model
        seen = [self._seen(world, self._size) for world in self._worlds]
        canvas = Canvas(self._eye(seen[0]), _ground(seen[0]), 0.5 * self._size)
        corners: list[np.ndarray] = []
        colours: list[np.ndarray] = []
        placed: list[tuple[int, _Part]] = []
        for one, parts, offset in zip(seen, self._parts, self._offsets, strict=True):
            pos, mat = one.field("xpos"), one.field("xmat").reshape(-1, 3, 3)
            on_one_ground = one is not seen[0] and self._spacing == 0.0
            for part in parts:
                if not (on_one_ground and is_fixed_body(model, part.body)):
                    if part.image is not None:
                        placed.append((sum(map(len, corners)), part))
                    turned = part.corners @ mat[part.body].T
                    corners.append(turned + pos[part.body] + offset)
                    colours.append(part.colours)
            for soft in self._soft:
                drawn = soft.corners(one)[soft.faces] + offset
                sides = [drawn] if soft.is_closed else [drawn, drawn[:, ::-1]]
                corners += sides
                colours += [np.tile(soft.colour, (len(drawn), 1))] * len(sides)
        labels: list[Label] = []
        for draw in self._draws:
            shapes = draw(seen[0])
            for drawn, inks in shape_triangles(shapes, self._size):
                corners.append(drawn + self._offsets[0])
                colours.append(inks)
            labels += labels_of(shapes) if self._values else []
        if corners:  # all at once: each call looks at the whole picture
            whole = np.concatenate(corners)
            texels = _texels(len(whole), placed)
            canvas.triangles(whole, np.concatenate(colours), texels)
        return _written(canvas, labels, self._offsets[0])

    def _seen(self, world: int, size: float) -> OneWorld:
        return OneWorld(self._course.worlds, self._course.rays, world, size)

    def _eye(self, seen: OneWorld) -> Eye:
        width, height = self._pixels
        if not isinstance(self._camera, str):
            position, goal = (np.array(x, dtype=np.float64) for x in self._camera)
            return Eye(position, goal, width, height)
        goal = self._middle
        if self._follow:
            low, high = bounds(seen.model, seen.field("geom_xpos"), flex_corners(seen))
            goal = (low + high) / 2.0
        if len(self._worlds) == 1:
            goal = goal + self._offsets[0]
        side = np.sqrt(len(self._worlds)) - 1.0
        far = 1.9 * self._size + 1.2 * self._spacing * side
        return Eye(goal + far * np.array(DIRECTIONS[self._camera]), goal, width, height)


def _parts(model: mujoco.MjModel) -> list[_Part]:
    """The triangles of all bodies' geoms that are shown."""
    found: list[_Part] = []
    for (body, group), geoms in geoms_of_bodies(model).items():
        if group not in VISIBLE:
            continue
        for geom in geoms:
            mesh: Any = merge_geoms(model, [geom])
            visual = mesh.visual
            image, uv = _image_of(mesh)
            if not hasattr(visual, "face_colors"):
                visual = visual.to_color()
                visual.mesh = mesh
            colours = np.asarray(visual.face_colors)[:, :3].astype(np.float64)
            if colours.shape[0] != len(mesh.faces):
                colours = np.tile(colours[:1], (len(mesh.faces), 1))
            found.append(_Part(body, np.asarray(mesh.triangles), colours, image, uv))
    return found


def _image_of(mesh: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The image on a mesh and its corners' places in it, if it has one."""
    material: Any = getattr(mesh.visual, "material", None)
    image = getattr(material, "baseColorTexture", None)
    uv = getattr(mesh.visual, "uv", None)
    if image is None or uv is None:
        return None, None
    factor = material.baseColorFactor
    tint = np.ones(3) if factor is None else np.asarray(factor)[:3] / 255.0
    pixels = np.asarray(image.convert("RGB"), dtype=np.float64) * tint
    return pixels, np.asarray(uv)[np.asarray(mesh.faces)]


def _texels(count: int, placed: Sequence[tuple[int, _Part]]) -> Texels | None:
    """The images of some of `count` triangles, from where each part begins."""
    if not placed:
        return None
    which, uv = np.full(count, -1), np.zeros((count, 3, 2))
    images: list[np.ndarray] = []
    for begin, part in placed:
        assert part.image is not None
        assert part.uv is not None
        span = slice(begin, begin + len(part.corners))
        which[span], uv[span] = len(images), part.uv
        images.append(part.image)
    return Texels(images, which, uv)


def _written(canvas: Canvas, labels: Sequence[Label], offset: np.ndarray) -> np.ndarray:
    """The picture with labels over it, as large as can be read."""
    picture = canvas.picture()
    if not labels:
        return picture
    image = Image.fromarray(picture)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(max(9.0, canvas.eye.height / 36.0))
    places = canvas.eye.project(np.stack([one.pos for one in labels]) + offset)
    for one, (column, row, depth) in zip(labels, places, strict=True):
        if depth > 0.0:
            pen.text(
                (float(column), float(row)), one.text, _INK, font, anchor="ls",
                stroke_width=2, stroke_fill=_PAPER,
            )  # fmt: skip
    return np.asarray(image)


def _ground(seen: OneWorld) -> float | None:
    """The height of a level plane in the world; None: there is none."""
    model = seen.model
    for geom in np.flatnonzero(model.geom_type == _PLANE):
        normal = seen.field("geom_xmat")[geom].reshape(3, 3)[:, 2]
        if is_fixed_body(model, int(model.geom_bodyid[geom])) and normal[2] > 0.999:
            return float(seen.field("geom_xpos")[geom][2])
    return None
