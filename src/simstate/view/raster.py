"""Raster: triangles to pixels with a depth for each, by NumPy alone.

Slow beside a graphics card, a tenth of a second or so for a robot, but it needs neither
one nor a display, and draws the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SKY_LOW = np.array([236.0, 240.0, 245.0])
SKY_HIGH = np.array([176.0, 200.0, 228.0])
_LIGHT = np.array([0.35, -0.5, 0.79])
"""Where light comes from, world axes, about unit length."""
_MOST_AT_ONCE = 2_000_000
"""Pixels that are looked at together; more take more memory."""


@dataclass(frozen=True)
class Texels:
    """Images on triangles."""

    images: list[np.ndarray]
    """0 … 255, the first row at the top; (height, width, 3) each."""
    which: np.ndarray
    """The image of each triangle; −1: it has a colour; (n,)."""
    uv: np.ndarray
    """Places of the corners in it, from its lower left, 1 at its ends; (n, 3, 2)."""

    def at(self, owner: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """Colours at points that have these parts of the corners; (m, 3)."""
        found = np.zeros((len(owner), 3))
        uv = (self.uv[owner] * parts[:, :, None]).sum(1) % 1.0
        for k, image in enumerate(self.images):
            here = self.which[owner] == k
            height, width = image.shape[:2]
            column = (uv[here, 0] * width).astype(int).clip(0, width - 1)
            row = ((1.0 - uv[here, 1]) * height).astype(int).clip(0, height - 1)
            found[here] = image[row, column]
        return found

    def some(self, chosen: np.ndarray) -> Texels:
        """Those of some of the triangles."""
        return Texels(self.images, self.which[chosen], self.uv[chosen])


@dataclass(frozen=True)
class Eye:
    """A pinhole camera."""

    position: np.ndarray
    """World axes [m]; (3,)."""
    look_at: np.ndarray
    """A point in the middle of the picture, world axes [m]; (3,)."""
    width: int
    height: int
    fovy: float = 0.75
    """Vertical field of view [rad]."""

    @property
    def rot_wc(self) -> np.ndarray:
        """Camera axes to world axes: x right, y down, z forward; (3, 3)."""
        forward = self.look_at - self.position
        forward = forward / np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        if np.linalg.norm(right) < 1e-9:  # straight up or down
            right = np.array([0.0, -1.0, 0.0])
        right = right / np.linalg.norm(right)
        return np.stack([right, np.cross(forward, right), forward], axis=1)

    @property
    def focal(self) -> float:
        """Focal length [px]."""
        return self.height / 2.0 / np.tan(self.fovy / 2.0)

    def project(self, points: np.ndarray) -> np.ndarray:
        """Column, row [px] and depth along the view [m] of points; (n, 3) → (n, 3)."""
        seen = (points - self.position) @ self.rot_wc
        depth = seen[:, 2]
        ahead = np.where(np.abs(depth) < 1e-12, 1e-12, depth)
        column = self.width / 2.0 + self.focal * seen[:, 0] / ahead
        row = self.height / 2.0 + self.focal * seen[:, 1] / ahead
        return np.stack([column, row, depth], axis=1)


class Canvas:
    """A picture with a depth for each pixel.

    Args:
        eye: from where it is seen.
        ground: height of a level ground, drawn as a chequered plane [m]; None: none.
        cell: the side of its squares [m].
    """

    def __init__(self, eye: Eye, ground: float | None, cell: float) -> None:
        self.eye = eye
        self.depth = np.full(eye.height * eye.width, np.inf)
        """Along the view [m]; (height · width,)."""
        self.colour = np.zeros((eye.height * eye.width, 3))
        self._texels: Texels | None = None
        self._light = np.zeros(0)
        self._background(ground, cell)

    def picture(self) -> np.ndarray:
        """Colours, uint8; (height, width, 3)."""
        shape = (self.eye.height, self.eye.width, 3)
        return np.clip(np.round(self.colour), 0, 255).astype(np.uint8).reshape(shape)

    def _background(self, ground: float | None, cell: float) -> None:
        """A sky that is lighter at the horizon, and the ground, fading away."""
        eye = self.eye
        rows, columns = np.divmod(np.arange(eye.height * eye.width), eye.width)
        x = (columns + 0.5 - eye.width / 2.0) / eye.focal
        y = (rows + 0.5 - eye.height / 2.0) / eye.focal
        rays = np.stack([x, y, np.ones_like(x)], axis=1) @ eye.rot_wc.T
        rays = rays.astype(np.float32)  # a background needs no more, and is half of it
        up = np.clip(rays[:, 2] / np.linalg.norm(rays, axis=1), 0.0, 1.0)[:, None]
        self.colour[:] = SKY_LOW + (SKY_HIGH - SKY_LOW) * up
        if ground is None:
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = (ground - eye.position[2]) / rays[:, 2]
        hit = (reach > 0.0) & np.isfinite(reach)
        places = eye.position + reach[hit, None] * rays[hit]
        squares = np.floor(places[:, 0] / cell) + np.floor(places[:, 1] / cell)
        even = (squares % 2 == 0)[:, None]
        shade = np.where(even, [205.0, 210.0, 216.0], [188.0, 194.0, 201.0])
        near = np.exp(-reach[hit, None] / (40.0 * cell))
        self.colour[hit] = SKY_LOW + (shade - SKY_LOW) * near
        self.depth[hit] = reach[hit]

    def triangles(
        self, corners: np.ndarray, colours: np.ndarray, texels: Texels | None = None
    ) -> None:
        """Draw triangles, lit from above; (n, 3, 3) world axes [m], (n, 3) 0 … 255.

        Their corners go round against the clock as seen from outside; what shows its
        inside is not drawn.
        """
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        outside = ((self.eye.position - corners[:, 0]) * normals).sum(1) > 0.0
        corners, normals, colours = corners[outside], normals[outside], colours[outside]
        texels = None if texels is None else texels.some(outside)
        lengths = np.linalg.norm(normals, axis=1)
        light = 0.55 + 0.45 * np.clip(normals @ _LIGHT / lengths, 0.0, 1.0)
        seen = self.eye.project(corners.reshape(-1, 3)).reshape(-1, 3, 3)
        ahead = (
            np.min(seen[..., 2], axis=1) > 1e-3
        )  # what the eye is within is left out
        self._texels = None if texels is None else texels.some(ahead)
        self._light = light[ahead]
        self._fill(seen[ahead], (colours * light[:, None])[ahead])

    def _fill(self, seen: np.ndarray, colours: np.ndarray) -> None:
        """Colour the pixels of projected triangles where these are the nearest."""
        size = np.array([self.eye.width, self.eye.height])
        low = np.clip(np.floor(seen[..., :2].min(1)), 0, size).astype(np.int64)
        high = np.clip(np.ceil(seen[..., :2].max(1)), 0, size).astype(np.int64)
        spans = high - low
        counts = spans[:, 0] * spans[:, 1]
        begin = 0
        total = np.cumsum(counts)
        while begin < len(seen):
            done = total[begin - 1] if begin else 0
            end = int(np.searchsorted(total, done + _MOST_AT_ONCE, side="right"))
            end = max(end, begin + 1)
            part = slice(begin, end)
            self._fill_some(
                seen[part], colours[part], low[part], spans[part], counts[part], begin
            )
            begin = end

    def _fill_some(
        self,
        seen: np.ndarray,
        colours: np.ndarray,
        low: np.ndarray,
        spans: np.ndarray,
        counts: np.ndarray,
        begin: int,
    ) -> None:
        owner = np.repeat(np.arange(len(seen)), counts)
        if not len(owner):
            return
        first = np.repeat(np.cumsum(counts) - counts, counts)
        width = np.repeat(spans[:, 0], counts)
        rows, columns = np.divmod(np.arange(len(owner)) - first, width)
        x = columns + np.repeat(low[:, 0], counts)
        y = rows + np.repeat(low[:, 1], counts)
        planes = np.repeat(_planes(seen), counts, axis=0)
        # What each corner has of a pixel's middle, and the inverse of the depth there.
        shares = planes[:, 0] * (x + 0.5)[:, None] + planes[:, 1] * (y + 0.5)[:, None]
        shares += planes[:, 2]
        inside = (shares[:, :3] >= 0.0).all(axis=1) & (shares[:, 3] > 0.0)
        shares = shares[inside]
        owner, depth = owner[inside], 1.0 / shares[:, 3]
        pixels = y[inside] * self.eye.width + x[inside]
        far_first = np.argsort(-depth, kind="stable")
        owner, depth, pixels = owner[far_first], depth[far_first], pixels[far_first]
        shares = shares[far_first]
        nearest = np.full(len(self.depth), -1, dtype=np.int64)
        nearest[pixels] = np.arange(
            len(pixels)
        )  # the last, which is the nearest, stays
        hit = nearest >= 0
        hit[hit] = depth[nearest[hit]] < self.depth[hit]
        chosen = nearest[hit]
        self.depth[hit] = depth[chosen]
        inks = colours[owner[chosen]]
        if self._texels is not None:
            owners = begin + owner[chosen]
            has = self._texels.which[owners] >= 0
            near = 1.0 / seen[owner[chosen][has], :, 2]
            parts = shares[chosen][has, :3] * near  # of the corners in space
            parts /= parts.sum(1, keepdims=True)
            image = self._texels.at(owners[has], parts)
            inks[has] = image * self._light[owners[has], None]
        self.colour[hit] = inks


def _planes(seen: np.ndarray) -> np.ndarray:
    """Linear functions of column, row and 1 on projected triangles; (n, 3, 4).

    Three are what each corner has of a point, the fourth is the inverse of the depth:
    that is linear in the picture, the depth is not. A triangle seen from its edge has
    no inside.
    """
    x, y, depth = seen[..., 0], seen[..., 1], seen[..., 2]
    following, before = [1, 2, 0], [2, 0, 1]
    by_x = y[:, following] - y[:, before]
    by_y = x[:, before] - x[:, following]
    constant = x[:, following] * y[:, before] - x[:, before] * y[:, following]
    area = constant.sum(1, keepdims=True)
    flat = np.abs(area) < 1e-12
    shares = (
        np.stack([by_x, by_y, constant], axis=1) / np.where(flat, 1.0, area)[:, None]
    )
    shares = np.where(flat[:, None], -1.0, shares)
    inverse = (shares / depth[:, None]).sum(2, keepdims=True)
    return np.concatenate([shares, inverse], axis=2)
