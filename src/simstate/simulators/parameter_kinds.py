"""Each kind of parameter: its unit, how it is read and how it is overwritten."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import mujoco
import numpy as np

from simstate.simulators.base import Array
from simstate.simulators.drives import drives
from simstate.simulators.mjcf_parts import Names, actuator_kind

Read = Callable[[mujoco.MjModel, Names], dict[str, Array]]
Write = Callable[[mujoco.MjModel, Names, str, Array], None]

_FREE, _BALL = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
_SLIDE = mujoco.mjtJoint.mjJNT_SLIDE.value


@dataclass(frozen=True)
class ParameterKind:
    """One kind of parameter."""

    unit: str
    read: Read
    """The values of a model by element."""
    write: Write
    """Gives an element of a model another value."""
    absent: float | None = 0.0
    """What stands for a simulator that lacks it; None: it is left as it is."""
    labels: Mapping[float, str] = field(default_factory=dict[float, str])
    """Words for numbers that stand for something else."""

    def text(self, values: Sequence[float]) -> str:
        """A value for a reader."""
        words = [self.labels.get(value, f"{value:.6g}") for value in values]
        return words[0] if len(words) == 1 else f"({', '.join(words)})"

    def nothing(self, like: Array) -> Array:
        """The value of a simulator that does not have the parameter."""
        if self.absent is None:
            return like
        filled = np.full_like(like, self.absent)
        if self.absent == np.inf and len(like) == 2:  # a range
            filled[0] = -np.inf
        return filled


def _row(values: object) -> Array:
    return np.atleast_1d(np.asarray(values, dtype=np.float64)).copy()


def _of_bodies(field: str, moving: bool = False) -> Read:
    """A field of every body but the world; of `moving`: without free and mocap ones."""

    def read(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
        placed = [
            b
            for b in range(1, model.nbody)
            if not (moving and (model.body_mocapid[b] >= 0 or _is_free(model, b)))
        ]
        return {names.body[b]: _row(getattr(model, field)[b]) for b in placed}

    return read


def _is_free(model: mujoco.MjModel, body: int) -> bool:
    first = model.body_jntadr[body]
    return bool(first >= 0 and model.jnt_type[first] == _FREE)


def _to_body(field: str) -> Write:
    def write(model: mujoco.MjModel, names: Names, element: str, value: Array) -> None:
        array = getattr(model, field)
        body = names.body.index(element)
        array[body] = value if array.ndim > 1 else value[0]

    return write


def _read_com(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
    """Of the bodies that have mass; elsewhere it means nothing."""
    found = _of_bodies("body_ipos")(model, names)
    massive = np.flatnonzero(model.body_mass > 0)
    return {names.body[b]: found[names.body[b]] for b in massive}


def inertia_numbers(matrix: Array) -> Array:
    """xx, yy, zz, xy, xz, yz of a symmetric matrix."""
    return matrix[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].astype(np.float64)


def _read_inertia(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for body in range(1, model.nbody):
        rot = np.zeros(9)
        mujoco.mju_quat2Mat(rot, model.body_iquat[body])
        rot_bi = rot.reshape(3, 3)
        matrix = rot_bi @ np.diag(model.body_inertia[body]) @ rot_bi.T
        found[names.body[body]] = inertia_numbers(matrix)
    return found


def _write_inertia(
    model: mujoco.MjModel, names: Names, element: str, value: Array
) -> None:
    xx, yy, zz, xy, xz, yz = value
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    moments, axes = np.linalg.eigh(matrix)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1.0
    body, quat = names.body.index(element), np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(axes).ravel())
    model.body_inertia[body], model.body_iquat[body] = moments, quat


def _read_quat(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
    found = _of_bodies("body_quat", moving=True)(model, names)
    return {name: canonical(quat) for name, quat in found.items()}


def canonical(quat: Array) -> Array:
    """The quaternion of the two whose first number that is not zero is positive."""
    first = quat[np.flatnonzero(np.abs(quat) > 1e-9)[0]]
    return quat * np.sign(first)


def _of_joints(field: str, *without: int) -> Read:
    """A field of the joints, but for some kinds."""

    def read(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
        return {
            names.joint[j]: _row(getattr(model, field)[j])
            for j in range(model.njnt)
            if model.jnt_type[j] not in without
        }

    return read


def _to_joint(field: str) -> Write:
    def write(model: mujoco.MjModel, names: Names, element: str, value: Array) -> None:
        array, joint = getattr(model, field), names.joint.index(element)
        array[joint] = value if array.ndim > 1 else value[0]

    return write


def _read_range(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for j in range(model.njnt):
        if model.jnt_type[j] != _FREE:
            limited = bool(model.jnt_limited[j])
            found[names.joint[j]] = (
                _row(model.jnt_range[j]) if limited else np.array([-np.inf, np.inf])
            )
    return found


def _write_range(
    model: mujoco.MjModel, names: Names, element: str, value: Array
) -> None:
    joint = names.joint.index(element)
    model.jnt_limited[joint] = bool(np.isfinite(value).all())
    if model.jnt_limited[joint]:
        model.jnt_range[joint] = value


def dof_count(model: mujoco.MjModel, joint: int) -> int:
    """How many velocities a joint has."""
    return {_FREE: 6, _BALL: 3}.get(int(model.jnt_type[joint]), 1)


def _of_dofs(field: str) -> Read:
    def read(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for j in range(model.njnt):
            first = model.jnt_dofadr[j]
            last = first + dof_count(model, j)
            found[names.joint[j]] = _row(getattr(model, field)[first:last])
        return found

    return read


def _to_dofs(field: str) -> Write:
    def write(model: mujoco.MjModel, names: Names, element: str, value: Array) -> None:
        joint = names.joint.index(element)
        first = model.jnt_dofadr[joint]
        getattr(model, field)[first : first + dof_count(model, joint)] = value

    return write


def _read_rest(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
    """Where springs of 1-DoF joints rest, of those that have one."""
    return {
        names.joint[j]: _row(model.qpos_spring[model.jnt_qposadr[j]])
        for j in np.flatnonzero(model.jnt_stiffness)
        if model.jnt_type[j] not in (_FREE, _BALL)
    }


def _write_rest(
    model: mujoco.MjModel, names: Names, element: str, value: Array
) -> None:
    joint = names.joint.index(element)
    model.qpos_spring[model.jnt_qposadr[joint]] = value[0]


def _of_drives(what: str) -> Read:
    def read(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for drive in drives(model):
            if what == "effort":
                factors = [i.factor for i in drive.inputs if i.kind == "effort"]
                if factors:
                    found[names.joint[drive.joint]] = _row(factors)
            else:
                found[names.joint[drive.joint]] = _row(getattr(drive, what))
        return found

    return read


def _to_drive(what: str) -> Write:
    """Writes to the actuators of a joint, at which one of each kind is expected."""

    def write(model: mujoco.MjModel, names: Names, element: str, value: Array) -> None:
        joint = names.joint.index(element)
        drive = next(d for d in drives(model) if d.joint == joint)
        columns = {i.column: i.kind for i in drive.inputs}
        for actuator in range(model.nactuator):
            kind = columns.get(int(model.actuator_ctrladr[actuator]))
            output = int(model.actuator_outadr[actuator])
            gear = float(model.actuator_gear[output, 0])
            if kind is None:
                continue
            if what == "stiffness" and kind == "position":
                model.actuator_gainprm[actuator, 0] = value[0] / gear**2
                model.actuator_biasprm[actuator, 1] = -value[0] / gear**2
            elif what == "damping" and kind in ("position", "velocity"):
                model.actuator_biasprm[actuator, 2] = -value[0] / gear**2
                if kind == "velocity":
                    model.actuator_gainprm[actuator, 0] = value[0] / gear**2
            elif what == "effort" and kind == "effort":
                model.actuator_gear[output, 0] = value[0]
            elif what == "limit":
                limit = value[0] / abs(gear)
                model.actuator_forcelimited[output] = bool(np.isfinite(limit))
                model.actuator_forcerange[output] = (
                    (-limit, limit) if np.isfinite(limit) else (0.0, 0.0)
                )
                model.jnt_actfrclimited[joint] = False

    return write


def _read_other_actuators(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
    """1 for each actuator that is no servo or motor of a 1-DoF joint."""
    driving = {i.column for drive in drives(model) for i in drive.inputs}
    return {
        names.actuator[a]: np.ones(1)
        for a in range(model.nactuator)
        if int(model.actuator_ctrladr[a]) not in driving
        and actuator_kind(model, a) is not None
    }


def _write_other_actuator(
    model: mujoco.MjModel, names: Names, element: str, value: Array
) -> None:
    actuator = names.actuator.index(element)
    if not value[0]:
        output = int(model.actuator_outadr[actuator])
        model.actuator_gear[output] = 0.0


def _read_tendons(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
    """Stiffness, damping, dry friction, armature and whether it is limited."""
    return {
        names.tendon[t]: _row(
            [
                model.tendon_stiffness[t],
                model.tendon_damping[t],
                model.tendon_frictionloss[t],
                model.tendon_armature[t],
                float(model.tendon_limited[t]),
            ]
        )
        for t in range(model.ntendon)
    }


def _write_tendon(
    model: mujoco.MjModel, names: Names, element: str, value: Array
) -> None:
    t = names.tendon.index(element)
    model.tendon_stiffness[t], model.tendon_damping[t] = value[0], value[1]
    model.tendon_frictionloss[t], model.tendon_armature[t] = value[2], value[3]
    model.tendon_limited[t] = bool(value[4])


def _read_equalities(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
    return {names.equality[e]: _row(model.eq_active0[e]) for e in range(model.neq)}


def _write_equality(
    model: mujoco.MjModel, names: Names, element: str, value: Array
) -> None:
    model.eq_active0[names.equality.index(element)] = bool(value[0])


def _of_options(*fields: str) -> Read:
    def read(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
        return {field: _row(getattr(model.opt, field)) for field in fields}

    return read


def _to_option(model: mujoco.MjModel, names: Names, element: str, value: Array) -> None:
    field = getattr(model.opt, element)
    setattr(model.opt, element, value if np.ndim(field) else value[0])


EXPLICIT_EULER = 4.0
"""An integrator of which MuJoCo's is number 0, with dampers taken explicitly too."""
IMPLICIT_SERVOS = 5.0
"""As MuJoCo's implicitfast (3), with the servos' stiffness taken implicitly too."""


def _read_integrator(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
    return {"the scene": _row(model.opt.integrator)}


def _write_integrator(
    model: mujoco.MjModel, names: Names, element: str, value: Array
) -> None:
    number = float(value[0])
    if number == EXPLICIT_EULER:
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER.value
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP.value
    elif number == IMPLICIT_SERVOS:
        # P (q* − q − h v⁺) is a damping of h P on top, which implicitfast has at v⁺.
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST.value
        for a in range(model.nactuator):
            if actuator_kind(model, a) == "position":
                added = model.opt.timestep * model.actuator_biasprm[a, 1]
                model.actuator_biasprm[a, 2] += added
    else:
        model.opt.integrator = int(number)


def _read_sizes(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
    """The half-sizes or radii of geoms that collide, planes and meshes left out."""
    used = {2: 1, 3: 2, 4: 3, 5: 2, 6: 3}
    return {
        names.geom[g]: _row(model.geom_size[g, : used[int(model.geom_type[g])]])
        for g in colliding(model)
        if int(model.geom_type[g]) in used
    }


def colliding(model: mujoco.MjModel) -> list[int]:
    """The geoms that may touch another."""
    touching = (model.geom_contype | model.geom_conaffinity) != 0
    return [int(g) for g in np.flatnonzero(touching)]


def _read_friction(model: mujoco.MjModel, names: Names) -> dict[str, Array]:
    return {names.geom[g]: _row(model.geom_friction[g, 0]) for g in colliding(model)}


def _write_size(
    model: mujoco.MjModel, names: Names, element: str, value: Array
) -> None:
    model.geom_size[names.geom.index(element), : len(value)] = value


def _write_friction(
    model: mujoco.MjModel, names: Names, element: str, value: Array
) -> None:
    model.geom_friction[names.geom.index(element), 0] = value[0]


KINDS: dict[str, ParameterKind] = {
    "mass": ParameterKind("kg", _of_bodies("body_mass"), _to_body("body_mass")),
    "centre of mass": ParameterKind("m", _read_com, _to_body("body_ipos"), absent=None),
    "inertia": ParameterKind("kg·m²", _read_inertia, _write_inertia),
    "position in parent": ParameterKind(
        "m", _of_bodies("body_pos", moving=True), _to_body("body_pos"), absent=None
    ),
    "orientation in parent": ParameterKind(
        "", _read_quat, _to_body("body_quat"), absent=None
    ),
    "gravity compensation": ParameterKind(
        "", _of_bodies("body_gravcomp"), _to_body("body_gravcomp")
    ),
    "joint axis": ParameterKind(
        "", _of_joints("jnt_axis", _FREE, _BALL), _to_joint("jnt_axis"), absent=None
    ),
    "joint anchor": ParameterKind(
        "m", _of_joints("jnt_pos", _FREE, _SLIDE), _to_joint("jnt_pos"), absent=None
    ),
    "joint range": ParameterKind("rad or m", _read_range, _write_range, absent=np.inf),
    "armature": ParameterKind(
        "kg·m² or kg", _of_dofs("dof_armature"), _to_dofs("dof_armature")
    ),
    "damping": ParameterKind(
        "N·m·s/rad or N·s/m", _of_dofs("dof_damping"), _to_dofs("dof_damping")
    ),
    "dry friction": ParameterKind(
        "N·m or N", _of_dofs("dof_frictionloss"), _to_dofs("dof_frictionloss")
    ),
    "spring stiffness": ParameterKind(
        "N·m/rad or N/m", _of_joints("jnt_stiffness"), _to_joint("jnt_stiffness")
    ),
    "spring rest position": ParameterKind(
        "rad or m", _read_rest, _write_rest, absent=None
    ),
    "servo stiffness": ParameterKind(
        "N·m/rad or N/m", _of_drives("stiffness"), _to_drive("stiffness")
    ),
    "servo damping": ParameterKind(
        "N·m·s/rad or N·s/m", _of_drives("damping"), _to_drive("damping")
    ),
    "force per control": ParameterKind(
        "N·m or N", _of_drives("effort"), _to_drive("effort")
    ),
    "force limit": ParameterKind(
        "N·m or N", _of_drives("limit"), _to_drive("limit"), absent=np.inf
    ),
    "other actuator": ParameterKind("", _read_other_actuators, _write_other_actuator),
    "tendon": ParameterKind("", _read_tendons, _write_tendon),
    "equality": ParameterKind("", _read_equalities, _write_equality),
    "gravity": ParameterKind("m/s²", _of_options("gravity"), _to_option),
    "fluid": ParameterKind("", _of_options("density", "viscosity"), _to_option),
    "time step": ParameterKind("s", _of_options("timestep"), _to_option, absent=None),
    "integrator": ParameterKind(
        "",
        _read_integrator,
        _write_integrator,
        absent=None,
        labels={
            0.0: "Euler",
            1.0: "RK4",
            2.0: "implicit",
            3.0: "implicitfast",
            EXPLICIT_EULER: "Euler with explicit dampers",
            IMPLICIT_SERVOS: "implicit dampers and servos",
        },
    ),
    "geom size": ParameterKind("m", _read_sizes, _write_size, absent=None),
    "sliding friction": ParameterKind("", _read_friction, _write_friction, absent=None),
}
"""Every kind of parameter, by what reports call it."""
