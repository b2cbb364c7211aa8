"""A reference frame that falls along with the bodies, for orbits.

At 7.6 km/s MuJoCo's inverse dynamics lose m·v²·ε of bias torque to rounding, which
float64 feels in the tenth digit of an attitude and float32 does not survive. In a frame
that follows a reference orbit the bodies are slow, and what is lost with them is small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.ids import Values
from simstate.integrate.loads import PointMassGravity, vectors
from simstate.integrate.processes import Process
from simstate.math import vector

if TYPE_CHECKING:
    from simstate.entity import Entity
    from simstate.integrate.worlds import IntegratedWorlds


class MovingFrame(Process):
    """A point in free fall, with axes along the world's, that the scene is built on.

    The positions and velocities of the simulation (quantities, `sim.data`, states) are
    then relative to this point, and `root_link_pos_w` below adds it; its
    axes do not turn, so orientations, angular velocities and all axes are the world's.
    Gravity acts as the difference between the body's place and the frame's, computed
    without cancellation. `sim.add_process(frame)` is all it needs.

    Args:
        gravity: what makes the frame fall, and the bodies in it.
        position: of the frame's origin at reset, world axes [m]; (3,) or (num_envs, 3).
        velocity: the same for its velocity [m/s].
        name: the process's name.
    """

    def __init__(
        self,
        gravity: PointMassGravity,
        position: Values,
        velocity: Values,
        name: str = "frame",
    ) -> None:
        start, speed = vectors("position", position), vectors("velocity", velocity)
        rows = torch.zeros_like(start) + torch.zeros_like(speed)
        super().__init__(name, torch.cat([start + rows, speed + rows], dim=-1))
        self.gravity = gravity

    def attach(self, sim: IntegratedWorlds) -> None:
        """Let gravity act on the bodies of a simulation from now on."""
        self.gravity.attach(sim)
        super().attach(sim)
        sim.add_force(self.pull)

    @property
    def position(self) -> Tensor:
        """The frame's origin, world axes [m], float64; shape (num_envs, 3)."""
        return self.value[:, :3]

    @property
    def velocity(self) -> Tensor:
        """The frame's velocity, world axes [m/s], float64; shape (num_envs, 3)."""
        return self.value[:, 3:]

    def root_link_pos_w(self, entity: Entity) -> Tensor:
        """An entity's root link in the world, world axes [m]; shape (num_envs, 3)."""
        return self.position + entity.data.root_link_pos_w.double()

    def root_link_lin_vel_w(self, entity: Entity) -> Tensor:
        """Its velocity against the world, world axes [m/s]; shape (num_envs, 3)."""
        return self.velocity + entity.data.root_link_lin_vel_w.double()

    def rate(self, t: Tensor, sim: IntegratedWorlds) -> Tensor:
        """Velocity and acceleration of the frame; shape (num_envs, 6)."""
        del sim
        fall = self.gravity.acceleration(t, self.position[:, None])[:, 0]
        return torch.cat([self.velocity, fall], dim=-1)

    def pull(self, t: Tensor, sim: IntegratedWorlds) -> None:
        """Add what gravity does to each body beyond what it does to the frame."""
        gravity = self.gravity
        offset = sim.data.xipos[:, gravity.bodies].double()[:, :, None]
        to_frame = self.position[:, None, None] - gravity.positions(t)[:, None]
        square = vector.dot(to_frame, to_frame)
        # |r + d|⁻³ − |r|⁻³ from q = (|r + d|² − |r|²) / |r|², without a difference of
        # two nearly equal numbers.
        q = vector.dot(offset, offset + 2 * to_frame) / square
        change = torch.expm1(-1.5 * torch.log1p(q))
        mu = gravity.mu.to(offset.device)[:, None]
        each = -mu / square**1.5 * (offset + (to_frame + offset) * change)
        gravity.add_weights(sim, each.sum(dim=2))
