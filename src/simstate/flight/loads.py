"""Loads on an aircraft: forces and moments in any axes, at any point."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from torch import Tensor

from simstate.base.checks import has_shape, one_of
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.ids import Values
from simstate.entity import Entity
from simstate.flight.aircraft import AIRFRAME
from simstate.flight.flight_state import FlightState
from simstate.math import move_moment, quaternion
from simstate.math.conventions.checked_values import as_tensor
from simstate.math.conventions.wind_angles import Definition, FlightAxes, R_pas
from simstate.math.vector import apply
from simstate.world.worlds import worlds_of

NamedPoint: TypeAlias = Literal["com", "origin"]

DEFAULT_AXES: FlightAxes = "body"
"""The default axes of a load."""

_ZERO = (0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Load:
    """A force at a point and a moment about it, in any axes; (num_envs, 3) or (3,)."""

    force: Values = _ZERO
    """Force [N]."""
    moment: Values = _ZERO
    """Moment about `point` [N·m]."""
    axes: FlightAxes = DEFAULT_AXES
    """The axes of both: earth, body, geometry, wind or stability. Wind and stability
    axes are aligned with the velocity relative to the air."""
    point: NamedPoint | Values = "com"
    """Point of application: "com", "origin", or from the origin in body axes [m]."""
    body: str = AIRFRAME
    """The link that it acts on, whose origin, COM and body axes are used."""
    definition: Definition = "stevens"
    """Definition of wind axes; see `simstate.math.conventions.wind_angles`."""


LoadModel: TypeAlias = "Callable[[Tensor, FlightState], Load | Iterable[Load]]"
"""Loads of an aircraft as a function of time [s], (num_envs,), and of its state."""


@dataclass(frozen=True)
class Wrench:
    """A load in MuJoCo's form: at the COM of a link, world axes."""

    body_id: int
    """The link's id within the entity."""
    force_E: Tensor
    """Force, Earth axes [N]; (num_envs, 3)."""
    moment_E_com: Tensor
    """Moment about the link's COM, Earth axes [N·m]; (num_envs, 3)."""

    @property
    def link(self) -> slice:
        """The link as a slice of ids within the entity."""
        return slice(self.body_id, self.body_id + 1)


def resolve(load: Load, entity: Entity, state: FlightState) -> Wrench:
    """Return the load in Earth axes about the COM of its link, at a state."""
    if not isinstance(load, Load):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError(
            f"A load model must return one Load or several, got {type(load).__name__}: "
            "return Load(force=…, moment=…, axes='body', point='com')."
        )
    one_of("flight axes", load.axes, get_args(FlightAxes))
    one_of("definition of the wind angles", load.definition, get_args(Definition))
    if load.body not in entity.body_names:
        raise unknown_name("link of the aircraft", load.body, entity.body_names)
    body_id = entity.body_names.index(load.body)
    like = state.position_E_Eo
    force = _vectors(load.force, "force", like)
    moment = _vectors(load.moment, "moment", like)
    rot_eb = _rot_eb(entity, state, body_id)
    rot_ea = rot_eb if load.axes == "body" else _rot_ea(load, state, body_id, rot_eb)
    if rot_ea is not None:
        force, moment = apply(rot_ea, force), apply(rot_ea, moment)
    offset = _to_com(load, entity, body_id, like)
    if offset is not None:
        moment = move_moment(moment, force, apply(rot_eb, offset))
    return Wrench(body_id, force, moment)


def _vectors(values: Values, name: str, like: Tensor) -> Tensor:
    tensor = as_tensor(values, name, 3, like=like)
    has_shape(name, tensor, (len(like), 3), (1, 3), (3,))
    return tensor.expand(len(like), 3)


def _rot_eb(entity: Entity, state: FlightState, body_id: int) -> Tensor:
    """Return the rotation from the link's to Earth axes; (num_envs, 3, 3)."""
    if body_id == 0:
        return state.R_pas_E_to_BP1.mT
    return quaternion.to_matrix(entity.data.body_link_quat_w[:, body_id])


def _rot_ea(
    load: Load, state: FlightState, body_id: int, rot_eb: Tensor
) -> Tensor | None:
    """Return the rotation from the load's to Earth axes; None for Earth axes."""
    if load.axes == "earth":
        return None
    if body_id:
        raise InvalidInputError(
            f"A load on the part {load.body!r} must be in earth or body axes, got "
            f"{load.axes!r}, which are axes of the airframe."
        )
    rot_ba = R_pas(
        load.axes,
        "body",
        velocity_b=state.air_vel_b,
        definition=load.definition,
    )
    return rot_eb @ rot_ba.to(rot_eb)


def _to_com(load: Load, entity: Entity, body_id: int, like: Tensor) -> Tensor | None:
    """Return the vector from the load's point to the COM, link axes [m], or None."""
    if isinstance(load.point, str):
        one_of("point of a load", load.point, get_args(NamedPoint))
        if load.point == "com":
            return None
    model_id = entity.index.bodies.ids[body_id]
    com = worlds_of(entity).engine.parameter("body_ipos")[:, model_id]
    if isinstance(load.point, str):
        return com.expand_as(like)
    return com - _vectors(load.point, "point", like)
