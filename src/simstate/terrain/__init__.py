"""Terrain: ground of many kinds, in rows of rising difficulty."""

from simstate.terrain.cfg import TerrainCfg
from simstate.terrain.generators import GENERATORS, Generator
from simstate.terrain.terrain import Terrain

__all__ = ["GENERATORS", "Generator", "Terrain", "TerrainCfg"]
