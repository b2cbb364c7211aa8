"""The table of raw fields: MuJoCo's arrays for all worlds, under MuJoCo's names.

Each line says a field's shape after `num_envs`, in the sizes of MjModel, and its
stage. For a state field the stage says from where on a write makes things stale:
writing `ctrl` leaves positions as they were, writing `qpos` does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Protocol, overload

from torch import Tensor

from simstate.attribute_docs import attribute_docs
from simstate.engine.stage import Stage
from simstate.errors import InvalidInputError, UnknownNameError, unknown_name


class FieldReader(Protocol):
    """What hands out a field's live tensor after the freshness check."""

    def read_field(self, name: str) -> Tensor:
        """The live tensor of a field, as fresh as the simulation's rule says."""
        ...


class RawField:
    """One raw field: a descriptor that reads it, and its line of the table."""

    name: str
    owner: type

    def __init__(self, *shape: str | int, stage: Stage, state: bool = False) -> None:
        self.shape = shape
        self.stage = stage
        self.is_state = state

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.owner = owner

    @property
    def doc(self) -> str:
        """The docstring that stands below the declaration."""
        return attribute_docs(self.owner)[self.name]

    @overload
    def __get__(self, data: None, owner: type) -> RawField: ...
    @overload
    def __get__(self, data: RawData, owner: type) -> Tensor: ...
    def __get__(self, data: RawData | None, owner: type) -> RawField | Tensor:
        if data is None:
            return self
        return data.reader.read_field(self.name)

    def __set__(self, data: RawData, value: object) -> None:
        if value is data.reader.read_field(self.name) and self.is_state:
            return  # `sim.data.qpos += 1` has already written in place
        do = (
            f"write into it: sim.data.{self.name}[:] = …"
            if self.is_state
            else "it is computed from the state: write the state instead"
        )
        raise InvalidInputError(f"sim.data.{self.name} cannot be replaced; {do}.")


def _state(*shape: str | int, behind: Stage) -> RawField:
    return RawField(*shape, stage=behind, state=True)


def _position(*shape: str | int) -> RawField:
    return RawField(*shape, stage=Stage.POSITION)


def _velocity(*shape: str | int) -> RawField:
    return RawField(*shape, stage=Stage.VELOCITY)


def _acceleration(*shape: str | int) -> RawField:
    return RawField(*shape, stage=Stage.ACCELERATION)


class RawData:
    """MuJoCo's fields for all worlds, live, in the engine's dtype; (num_envs, …).

    Fields are brought up to date when they are asked for, so ask again after a step
    instead of keeping the tensor. State fields may be written in place.
    """

    def __init__(self, reader: FieldReader) -> None:
        object.__setattr__(self, "reader", reader)

    reader: FieldReader

    def __setattr__(self, name: str, value: object) -> None:
        if name not in FIELDS:
            raise unavailable_field(name)
        object.__setattr__(self, name, value)

    time = _state(behind=Stage.ACCELERATION)
    """Simulation time [s]; shape (num_envs,)."""
    qpos = _state("nq", behind=Stage.POSITION)
    """Generalised positions; free joint: origin, world axes [m], quaternion wxyz."""
    qvel = _state("nv", behind=Stage.VELOCITY)
    """Generalised velocities; free joint: linear in WORLD, angular in BODY axes."""
    act = _state("na", behind=Stage.ACCELERATION)
    """Actuator activations."""
    history = _state("nhistory", behind=Stage.ACCELERATION)
    """Buffers of delayed controls and sensors."""
    qacc_warmstart = _state("nv", behind=Stage.ACCELERATION)
    """Where the constraint solver starts from."""
    ctrl = _state("nu", behind=Stage.ACCELERATION)
    """Controls, in each actuator's own unit."""
    qfrc_applied = _state("nv", behind=Stage.ACCELERATION)
    """Generalised forces applied by the user, in the axes of qvel [N, N·m]."""
    xfrc_applied = _state("nbody", 6, behind=Stage.ACCELERATION)
    """Force then torque applied at each body's COM, world axes [N, N·m]."""
    eq_active = _state("neq", behind=Stage.ACCELERATION)
    """Whether each equality constraint is switched on: 1 or 0, bool on warp."""
    mocap_pos = _state("nmocap", 3, behind=Stage.POSITION)
    """Positions of mocap bodies' origins, world axes [m]."""
    mocap_quat = _state("nmocap", 4, behind=Stage.POSITION)
    """Orientations of mocap bodies, wxyz."""
    userdata = _state("nuserdata", behind=Stage.ACCELERATION)
    """The user's own numbers."""
    plugin_state = _state("npluginstate", behind=Stage.ACCELERATION)
    """State of engine plugins (native only)."""

    xpos = _position("nbody", 3)
    """Body origins, world axes [m]."""
    xquat = _position("nbody", 4)
    """Body orientations, wxyz."""
    xmat = _position("nbody", 3, 3)
    """Body orientations: vec_w = xmat @ vec_b."""
    xipos = _position("nbody", 3)
    """Body centres of mass, world axes [m]."""
    ximat = _position("nbody", 3, 3)
    """Orientations of the bodies' principal inertia axes."""
    xanchor = _position("njnt", 3)
    """Joint anchors, world axes [m]."""
    xaxis = _position("njnt", 3)
    """Joint axes, world axes."""
    geom_xpos = _position("ngeom", 3)
    """Geom centres, world axes [m]."""
    geom_xmat = _position("ngeom", 3, 3)
    """Geom orientations."""
    site_xpos = _position("nsite", 3)
    """Site positions, world axes [m]."""
    site_xmat = _position("nsite", 3, 3)
    """Site orientations."""
    cam_xpos = _position("ncam", 3)
    """Camera positions, world axes [m]."""
    cam_xmat = _position("ncam", 3, 3)
    """Camera orientations."""
    light_xpos = _position("nlight", 3)
    """Light positions, world axes [m]."""
    light_xdir = _position("nlight", 3)
    """Light directions, world axes."""
    subtree_com = _position("nbody", 3)
    """Centre of mass of each body's subtree, world axes [m]."""
    cdof = _position("nv", 6)
    """Motion axis of each dof (angular, linear) at the tree's COM, world axes."""
    cinert = _position("nbody", 10)
    """Inertia of each body about the tree's COM."""
    ten_length = _position("ntendon")
    """Tendon lengths [m], or [rad] for joint tendons."""
    actuator_length = _position("nout")
    """Actuator lengths."""

    cvel = _velocity("nbody", 6)
    """Velocity (angular, linear) at subtree_com[body_rootid[body]], world axes."""
    cdof_dot = _velocity("nv", 6)
    """Time derivative of cdof."""
    ten_velocity = _velocity("ntendon")
    """Tendon velocities."""
    actuator_velocity = _velocity("nout")
    """Actuator velocities."""
    qfrc_bias = _velocity("nv")
    """Coriolis, centrifugal and gravity forces."""
    qfrc_passive = _velocity("nv")
    """Springs, dampers, gravity compensation, fluid forces."""

    qacc = _acceleration("nv")
    """Generalised accelerations of the last dynamics evaluation."""
    qacc_smooth = _acceleration("nv")
    """Unconstrained accelerations of the last dynamics evaluation."""
    act_dot = _acceleration("na")
    """Time derivative of the activations."""
    actuator_force = _acceleration("nout")
    """Scalar forces in actuation space."""
    qfrc_actuator = _acceleration("nv")
    """Actuator forces in joint space."""
    qfrc_smooth = _acceleration("nv")
    """Net unconstrained forces."""
    qfrc_constraint = _acceleration("nv")
    """Constraint forces."""
    sensordata = _acceleration("nsensordata")
    """Sensor readings: positions and velocities current, accelerations as qacc's."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("__"):
                raise AttributeError(name)
            raise unavailable_field(name)


FIELDS: dict[str, RawField] = {
    name: value for name, value in vars(RawData).items() if isinstance(value, RawField)
}
"""Every raw field by name, state fields first, in the order of the state tensor."""

STATE_FIELDS: tuple[str, ...] = tuple(
    name for name, field in FIELDS.items() if field.is_state
)
"""The fields whose rows make up the state tensor, in its order."""

EVALUATED_FIELDS: tuple[str, ...] = tuple(
    name
    for name, field in FIELDS.items()
    if field.stage == Stage.ACCELERATION and not field.is_state
)
"""The fields of the last dynamics evaluation; only a step can tell what it was, so
engines keep them from the start."""

_ON_DEMAND = {
    "cacc": "read body_link_lin_acc_w, body_com_lin_acc_w and their angular parts",
    "cfrc_int": "add a force or torque sensor to the model",
    "cfrc_ext": "add a force or torque sensor to the model",
    "subtree_linvel": "add a subtreelinvel sensor to the model",
    "subtree_angmom": "add a subtreeangmom sensor to the model",
    "energy": "add e_potential and e_kinetic sensors to the model",
    "qfrc_inverse": "call mj_inverse on one world's MjData",
}


def unavailable_field(name: str) -> UnknownNameError:
    """The error for a field that the table does not have, with the way round."""
    if name in _ON_DEMAND:
        return UnknownNameError(
            f"sim.data.{name} is not offered: MuJoCo computes it only on demand, so "
            "in a batch it would be stale or another world's. Instead, "
            f"{_ON_DEMAND[name]}."
        )
    return unknown_name("field of sim.data", name, FIELDS)
