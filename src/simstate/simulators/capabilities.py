"""Capabilities of simulators, and the features that a model needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import mujoco
import numpy as np

from simstate.simulators.mjcf_actuators import actuator_kind
from simstate.simulators.mjcf_parts import ModelNames
from simstate.simulators.plain_model import plain_model

Feature: TypeAlias = Literal[
    "free joints",
    "ball joints",
    "mocap bodies",
    "joint limits",
    "limits of ball joints",
    "springs of 1-DoF joints",
    "springs of ball joints",
    "damping of free joints",
    "higher powers of springs and dampers",
    "dry friction in joints",
    "armature of joints without an actuator",
    "gravity compensation",
    "fluid forces",
    "position servos",
    "velocity servos",
    "motors",
    "actuators on ball joints",
    "actuators on tendons",
    "actuators on sites, bodies and cranks",
    "actuators other than servos and motors",
    "actuators with state",
    "force limits",
    "unequal force limits",
    "force limits of actuators that share a joint",
    "tendons",
    "linear couplings",
    "couplings other than linear",
    "connects and welds",
    "contacts",
    "contact pairs",
    "meshes",
    "height fields",
    "flexible bodies",
]
"""Feature of a model that a simulator may not support."""


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a simulator, known before one is created."""

    dtype: Literal["float64", "float32"]
    """Floating-point type of its values."""
    batching: Literal["vectorised", "threads", "loop"]
    """Execution of many worlds."""
    lacks: Mapping[Feature, str] = field(default_factory=dict["Feature", str])
    """Unsupported features, each with its treatment in words."""

    def missing(self, model: mujoco.MjModel) -> dict[Feature, Missing]:
        """Return the features of a model that the simulator does not support."""
        used = features(model)
        return {
            feature: Missing(used[feature], why)
            for feature, why in self.lacks.items()
            if used.get(feature)
        }


@dataclass(frozen=True)
class Missing:
    """Elements of a model with a feature that a simulator does not support."""

    elements: tuple[str, ...]
    """Names of the elements."""
    why: str
    """Treatment of these elements in the simulator."""


def features(model: mujoco.MjModel) -> dict[Feature, tuple[str, ...]]:
    """Return the features of a model, each with the names of its elements.

    Elements that the model's flags disable do not count.
    """
    names, model = ModelNames(model), plain_model(model)
    found: dict[Feature, tuple[str, ...]] = {}
    for feature, find in _FINDERS.items():
        elements = find(model, names)
        if elements:
            found[feature] = tuple(elements)
    return found


_FREE, _BALL = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
_EQ, _TRN, _OFF = mujoco.mjtEq, mujoco.mjtTrn, mujoco.mjtDisableBit
_JOINT_TRANSMISSIONS = (_TRN.mjTRN_JOINT.value, _TRN.mjTRN_JOINTINPARENT.value)


def _joints(model: mujoco.MjModel, names: ModelNames, keep: np.ndarray) -> list[str]:
    return [names.joint[j] for j in np.flatnonzero(keep)]


def _dof_joints(
    model: mujoco.MjModel, names: ModelNames, values: np.ndarray
) -> list[str]:
    """Joints with a dof whose value is not zero."""
    joints = sorted({int(model.dof_jntid[dof]) for dof in np.flatnonzero(values)})
    return [names.joint[j] for j in joints]


def _of_type(kind: int) -> Callable[[mujoco.MjModel, ModelNames], list[str]]:
    return lambda model, names: _joints(model, names, model.jnt_type == kind)


def _limits(ball: bool) -> Callable[[mujoco.MjModel, ModelNames], list[str]]:
    return lambda model, names: _joints(
        model, names, (model.jnt_limited > 0) & ((model.jnt_type == _BALL) == ball)
    )


def _springs(ball: bool) -> Callable[[mujoco.MjModel, ModelNames], list[str]]:
    return lambda model, names: _joints(
        model, names, (model.jnt_stiffness != 0) & ((model.jnt_type == _BALL) == ball)
    )


def driven_joints(model: mujoco.MjModel) -> set[int]:
    """Return the 1-DoF joints that a servo or motor drives directly."""
    return {
        int(model.actuator_trnid[a, 0])
        for a in range(model.nactuator)
        if model.actuator_trntype[a] in _JOINT_TRANSMISSIONS
        and actuator_kind(model, a) is not None
        and model.actuator_gear[int(model.actuator_outadr[a]), 0]
        and model.jnt_type[model.actuator_trnid[a, 0]] not in (_FREE, _BALL)
    }


def _idle_armature(model: mujoco.MjModel, names: ModelNames) -> list[str]:
    driven = driven_joints(model)
    idle = np.array([int(j) not in driven for j in model.dof_jntid], dtype=bool)
    return _dof_joints(model, names, model.dof_armature * idle)


def _free_damping(model: mujoco.MjModel, names: ModelNames) -> list[str]:
    free = model.jnt_type[model.dof_jntid] == _FREE
    return _dof_joints(model, names, model.dof_damping * free)


def _actuators(
    keep: Callable[[mujoco.MjModel, int], bool],
) -> Callable[[mujoco.MjModel, ModelNames], list[str]]:
    """Actuators for which `keep` holds and whose gear is not zero."""
    return lambda model, names: [
        names.actuator[a]
        for a in range(model.nactuator)
        if keep(model, a) and np.any(model.actuator_gear[int(model.actuator_outadr[a])])
    ]


def _with_higher_powers(model: mujoco.MjModel, names: ModelNames) -> list[str]:
    found = _dof_joints(model, names, np.any(model.dof_dampingpoly, axis=1))
    found += _joints(model, names, np.any(model.jnt_stiffnesspoly, axis=1))
    some = model.tendon_dampingpoly.any(axis=1) | model.tendon_stiffnesspoly.any(axis=1)
    found += [names.tendon[t] for t in np.flatnonzero(some)]
    return list(dict.fromkeys(found))


def _geoms(kind: mujoco.mjtGeom) -> Callable[[mujoco.MjModel, ModelNames], list[str]]:
    return lambda model, names: [
        names.geom[g] for g in np.flatnonzero(model.geom_type == kind.value)
    ]


def _off(model: mujoco.MjModel, *flags: mujoco.mjtDisableBit) -> bool:
    """Return True if one of the flags is set."""
    return any(model.opt.disableflags & flag.value for flag in flags)


def _paired(model: mujoco.MjModel, names: ModelNames) -> list[str]:
    if _off(model, _OFF.mjDSBL_CONTACT, _OFF.mjDSBL_CONSTRAINT):
        return []
    return [
        f"{names.geom[one]} and {names.geom[two]}"
        for one, two in zip(model.pair_geom1, model.pair_geom2, strict=True)
    ]


def _flexible(model: mujoco.MjModel, names: ModelNames) -> list[str]:
    kind = mujoco.mjtObj.mjOBJ_FLEX.value
    return [
        mujoco.mj_id2name(model, kind, f) or f"flex_{f}" for f in range(model.nflex)
    ]


def _on_ball(model: mujoco.MjModel, actuator: int) -> bool:
    on_joint = model.actuator_trntype[actuator] in _JOINT_TRANSMISSIONS
    kind = model.jnt_type[model.actuator_trnid[actuator, 0]] if on_joint else -1
    return kind in (_FREE, _BALL)


def _has_limit(model: mujoco.MjModel, actuator: int) -> bool:
    return bool(model.actuator_forcelimited[actuator])


def _unequal_limits(model: mujoco.MjModel, actuator: int) -> bool:
    low, high = model.actuator_forcerange[actuator]
    return bool(model.actuator_forcelimited[actuator]) and low != -high


def _shares_joint(model: mujoco.MjModel, actuator: int) -> bool:
    """Return True if another actuator drives the same joint."""
    joint = int(model.actuator_trnid[actuator, 0])
    others = [
        a
        for a in range(model.nactuator)
        if model.actuator_trntype[a] in _JOINT_TRANSMISSIONS
        and int(model.actuator_trnid[a, 0]) == joint
        and actuator_kind(model, a) is not None
        and model.actuator_gear[int(model.actuator_outadr[a]), 0]
    ]
    return actuator in others and len(others) > 1 and joint in driven_joints(model)


_COUPLINGS = (_EQ.mjEQ_JOINT.value, _EQ.mjEQ_TENDON.value)


def is_linear_coupling(model: mujoco.MjModel, equality: int) -> bool:
    """Return True if an equality couples two joints without squares or cubes."""
    two = model.eq_obj2id[equality] >= 0
    joints = model.eq_type[equality] == _EQ.mjEQ_JOINT.value
    return bool(two and joints and not np.any(model.eq_data[equality, 2:5]))


def _equalities(
    keep: Callable[[mujoco.MjModel, int], bool],
) -> Callable[[mujoco.MjModel, ModelNames], list[str]]:
    return lambda model, names: [
        names.equality[e]
        for e in range(model.neq)
        if keep(model, e)
        and not _off(model, _OFF.mjDSBL_EQUALITY, _OFF.mjDSBL_CONSTRAINT)
    ]


def _fluid(model: mujoco.MjModel, names: ModelNames) -> list[str]:
    return [
        name for name in ("density", "viscosity") if getattr(model.opt, name) != 0.0
    ]


def colliding(model: mujoco.MjModel) -> list[int]:
    """Return the geoms that may touch another."""
    touching = (model.geom_contype | model.geom_conaffinity) != 0
    return [int(g) for g in np.flatnonzero(touching)]


_FINDERS: dict[Feature, Callable[[mujoco.MjModel, ModelNames], list[str]]] = {
    "free joints": _of_type(_FREE),
    "ball joints": _of_type(_BALL),
    "mocap bodies": lambda model, names: [
        names.body[b] for b in np.flatnonzero(model.body_mocapid >= 0)
    ],
    "joint limits": _limits(ball=False),
    "limits of ball joints": _limits(ball=True),
    "springs of 1-DoF joints": _springs(ball=False),
    "springs of ball joints": _springs(ball=True),
    "damping of free joints": _free_damping,
    "higher powers of springs and dampers": _with_higher_powers,
    "dry friction in joints": lambda m, n: _dof_joints(m, n, m.dof_frictionloss),
    "armature of joints without an actuator": _idle_armature,
    "gravity compensation": lambda model, names: [
        names.body[b]
        for b in np.flatnonzero(model.body_gravcomp)
        if np.any(model.opt.gravity)
    ],
    "fluid forces": _fluid,
    "position servos": _actuators(lambda m, a: actuator_kind(m, a) == "position"),
    "velocity servos": _actuators(lambda m, a: actuator_kind(m, a) == "velocity"),
    "motors": _actuators(lambda m, a: actuator_kind(m, a) == "motor"),
    "actuators on ball joints": _actuators(_on_ball),
    "actuators on tendons": _actuators(
        lambda m, a: m.actuator_trntype[a] == _TRN.mjTRN_TENDON.value
    ),
    "actuators on sites, bodies and cranks": _actuators(
        lambda m, a: (
            m.actuator_trntype[a]
            not in (*_JOINT_TRANSMISSIONS, _TRN.mjTRN_TENDON.value)
        )
    ),
    "actuators other than servos and motors": _actuators(
        lambda m, a: actuator_kind(m, a) is None and not m.actuator_actnum[a]
    ),
    "actuators with state": _actuators(
        lambda m, a: actuator_kind(m, a) is None and m.actuator_actnum[a] > 0
    ),
    "force limits": _actuators(_has_limit),
    "unequal force limits": _actuators(_unequal_limits),
    "force limits of actuators that share a joint": _actuators(
        lambda m, a: _has_limit(m, a) and _shares_joint(m, a)
    ),
    "tendons": lambda model, names: list(names.tendon),
    "linear couplings": _equalities(is_linear_coupling),
    "couplings other than linear": _equalities(
        lambda m, e: m.eq_type[e] in _COUPLINGS and not is_linear_coupling(m, e)
    ),
    "connects and welds": _equalities(
        lambda m, e: m.eq_type[e] in (_EQ.mjEQ_CONNECT.value, _EQ.mjEQ_WELD.value)
    ),
    "contacts": lambda model, names: [names.geom[g] for g in colliding(model)],
    "contact pairs": _paired,
    "meshes": _geoms(mujoco.mjtGeom.mjGEOM_MESH),
    "height fields": _geoms(mujoco.mjtGeom.mjGEOM_HFIELD),
    "flexible bodies": _flexible,
}
