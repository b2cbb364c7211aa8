"""Terrain: the heights of the complete ground, and the origins of its tiles."""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.scene.terrain.boxes import (
    BOX_GENERATORS,
    Boxes,
    BoxGenerator,
    checked_boxes,
)
from simstate.scene.terrain.generators import GENERATORS, Array, Generator, flat
from simstate.scene.terrain.terrain_cfg import TerrainCfg

GEOM = "terrain"
"""The name of the heightfield and its geom; boxes are called "terrain_box_0" ….
"""


class Terrain:
    """The terrain of a TerrainCfg; equal configurations give equal terrains."""

    def __init__(self, cfg: TerrainCfg) -> None:
        self.cfg = cfg
        cells = round(cfg.size / cfg.resolution)
        self.step = cfg.size / cells
        """Spacing of the points [m]."""
        self._margin = round(cfg.border / self.step)
        self.heights = self._made(cells)
        """Heights of the heightfield's points [m]; (points along y, along x)."""
        self._tiles = self._tile_boxes()
        self._box_table = self._made_box_table()
        self.origins = self._origins()
        """Centre of each tile, on the ground, world axes [m]; (levels, columns, 3)."""

    @property
    def half_size(self) -> tuple[float, float]:
        """Half the extent along x and y [m]."""
        rows, columns = self.heights.shape
        return (columns - 1) * self.step / 2.0, (rows - 1) * self.step / 2.0

    @property
    def boxes(self) -> Array:
        """Centres and half lengths of all boxes, world axes [m]; shape (n, 6)."""
        return np.concatenate([np.zeros((0, 6)), *self._tiles.values()])

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Add the ground to a scene: a heightfield, and boxes on it."""
        look = {"friction": list(self.cfg.friction), "rgba": list(self.cfg.color)}
        for k, box in enumerate(self.boxes):
            spec.worldbody.add_geom(
                name=f"{GEOM}_box_{k}",
                type=mujoco.mjtGeom.mjGEOM_BOX,
                pos=box[:3],
                size=box[3:],
                **look,
            )
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
            **look,
        )

    def height_at(self, position: Tensor) -> Tensor:
        """Return the height of the ground at points, world axes [m]; (…, 2 or 3) → (…).

        It is the top of the highest box, or the heightfield, on the same triangles as
        in MuJoCo. Outside the ground, it is the height of the nearest edge.
        """
        height = self._field_at(position)
        if not self._tiles:
            return height
        levels, columns, size = self.cfg.levels, self.cfg.columns, self.cfg.size
        row = (position[..., 0] / size + levels / 2.0).floor().long()
        column = (position[..., 1] / size + columns / 2.0).floor().long()
        inside = (row >= 0) & (row < levels) & (column >= 0) & (column < columns)
        table = torch.as_tensor(
            self._box_table, dtype=position.dtype, device=position.device
        )
        boxes = table[row.clamp(0, levels - 1), column.clamp(0, columns - 1)]
        away = (position[..., None, :2] - boxes[..., :2]).abs()
        below = (away <= boxes[..., 3:5]).all(-1) & inside[..., None]
        tops = boxes[..., 2] + boxes[..., 5]
        return torch.maximum(height, torch.where(below, tops, -torch.inf).amax(-1))

    def _made_box_table(self) -> Array:
        """Return the boxes of each tile, padded; (levels, columns, most, 6)."""
        most = max(map(len, self._tiles.values()), default=0)
        table = np.zeros((self.cfg.levels, self.cfg.columns, most, 6))
        table[..., 3:] = -1.0  # contains no point
        for tile, boxes in self._tiles.items():
            table[tile][: len(boxes)] = boxes
        return table

    def _field_at(self, position: Tensor) -> Tensor:
        """Return the height of the heightfield at points."""
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
        for column in range(cfg.columns):
            kind = cfg.kinds[column % len(cfg.kinds)]
            generate, _ = _generators(kind)
            for level in range(cfg.levels):
                tile = generate(reach, *self._drawing(level, column))
                if tile.shape != reach.shape[1:] or not np.isfinite(tile).all():
                    raise InvalidInputError(
                        f"The generator {kind!r} must return finite heights of shape "
                        f"{reach.shape[1:]}, got shape {tile.shape}.",
                        name=str(kind),
                    )
                row, at = margin + column * cells, margin + level * cells
                heights[row : row + cells + 1, at : at + cells + 1] = _met(tile)
        return heights

    def _drawing(self, level: int, column: int) -> tuple[float, np.random.Generator]:
        """Return the difficulty of a tile and its random generator."""
        first, last = self.cfg.difficulty
        share = level / max(self.cfg.levels - 1, 1)
        rng = np.random.default_rng([self.cfg.seed, column, level])
        return first + share * (last - first), rng

    def _tile_boxes(self) -> dict[tuple[int, int], Array]:
        """Return the boxes of tiles that have some, world axes, by level and column."""
        cfg = self.cfg
        found: dict[tuple[int, int], Array] = {}
        for column in range(cfg.columns):
            kind = cfg.kinds[column % len(cfg.kinds)]
            _, generate = _generators(kind)
            if generate is None:
                continue
            for level in range(cfg.levels):
                made = generate(cfg.size, *self._drawing(level, column))
                boxes = checked_boxes(kind, made, cfg.size)
                boxes[:, :2] += self._middle(level, column)
                found[level, column] = boxes
        return found

    def _middle(self, level: int, column: int) -> Array:
        """Return the centre of a tile, x and y [m]."""
        cfg = self.cfg
        at = (level - (cfg.levels - 1) / 2.0, column - (cfg.columns - 1) / 2.0)
        return np.array(at) * cfg.size

    def _origins(self) -> Array:
        cfg = self.cfg
        origins = np.zeros((cfg.levels, cfg.columns, 3))
        for level, column in np.ndindex(cfg.levels, cfg.columns):
            origins[level, column, :2] = self._middle(level, column)
        origins[..., 2] = self.height_at(torch.as_tensor(origins)).numpy()
        return origins


def _met(tile: Array) -> Array:
    """Return a tile shifted vertically so that the mean height of its edge is zero."""
    edge = np.concatenate([tile[0, :-1], tile[:-1, -1], tile[-1, 1:], tile[1:, 0]])
    return tile - edge.mean()


def _generators(
    kind: str | Generator | Boxes,
) -> tuple[Generator, BoxGenerator | None]:
    """Return the functions for the heights of a kind and for its boxes, if any."""
    if isinstance(kind, Boxes):
        return flat, kind.make
    if not isinstance(kind, str):
        return kind, None
    if kind in BOX_GENERATORS:
        return flat, BOX_GENERATORS[kind]
    return GENERATORS[kind], None
