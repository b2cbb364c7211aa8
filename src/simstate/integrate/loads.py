"""Force models that ship: gravity, thrusters with mass flow, drag, joint targets.

All add to the loads that are there, so several act together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.errors import InvalidInputError, ShapeError
from simstate.ids import Values
from simstate.math import vector

if TYPE_CHECKING:
    from simstate.integrate.frame import MovingFrame
    from simstate.integrate.worlds import IntegratedWorlds

OfTime = Callable[[Tensor], Tensor]
"""A function of the time of each world [s], shape (num_envs,)."""


class SceneForce:
    """A force model that belongs to one simulation."""

    _sim: IntegratedWorlds | None = None

    def attach(self, sim: IntegratedWorlds) -> None:
        """Take a simulation; a second one, or the same again, is refused."""
        if self._sim is not None:
            raise InvalidInputError(
                f"This {type(self).__name__} acts in a simulation already: make one "
                "for each use."
            )
        self._sim = sim


class UniformGravity(SceneForce):
    """The same acceleration at the COM of every body of an entity, world axes [m/s²].

    Args:
        acceleration: shape (3,), or (num_envs, 3).
        entity: whose bodies feel it; None: all bodies of the scene.
    """

    def __init__(self, acceleration: Values, entity: str | None = None) -> None:
        self.acceleration = vectors("acceleration", acceleration)
        self.entity = entity

    def attach(self, sim: IntegratedWorlds) -> None:
        """Find the bodies."""
        super().attach(sim)
        self._bodies = _bodies(sim, self.entity)
        self._acceleration = _per_world(sim, "acceleration", self.acceleration)

    def __call__(self, t: Tensor, sim: IntegratedWorlds) -> None:
        """Add the weights to the loads."""
        mass = sim.internals.engine.parameter("body_mass")[:, self._bodies, None]
        force = mass * self._acceleration[:, None]
        sim.data.xfrc_applied[:, self._bodies, :3] += force


class PointMassGravity(SceneForce):
    """The gravity of point masses, at the COM of every body; world axes.

    The scene's own gravity must be zero. For orbits at kilometres per second see
    `MovingFrame`, which takes this as its source.

    Args:
        mu: the gravitational parameters G·M [m³/s²]; a number, or one per mass.
        position: where the masses are [m]: shape (3,) or (masses, 3); or a function of
            time that gives (num_envs, masses, 3).
        entity: whose bodies feel it; None: all bodies of the scene.
    """

    def __init__(
        self,
        mu: float | Values,
        position: Values | OfTime = (0.0, 0.0, 0.0),
        entity: str | None = None,
    ) -> None:
        self.mu = torch.as_tensor(mu, dtype=torch.float64).reshape(-1)
        if not bool((self.mu > 0).all()):
            raise InvalidInputError(f"mu must be > 0 [m³/s²], got {mu}.")
        self._move = position if callable(position) else None
        if not callable(position):
            self.position = vectors("position", position).reshape(-1, 3)
            if self.position.shape[0] != self.mu.shape[0]:
                raise ShapeError(
                    f"There are {self.mu.shape[0]} masses and "
                    f"{self.position.shape[0]} positions."
                )
        self.entity = entity

    def attach(self, sim: IntegratedWorlds) -> None:
        """Find the bodies; refuse a scene that has gravity already."""
        super().attach(sim)
        if sim.model.opt.gravity.any():
            raise InvalidInputError(
                f"The scene has gravity {sim.model.opt.gravity.tolist()} m/s² of its "
                "own, which would act as well: set it to zero (SceneCfg(gravity=(0, 0, "
                "0)), or <option gravity> in MJCF)."
            )
        self._bodies = _bodies(sim, self.entity)

    def positions(self, t: Tensor) -> Tensor:
        """Where the masses are, world axes [m]; (1 or num_envs, masses, 3)."""
        if self._move is None:
            return self.position.to(t.device)[None]
        return self._move(t.double())

    def acceleration(self, t: Tensor, pos: Tensor) -> Tensor:
        """The acceleration at points, world axes [m/s²]; shape (num_envs, k, 3)."""
        to_mass = self.positions(t)[:, None] - pos.double()[:, :, None]
        mu = self.mu.to(pos.device)[:, None]
        return (mu * to_mass / vector.norm(to_mass) ** 3).sum(dim=2)

    def __call__(self, t: Tensor, sim: IntegratedWorlds) -> None:
        """Add the weights to the loads."""
        pull = self.acceleration(t, sim.data.xipos[:, self._bodies])
        self.add_weights(sim, pull)

    def add_weights(self, sim: IntegratedWorlds, acceleration: Tensor) -> None:
        """Add mass times acceleration at the bodies' COMs; (num_envs, bodies, 3)."""
        mass = sim.internals.engine.parameter("body_mass")[:, self._bodies, None]
        loads = sim.data.xfrc_applied
        loads[:, self._bodies, :3] += (mass * acceleration).to(loads.dtype)

    @property
    def bodies(self) -> list[int]:
        """Ids of the bodies that feel it."""
        return self._bodies


class Thruster(SceneForce):
    """A force fixed in a body, which may use up the body's mass.

    Args:
        entity: the entity's name.
        body: the body's name in the entity.
        force: at full throttle, body axes [N]; shape (3,).
        position: where it acts, body axes from the body's origin [m]; shape (3,).
        mass_flow: how much mass it uses at full throttle [kg/s], ≥ 0; needs an
            integrator, which then has the masses in its state.
        throttle: a function of time that gives (num_envs,), or a number.
    """

    def __init__(
        self,
        entity: str,
        body: str,
        force: Values,
        position: Values = (0.0, 0.0, 0.0),
        mass_flow: float = 0.0,
        throttle: float | OfTime = 1.0,
    ) -> None:
        self.entity, self.body = entity, body
        self.force = _vector("force", force)
        self.position = _vector("position", position)
        if not mass_flow >= 0:
            raise InvalidInputError(
                f"mass_flow is what the thruster uses [kg/s], ≥ 0; got {mass_flow}."
            )
        self.mass_flow = mass_flow
        self.throttle = throttle

    def attach(self, sim: IntegratedWorlds) -> None:
        """Find the body, and let its mass flow."""
        super().attach(sim)
        self._body = _body(sim, self.entity, self.body)
        self._force = self.force.to(sim.device, sim.dtype)
        self._position = self.position.to(sim.device, sim.dtype)
        self._mass_rate = sim.mass_rate if self.mass_flow else None

    def __call__(self, t: Tensor, sim: IntegratedWorlds) -> None:
        """Add the thrust, its moment about the body's COM, and the mass flow."""
        throttle = self.throttle(t) if callable(self.throttle) else self.throttle
        share = _by_world(sim, "throttle", throttle).to(sim.dtype)[:, None]
        body = self._body
        rot_wb = sim.data.xmat[:, body]
        force = share * (rot_wb @ self._force)
        point = sim.data.xpos[:, body] + rot_wb @ self._position
        loads = sim.data.xfrc_applied
        loads[:, body, :3] += force
        loads[:, body, 3:] += vector.cross(point - sim.data.xipos[:, body], force)
        if self._mass_rate is not None:
            self._mass_rate[:, body] -= self.mass_flow * share[:, 0]


class Drag(SceneForce):
    """−½ ρ (C_d A) |v| v at a body's COM, for its velocity v against the air.

    Args:
        entity: the entity's name.
        body: the body's name in the entity.
        area: drag coefficient times area, C_d A [m²].
        density: ρ [kg/m³]; a number, or a function of the COM's position (num_envs, 3)
            in world axes that gives (num_envs,).
        wind: velocity of the air, world axes [m/s]; shape (3,).
        frame: the moving frame of the simulation, if it has one: v and the position
            are then those against the world, not against the frame.
    """

    def __init__(
        self,
        entity: str,
        body: str,
        area: float,
        density: float | Callable[[Tensor], Tensor] = 1.225,
        wind: Values = (0.0, 0.0, 0.0),
        frame: MovingFrame | None = None,
    ) -> None:
        if not area > 0 or (not callable(density) and not density >= 0):
            raise InvalidInputError(
                f"area must be > 0 [m²] and density ≥ 0 [kg/m³], got {area}, {density}."
            )
        self.entity, self.body = entity, body
        self.area, self.density = area, density
        self.wind = _vector("wind", wind)
        self.frame = frame

    def attach(self, sim: IntegratedWorlds) -> None:
        """Find the body."""
        super().attach(sim)
        self._body = _body(sim, self.entity, self.body)
        self._link = sim.scene[self.entity].find_bodies(self.body)[0][0]

    def __call__(self, t: Tensor, sim: IntegratedWorlds) -> None:
        """Add the drag to the loads."""
        vel = sim.scene[self.entity].data.body_com_lin_vel_w[:, self._link].double()
        pos = sim.data.xipos[:, self._body].double()
        if self.frame is not None:
            vel = vel + self.frame.velocity
            pos = pos + self.frame.position
        vel = vel - self.wind.to(sim.device)
        density = self.density(pos) if callable(self.density) else self.density
        factor = -0.5 * self.area * _by_world(sim, "density", density)[:, None]
        loads = sim.data.xfrc_applied
        force = factor * vector.norm(vel) * vel
        loads[:, self._body, :3] += force.to(loads.dtype)


class JointTargets(SceneForce):
    """Targets of joints as functions of time, in the same evaluation.

    Args:
        entity: the entity's name.
        joints: names or regular expressions.
        position: gives targets of (num_envs, joints) [rad or m] from the time.
        velocity: the same for velocities [rad/s or m/s].
        effort: the same for efforts [N·m or N].
    """

    def __init__(
        self,
        entity: str,
        joints: str | list[str],
        position: OfTime | None = None,
        velocity: OfTime | None = None,
        effort: OfTime | None = None,
    ) -> None:
        self.entity, self.joints = entity, joints
        self.position, self.velocity, self.effort = position, velocity, effort
        if position is None and velocity is None and effort is None:
            raise InvalidInputError(
                "JointTargets needs a position, a velocity or an effort to command."
            )

    def attach(self, sim: IntegratedWorlds) -> None:
        """Find the joints."""
        super().attach(sim)
        self._ids = sim.scene[self.entity].find_joints(self.joints)[0]

    def __call__(self, t: Tensor, sim: IntegratedWorlds) -> None:
        """Write the targets for this time."""
        entity = sim.scene[self.entity]
        if self.position is not None:
            entity.set_joint_position_target(self.position(t), self._ids)
        if self.velocity is not None:
            entity.set_joint_velocity_target(self.velocity(t), self._ids)
        if self.effort is not None:
            entity.set_joint_effort_target(self.effort(t), self._ids)


def vectors(what: str, values: Values) -> Tensor:
    """A vector or several, finite; shape (..., 3)."""
    tensor = torch.as_tensor(values, dtype=torch.float64)
    if not tensor.ndim or tensor.shape[-1] != 3:
        raise ShapeError(
            f"{what} must have three components, got {tuple(tensor.shape)}."
        )
    if not bool(tensor.isfinite().all()):
        raise InvalidInputError(f"{what} is not finite.")
    return tensor


def _by_world(sim: IntegratedWorlds, what: str, values: Tensor | float) -> Tensor:
    """One number for each world, float64; shape (num_envs,)."""
    numbers = torch.as_tensor(values, dtype=torch.float64, device=sim.device)
    if numbers.ndim > 1 or numbers.shape not in ((), (sim.num_envs,)):
        raise ShapeError(
            f"{what} must be a number or have shape ({sim.num_envs},), got "
            f"{tuple(numbers.shape)}."
        )
    return numbers.expand(sim.num_envs)


def _vector(what: str, values: Values) -> Tensor:
    """One vector; shape (3,)."""
    tensor = vectors(what, values)
    if tensor.ndim != 1:
        raise ShapeError(f"{what} must have shape (3,), got {tuple(tensor.shape)}.")
    return tensor


def _per_world(sim: IntegratedWorlds, what: str, values: Tensor) -> Tensor:
    """A vector for each world; shape (num_envs, 3)."""
    if values.ndim > 2 or (values.ndim == 2 and values.shape[0] != sim.num_envs):
        raise ShapeError(
            f"{what} must have shape (3,) or ({sim.num_envs}, 3), got "
            f"{tuple(values.shape)}."
        )
    return values.to(sim.device, sim.dtype).expand(sim.num_envs, 3)


def _bodies(sim: IntegratedWorlds, entity: str | None) -> list[int]:
    """Ids of an entity's bodies in the scene, or of all bodies but the world."""
    if entity is None:
        return list(range(1, sim.model.nbody))
    return list(sim.scene[entity].index.bodies.ids)


def _body(sim: IntegratedWorlds, entity: str, body: str) -> int:
    """The id in the scene of the one body of that name."""
    found, names = sim.scene[entity].find_bodies(body)
    if len(found) != 1:
        raise InvalidInputError(f"{body!r} names {len(found)} bodies: {names}.")
    return sim.scene[entity].index.bodies.ids[int(found[0])]
