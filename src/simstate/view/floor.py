"""Floor: a plane of the model in pictures without OpenGL, with a soft shadow on it."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from simstate.view.eye import Eye
from simstate.view.shot import rgba_of

_RGB = mujoco.mjtTextureRole.mjTEXROLE_RGB.value
_FLAT = mujoco.mjtTexture.mjTEXTURE_2D.value
_MAP = 384
"""Side of the map of shadows [px]."""
_DARKNESS = 0.5
"""Fraction of the light that a shadow removes."""


@dataclass(frozen=True)
class Floor:
    """A plane with the material of its geom."""

    pos: np.ndarray
    """Centre, world axes [m]; (3,)."""
    rot_wf: np.ndarray
    """Rotation from floor axes (z upwards) to world axes; (3, 3)."""
    half: np.ndarray
    """Half sides [m], 0: infinite; (2,)."""
    tint: np.ndarray
    """Colour, which multiplies the texture, 0 … 1; (3,)."""
    levels: list[np.ndarray]
    """Mipmap levels of the texture, 0 … 255; (height, width, 3) each."""
    periods: np.ndarray
    """Textures per metre along x and y; (2,)."""
    start: np.ndarray
    """Texture coordinates of the plane's centre; (2,)."""

    def draw(
        self,
        eye: Eye,
        light: float,
        shadow: Shadow | None,
        fade: float,
        horizon: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pixels that show the floor, their colours 0 … 255 and depths [m].

        Args:
            eye: the camera.
            light: brightness of the lit floor, as a fraction of its colour.
            shadow: the shadow on the floor, if any.
            fade: the distance at which the floor starts to fade into the sky [m].
            horizon: the colour that it fades into, 0 … 255; (3,).
        """
        rays = eye.rays()
        normal = self.rot_wf[:, 2]
        slope = rays @ normal
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = ((self.pos - eye.position) @ normal) / slope
        hit = np.flatnonzero((reach > 0.0) & np.isfinite(reach) & (slope < 0.0))
        local = (eye.position + reach[hit, None] * rays[hit] - self.pos) @ self.rot_wf
        bounded = np.where(self.half > 0.0, self.half, np.inf)
        inside = (np.abs(local[:, :2]) <= bounded).all(1)
        hit, local = hit[inside], local[inside, :2]
        reach, slope = reach[hit], slope[hit]
        colours = self._texture(local, reach / eye.focal / np.maximum(-slope, 1e-3))
        colours *= light
        if shadow is not None:
            colours *= 1.0 - _DARKNESS * shadow.at(local)[:, None]
        near = np.exp(-np.maximum(reach - fade, 0.0) / (2.0 * fade))[:, None]
        return hit, horizon + (colours - horizon) * near, reach

    def _texture(self, local: np.ndarray, footprint: np.ndarray) -> np.ndarray:
        """Return colours at points [m] of pixels of a footprint [m]; (n, 3)."""
        texels = footprint * self.periods.max() * max(self.levels[0].shape[:2])
        halvings = np.log2(np.maximum(texels, 1.0)).clip(0, len(self.levels) - 1)
        where = (self.start + local * self.periods * (1.0, -1.0)) % 1.0
        found = np.empty((len(local), 3))
        for k, image in enumerate(self.levels):
            here = np.abs(halvings - k) <= 0.5
            height, width = image.shape[:2]
            column = (where[here, 0] * width).astype(int).clip(0, width - 1)
            row = (where[here, 1] * height).astype(int).clip(0, height - 1)
            found[here] = image[row, column]
        return found * self.tint


def floor_of(
    model: mujoco.MjModel, geom: int, pos: np.ndarray, rot_wf: np.ndarray, endless: bool
) -> Floor:
    """Return the floor of a plane geom; `endless` ignores its size."""
    material = int(model.geom_matid[geom])
    half = np.zeros(2) if endless else np.array(model.geom_size[geom, :2])
    tint = rgba_of(model, geom)[:3]
    texture = int(model.mat_texid[material, _RGB]) if material >= 0 else -1
    if texture < 0 or model.tex_type[texture] != _FLAT:
        blank = [np.full((1, 1, 3), 255.0)]
        return Floor(pos, rot_wf, half, tint, blank, np.ones(2), np.zeros(2))
    repeat = np.array(model.mat_texrepeat[material], dtype=np.float64)
    if not half.all():  # as MuJoCo maps a texture onto an infinite plane
        return Floor(
            pos, rot_wf, half, tint, _levels(model, texture), repeat / 2.0,
            np.full(2, -0.5),
        )  # fmt: skip
    if model.mat_texuniform[material]:
        repeat = repeat * half
    periods, start = repeat / (2.0 * half), repeat / 2.0
    return Floor(pos, rot_wf, half, tint, _levels(model, texture), periods, start)


def floor_colour(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Return the mean colour of a plane geom, 0 … 255; (3,)."""
    floor = floor_of(model, geom, np.zeros(3), np.eye(3), False)
    return floor.levels[-1].mean((0, 1)) * floor.tint


def _levels(model: mujoco.MjModel, texture: int) -> list[np.ndarray]:
    """Return the mipmap levels of a texture, down to one pixel along a side."""
    height, width = int(model.tex_height[texture]), int(model.tex_width[texture])
    channels = int(model.tex_nchannel[texture])
    begin = int(model.tex_adr[texture])
    data = model.tex_data[begin : begin + height * width * channels]
    image = data.reshape(height, width, channels)[..., :3].astype(np.float64)
    if image.shape[2] < 3:
        image = np.repeat(image[..., :1], 3, axis=2)
    levels = [image]
    while min(levels[-1].shape[:2]) > 1:
        last = levels[-1]
        rows, columns = (n // 2 * 2 for n in last.shape[:2])
        quarters = last[:rows, :columns].reshape(rows // 2, 2, columns // 2, 2, 3)
        levels.append(quarters.mean((1, 3)))
    return levels


class Shadow:
    """A soft shadow of triangles on a floor.

    Args:
        floor: the floor that it lies on.
        corners: corners of the triangles, world axes [m]; (n, 3, 3).
        direction: direction of the light, world axes; (3,).
    """

    def __init__(
        self, floor: Floor, corners: np.ndarray, direction: np.ndarray
    ) -> None:
        local = (corners - floor.pos) @ floor.rot_wf
        along = direction @ floor.rot_wf
        above = local[..., 2].max(1) > 0.0
        local = local[above]
        cast = local[..., :2] - local[..., 2:] * (along[:2] / min(along[2], -0.2))
        if not len(cast):
            cast = np.zeros((1, 3, 2))
        low, high = cast.min((0, 1)), cast.max((0, 1))
        side = max(float((high - low).max()), 1e-6) * 1.2
        self._low = (low + high) / 2.0 - side / 2.0
        self._scale = _MAP / side
        image = _filled((cast - self._low) * self._scale)
        blurred = image.filter(ImageFilter.GaussianBlur(_MAP / 96.0))
        self._map = np.asarray(blurred, dtype=np.float64) / 255.0

    def at(self, local: np.ndarray) -> np.ndarray:
        """Return the shade at points of the floor [m], 0 … 1; (n, 2) → (n,)."""
        where = np.floor((local - self._low) * self._scale)
        inside = ((where >= 0) & (where < _MAP)).all(1)
        found = np.zeros(len(local))
        column, row = where[inside].astype(int).T
        found[inside] = self._map[row, column]
        return found


def _filled(triangles: np.ndarray) -> Image.Image:
    """Return a mask of the pixels that triangles cover, 0 or 255; (n, 3, 2) [px]."""
    covered = np.zeros((_MAP, _MAP), np.uint8)
    span = (triangles.max(1) - triangles.min(1)).max(1)
    points = triangles.mean(1).astype(int).clip(0, _MAP - 1)
    covered[points[:, 1], points[:, 0]] = 255
    image = Image.fromarray(covered)
    pen = ImageDraw.Draw(image)
    for triangle in triangles[span > 1.5]:  # smaller ones are covered by their centre
        pen.polygon(triangle.flatten().tolist(), fill=255)
    return image
