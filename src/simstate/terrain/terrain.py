"""Terrain: the heights of a whole ground, and where one stands on it."""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.errors import InvalidInputError
from simstate.terrain.cfg import TerrainCfg
from simstate.terrain.generators import GENERATORS, Array

GEOM = "terrain"
"""The name of the geom and of the heightfield."""


class Terrain:
    """What a TerrainCfg describes, computed: the same for the same configuration."""

    def __init__(self, cfg: TerrainCfg) -> None:
        self.cfg = cfg
        cells = round(cfg.size / cfg.resolution)
        self.step = cfg.size / cells
        """Distance of two points [m]."""
        self._margin = round(cfg.border / self.step)
        self.heights = self._made(cells)
        """Heights of the points [m]; shape (points along y, points along x)."""
        self.origins = self._origins(cells)
        """The middle of each tile, on the ground [m]; (levels, columns, 3)."""

    @property
    def half_size(self) -> tuple[float, float]:
        """Half the extent along x and y [m]."""
        rows, columns = self.heights.shape
        return (columns - 1) * self.step / 2.0, (rows - 1) * self.step / 2.0

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Add the ground to a scene, as a heightfield."""
        low, high = float(self.heights.min()), float(self.heights.max())
        rise = max(high - low, 1e-3)
        x, y = self.half_size
        rows, columns = self.heights.shape
        spec.add_hfield(
            name=GEOM,
            size=[x, y, rise, 1.0],
            nrow=rows,
            ncol=columns,
            userdata=((self.heights - low) / rise).ravel(),
        )
        spec.worldbody.add_geom(
            name=GEOM,
            type=mujoco.mjtGeom.mjGEOM_HFIELD,
            hfieldname=GEOM,
            pos=[0.0, 0.0, low],
            friction=list(self.cfg.friction),
            rgba=list(self.cfg.color),
        )

    def height_at(self, position: Tensor) -> Tensor:
        """Height of the ground below points, world axes [m]; (…, 2 or 3) → (…).

        On the same triangles that MuJoCo takes. Beyond the ground it is that of the
        edge.
        """
        heights = torch.as_tensor(
            self.heights, dtype=position.dtype, device=position.device
        )
        x, y = self.half_size
        rows, columns = heights.shape
        at_x = ((position[..., 0] + x) / self.step).clamp(0.0, columns - 1.0)
        at_y = ((position[..., 1] + y) / self.step).clamp(0.0, rows - 1.0)
        left = at_x.long().clamp(max=columns - 2)
        below = at_y.long().clamp(max=rows - 2)
        u, v = at_x - left, at_y - below
        low, right = heights[below, left], heights[below, left + 1]
        up, far = heights[below + 1, left], heights[below + 1, left + 1]
        upper = low + v * (up - low) + u * (far - up)
        lower = low + u * (right - low) + v * (far - right)
        return torch.where(v > u, upper, lower)

    def _made(self, cells: int) -> Array:
        cfg = self.cfg
        margin = self._margin
        shape = (cfg.columns * cells + 1, cfg.levels * cells + 1)
        heights = np.zeros((shape[0] + 2 * margin, shape[1] + 2 * margin))
        along = (np.arange(cells + 1) - cells / 2.0) * self.step
        reach = np.stack(np.meshgrid(along, along, indexing="ij"))
        first, last = cfg.difficulty
        for column in range(cfg.columns):
            kind = cfg.kinds[column % len(cfg.kinds)]
            generate = GENERATORS[kind] if isinstance(kind, str) else kind
            for level in range(cfg.levels):
                share = level / max(cfg.levels - 1, 1)
                rng = np.random.default_rng([cfg.seed, column, level])
                tile = generate(reach, first + share * (last - first), rng)
                if tile.shape != reach.shape[1:] or not np.isfinite(tile).all():
                    raise InvalidInputError(
                        f"The generator {kind!r} must give finite heights of shape "
                        f"{reach.shape[1:]}, got shape {tile.shape}."
                    )
                row, at = margin + column * cells, margin + level * cells
                heights[row : row + cells + 1, at : at + cells + 1] = tile
        return heights

    def _origins(self, cells: int) -> Array:
        cfg, margin = self.cfg, self._margin
        origins = np.zeros((cfg.levels, cfg.columns, 3))
        level, column = np.indices((cfg.levels, cfg.columns))
        origins[..., 0] = (level - (cfg.levels - 1) / 2.0) * cfg.size
        origins[..., 1] = (column - (cfg.columns - 1) / 2.0) * cfg.size
        middle = margin + cells // 2
        origins[..., 2] = self.heights[middle + column * cells, middle + level * cells]
        return origins
