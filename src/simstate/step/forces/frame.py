"""A reference frame that falls along with the bodies, for orbits.

At 7.6 km/s MuJoCo's inverse dynamics lose m·v²·ε of bias torque to rounding: in float64
the tenth digit of an attitude is wrong, in float32 all digits are. In a frame that
follows a reference orbit the bodies are slow, and the rounding error is small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, ShapeError
from simstate.base.ids import Ids, Values
from simstate.step.forces.compiled_force import CompiledForce
from simstate.step.forces.force_parameters import Parameter
from simstate.step.forces.gravity import Gravity
from simstate.step.processes import Process
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.entity import Entity
    from simstate.step.stepping_host import SteppingHost


class MovingFrame(Process):
    """A freely falling frame with the world's axes, which the scene is relative to.

    The positions and velocities of the simulation (quantities, `sim.data`, states) are
    then relative to this frame's origin, and `root_link_pos_w` below adds it. The frame
    does not rotate: orientations, angular velocities and all axes are the world's.
    The bodies feel the difference of gravity between their position and the frame's
    origin, by the same model and without cancellation. Add it by `sim.add_process`.

    Use one frame for each of several distant craft, with `Gravity(…, entity=…)`. They
    must not be able to collide, since each is near the simulation's origin.

    Args:
        gravity: the field that accelerates the frame and the bodies in it.
        position: the frame's origin at reset, world axes [m]; (3,) or (num_envs, 3).
        velocity: its velocity at reset, world axes [m/s]; (3,) or (num_envs, 3).
        name: the process's name; by default "frame", or "frame of …" with an entity.
    """

    def __init__(
        self,
        gravity: Gravity,
        position: Values,
        velocity: Values,
        name: str | None = None,
    ) -> None:
        if not isinstance(gravity, Gravity):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                "gravity must be a simstate.integrate.Gravity, whose one formula moves "
                f"the frame and the bodies in it; got {gravity!r}.",
                name="gravity",
            )
        start = _vector_rows("position", position)
        speed = _vector_rows("velocity", velocity)
        if name is None:
            name = "frame" if gravity.entity is None else f"frame of {gravity.entity}"
        if start.ndim == speed.ndim and start.shape[0] != speed.shape[0]:
            raise ShapeError(
                f"position and velocity of a MovingFrame are (3,) or (num_envs, 3), "
                f"got {tuple(start.shape)} and {tuple(speed.shape)}.",
                name="position",
                shape=start.shape,
            )
        rows = torch.zeros_like(start) + torch.zeros_like(speed)
        super().__init__(name, torch.cat([start + rows, speed + rows], dim=-1))
        self.gravity = gravity

    def attach(self, sim: SteppingHost) -> None:
        """Apply gravity to the bodies of a simulation from now on."""
        self.gravity.attach(sim)
        _refuse_collisions(sim, self)
        super().attach(sim)
        sim.add_force(FrameGravity(self))

    @property
    def position(self) -> Tensor:
        """The frame's origin, world axes [m], float64; shape (num_envs, 3)."""
        return self.value[:, :3]

    @property
    def velocity(self) -> Tensor:
        """The frame's velocity, world axes [m/s], float64; shape (num_envs, 3)."""
        return self.value[:, 3:]

    def root_link_pos_w(self, entity: Entity) -> Tensor:
        """Return the root link's position in the world [m]; shape (num_envs, 3)."""
        return self.position + entity.data.root_link_pos_w.double()

    def root_link_lin_vel_w(self, entity: Entity) -> Tensor:
        """Return its velocity relative to the world [m/s]; shape (num_envs, 3)."""
        return self.velocity + entity.data.root_link_lin_vel_w.double()

    def body_com_pos_w(self, entity: Entity) -> Tensor:
        """Return the bodies' COMs in the world [m]; (num_envs, num_bodies, 3)."""
        return self.position[:, None] + entity.data.body_com_pos_w.double()

    def body_com_lin_vel_w(self, entity: Entity) -> Tensor:
        """Return the COMs' velocities in the world [m/s]; (num_envs, num_bodies, 3)."""
        return self.velocity[:, None] + entity.data.body_com_lin_vel_w.double()

    def recentre(self, entity: str, env_ids: Ids = None) -> None:
        """Move the frame to an entity's root link: its origin and its velocity.

        Nothing moves in the world: positions and velocities become relative to another
        point. This keeps the precision of bodies that thrust or drag takes away from
        the frame. To repeat it, add a task: `sim.add_task(lambda sim, env_ids:
        frame.recentre("rocket", env_ids), period=20.0)`.
        """
        sim = self._sim
        if sim is None:
            raise self._not_added()
        places, speeds = _free_columns(sim, self)
        rows = worlds_of(sim).select(env_ids).tensor(sim.device)
        data = sim.scene[entity].data
        apart = data.root_link_pos_w[rows].clone()
        faster = data.root_link_lin_vel_w[rows].clone()
        self.value[rows] += torch.cat([apart, faster], dim=-1).double()
        for columns, shift in ((places, apart), (speeds, faster)):
            field = sim.data.qpos if columns is places else sim.data.qvel
            for first in columns:
                field[rows, first : first + 3] -= shift

    def rate(self, t: Tensor, sim: SteppingHost) -> Tensor:
        """Return velocity and acceleration, world axes; shape (num_envs, 6)."""
        del sim
        fall = self.gravity.acceleration(t, self.position[:, None])[:, 0]
        return torch.cat([self.velocity, fall], dim=-1)

    def pull(self, t: Tensor, sim: SteppingHost) -> None:
        """Add the loads of gravity on each body relative to the frame."""
        gravity, origin = self.gravity, self.position[:, None]
        offset = sim.data.xipos[:, gravity.bodies].double()
        beyond = gravity.difference(t, origin, offset)
        gravity.add_loads(sim, beyond, t, origin + offset)


class FrameGravity:
    """The force model by which gravity acts on the bodies of a moving frame."""

    def __init__(self, frame: MovingFrame) -> None:
        self.frame = frame

    @property
    def gravity(self) -> Gravity:
        """The frame's gravity."""
        return self.frame.gravity

    def __call__(self, t: Tensor, sim: SteppingHost) -> None:
        """Add the loads to those of the bodies."""
        self.frame.pull(t, sim)

    def compiled(self, start: float, end: float) -> CompiledForce | None:
        """Return the loads for the core, unless a subclass moves the frame itself."""
        own = type(self.frame)
        if own.rate is not MovingFrame.rate or own.pull is not MovingFrame.pull:
            return None
        return self.gravity.force_in(self.frame, start, end)


def frames(sim: SteppingHost) -> list[MovingFrame]:
    """Return the moving frames of a simulation."""
    processes = [] if sim.integration is None else sim.integration.processes
    return [process for process in processes if isinstance(process, MovingFrame)]


def frame_of(sim: SteppingHost, body: int) -> MovingFrame | None:
    """Return the frame that a body's state is relative to; None: the world."""
    for frame in frames(sim):
        if body in frame.gravity.bodies:
            return frame
    return None


def com_in_world(sim: SteppingHost, entity: str, link: int) -> tuple[Tensor, Tensor]:
    """Return position and velocity of a link's COM relative to the world.

    World axes [m, m/s], float64; (num_envs, 3) each.
    """
    data = sim.scene[entity].data
    pos = data.body_com_pos_w[:, link].double()
    vel = data.body_com_lin_vel_w[:, link].double()
    frame = frame_of(sim, sim.scene[entity].index.bodies.ids[link])
    if frame is None:
        return pos, vel
    return pos + frame.position, vel + frame.velocity


def _refuse_collisions(sim: SteppingHost, frame: MovingFrame) -> None:
    """Raise if bodies of two frames could touch: their positions are not comparable."""
    model = sim.model
    own = np.isin(model.geom_bodyid, frame.gravity.bodies)
    for other in frames(sim):
        theirs = np.isin(model.geom_bodyid, other.gravity.bodies)
        kinds, meets = model.geom_contype, model.geom_conaffinity
        one = (kinds[own][:, None] & meets[theirs]) != 0
        two = (meets[own][:, None] & kinds[theirs]) != 0
        if (one | two).any():
            raise InvalidInputError(
                f"Bodies of {frame.name!r} and of {other.name!r} can collide, but "
                "their positions are relative to different points. Give their geoms "
                "contype and conaffinity without common bits, or use one frame.",
                name=frame.name,
            )


def _free_columns(sim: SteppingHost, frame: MovingFrame) -> tuple[list[int], list[int]]:
    """Return the columns of a frame's bodies in qpos and qvel."""
    model = sim.model
    roots = sorted({int(model.body_rootid[body]) for body in frame.gravity.bodies})
    places: list[int] = []
    speeds: list[int] = []
    for root in roots:
        joint = int(model.body_jntadr[root])
        if joint < 0 or model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE.value:
            raise InvalidInputError(
                f"Body {model.body(root).name!r} of {frame.name!r} has no free joint: "
                "it belongs to the simulation's origin, which cannot be moved.",
                name=model.body(root).name,
            )
        places.append(int(model.jnt_qposadr[joint]))
        speeds.append(int(model.jnt_dofadr[joint]))
    return places, speeds


def _vector_rows(what: str, values: Values) -> Tensor:
    """Return a finite vector, or one for each world; (3,) or (n, 3)."""
    return Parameter(what, (3,)).read(values, "a MovingFrame")
