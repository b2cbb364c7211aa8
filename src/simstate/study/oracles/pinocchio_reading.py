"""Comparison of URDF models with Pinocchio.

For each joint, by name: mass, first moment and inertia of the bodies fixed to its child
link, axis and limits.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from simstate.scene.scene_cfg import ModelSource
from simstate.scene.urdf import is_urdf
from simstate.study.oracles.verdicts import Check

LAW = "a URDF is read as by Pinocchio"
_TOLERANCE = 1e-9
_JOINT = mujoco.mjtObj.mjOBJ_JOINT.value
_SCALAR = (mujoco.mjtJoint.mjJNT_SLIDE.value, mujoco.mjtJoint.mjJNT_HINGE.value)


def pinocchio_findings(
    entity: str, source: ModelSource, model: mujoco.MjModel
) -> list[Check] | str:
    """Return the checks of an entity whose model is a URDF; none for other models.

    If Pinocchio is not installed, return a sentence that names the package.
    """
    text = _text(source)
    if not is_urdf(text):
        return []
    if importlib.util.find_spec("pinocchio") is None:
        return (
            f"Not checked for {entity!r}: {LAW}. It needs the package 'pin': "
            "pip install 'simstate[pin]'."
        )
    pin: Any = importlib.import_module("pinocchio")
    return list(_checks(entity, pin, pin.buildModelFromXML(text), model))


def _text(source: ModelSource) -> str:
    """Return the XML of a model that is given as a file or a string, else ""."""
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return source
    if isinstance(source, str | Path) and Path(source).is_file():
        return Path(source).read_text(errors="replace")
    return ""


def _checks(entity: str, pin: Any, theirs: Any, model: Any) -> Iterator[Check]:
    data = mujoco.MjData(model)
    data.qpos[:] = 0.0  # the frames of a URDF are those of its zero configuration
    mujoco.mj_kinematics(model, data)
    worst = dict.fromkeys(("mass", "first_moment", "inertia", "axis", "limits"), 0.0)
    names = [str(name) for name in theirs.names][1:]
    for joint, name in enumerate(names, start=1):
        full_name = f"{entity}/{name}"
        ours = mujoco.mj_name2id(model, _JOINT, full_name)
        if ours < 0:
            yield Check(LAW, entity, f"joint {name} is missing", np.inf, _TOLERANCE)
            continue
        if int(model.jnt_type[ours]) not in _SCALAR:
            continue
        body = int(model.jnt_bodyid[ours])
        spatial = _carried_inertia(model, data, body)
        inertia = theirs.inertias[joint]
        lever = np.asarray(inertia.lever)
        about_joint = _about(inertia.inertia, inertia.mass, lever)
        errors = {
            "mass": _error(spatial[0], inertia.mass),
            "first_moment": _error(spatial[1], inertia.mass * lever),
            "inertia": _error(spatial[2], about_joint),
            "axis": _error(model.jnt_axis[ours], _axis(pin, theirs, joint)),
            "limits": _limit_error(theirs, joint, model, ours),
        }
        worst = {key: max(worst[key], errors[key]) for key in worst}
    for quantity, error in worst.items() if names else ():
        yield Check(LAW, entity, quantity, error, _TOLERANCE)


def _carried_inertia(
    model: Any, data: Any, body: int
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, first moment and inertia of a body and the bodies fixed to it.

    Moment and inertia are about the body's origin, along its axes.
    """
    axes = data.xmat[body].reshape(3, 3)
    mass, moment, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
    for part in np.flatnonzero(model.body_weldid == model.body_weldid[body]):
        own = data.xmat[part].reshape(3, 3)
        iframe = np.zeros(9)
        mujoco.mju_quat2Mat(iframe, model.body_iquat[part])
        principal = axes.T @ own @ iframe.reshape(3, 3)
        com_w = data.xpos[part] + own @ model.body_ipos[part]
        com = axes.T @ (com_w - data.xpos[body])
        weight = float(model.body_mass[part])
        diagonal = principal @ np.diag(model.body_inertia[part]) @ principal.T
        mass += weight
        moment += weight * com
        inertia += _about(diagonal, weight, com)
    return mass, moment, inertia


def _about(inertia: np.ndarray, mass: float, com: np.ndarray) -> np.ndarray:
    """Return an inertia about the origin from that about the COM (parallel axes)."""
    return inertia + mass * (com @ com * np.eye(3) - np.outer(com, com))


def _axis(pin: Any, theirs: Any, joint: int) -> np.ndarray:
    """Return a joint's axis along its own frame: its motion per unit of velocity."""
    made = theirs.createData()
    zero, unit = pin.neutral(theirs), np.zeros(theirs.nv)
    unit[theirs.joints[joint].idx_v] = 1.0
    pin.forwardKinematics(theirs, made, zero, unit)
    moved = made.v[joint]
    still = np.linalg.norm(moved.angular) < 0.5
    return np.asarray(moved.linear if still else moved.angular)


def _limit_error(theirs: Any, joint: int, model: Any, ours: int) -> float:
    """Return the difference of limits; a joint without limits has none in both."""
    q = theirs.joints[joint].idx_q
    continuous = theirs.joints[joint].nq == 2
    limits = np.array([theirs.lowerPositionLimit[q], theirs.upperPositionLimit[q]])
    limited = not continuous and bool(np.isfinite(limits).all())
    if limited != bool(model.jnt_limited[ours]):
        return float("inf")
    return _error(model.jnt_range[ours], limits) if limited else 0.0


def _error(ours: Any, theirs: Any) -> float:
    """Return the largest difference, relative to the largest value."""
    scale = max(float(np.abs(theirs).max()), 1e-12)
    return float(np.abs(np.asarray(ours) - theirs).max()) / scale
