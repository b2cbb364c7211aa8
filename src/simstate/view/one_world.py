"""OneWorld: the values of one world on the host, for overlays and plots."""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import mujoco
import numpy as np
from torch import Tensor

from simstate.entity import Entity
from simstate.sensors import RaySensor
from simstate.sensors.contact_table import ContactTable, contact_table
from simstate.step.stepping_host import SteppingHost
from simstate.world.worlds import Worlds, worlds_of


def on_host(values: Tensor) -> np.ndarray:
    """Return a tensor as an array for drawing; floating-point values as float64."""
    array = values.detach().cpu().numpy()
    return array.astype(np.float64 if array.dtype.kind == "f" else array.dtype)


@contextmanager
def current(parts: Worlds) -> Generator[None]:
    """Context manager in which reads update stale values."""
    mode = parts.fresh.mode
    parts.fresh.mode = "auto"
    try:
        yield
    finally:
        parts.fresh.mode = mode


def model_of_world(parts: Worlds, world: int) -> mujoco.MjModel:
    """Return a copy of the model with the parameters of one world."""
    model = copy.copy(parts.model)
    write_parameters(model, parts, world)
    return model


def write_parameters(model: mujoco.MjModel, parts: Worlds, world: int) -> None:
    """Write the parameters of one world that differ by world to a copy of the model."""
    for name, values in parts.engine.expanded.items():
        owner: Any = model.opt if name.startswith("opt.") else model
        leaf = name.removeprefix("opt.")
        field: Any = getattr(owner, leaf)
        value = values[world].detach().cpu().numpy()
        if np.ndim(field):
            field[...] = value.reshape(np.shape(field))
        else:
            setattr(owner, leaf, type(field)(value))


class OneWorld:
    """One world of a simulation at the current state, with all values on the host.

    Args:
        worlds: the simulation.
        rays: its ray sensors.
        world: id of the world.
        size: size of the moving parts [m]; shapes are scaled with it.
        scale: scale of arrows, 1 for the usual length.
    """

    def __init__(
        self,
        worlds: SteppingHost,
        rays: Mapping[str, RaySensor],
        world: int,
        size: float,
        scale: float = 1.0,
    ) -> None:
        self.worlds = worlds
        self.rays = rays
        self.world = world
        self.size = size
        self.scale = scale

    @property
    def model(self) -> mujoco.MjModel:
        """The compiled scene, which all worlds share."""
        return self.worlds.model

    @property
    def entities(self) -> Mapping[str, Entity]:
        """The entities by name."""
        return self.worlds.scene

    def field(self, name: str) -> np.ndarray:
        """Return a raw field of this world."""
        return on_host(worlds_of(self.worlds).read_field(name)[self.world])

    def parameter(self, name: str) -> np.ndarray:
        """Return a model parameter of this world."""
        values = worlds_of(self.worlds).engine.parameter(name)
        return on_host(values[self.world if values.shape[0] > 1 else 0])

    def quantity(self, entity: str, name: str) -> np.ndarray:
        """Return a quantity of an entity in this world."""
        return on_host(self.entities[entity].data.read(name)[self.world])

    @cached_property
    def _boxes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Centres [m], axes and half sides [m] of the boxes of all moving geoms."""
        model = self.model
        moving = (model.body_weldid[model.geom_bodyid] != 0) & (model.geom_group < 3)
        box = model.geom_aabb.reshape(-1, 6)[moving]
        rot = self.field("geom_xmat").reshape(-1, 3, 3)[moving]
        centres = self.field("geom_xpos")[moving] + (rot @ box[:, :3, None])[..., 0]
        return centres, rot, box[:, 3:]

    def outside(self, pos: np.ndarray) -> np.ndarray:
        """Return the nearest free position next to one, world axes [m]; (3,).

        It is moved away from the middle of all bodies, by at most half their size.
        """
        centres, rot, halves = self._boxes
        if not len(centres):
            return pos
        away = pos - centres.mean(0)
        away[2] = 0.0
        length = float(np.linalg.norm(away))
        step = 0.05 * self.size * (away / length if length > 1e-6 else np.eye(3)[0])
        for _ in range(10):
            local = ((pos - centres)[:, None] @ rot)[:, 0]
            if not (np.abs(local) < halves + 0.01 * self.size).all(1).any():
                break
            pos = pos + step
        return pos

    @cached_property
    def contacts(self) -> ContactTable:
        """The contacts of this world."""
        return contact_table(worlds_of(self.worlds), [self.world])

    @cached_property
    def weight(self) -> float:
        """Weight of all moving bodies, at least 1e-3 [N]."""
        mass = self.parameter("body_mass")[self.model.body_weldid != 0].sum()
        gravity = float(np.linalg.norm(self.parameter("opt.gravity")))
        return max(float(mass) * (gravity or 9.81), 1e-3)

    def length_of_force(self, force: np.ndarray) -> np.ndarray:
        """Return a force as drawn [m]: one equal to the weight is `size` long."""
        return force * (self.scale * self.size / self.weight)

    def length_of_speed(self, velocity: np.ndarray) -> np.ndarray:
        """Return a velocity as drawn [m]: `size` per second is 0.3 `size` long."""
        return velocity * (0.3 * self.scale)

    def length_of_turn(self, ang_vel: np.ndarray) -> np.ndarray:
        """Return an angular velocity as drawn [m]: 1 rad/s is 0.1 `size` long."""
        return ang_vel * (0.1 * self.scale * self.size)


def vector_text(values: np.ndarray) -> str:
    """Return a vector as text: "(0.12, -3.4, 0)"."""
    return "(" + ", ".join(f"{x:.4g}" for x in values) + ")"
