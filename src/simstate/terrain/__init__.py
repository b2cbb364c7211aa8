"""Terrain: ground of many kinds, in rows of rising difficulty."""

from simstate.terrain.boxes import BOX_GENERATORS, Boxes, BoxGenerator
from simstate.terrain.cfg import TerrainCfg
from simstate.terrain.generators import GENERATORS, Generator
from simstate.terrain.terrain import Terrain

__all__ = [
    "BOX_GENERATORS",
    "GENERATORS",
    "BoxGenerator",
    "Boxes",
    "Generator",
    "Terrain",
    "TerrainCfg",
]
