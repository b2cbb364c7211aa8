"""Offscreen: pictures of worlds with overlays, without a browser or a display."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args
from weakref import WeakKeyDictionary

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from simstate.base.errors import InvalidInputError, unknown_name, warn
from simstate.view import opengl
from simstate.view.body_overlays import Draw
from simstate.view.course import Course
from simstate.view.eye import (
    DIRECTIONS,
    Camera,
    Eye,
    Orbit,
    check_camera,
    fitting_distance,
    model_eye,
)
from simstate.view.gl_renderer import GlRenderer
from simstate.view.grid import (
    bounds,
    offsets,
    reduced,
    shares_ground,
    size_of,
    tiled,
)
from simstate.view.one_world import OneWorld, current
from simstate.view.overlays import OVERLAYS
from simstate.view.raster_renderer import RasterRenderer
from simstate.view.shapes import PURPLE, Label, Path, Shape, labels_of
from simstate.view.shot import Placed, RendererName, Shot
from simstate.world.worlds import Worlds, worlds_of

TRAIL = "trail"
_INK, _PAPER = (30, 30, 30), (250, 250, 250)
_FOLLOW_SECONDS = 0.4
"""Time constant with which the camera follows [s]."""
_SAMPLES = (1, 4, 9, 16)


@dataclass(frozen=True)
class PictureCfg:
    """Settings of pictures.

    Args:
        overlays: names of `simstate.view.overlays.OVERLAYS`, or "trail".
        size: width and height [px]; of each world's picture in a sheet.
        camera: "corner", "front", "side" or "above", a camera of the model by name, an
            `Orbit`, or a position and the point it looks at, world axes [m].
        follow: True if the camera follows the moving parts.
        values: True if force arrows are labelled with their values.
        renderer: "auto": MuJoCo's own if OpenGL works; "opengl"; "software".
        transparent: True for pictures with an alpha channel, without floor and sky.
        supersampling: samples per pixel: 1, 4, 9 or 16.
        sheet: True for a picture of each world, in rows, instead of one of all.
    """

    overlays: Sequence[str] = ()
    size: tuple[int, int] = (640, 480)
    camera: Camera = "corner"
    follow: bool = True
    values: bool = True
    renderer: RendererName = "auto"
    transparent: bool = False
    supersampling: int = 1
    sheet: bool = False


class Offscreen:
    """Draws some worlds of a course without a display.

    Args:
        course: the course to draw.
        worlds: ids of the worlds to draw, side by side.
        cfg: settings of the pictures.
    """

    def __init__(self, course: Course, worlds: Sequence[int], cfg: PictureCfg) -> None:
        self._course, self._cfg, self._worlds = course, cfg, list(worlds)
        self._draws = self._check()
        parts = worlds_of(course.worlds)
        self._trails: dict[int, deque[np.ndarray]] = {
            world: deque(maxlen=300) for world in self._worlds
        }
        model = parts.model
        with current(parts):
            self._boxes = [self._box(world) for world in self._worlds]
        low, high = self._boxes[0]
        self._size = size_of(low, high)
        self._on_one_ground = shares_ground(model)
        spacing = 0.0 if self._on_one_ground else 1.6 * self._size
        count = 1 if cfg.sheet else len(self._worlds)
        self._offsets = offsets(count, spacing)
        if count == 1:
            self._offsets = np.zeros((len(self._worlds), 3))
        self._start = [(low + high) / 2.0 for low, high in self._boxes]
        self._goals = [middle.copy() for middle in self._start]
        self._seconds = course.now(self._worlds[0])
        self._began = self._seconds
        self._distances: dict[tuple[int, ...], float] = {}

    def picture(self) -> np.ndarray:
        """Draw the current state, uint8; (height, width, 3), 4 if transparent."""
        with current(worlds_of(self._course.worlds)):
            self._follow()
            if not self._cfg.sheet:
                return self._draw(range(len(self._worlds)))
            rows = [self._draw([row]) for row in range(len(self._worlds))]
            return tiled(np.stack(rows))

    def _check(self) -> dict[str, Draw]:
        """Validate the request; return the overlays by name."""
        cfg, parts = self._cfg, worlds_of(self._course.worlds)
        own = {name: draw for name, (_, draw) in self._course.overlays().items()}
        draws = {name: overlay.draw for name, overlay in OVERLAYS.items()} | own
        draws[TRAIL] = self._trail
        for name in cfg.overlays:
            if name not in draws:
                raise unknown_name("overlay", name, draws)
        check_camera(parts.model, cfg.camera)
        check_renderer(cfg.renderer)
        if cfg.supersampling not in _SAMPLES:
            raise InvalidInputError(
                f"supersampling must be one of {_SAMPLES}, got {cfg.supersampling}.",
                name="supersampling",
            )
        side = math.isqrt(cfg.supersampling)
        if min(cfg.size) < 8 or max(cfg.size) * side > 8192:
            raise InvalidInputError(
                f"The sides of a picture must be in [8, {8192 // side}] pixels, got "
                f"{cfg.size}.",
                name="size",
            )
        ids = self._worlds
        if not ids or not all(0 <= w < parts.num_envs for w in ids):
            raise InvalidInputError(
                f"Worlds to draw must be in [0, {parts.num_envs}), got {ids}.",
                name="worlds",
            )
        return {name: draws[name] for name in cfg.overlays}

    def _box(self, world: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounding box of what moves in a world, world axes [m]."""
        return bounds(self._seen(world, 1.0))

    def _seen(self, world: int, size: float) -> OneWorld:
        return OneWorld(self._course.worlds, self._course.rays, world, size)

    def _follow(self) -> None:
        """Move the camera's goals smoothly towards the moving parts."""
        if not self._cfg.follow:
            return
        now = self._course.now(self._worlds[0])
        share = 1.0 - math.exp(-abs(now - self._seconds) / _FOLLOW_SECONDS)
        self._seconds = now
        for row, world in enumerate(self._worlds):
            low, high = self._box(world)
            middle = (low + high) / 2.0
            if np.isfinite(middle).all():
                self._goals[row] += share * (middle - self._goals[row])

    def _draw(self, rows: Sequence[int]) -> np.ndarray:
        """Draw some of the worlds into one picture."""
        shot = self._shot(rows)
        cfg = self._cfg
        picture = renderer_for(cfg.renderer, shot).draw(shot)
        side = math.isqrt(cfg.supersampling)
        picture = reduced(picture, side)
        labels = [
            Label(label.pos + placed.offset, label.weight, label.text)
            for placed in shot.worlds[:1]
            for label in labels_of(placed.shapes)
        ]
        if cfg.values and labels:
            picture = _written(picture, shot.eye, side, labels)
        if cfg.sheet:
            picture = _titled(picture, f"{self._worlds[rows[0]]}")
        return picture if cfg.transparent else np.ascontiguousarray(picture[..., :3])

    def _shot(self, rows: Sequence[int]) -> Shot:
        """Return the layout of worlds, overlays and camera."""
        placed: list[Placed] = []
        for row in rows:
            one = self._seen(self._worlds[row], self._size)
            shapes: list[Shape] = []
            for draw in self._draws.values():
                shapes += draw(one)
            placed.append(Placed(one, self._offsets[row], shapes))
        corners = self._corners(rows)
        centre = np.mean(
            [self._goals[row] + self._offsets[row] for row in rows], axis=0
        )
        radius = float(np.linalg.norm(corners - corners.mean(0), axis=1).max())
        return Shot(
            self._eye(placed[0].world, rows, centre), placed, self._size, centre,
            radius, self._on_one_ground, self._cfg.transparent,
        )  # fmt: skip

    def _corners(self, rows: Sequence[int]) -> np.ndarray:
        """Return corners of the initial bounding boxes, world axes [m]; (n, 3)."""
        boxes = [np.stack(self._boxes[row]) + self._offsets[row] for row in rows]
        picked = [np.array(np.meshgrid(*box.T)).reshape(3, -1).T for box in boxes]
        return np.concatenate(picked)

    def _eye(self, first: OneWorld, rows: Sequence[int], goal: np.ndarray) -> Eye:
        cfg, camera = self._cfg, self._cfg.camera
        side = math.isqrt(cfg.supersampling)
        size = cfg.size[0] * side, cfg.size[1] * side
        if not isinstance(camera, str | Orbit):
            position, look_at = (np.array(x, dtype=np.float64) for x in camera)
            return Eye(position, look_at, *size)
        if isinstance(camera, str) and camera not in DIRECTIONS:
            k = int(first.model.camera(camera).id)
            mat = first.field("cam_xmat")[k].reshape(3, 3)
            pos = first.field("cam_xpos")[k] + self._offsets[rows[0]]
            return model_eye(first.model, camera, pos, mat, size)
        distance: float | None = None
        if isinstance(camera, Orbit):
            direction = camera.direction(
                self._course.now(self._worlds[0]) - self._began
            )
            distance = camera.distance
        else:
            direction = np.array(DIRECTIONS[camera])
            direction /= np.linalg.norm(direction)
        if distance is None:
            distance = self._distance(rows, direction)
        return Eye(goal + distance * direction, goal, *size)

    def _distance(self, rows: Sequence[int], direction: np.ndarray) -> float:
        """Return the distance at which all worlds were in view initially [m]."""
        key = tuple(rows)
        if key not in self._distances:
            middles = [self._start[row] + self._offsets[row] for row in rows]
            self._distances[key] = fitting_distance(
                self._corners(rows), np.mean(middles, axis=0), direction, self._cfg.size
            )
        return self._distances[key]

    def _trail(self, seen: OneWorld) -> list[Shape]:
        """Return the path of the moving parts' centre of mass, over past pictures."""
        points = self._trails[seen.world]
        mass = seen.parameter("body_mass") * (seen.model.body_weldid != 0)
        points.append(mass @ seen.field("xipos") / max(float(mass.sum()), 1e-12))
        if len(points) < 2:
            return []
        text = "path of the centre of mass of all moving bodies, world axes"
        return [Path(np.stack(points), PURPLE, text)]


def _written(
    picture: np.ndarray, eye: Eye, side: int, labels: Sequence[Label]
) -> np.ndarray:
    """Return a picture with labels, in a readable size."""
    image = Image.fromarray(picture)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(max(9.0, image.height / 36.0))
    places = eye.project(np.stack([one.pos for one in labels]))
    for one, (column, row, depth) in zip(labels, places, strict=True):
        if depth > 0.0:
            pen.text(
                (float(column) / side, float(row) / side), one.text, _INK, font,
                anchor="ls", stroke_width=2, stroke_fill=_PAPER,
            )  # fmt: skip
    return np.asarray(image)


def _titled(picture: np.ndarray, text: str) -> np.ndarray:
    """Return a picture with a text in its upper left corner."""
    image = Image.fromarray(picture)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(max(9.0, image.height / 14.0))
    inset = image.height / 28.0
    pen.text(
        (inset, inset), text, _INK, font, anchor="lt", stroke_width=2,
        stroke_fill=_PAPER,
    )  # fmt: skip
    return np.asarray(image)


NOTE = (
    "Pictures are drawn without OpenGL, more slowly and without the model's lights and "
    f"reflections. MuJoCo's own renderer needs EGL or OSMesa ({opengl.REMEDY})."
)
_kept: WeakKeyDictionary[Worlds, GlRenderer | RasterRenderer] = WeakKeyDictionary()
_noted: set[str] = set()


def check_renderer(name: str) -> None:
    """Raise unless a renderer of this name can be used here."""
    if name not in get_args(RendererName):
        raise unknown_name("renderer", name, get_args(RendererName))
    if name == "opengl" and opengl.context() is None:
        raise InvalidInputError(
            f"No OpenGL library works here. {opengl.REMEDY}; or use renderer='auto'.",
            name="renderer",
        )


def renderer_for(name: RendererName, shot: Shot) -> GlRenderer | RasterRenderer:
    """Return the last renderer of these worlds if it fits the shot, else a new one."""
    worlds = worlds_of(shot.worlds[0].world.worlds)
    context = None if name == "software" else opengl.context()
    kind = RasterRenderer if context is None else GlRenderer
    kept = _kept.get(worlds)
    if isinstance(kept, kind) and kept.fits(shot):
        return kept
    if context is not None:
        made = GlRenderer(context, worlds.model, shot)
    else:
        if name == "auto" and NOTE not in _noted:
            _noted.add(NOTE)
            warn(NOTE)
        made = RasterRenderer(shot)
    _kept[worlds] = made
    return made
