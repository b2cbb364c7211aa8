"""Terrain: tiles of ground of several kinds, in rows of increasing difficulty."""

from simstate.scene.terrain.boxes import BOX_GENERATORS, Boxes, BoxGenerator
from simstate.scene.terrain.generators import GENERATORS, Generator
from simstate.scene.terrain.terrain import Terrain
from simstate.scene.terrain.terrain_cfg import TerrainCfg

__all__ = [
    "BOX_GENERATORS",
    "GENERATORS",
    "BoxGenerator",
    "Boxes",
    "Generator",
    "Terrain",
    "TerrainCfg",
]
