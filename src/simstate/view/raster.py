"""Raster: triangles to pixels with a depth buffer, in NumPy.

It takes about a tenth of a second for a robot, needs neither a graphics card nor a
display, and draws the same on all machines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simstate.view.eye import Eye

_MOST_AT_ONCE = 2_000_000
"""Maximum number of pixels to process at once, which limits the memory."""


@dataclass(frozen=True)
class Texels:
    """Images on triangles."""

    images: list[np.ndarray]
    """0 … 255, the first row at the top; (height, width, 3) each."""
    which: np.ndarray
    """Index of each triangle's image; −1: it has a colour; (n,)."""
    uv: np.ndarray
    """Texture coordinates of the corners, from the lower left, 0 … 1; (n, 3, 2)."""

    def at(self, owner: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """Return colours at points with these barycentric coordinates; (m, 3)."""
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
        """Return the texels of some of the triangles."""
        return Texels(self.images, self.which[chosen], self.uv[chosen])


class Canvas:
    """A picture with a depth buffer.

    Args:
        eye: the camera.
        light: direction towards the light, world axes, of unit length; (3,).
    """

    def __init__(self, eye: Eye, light: np.ndarray) -> None:
        self.eye = eye
        self.depth = np.full(eye.height * eye.width, np.inf)
        """Depth along the view [m]; (height · width,)."""
        self.colour = np.zeros((eye.height * eye.width, 3))
        """Colour times opacity, 0 … 255; (height · width, 3)."""
        self.alpha = np.zeros(eye.height * eye.width)
        """Opacity, 0 … 1; (height · width,)."""
        self._towards = light
        self._texels: Texels | None = None
        self._light = np.zeros(0)
        self._opacity = 1.0

    def picture(self) -> np.ndarray:
        """Return the colours with straight alpha, uint8; (height, width, 4)."""
        alpha = self.alpha[:, None]
        straight = self.colour / np.maximum(alpha, 1e-3)
        pixels = np.concatenate([straight, 255.0 * alpha], axis=1)
        shape = (self.eye.height, self.eye.width, 4)
        return np.clip(np.round(pixels), 0, 255).astype(np.uint8).reshape(shape)

    def paint(
        self, pixels: np.ndarray, colours: np.ndarray, depth: np.ndarray | float
    ) -> None:
        """Set pixels, (n,), to opaque colours 0 … 255, (n, 3), and depths [m]."""
        self.colour[pixels], self.depth[pixels] = colours, depth
        self.alpha[pixels] = 1.0

    def triangles(
        self,
        corners: np.ndarray,
        colours: np.ndarray,
        texels: Texels | None = None,
        opacity: float = 1.0,
    ) -> None:
        """Draw triangles, lit from above; (n, 3, 3) world axes [m], (n, 3) 0 … 255.

        Their corners are counter-clockwise as seen from outside; back faces are not
        drawn. A triangle that is not opaque hides nothing: draw these last, the
        farthest first.
        """
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        outside = ((self.eye.position - corners[:, 0]) * normals).sum(1) > 0.0
        corners, normals, colours = corners[outside], normals[outside], colours[outside]
        texels = None if texels is None else texels.some(outside)
        lengths = np.linalg.norm(normals, axis=1)
        lit = np.clip(normals @ self._towards / np.maximum(lengths, 1e-30), 0.0, 1.0)
        faces_eye = np.clip(normals @ -self.eye.rot_wc[:, 2] / lengths, 0.0, 1.0)
        light = 0.35 + 0.2 * faces_eye + 0.5 * lit
        seen = self.eye.project(corners.reshape(-1, 3)).reshape(-1, 3, 3)
        ahead = (
            np.min(seen[..., 2], axis=1) > 1e-3
        )  # skip triangles that the camera is in
        self._texels = None if texels is None else texels.some(ahead)
        self._light, self._opacity = light[ahead], opacity
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
        # Barycentric coordinates of the pixels' centres, and the inverse depth there.
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
        )  # the last write, which is the nearest, wins
        hit = nearest >= 0
        hit[hit] = depth[nearest[hit]] < self.depth[hit]
        chosen = nearest[hit]
        inks = colours[owner[chosen]]
        if self._texels is not None:
            owners = begin + owner[chosen]
            has = self._texels.which[owners] >= 0
            near = 1.0 / seen[owner[chosen][has], :, 2]
            parts = shares[chosen][has, :3] * near  # barycentric coordinates in space
            parts /= parts.sum(1, keepdims=True)
            image = self._texels.at(owners[has], parts)
            inks[has] = image * self._light[owners[has], None]
        if self._opacity >= 1.0:
            self.paint(np.flatnonzero(hit), inks, depth[chosen])
            return
        self.colour[hit] += self._opacity * (inks - self.colour[hit])
        self.alpha[hit] += self._opacity * (1.0 - self.alpha[hit])


def _planes(seen: np.ndarray) -> np.ndarray:
    """Return linear functions of column, row and 1 on projected triangles; (n, 3, 4).

    Three are the barycentric coordinates; the fourth is the inverse depth, which is
    linear in the picture, unlike the depth. A triangle seen edge-on covers no pixels.
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
