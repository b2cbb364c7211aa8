"""Entities: names, quantities and writers."""

from simstate.entity.data import EntityData
from simstate.entity.entity import Entity, SceneEntities
from simstate.entity.quantity import Quantity

__all__ = ["Entity", "EntityData", "Quantity", "SceneEntities"]
