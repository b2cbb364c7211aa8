"""Built-in force models: thrusters with mass flow, drag, joint targets.

Thrust and drag add to the current loads, so several models act together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import torch
from torch import Tensor

from simstate.base.checks import Limits, instance_of
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Values
from simstate.engine import core
from simstate.entity.host import attach
from simstate.math import vector
from simstate.step.forces.compiled_force import CompiledAir, CompiledForce
from simstate.step.forces.force_parameters import (
    Numbers,
    OfTime,
    by_world,
    vectors_by_world,
)
from simstate.step.forces.frame import com_in_world, frame_of
from simstate.step.forces.scene_force import SceneForce, body_id, link_id
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.step.forces.frame import MovingFrame
    from simstate.step.stepping_host import SteppingHost

Density: TypeAlias = Callable[[Tensor], Tensor]
"""The density [kg/m³], (num_envs,), at positions (num_envs, 3) in world axes [m]."""

Wind: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""The velocity of the air, world axes [m/s], (num_envs, 3), at times (num_envs,) [s]
and positions (num_envs, 3) in world axes [m]."""


@runtime_checkable
class AirModel(Protocol):
    """Air with parameters by world, whose methods are functions for a drag model."""

    def attach(self, sim: SteppingHost) -> None:
        """Give every world its rows of the parameters."""
        ...

    def density(self, position: Tensor, /) -> Tensor:
        """Return the density at positions; see `Density`."""
        ...

    def wind(self, t: Tensor, position: Tensor, /) -> Tensor:
        """Return the velocity of the air at positions; see `Wind`."""
        ...

    def compiled_air(self, turns: bool) -> CompiledAir | None:
        """Return the air as the core evaluates it, with its rotation or without."""
        ...


class Thruster(SceneForce):
    """A body-fixed force, which may consume the body's mass.

    All parameters may differ between worlds: a row for each.

    Args:
        entity: the entity's name.
        body: the body's name in the entity.
        force: at full throttle, body axes [N]; shape (3,).
        position: its point of action, from the body's origin, body axes [m]; (3,).
        mass_flow: mass consumed at full throttle [kg/s], ≥ 0; needs an integrator,
            which then has the masses in its state.
        throttle: 0 to 1: a number, or a function of time that returns (num_envs,).
        dry_mass: the body's mass [kg] without propellant: at or below it there is no
            thrust. Adaptive schemes find that instant; with fixed steps, the last one
            may go below it by what it burns: for an exact instant, close the throttle
            in an event instead.
        jet_damping: True to add the moment of the propellant that leaves a rotating
            body, by Thomson's equation: with the flow ṁ, the nozzle at r from the COM,
            and inertia proportional to mass, ṁ (I ω / m − r × (ω × r)) [N·m].
    """

    def __init__(
        self,
        entity: str,
        body: str,
        force: Values,
        position: Values = (0.0, 0.0, 0.0),
        mass_flow: Numbers = 0.0,
        throttle: Numbers | OfTime = 1.0,
        dry_mass: Numbers = 0.0,
        *,
        jet_damping: bool = False,
    ) -> None:
        self.entity, self.body = entity, body
        self.jet_damping = instance_of("jet_damping", jet_damping, bool)
        declare = self.parameters.declare
        declare("force", force, 3, unit="N")
        declare("position", position, 3, unit="m")
        declare("mass_flow", mass_flow, unit="kg/s", at_least=0)
        declare("dry_mass", dry_mass, unit="kg", at_least=0)
        self._throttle = throttle if callable(throttle) else None
        if not callable(throttle):
            declare("throttle", throttle, at_least=0, at_most=1)

    def attach(self, sim: SteppingHost) -> None:
        """Find the body, and enable the flow of its mass."""
        self._body = body_id(sim, self.entity, self.body)
        super().attach(sim)
        flows = bool(self.parameters["mass_flow"].any())
        if self.jet_damping and not flows:
            raise InvalidInputError(
                f"jet_damping of the Thruster on {self.body!r} needs propellant that "
                "leaves the body: set mass_flow > 0.",
                name="jet_damping",
            )
        self._mass_rate = sim.mass_rate if flows else None

    def compiled(self, start: float, end: float) -> CompiledForce | None:
        """Return the thruster for the core, unless it is throttled by a function.

        Jet damping is evaluated in Python, too.
        """
        del start, end
        if self._throttle is not None or self.jet_damping:
            return None
        given = self.parameters
        throttle = given["throttle"]
        flow = 0.0 if self._mass_rate is None else given["mass_flow"]
        return CompiledForce(
            core.LoadKind.THRUSTER,
            [self._body],
            [given["force"], given["position"], flow, throttle, given["dry_mass"]],
            limits=[(throttle, 0.0, 1.0)],
        )

    def __call__(self, t: Tensor, sim: SteppingHost) -> None:
        """Add the thrust, its moment about the body's COM, and the mass flow."""
        body, given = self._body, self.parameters
        share = self._share(t, sim)[:, None]
        rot_wb = sim.data.xmat[:, body].double()
        force = share * vector.apply(rot_wb, given["force"])
        point = sim.data.xpos[:, body] + vector.apply(rot_wb, given["position"])
        arm = point - sim.data.xipos[:, body]
        moment = vector.cross(arm, force)
        if self.jet_damping:
            flow = given["mass_flow"][:, None] * share
            moment = moment + flow * self._jet_moment(sim, arm.double())
        loads = sim.data.xfrc_applied
        loads[:, body, :3] += force.to(loads.dtype)
        loads[:, body, 3:] += moment.to(loads.dtype)
        if self._mass_rate is not None:
            flow = given["mass_flow"] * share[:, 0]
            self._mass_rate[:, body] -= flow.to(self._mass_rate.dtype)

    def _jet_moment(self, sim: SteppingHost, arm: Tensor) -> Tensor:
        """Return the moment of a unit of mass flow, world axes [N·m·s/kg]; (n, 3)."""
        engine, body = worlds_of(sim).engine, self._body
        mass = engine.parameter("body_mass")[:, body, None].double()
        inertia = engine.parameter("body_inertia")[:, body].double()
        axes = sim.data.ximat[:, body].double()
        turn = sim.data.cvel[:, body, :3].double()
        momentum = vector.apply(axes, inertia * vector.apply(axes.mT, turn))
        return momentum / mass - vector.cross(arm, vector.cross(turn, arm))

    def _share(self, t: Tensor, sim: SteppingHost) -> Tensor:
        """Return the fraction of the full thrust, 0 to 1; (num_envs,)."""
        if self._throttle is None:
            throttle = self.parameters["throttle"]
        else:
            throttle = by_world(sim, "throttle", self._throttle(t))
        if not bool(((throttle >= 0) & (throttle <= 1)).all()):
            what = f"The throttle of the Thruster on {self.body!r}"
            Limits(at_least=0, at_most=1).check(throttle, what)
        mass = worlds_of(sim).engine.parameter("body_mass")[:, self._body].double()
        fuelled = mass > self.parameters["dry_mass"]
        return torch.where(fuelled, throttle, 0.0)


class Drag(SceneForce):
    """Drag −½ ρ (C_d A) |v| v at a body's COM, with its velocity v relative to the air.

    In a `MovingFrame`, velocity and position are those relative to the world. All
    parameters may differ between worlds: a row for each.

    Args:
        entity: the entity's name.
        body: the body's name in the entity.
        area: drag coefficient times area, C_d A [m²].
        density: ρ [kg/m³]; a number, or a function of the COM's position (num_envs, 3)
            in world axes [m] that returns (num_envs,).
        wind: velocity of the air, world axes [m/s]; shape (3,), or a function of time
            and the COM's position that returns (num_envs, 3).
    """

    def __init__(
        self,
        entity: str,
        body: str,
        area: Numbers,
        density: Numbers | Density = 1.225,
        wind: Values | Wind = (0.0, 0.0, 0.0),
    ) -> None:
        self.entity, self.body = entity, body
        declare = self.parameters.declare
        declare("area", area, unit="m²", more_than=0)
        self.density = density if callable(density) else None
        """The function that returns the density; None if it is a parameter."""
        self.wind = wind if callable(wind) else None
        """The function that returns the air's velocity; None if it is a parameter."""
        if not callable(density):
            declare("density", density, unit="kg/m³", at_least=0)
        if not callable(wind):
            declare("wind", wind, 3, unit="m/s")

    def attach(self, sim: SteppingHost) -> None:
        """Find the body; attach the air, if it has parameters by world."""
        self._body = body_id(sim, self.entity, self.body)
        self._link = link_id(sim, self.entity, self.body)
        super().attach(sim)
        attach(getattr(self.density, "__self__", None), sim)

    def compiled(self, start: float, end: float) -> CompiledForce | None:
        """Return the drag for the core; functions must be those of an `AirModel`."""
        del start, end
        if self._sim is None:
            return None
        given, frame = self.parameters, frame_of(self._sim, self._body)
        if self.density is not None:
            return self._compiled_in_air(frame)
        if self.wind is not None:
            return None
        numbers = [given["area"], given["density"], given["wind"]]
        return CompiledForce(core.LoadKind.DRAG, [self._body], numbers, frame=frame)

    def _compiled_in_air(self, frame: MovingFrame | None) -> CompiledForce | None:
        """Return the drag for the core if an `AirModel` provides density and wind."""
        air = getattr(self.density, "__self__", None)
        if not isinstance(air, AirModel) or self.density != air.density:
            return None
        if self.wind is not None and self.wind != air.wind:
            return None
        found = air.compiled_air(self.wind is not None)
        if found is None:
            return None
        wind = [self.parameters["wind"]] if self.wind is None else [0.0, 0.0, 0.0]
        return CompiledForce(
            core.LoadKind.AIR_DRAG,
            [self._body],
            [self.parameters["area"], *wind, *found.numbers],
            table=found.table.row(),
            frame=frame,
            limits=found.limits,
        )

    def __call__(self, t: Tensor, sim: SteppingHost) -> None:
        """Add the drag to the loads."""
        pos, vel = com_in_world(sim, self.entity, self._link)
        vel = vel - self._air_velocity(t, pos)
        if self.density is None:
            density = self.parameters["density"]
        else:
            density = by_world(sim, "density", self.density(pos))
        factor = -0.5 * self.parameters["area"] * density
        loads = sim.data.xfrc_applied
        force = factor[:, None] * vector.norm(vel) * vel
        loads[:, self._body, :3] += force.to(loads.dtype)

    def _air_velocity(self, t: Tensor, pos: Tensor) -> Tensor:
        if self.wind is None:
            return self.parameters["wind"]
        return vectors_by_world(self.wind(t, pos), "wind(t, position)", len(pos))


class JointTargets(SceneForce):
    """Joint targets as functions of time, set at every evaluation of the dynamics.

    Args:
        entity: the entity's name.
        joints: names or regular expressions.
        position: returns position targets [rad or m] for times; (num_envs, joints).
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
                "JointTargets needs at least one of position, velocity and effort."
            )

    def attach(self, sim: SteppingHost) -> None:
        """Find the joints."""
        self._ids = sim.scene[self.entity].find_joints(self.joints)[0]
        super().attach(sim)

    def __call__(self, t: Tensor, sim: SteppingHost) -> None:
        """Write the targets for this time."""
        entity = sim.scene[self.entity]
        if self.position is not None:
            entity.set_joint_position_target(self.position(t), self._ids)
        if self.velocity is not None:
            entity.set_joint_velocity_target(self.velocity(t), self._ids)
        if self.effort is not None:
            entity.set_joint_effort_target(self.effort(t), self._ids)
