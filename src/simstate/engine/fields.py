"""The table of raw fields: MuJoCo's arrays for all worlds, under MuJoCo's names.

Each line declares a field's shape after `num_envs`, in the sizes of MjModel, and its
stage. For a state field, the stage is the first that a write makes stale: a write to
`ctrl` leaves positions current, a write to `qpos` does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Protocol, overload

from torch import Tensor

from simstate.base.attribute_docs import attribute_docs
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.engine.stage import Stage
from simstate.engine.unavailable_fields import unavailable_field


class FieldReader(Protocol):
    """Provider of a field's live tensor after the freshness check."""

    def read_field(self, name: str) -> Tensor:
        """Return the live tensor of a field, updated as the freshness mode requires."""
        ...


class RawField:
    """One raw field: a descriptor that reads it, and its row of the table."""

    name: str
    owner: type

    def __init__(
        self,
        *shape: str | int,
        stage: Stage,
        unit: str,
        axes: str = "",
        state: bool = False,
        moves: bool = False,
    ) -> None:
        self.shape = shape
        self.stage = stage
        self.unit = unit
        self.axes = axes
        """Axes of its components, as text; "" if not applicable."""
        self.is_state = state
        self.moves = moves
        """True if a step changes it; a state field that a step does not change is an
        input."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.owner = owner

    @property
    def doc(self) -> str:
        """Docstring below the declaration."""
        return attribute_docs(self.owner)[self.name]

    @overload
    def __get__(self, data: None, owner: type) -> RawField: ...
    @overload
    def __get__(self, data: DerivedData, owner: type) -> Tensor: ...
    def __get__(self, data: DerivedData | None, owner: type) -> RawField | Tensor:
        if data is None:
            return self
        return data.reader.read_field(self.name)

    def __set__(self, data: DerivedData, value: object) -> None:
        if value is data.reader.read_field(self.name) and self.is_state:
            return  # `sim.data.qpos += 1` has already written in place
        do = (
            f"write into it: sim.data.{self.name}[:] = …"
            if self.is_state
            else "it is computed from the state: write the state instead"
        )
        raise InvalidInputError(
            f"sim.data.{self.name} cannot be replaced; {do}.", name=self.name
        )


def _state(*shape: str | int, behind: Stage, unit: str, axes: str = "") -> RawField:
    return RawField(*shape, stage=behind, unit=unit, axes=axes, state=True, moves=True)


def _input(*shape: str | int, behind: Stage, unit: str, axes: str = "") -> RawField:
    return RawField(*shape, stage=behind, unit=unit, axes=axes, state=True)


def _position(*shape: str | int, unit: str, axes: str = "world") -> RawField:
    return RawField(*shape, stage=Stage.POSITION, unit=unit, axes=axes)


def _velocity(*shape: str | int, unit: str, axes: str = "") -> RawField:
    return RawField(*shape, stage=Stage.VELOCITY, unit=unit, axes=axes)


def _acceleration(*shape: str | int, unit: str, axes: str = "") -> RawField:
    return RawField(*shape, stage=Stage.ACCELERATION, unit=unit, axes=axes)


class DerivedData:
    """Fields that are computed from the state, in the engine's dtype; (num_envs, …)."""

    def __init__(self, reader: FieldReader) -> None:
        object.__setattr__(self, "reader", reader)

    reader: FieldReader

    xpos = _position("nbody", 3, unit="m")
    """Body origins, world axes [m]."""
    xquat = _position("nbody", 4, unit="quaternion wxyz")
    """Body orientations, wxyz."""
    xmat = _position("nbody", 3, 3, unit="1")
    """Body orientations: vec_w = xmat @ vec_b."""
    xipos = _position("nbody", 3, unit="m")
    """Body centres of mass, world axes [m]."""
    ximat = _position("nbody", 3, 3, unit="1")
    """Orientations of the bodies' principal inertia axes."""
    xanchor = _position("njnt", 3, unit="m")
    """Joint anchors, world axes [m]."""
    xaxis = _position("njnt", 3, unit="1")
    """Joint axes, world axes."""
    geom_xpos = _position("ngeom", 3, unit="m")
    """Geom centres, world axes [m]."""
    geom_xmat = _position("ngeom", 3, 3, unit="1")
    """Geom orientations."""
    site_xpos = _position("nsite", 3, unit="m")
    """Site positions, world axes [m]."""
    site_xmat = _position("nsite", 3, 3, unit="1")
    """Site orientations."""
    cam_xpos = _position("ncam", 3, unit="m")
    """Camera positions, world axes [m]."""
    cam_xmat = _position("ncam", 3, 3, unit="1")
    """Camera orientations."""
    light_xpos = _position("nlight", 3, unit="m")
    """Light positions, world axes [m]."""
    light_xdir = _position("nlight", 3, unit="1")
    """Light directions, world axes."""
    subtree_com = _position("nbody", 3, unit="m")
    """Centre of mass of each body's subtree, world axes [m]."""
    cdof = _position("nv", 6, unit="1, m")
    """Motion axis of each dof (angular, linear) at the tree's COM, world axes."""
    cinert = _position("nbody", 10, unit="kg·m², kg·m, kg")
    """Inertia of each body about the tree's COM."""
    M = _position("nC", unit="kg, kg·m or kg·m²", axes="qvel's")
    """Mass matrix, its lower triangle in CSR form; in full it is
    `sim.dynamics.mass_matrix`."""
    flexvert_xpos = _position("nflexvert", 3, unit="m")
    """Vertices of flexible bodies, world axes [m]."""
    ten_length = _position("ntendon", unit="m or rad", axes="")
    """Tendon lengths [m], or [rad] for joint tendons."""
    actuator_length = _position("nout", unit="the transmission's own", axes="")
    """Actuator lengths."""

    cvel = _velocity("nbody", 6, unit="rad/s, m/s", axes="world")
    """Velocity (angular, linear) at subtree_com[body_rootid[body]], world axes."""
    cdof_dot = _velocity("nv", 6, unit="1/s, m/s", axes="world")
    """Time derivative of cdof."""
    ten_velocity = _velocity("ntendon", unit="m/s or rad/s")
    """Tendon velocities."""
    actuator_velocity = _velocity("nout", unit="the transmission's own, 1/s")
    """Actuator velocities."""
    qfrc_bias = _velocity("nv", unit="N or N·m", axes="qvel's")
    """Coriolis, centrifugal and gravity forces."""
    qfrc_passive = _velocity("nv", unit="N or N·m", axes="qvel's")
    """Springs, dampers, gravity compensation, fluid forces."""
    qfrc_spring = _velocity("nv", unit="N or N·m", axes="qvel's")
    """Springs' part of qfrc_passive."""
    qfrc_damper = _velocity("nv", unit="N or N·m", axes="qvel's")
    """Dampers' part of qfrc_passive."""
    qfrc_gravcomp = _velocity("nv", unit="N or N·m", axes="qvel's")
    """Gravity compensation's part of qfrc_passive."""
    qfrc_fluid = _velocity("nv", unit="N or N·m", axes="qvel's")
    """The fluid's part of qfrc_passive."""

    qacc = _acceleration("nv", unit="m/s² or rad/s²", axes="qvel's")
    """Generalised accelerations of the last dynamics evaluation."""
    qacc_smooth = _acceleration("nv", unit="m/s² or rad/s²", axes="qvel's")
    """Unconstrained accelerations of the last dynamics evaluation."""
    act_dot = _acceleration("na", unit="the actuator's own, 1/s")
    """Time derivative of the activations."""
    actuator_force = _acceleration("nout", unit="N or N·m")
    """Scalar forces in actuation space."""
    qfrc_actuator = _acceleration("nv", unit="N or N·m", axes="qvel's")
    """Actuator forces in joint space."""
    qfrc_smooth = _acceleration("nv", unit="N or N·m", axes="qvel's")
    """Net unconstrained forces."""
    qfrc_constraint = _acceleration("nv", unit="N or N·m", axes="qvel's")
    """Constraint forces."""


class RawData(DerivedData):
    """MuJoCo's fields for all worlds, live, in the engine's dtype; (num_envs, …).

    Fields are updated when they are read, so read them again after a step instead of
    keeping the tensor. State fields may be written in place.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name not in FIELDS:
            raise unavailable_field(name, FIELDS)
        object.__setattr__(self, name, value)

    time = _state(behind=Stage.ACCELERATION, unit="s")
    """Simulation time [s]; shape (num_envs,)."""
    qpos = _state(
        "nq",
        behind=Stage.POSITION,
        unit="m, rad or quaternion wxyz",
        axes="free joint: world",
    )
    """Generalised positions; free joint: origin, world axes [m], quaternion wxyz."""
    qvel = _state(
        "nv",
        behind=Stage.VELOCITY,
        unit="m/s or rad/s",
        axes="free joint: linear world, angular body",
    )
    """Generalised velocities; free joint: linear in WORLD, angular in BODY axes."""
    act = _state("na", behind=Stage.ACCELERATION, unit="the actuator's own")
    """Actuator activations."""
    history = _state(
        "nhistory", behind=Stage.ACCELERATION, unit="the delayed value's own"
    )
    """Buffers of delayed controls and sensors."""
    qacc_warmstart = _state(
        "nv", behind=Stage.ACCELERATION, unit="m/s² or rad/s²", axes="qvel's"
    )
    """Initial guess of the constraint solver."""
    ctrl = _input("nu", behind=Stage.ACCELERATION, unit="the actuator's own")
    """Controls, in each actuator's own unit."""
    qfrc_applied = _input(
        "nv", behind=Stage.ACCELERATION, unit="N or N·m", axes="qvel's"
    )
    """Generalised forces applied by the user, in the axes of qvel [N, N·m]."""
    xfrc_applied = _input(
        "nbody", 6, behind=Stage.ACCELERATION, unit="N, N·m", axes="world"
    )
    """Force then torque applied at each body's COM, world axes [N, N·m]."""
    eq_active = _input("neq", behind=Stage.ACCELERATION, unit="1 or 0")
    """State of each equality constraint: 1 (active) or 0, engine's dtype."""
    mocap_pos = _input("nmocap", 3, behind=Stage.POSITION, unit="m", axes="world")
    """Positions of mocap bodies' origins, world axes [m]."""
    mocap_quat = _input("nmocap", 4, behind=Stage.POSITION, unit="quaternion wxyz")
    """Orientations of mocap bodies, wxyz."""
    userdata = _input("nuserdata", behind=Stage.ACCELERATION, unit="the user's own")
    """User-defined values."""
    plugin_state = _state(
        "npluginstate", behind=Stage.ACCELERATION, unit="the plugin's own"
    )
    """State of engine plugins (native only)."""
    plastic = _state("nplastic", behind=Stage.VELOCITY, unit="rad, m or the flex's own")
    """Permanent deformation of springs and flexes that yield; empty before MuJoCo 4."""

    sensordata = _acceleration("nsensordata", unit="the sensor's own")
    """Sensor readings: positions and velocities current, accelerations as qacc's."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("__"):
                raise AttributeError(name)
            raise unavailable_field(name, FIELDS)


class LastEvaluated(DerivedData):
    """Fields as the last evaluation of the dynamics left them; (num_envs, …).

    They are the values in mjData after mj_step: positions are those of the state before
    the last time step or, with MuJoCo's RK4, those of its fourth stage. They are
    read-only; `sim.keep_evaluated` declares which are kept.
    """

    cacc = _acceleration("nbody", 6, unit="rad/s², m/s²", axes="world")
    """Acceleration (angular, linear) at subtree_com[body_rootid[body]], world axes, as
    mj_rnePostConstraint computes it after the last time step."""
    cfrc_int = _acceleration("nbody", 6, unit="N·m, N", axes="world")
    """Torque and force between a body and its parent at
    subtree_com[body_rootid[body]], world axes, by mj_rnePostConstraint."""
    cfrc_ext = _acceleration("nbody", 6, unit="N·m, N", axes="world")
    """Torque and force on a body by contacts and xfrc_applied at
    subtree_com[body_rootid[body]], world axes, by mj_rnePostConstraint; zero after a
    reset."""

    def __setattr__(self, name: str, value: object) -> None:
        raise InvalidInputError(
            f"sim.last_evaluated.{name} cannot be written: it is a result of the last "
            "evaluation. Write the state (sim.data.qpos, …) instead.",
            name=name,
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("__"):
                raise AttributeError(name)
            raise unknown_name("field of sim.last_evaluated", name, KEPT_FIELDS)


def _fields_of(owner: type) -> dict[str, RawField]:
    return {name: x for name, x in vars(owner).items() if isinstance(x, RawField)}


FIELDS: dict[str, RawField] = {
    **{name: field for name, field in _fields_of(RawData).items() if field.is_state},
    **_fields_of(DerivedData),
    "sensordata": _fields_of(RawData)["sensordata"],
}
"""Every raw field by name, state fields first, in the order of the state tensor."""

STATE_FIELDS: tuple[str, ...] = tuple(
    name for name, field in FIELDS.items() if field.is_state
)
"""The fields whose rows make up the state tensor, in its order."""

EVOLVING_FIELDS: tuple[str, ...] = tuple(
    name for name, field in FIELDS.items() if field.moves
)
"""The state fields that a step changes; the others are inputs."""

EVALUATED_FIELDS: tuple[str, ...] = tuple(
    name
    for name, field in FIELDS.items()
    if field.stage == Stage.ACCELERATION and not field.is_state
)
"""Fields of the last dynamics evaluation. They cannot be recomputed after a step, so
engines keep them from the start."""

AFTER_CONSTRAINTS: tuple[str, ...] = tuple(_fields_of(LastEvaluated))
"""The fields that mj_rnePostConstraint computes."""

KEPT_FIELDS: dict[str, RawField] = {
    **_fields_of(DerivedData),
    **_fields_of(LastEvaluated),
}
"""The fields that `sim.last_evaluated` can have, by name."""
