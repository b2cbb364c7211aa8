"""Plain models: models without features that only MuJoCo has.

MuJoCo disables effects by flags and by groups of actuators, and an actuator may have
armature and damping. Other simulators have none of these.
"""

from __future__ import annotations

import copy
from typing import Literal, TypeAlias

import mujoco

_OFF = mujoco.mjtDisableBit
_TRN = mujoco.mjtTrn
_ON_JOINT = (_TRN.mjTRN_JOINT.value, _TRN.mjTRN_JOINTINPARENT.value)
_SINGLE = (mujoco.mjtJoint.mjJNT_SLIDE.value, mujoco.mjtJoint.mjJNT_HINGE.value)


def plain_model(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy that moves like the model and does not need its flags.

    Parameters of disabled effects are zero; armature and damping of actuators are added
    to those of their joints or tendons.
    """
    model = copy.copy(model)
    fold_actuators(model)
    _zero_disabled(model)
    return model


def _zero_disabled(model: mujoco.MjModel) -> None:
    def off(*flags: mujoco.mjtDisableBit) -> bool:
        return all(model.opt.disableflags & flag.value for flag in flags)

    constraint = off(_OFF.mjDSBL_CONSTRAINT)
    for flag, fields in (
        (_OFF.mjDSBL_EQUALITY, ("eq_active0",)),
        (_OFF.mjDSBL_FRICTIONLOSS, ("dof_frictionloss", "tendon_frictionloss")),
        (_OFF.mjDSBL_LIMIT, ("jnt_limited", "tendon_limited")),
        (_OFF.mjDSBL_CONTACT, ("geom_contype", "geom_conaffinity")),
    ):
        if constraint or off(flag):
            _zero(model, *fields)
    if off(_OFF.mjDSBL_SPRING):
        _zero(model, "jnt_stiffness", "jnt_stiffnesspoly")
        _zero(model, "tendon_stiffness", "tendon_stiffnesspoly")
    if off(_OFF.mjDSBL_DAMPER):
        _zero(model, "dof_damping", "dof_dampingpoly")
        _zero(model, "tendon_damping", "tendon_dampingpoly")
    if off(_OFF.mjDSBL_SPRING, _OFF.mjDSBL_DAMPER):  # then no passive force acts
        _zero(model, "body_gravcomp")
        model.opt.density = model.opt.viscosity = 0.0
    if off(_OFF.mjDSBL_GRAVITY):
        model.opt.gravity[:] = 0.0
    if off(_OFF.mjDSBL_CLAMPCTRL):
        _zero(model, "actuator_ctrllimited")
    if off(_OFF.mjDSBL_ACTUATION) and model.jnt_actgravcomp.all():
        _zero(model, "body_gravcomp")  # which actuators would apply
    for actuator in range(model.nactuator):
        group = int(model.actuator_group[actuator])
        grouped = 0 <= group < 31 and int(model.opt.disableactuator) >> group & 1
        if off(_OFF.mjDSBL_ACTUATION) or grouped:
            first = int(model.actuator_outadr[actuator])
            last = first + int(model.actuator_outnum[actuator])
            model.actuator_gear[first:last] = 0.0


def _zero(model: mujoco.MjModel, *fields: str) -> None:
    for field in fields:
        getattr(model, field)[:] = 0


def fold_actuators(model: mujoco.MjModel) -> None:
    """Move armature and damping of actuators to their joints and tendons, in place.

    Actuators with other transmissions keep theirs.
    """
    for actuator in range(model.nactuator):
        target = int(model.actuator_trnid[actuator, 0])
        kind = model.actuator_trntype[actuator]
        gear = float(model.actuator_gear[int(model.actuator_outadr[actuator]), 0])
        if kind in _ON_JOINT and model.jnt_type[target] in _SINGLE:
            owner, target = "dof", int(model.jnt_dofadr[target])
        elif kind == _TRN.mjTRN_TENDON.value:
            owner = "tendon"
        else:
            continue
        for what in ("armature", "damping", "dampingpoly"):
            own = getattr(model, f"actuator_{what}")
            getattr(model, f"{owner}_{what}")[target] += own[actuator] * gear**2
            own[actuator] = 0.0


def may_touch(model: mujoco.MjModel, one: int, two: int) -> bool:
    """Return True if MuJoCo's filters or a contact pair let two geoms collide."""
    off = _OFF.mjDSBL_CONTACT.value | _OFF.mjDSBL_CONSTRAINT.value
    if model.opt.disableflags & off:
        return False
    pairs = zip(model.pair_geom1, model.pair_geom2, strict=True)
    if any({int(a), int(b)} == {one, two} for a, b in pairs):
        return True
    bodies = model.geom_bodyid[[one, two]]
    welded = model.body_weldid[bodies]
    if welded[0] == welded[1]:
        return False
    parents = model.body_weldid[model.body_parentid[welded]]
    filtering = not model.opt.disableflags & _OFF.mjDSBL_FILTERPARENT
    if (
        filtering
        and 0 not in welded
        and (welded[0] == parents[1] or welded[1] == parents[0])
    ):
        return False
    low, high = sorted(int(b) for b in bodies)
    if (low << 16) + high in {int(s) for s in model.exclude_signature}:
        return False
    types, affinities = model.geom_contype, model.geom_conaffinity
    return bool(types[one] & affinities[two] or types[two] & affinities[one])


Term: TypeAlias = Literal[
    "actuators", "equalities", "joint limits", "dry friction", "contacts"
]
"""Effects in addition to inertia, gravity, springs, dampers and the fluid."""
Terms: TypeAlias = "frozenset[Term]"

_FLAGS: dict[Term, mujoco.mjtDisableBit] = {
    "equalities": _OFF.mjDSBL_EQUALITY,
    "joint limits": _OFF.mjDSBL_LIMIT,
    "dry friction": _OFF.mjDSBL_FRICTIONLOSS,
    "contacts": _OFF.mjDSBL_CONTACT,
}

NO_TERMS: Terms = frozenset()
ALL_TERMS: Terms = frozenset[Term](("actuators", *_FLAGS))


def switch_off(model: mujoco.MjModel, terms: Terms) -> None:
    """Switch off all terms of a MuJoCo model but those given, in place.

    Armature and damping of actuators are kept.
    """
    for term, flag in _FLAGS.items():
        if term not in terms:
            model.opt.disableflags |= flag.value
    if "actuators" not in terms:
        # Not by the flag, with which the implicit integrators of MuJoCo Warp 3.17 omit
        # the joints' dampers, too.
        fold_actuators(model)
        model.actuator_gear[:] = 0.0
