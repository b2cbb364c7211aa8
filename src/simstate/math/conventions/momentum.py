"""Energy and momenta of rigid bodies, from states in any convention."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from simstate.base.checks import instance_of
from simstate.base.ids import Values
from simstate.math import quaternion
from simstate.math.conventions.checked_values import batch_of
from simstate.math.conventions.convention import Convention
from simstate.math.conventions.convert import convert
from simstate.math.conventions.points import check_inertia, check_mass
from simstate.math.conventions.rigid_body_state import RigidBodyState
from simstate.math.vector import apply, cross, dot


def kinetic_energy(
    state: RigidBodyState, mass: Values | float, inertia: Values
) -> Tensor:
    """Return the kinetic energy ½ m v² + ½ ω·Iω of each body [J]; shape (...).

    `inertia` is about the centre of mass along the body axes of the state's convention
    [kg·m²]; (..., 3, 3).
    """
    own, masses, inertias = _own(state, mass, inertia)
    momentum = apply(inertias, own.angular_velocity)
    linear = masses * dot(own.linear_velocity, own.linear_velocity)[..., 0]
    return 0.5 * (linear + dot(own.angular_velocity, momentum)[..., 0])


def linear_momentum(state: RigidBodyState, mass: Values | float) -> Tensor:
    """Return the momentum m v, the convention's world axes [kg·m/s]; (..., 3)."""
    own = _own_motion(state)
    masses = check_mass(mass, like=own.position)
    batch_of(mass=(masses, 0), state=(own.position, 1))
    return masses[..., None] * quaternion.rotate(own.quat_wb, own.linear_velocity)


def angular_momentum(
    state: RigidBodyState, mass: Values | float, inertia: Values
) -> Tensor:
    """Return angular momentum about the world's origin, world axes [N·m·s]; (..., 3).

    `inertia` as for `kinetic_energy`.
    """
    own, masses, inertias = _own(state, mass, inertia)
    spin = quaternion.rotate(own.quat_wb, apply(inertias, own.angular_velocity))
    velocity = quaternion.rotate(own.quat_wb, own.linear_velocity)
    return spin + cross(own.position, masses[..., None] * velocity)


def _own(
    state: RigidBodyState, mass: Values | float, inertia: Values
) -> tuple[RigidBodyState, Tensor, Tensor]:
    """Return the state of the COM along body axes, the mass and the inertia."""
    own = _own_motion(state)
    masses = check_mass(mass, like=own.position)
    inertias = check_inertia(inertia).to(own.position)
    batch_of(mass=(masses, 0), inertia=(inertias, 2), state=(own.position, 1))
    return own, masses, inertias


def _own_motion(state: RigidBodyState) -> RigidBodyState:
    """Return the state of the centre of mass along body axes."""
    instance_of("state", state, RigidBodyState)
    return convert(state, _in_body(state.convention))


def _in_body(convention: Convention) -> Convention:
    """Return the convention with the COM as point and velocities along body axes."""
    return replace(
        convention,
        name=f"{convention.name} in body axes",
        angle_unit="rad",
        position_point="com",
        velocity_point="com",
        linear_axes="body",
        angular_axes="body",
    )
