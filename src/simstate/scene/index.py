"""Names and ids of the elements of the compiled model that belong to an entity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import mujoco
import numpy as np

from simstate.scene.actuators import force_law
from simstate.scene.element_names import OBJECTS, all_named

TargetKind = Literal["position", "velocity", "effort"]
"""Kind of a target: a joint's position, velocity or effort."""

Base = Literal["free", "mocap", "fixed", "none"]
"""Attachment of the root link: free joint, mocap, anything else, or no body."""

# Plain ints: NumPy integers do not compare with MuJoCo's enums in every direction.
_FREE, _BALL = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
_JOINT_TRANSMISSIONS = (
    mujoco.mjtTrn.mjTRN_JOINT.value,
    mujoco.mjtTrn.mjTRN_JOINTINPARENT.value,
)


def places_of(names: Sequence[str]) -> dict[str, int]:
    """Return the index of each name; of a repeated name, the first."""
    return dict(zip(reversed(names), range(len(names) - 1, -1, -1), strict=True))


@dataclass(frozen=True)
class Elements:
    """Elements of one kind: their names within the entity, and their ids."""

    names: tuple[str, ...]
    ids: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def places(self) -> dict[str, int]:
        """Index of each name; of a repeated name, the first."""
        return places_of(self.names)


@dataclass(frozen=True)
class TargetInputs:
    """The controls that accept a joint's target, for one kind of target."""

    joints: tuple[int, ...]
    """Indices in the entity's list of joints."""
    ctrl: tuple[int, ...]
    """Columns of ctrl."""
    actuators: tuple[int, ...]
    """Ids of the actuators."""
    outputs: tuple[int, ...]
    """Rows of actuator_gear."""
    has_gain: tuple[bool, ...]
    """True if the actuator's gain multiplies the control, as in a motor."""


@dataclass(frozen=True)
class EntityIndex:
    """Addresses of all elements of one entity in the compiled model."""

    name: str
    prefix: str
    """Prefix of the names of its elements in the compiled model."""
    base: Base
    bodies: Elements
    joints: Elements
    """The 1-DoF joints (hinges and slides)."""
    qpos_adr: tuple[int, ...]
    dof_adr: tuple[int, ...]
    """Addresses of the 1-DoF joints."""
    ball_joints: Elements
    ball_qpos_adr: tuple[int, ...]
    ball_dof_adr: tuple[int, ...]
    free_joints: Elements
    free_body_ids: tuple[int, ...]
    free_qpos_adr: tuple[int, ...]
    free_dof_adr: tuple[int, ...]
    mocap_bodies: Elements
    """Mocap bodies; the ids are body ids."""
    geoms: Elements
    sites: Elements
    tendons: Elements
    actuators: Elements
    """Actuators by force output; the ids are columns of actuator_force."""
    controls: Elements
    """Inputs of the actuators; the ids are columns of ctrl."""
    activations: Elements
    """Activation variables; the ids are columns of act."""
    sensors: Elements
    equalities: Elements
    position_inputs: TargetInputs
    velocity_inputs: TargetInputs
    effort_inputs: TargetInputs

    def target_inputs(self, kind: TargetKind) -> TargetInputs:
        """Return the controls that accept one kind of target."""
        return {
            "position": self.position_inputs,
            "velocity": self.velocity_inputs,
            "effort": self.effort_inputs,
        }[kind]

    @property
    def root_body_id(self) -> int:
        """The body id of the root link."""
        return self.bodies.ids[0]


def index_entities(
    model: mujoco.MjModel, prefixes: Mapping[str, str]
) -> dict[str, EntityIndex]:
    """Return the index of each entity, given the prefix of its elements' names.

    A prefix is "" (all elements) or a name without "/", followed by "/".
    """
    names = _Names(model)
    return {
        name: _index_entity(model, name, prefix, names)
        for name, prefix in prefixes.items()
    }


class _Names:
    """The names of all elements of a model, read once and grouped by prefix."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self._raw: dict[str, list[str]] = {}
        self._by_prefix: dict[str, dict[str, list[int]]] = {}
        counts = {
            "body": model.nbody,
            "joint": model.njnt,
            "geom": model.ngeom,
            "site": model.nsite,
            "tendon": model.ntendon,
            "actuator": model.nactuator,
            "sensor": model.nsensor,
            "equality": model.neq,
        }
        for kind, count in counts.items():
            number = OBJECTS[kind].value
            raw = [mujoco.mj_id2name(model, number, i) or "" for i in range(count)]
            groups: dict[str, list[int]] = {}
            for i, name in enumerate(raw):
                owner, slash, _ = name.partition("/")
                if slash:
                    groups.setdefault(owner + slash, []).append(i)
            self._raw[kind], self._by_prefix[kind] = raw, groups

    def elements(self, kind: str, prefix: str, first: int = 0) -> Elements:
        """Return the elements from id `first` on whose names have the prefix.

        The prefix is removed from their names.
        """
        raw = self._raw[kind]
        if not prefix:
            names = all_named(raw[first:], kind, first)
            return Elements(tuple(names), tuple(range(first, len(raw))))
        ids = self._by_prefix[kind].get(prefix, ())
        start = len(prefix)
        return Elements(tuple(raw[i][start:] for i in ids), tuple(ids))


def _index_entity(
    model: mujoco.MjModel, name: str, prefix: str, names: _Names
) -> EntityIndex:
    """Return the index of the elements whose names start with `prefix`."""

    def elements(kind: str, first: int = 0) -> Elements:
        return names.elements(kind, prefix, first)

    bodies = elements("body", first=1)
    all_joints = elements("joint")
    by_type = {
        kind: _subset(all_joints, lambda j, kind=kind: model.jnt_type[j] == kind)
        for kind in (_FREE, _BALL)
    }
    joints = _subset(all_joints, lambda j: model.jnt_type[j] not in (_FREE, _BALL))
    free, ball = by_type[_FREE], by_type[_BALL]
    raw_actuators = elements("actuator")
    return EntityIndex(
        name=name,
        prefix=prefix,
        base=_base(model, bodies),
        bodies=bodies,
        joints=joints,
        qpos_adr=_take(model.jnt_qposadr, joints),
        dof_adr=_take(model.jnt_dofadr, joints),
        ball_joints=ball,
        ball_qpos_adr=_take(model.jnt_qposadr, ball),
        ball_dof_adr=_take(model.jnt_dofadr, ball),
        free_joints=free,
        free_body_ids=_take(model.jnt_bodyid, free),
        free_qpos_adr=_take(model.jnt_qposadr, free),
        free_dof_adr=_take(model.jnt_dofadr, free),
        mocap_bodies=_subset(bodies, lambda b: model.body_mocapid[b] >= 0),
        geoms=elements("geom"),
        sites=elements("site"),
        tendons=elements("tendon"),
        actuators=_spread(
            raw_actuators, model.actuator_outadr, model.actuator_outnum, _numbered
        ),
        controls=_spread(
            raw_actuators,
            model.actuator_ctrladr,
            model.actuator_ctrlnum,
            lambda name, actuator, k: _input_name(model, name, actuator, k),
        ),
        activations=_spread(
            raw_actuators, model.actuator_actadr, model.actuator_actnum, _numbered
        ),
        sensors=elements("sensor"),
        equalities=elements("equality"),
        position_inputs=_target_inputs(model, raw_actuators, joints, _POSITION),
        velocity_inputs=_target_inputs(model, raw_actuators, joints, _VELOCITY),
        effort_inputs=_target_inputs(model, raw_actuators, joints, _EFFORT),
    )


def _subset(elements: Elements, keep: Callable[[int], bool]) -> Elements:
    """Return the elements whose id `keep` accepts."""
    kept = [
        (name, i)
        for name, i in zip(elements.names, elements.ids, strict=True)
        if keep(i)
    ]
    return Elements(tuple(name for name, _ in kept), tuple(i for _, i in kept))


def _take(array: np.ndarray, elements: Elements) -> tuple[int, ...]:
    """Return the integers of `array` at the elements' ids."""
    return tuple(int(array[i]) for i in elements.ids)


def _base(model: mujoco.MjModel, bodies: Elements) -> Base:
    """Return the attachment of the entity's first body."""
    if not len(bodies):
        return "none"
    root = bodies.ids[0]
    if model.body_mocapid[root] >= 0:
        return "mocap"
    first = model.body_jntadr[root]
    if first >= 0 and model.jnt_type[first] == _FREE:
        return "free"
    return "fixed"


def _spread(
    actuators: Elements,
    address: np.ndarray,
    number: np.ndarray,
    label: Callable[[str, int, int], str],
) -> Elements:
    """Return one element for each column of each actuator."""
    names: list[str] = []
    columns: list[int] = []
    for name, actuator in zip(actuators.names, actuators.ids, strict=True):
        count = int(number[actuator])
        for k in range(count):
            names.append(name if count == 1 else label(name, actuator, k))
            columns.append(int(address[actuator]) + k)
    return Elements(tuple(names), tuple(columns))


def _numbered(name: str, actuator: int, k: int) -> str:
    return f"{name}[{k}]"


def _input_name(model: mujoco.MjModel, name: str, actuator: int, k: int) -> str:
    """Return the actuator's name with MuJoCo's name of its k-th input."""
    label = mujoco.mj_actuatorInputName(model, actuator, k)
    return f"{name}:{label}" if label else f"{name}[{k}]"


_POSITION = mujoco.mjtCtrlInput.mjINPUT_POS.value
_VELOCITY = mujoco.mjtCtrlInput.mjINPUT_VEL.value
_EFFORT = mujoco.mjtCtrlInput.mjINPUT_FF.value
_SERVO_GAINS = (
    mujoco.mjtGain.mjGAIN_FIXED.value,
    mujoco.mjtGain.mjGAIN_AFFINE.value,
    mujoco.mjtGain.mjGAIN_PID.value,
)

_SERVO_DYNAMICS = (
    mujoco.mjtDyn.mjDYN_NONE.value,
    mujoco.mjtDyn.mjDYN_FILTER.value,
    mujoco.mjtDyn.mjDYN_FILTEREXACT.value,
)
"""Dynamics with which the control remains a target: none, or a first-order filter."""


def _target_inputs(
    model: mujoco.MjModel, actuators: Elements, joints: Elements, bit: int
) -> TargetInputs:
    """Return the controls that accept the kind of target that `bit` denotes."""
    found: list[tuple[int, int, int, int, bool]] = []
    places = {joint: place for place, joint in enumerate(joints.ids)}
    for actuator in actuators.ids:
        joint = int(model.actuator_trnid[actuator, 0])
        drives_joint = model.actuator_trntype[actuator] in _JOINT_TRANSMISSIONS
        if not drives_joint or joint not in places:
            continue
        inputs = _inputs(model, actuator)
        output = int(model.actuator_outadr[actuator])
        if bit not in inputs or model.actuator_gear[output, 0] == 0.0:
            continue
        column = int(model.actuator_ctrladr[actuator]) + inputs.index(bit)
        has_gain = model.actuator_gaintype[actuator] != mujoco.mjtGain.mjGAIN_PID.value
        found.append((places[joint], column, actuator, output, bool(has_gain)))
    found.sort()
    columns = zip(*found, strict=True) if found else ((),) * 5
    return TargetInputs(*(tuple(column) for column in columns))


def _inputs(model: mujoco.MjModel, actuator: int) -> list[int]:
    """Return the meaning of each control of a servo or motor, as mjINPUT bits."""
    if model.actuator_gaintype[actuator] not in _SERVO_GAINS:
        return []
    spec = int(model.actuator_ctrlspec[actuator])
    if spec:
        return [bit for bit in (_POSITION, _VELOCITY, _EFFORT) if spec & bit]
    law, dynamics = force_law(model, actuator), model.actuator_dyntype[actuator]
    if law is None or model.actuator_gainprm[actuator, 0] == 0.0:
        return []
    known = _SERVO_DYNAMICS[:1] if law == "motor" else _SERVO_DYNAMICS
    bits = {"motor": _EFFORT, "position": _POSITION, "velocity": _VELOCITY}
    return [bits[law]] if dynamics in known else []
