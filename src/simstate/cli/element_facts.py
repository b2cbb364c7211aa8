"""Facts about the elements of a model by name: joints, bodies, actuators and others."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from simstate.base.errors import UnknownNameError, unknown_name
from simstate.engine import FIELDS

Facts = dict[str, Any]
_KINDS = {
    "body": "nbody", "joint": "njnt", "geom": "ngeom", "site": "nsite",
    "actuator": "nactuator", "tendon": "ntendon", "sensor": "nsensor",
    "camera": "ncam", "light": "nlight", "equality": "neq", "key": "nkey",
}  # fmt: skip


def facts_about(model: mujoco.MjModel, name: str) -> list[Facts]:
    """Return the facts about each element of this name; raise if there is none."""
    found: list[Facts] = []
    known: dict[str, None] = {}
    for kind, size in _KINDS.items():
        for i in range(getattr(model, size)):
            mine = getattr(model, kind)(i).name
            if mine == name:
                facts = _FACTS.get(kind, _no_more)(model, i)
                found.append({"kind": kind, "name": name, "id": i, **facts})
            if mine:
                known[mine] = None
    if not found and name in FIELDS:
        raise UnknownNameError(
            f"{name!r} is a field of sim.data, without entries to list: "
            f"{FIELDS[name].doc}",
            name=name,
            known=known,
        )
    if not found:
        raise unknown_name(
            "element or field (qpos, qvel, act, ctrl, xfrc_applied)", name, known
        )
    return found


def _no_more(model: mujoco.MjModel, i: int) -> Facts:
    return {}


def _body(model: mujoco.MjModel, i: int) -> Facts:
    joints = range(model.body_jntadr[i], model.body_jntadr[i] + model.body_jntnum[i])
    return {
        "parent": model.body(model.body_parentid[i]).name,
        "mass [kg]": float(model.body_mass[i]),
        "COM, link's axes [m]": _numbers(model.body_ipos[i]),
        "principal inertia [kg·m²]": _numbers(model.body_inertia[i]),
        "position, parent's axes [m]": _numbers(model.body_pos[i]),
        "joints": [model.joint(j).name for j in joints if model.body_jntnum[i]],
    }


def _joint(model: mujoco.MjModel, i: int) -> Facts:
    kind = mujoco.mjtJoint(int(model.jnt_type[i]))
    unit = {"mjJNT_HINGE": "rad", "mjJNT_SLIDE": "m"}.get(kind.name, "")
    columns = {"mjJNT_FREE": (7, 6), "mjJNT_BALL": (4, 3)}.get(kind.name, (1, 1))
    qpos, dof = int(model.jnt_qposadr[i]), int(model.jnt_dofadr[i])
    facts: Facts = {
        "type": kind.name.removeprefix("mjJNT_").lower(),
        "body": model.body(model.jnt_bodyid[i]).name,
        "qpos": f"{qpos}:{qpos + columns[0]}",
        "qvel": f"{dof}:{dof + columns[1]}",
    }
    if unit:
        facts["axis, body's axes"] = _numbers(model.jnt_axis[i])
        limited = bool(model.jnt_limited[i])
        facts[f"range [{unit}]"] = _numbers(model.jnt_range[i]) if limited else "free"
    torque = "N·m" if unit == "rad" else "N"
    if unit:
        facts[f"damping [{torque}·s/{unit}]"] = float(model.dof_damping[dof])
        facts["armature [kg·m²]" if unit == "rad" else "armature [kg]"] = float(
            model.dof_armature[dof]
        )
        facts[f"dry friction [{torque}]"] = float(model.dof_frictionloss[dof])
    return facts


def _geom(model: mujoco.MjModel, i: int) -> Facts:
    kind = mujoco.mjtGeom(int(model.geom_type[i])).name
    return {
        "type": kind.removeprefix("mjGEOM_").lower(),
        "body": model.body(model.geom_bodyid[i]).name,
        "size [m]": _numbers(model.geom_size[i]),
        "position, body's axes [m]": _numbers(model.geom_pos[i]),
        "friction (sliding, torsional [m], rolling [m])": _numbers(
            model.geom_friction[i]
        ),
        "contype, conaffinity": [
            int(model.geom_contype[i]),
            int(model.geom_conaffinity[i]),
        ],
    }


def _site(model: mujoco.MjModel, i: int) -> Facts:
    return {
        "body": model.body(model.site_bodyid[i]).name,
        "position, body's axes [m]": _numbers(model.site_pos[i]),
        "orientation, wxyz": _numbers(model.site_quat[i]),
    }


def _actuator(model: mujoco.MjModel, i: int) -> Facts:
    target, kind = int(model.actuator_trnid[i, 0]), int(model.actuator_trntype[i])
    names = {0: "joint", 1: "joint", 3: "tendon", 4: "site", 5: "body"}
    facts: Facts = {
        "transmission": mujoco.mjtTrn(kind).name.removeprefix("mjTRN_").lower()
    }
    if kind in names:
        facts["acts on"] = f"{names[kind]} {getattr(model, names[kind])(target).name}"
    first, count = int(model.actuator_ctrladr[i]), int(model.actuator_ctrlnum[i])
    for k in range(count):
        name = mujoco.mj_actuatorInputName(model, i, k)
        limited, limits = model.actuator_ctrllimited, model.actuator_ctrlrange
        label = "control range" if count == 1 else f"control range, {name}"
        facts[label] = _numbers(limits[first + k]) if limited[first + k] else "free"
    is_limited, limits = model.actuator_forcelimited[i], model.actuator_forcerange[i]
    facts["force range"] = _numbers(limits) if is_limited else "free"
    return facts


def _sensor(model: mujoco.MjModel, i: int) -> Facts:
    first, width = int(model.sensor_adr[i]), int(model.sensor_dim[i])
    kind = mujoco.mjtSensor(int(model.sensor_type[i])).name
    return {
        "type": kind.removeprefix("mjSENS_").lower(),
        "sensordata": f"{first}:{first + width}",
    }


_FACTS = {
    "body": _body, "joint": _joint, "geom": _geom, "site": _site,
    "actuator": _actuator, "sensor": _sensor,
}  # fmt: skip


def _numbers(values: np.ndarray) -> list[float]:
    return [float(f"{value:.6g}") for value in values]
