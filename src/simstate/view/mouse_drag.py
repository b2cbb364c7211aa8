"""Drag: a body pulled with the mouse, by a force at the grabbed point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from simstate.step.stepping_host import SteppingHost
from simstate.view.one_world import OneWorld, vector_text
from simstate.view.shapes import RED, Arrow, Shape

STIFFNESS = 200.0
"""Force per kilogram and metre of the pull [N/(kg·m)]."""
DAMPING = 20.0
"""Force per kilogram and metre per second of the point's velocity [N·s/(kg·m)]."""


@dataclass(frozen=True)
class Pull:
    """A point of a body, and the target that it is pulled to."""

    world: int
    body: int
    point_b: np.ndarray
    """The point from the link origin, link axes [m]; (3,)."""
    goal: np.ndarray
    """Target of the pull, world axes [m]; (3,)."""


class MouseDrag:
    """Adds the wrench of a pull before each step, and removes it at the end."""

    def __init__(self, worlds: SteppingHost) -> None:
        self._worlds = worlds
        self._pull: Pull | None = None
        self._before: torch.Tensor | None = None

    @property
    def pull(self) -> Pull | None:
        """The current pull; None if nothing is pulled."""
        return self._pull

    def set(self, pull: Pull | None) -> None:
        """Pull a body, or let go; restore the wrench of the body pulled before."""
        known = self._pull
        if known is not None and (
            pull is None or (pull.world, pull.body) != (known.world, known.body)
        ):
            self._let_go()
        self._pull = pull

    def apply(self, seen: OneWorld) -> None:
        """Add the current wrench of the pull to the wrench that was there before."""
        pull = self._pull
        if pull is None:
            return
        wrench = torch.as_tensor(self.wrench(seen, pull))
        applied = self._worlds.data.xfrc_applied
        if self._before is None:
            self._before = applied[pull.world, pull.body].clone()
        applied[pull.world, pull.body] = self._before + wrench.to(applied)

    def wrench(self, seen: OneWorld, pull: Pull) -> np.ndarray:
        """Return force and torque of a pull at the COM, world axes [N, N·m]; (6,)."""
        rot_wb = seen.field("xmat")[pull.body].reshape(3, 3)
        origin, com = seen.field("xpos")[pull.body], seen.field("xipos")[pull.body]
        point = origin + rot_wb @ pull.point_b
        velocity = _velocity_at(seen, pull.body, point)
        mass = float(seen.parameter("body_subtreemass")[pull.body])
        force = mass * (STIFFNESS * (pull.goal - point) - DAMPING * velocity)
        return np.concatenate([force, np.cross(point - com, force)])

    def shapes(self, seen: OneWorld) -> list[Shape]:
        """Return an arrow from the grabbed point to its target."""
        pull = self._pull
        if pull is None or pull.world != seen.world:
            return []
        rot_wb = seen.field("xmat")[pull.body].reshape(3, 3)
        point = seen.field("xpos")[pull.body] + rot_wb @ pull.point_b
        force = vector_text(self.wrench(seen, pull)[:3])
        return [Arrow(point, pull.goal - point, RED, f"pull: {force} N, world axes")]

    def _let_go(self) -> None:
        if self._pull is not None and self._before is not None:
            applied = self._worlds.data.xfrc_applied
            applied[self._pull.world, self._pull.body] = self._before
        self._before = None


def on_body(seen: OneWorld, body: int, point_b: np.ndarray) -> np.ndarray:
    """Return a grabbed point, moved to the body's geoms, link axes [m]; (3,).

    A page that lags shows an earlier position of the body, so the point may be off it.
    """
    geoms = np.flatnonzero(seen.model.geom_bodyid == body)
    if not len(geoms):
        return point_b
    away = np.linalg.norm(seen.parameter("geom_pos")[geoms], axis=1)
    reach = float((away + seen.parameter("geom_rbound")[geoms]).max())
    return point_b * min(1.0, reach / max(float(np.linalg.norm(point_b)), 1e-12))


def _velocity_at(seen: OneWorld, body: int, point: np.ndarray) -> np.ndarray:
    """Return the velocity of a point fixed in a body, world axes [m/s]; (3,)."""
    cvel = seen.field("cvel")[body]
    about = seen.field("subtree_com")[seen.model.body_rootid[body]]
    return cvel[3:] + np.cross(cvel[:3], point - about)
