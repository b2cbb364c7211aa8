"""Meanings of the elements of qpos and qvel, by joint type, and of xfrc_applied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from simstate.entity.explanation.element import ElementInfo, ElementNames

_XYZ = "xyz"


@dataclass(frozen=True)
class _Text:
    """Description of one element."""

    meaning: str
    point: str
    axes: str
    unit: str
    mistake: str


def explain_joint(names: ElementNames, joint: int) -> list[ElementInfo]:
    """Return the elements of qpos and qvel of one joint."""
    model = names.model
    kind, position, velocity = _KINDS[int(model.jnt_type[joint])]
    qpos, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
    entity, label = names.of("joint", joint)
    blocks = (("qpos", qpos, position), ("qvel", dof, velocity))
    return [
        ElementInfo(
            field=field,
            index=(first + k,),
            entity=entity,
            element=f"{kind} {label}",
            **vars(text),
        )
        for field, first, texts in blocks
        for k, text in enumerate(texts(names, joint))
    ]


def _body(names: ElementNames, joint: int) -> tuple[int, str]:
    body = int(names.model.jnt_bodyid[joint])
    return body, names.of("body", body)[1]


def _com_apart(names: ElementNames, body: int) -> str:
    """Describe the offset of the body's centre of mass from its origin, if any."""
    offset = names.model.body_ipos[body]
    if np.linalg.norm(offset) < 1e-12:
        return "here the two coincide, but inertial pos moves them apart"
    x, y, z = (f"{float(c):.3g}" for c in offset)
    return f"which is at ({x}, {y}, {z}) m from it in body axes"


def _free_position(names: ElementNames, joint: int) -> list[_Text]:
    body, label = _body(names, joint)
    apart = _com_apart(names, body)
    where = [
        _Text(
            f"{axis} of the position of body {label}",
            "body origin",
            "world",
            "m",
            f"taken for the centre of mass, {apart}",
        )
        for axis in _XYZ
    ]
    return where + _quaternion(f"orientation of body {label}", "body to world")


def _free_velocity(names: ElementNames, joint: int) -> list[_Text]:
    body, label = _body(names, joint)
    apart = _com_apart(names, body)
    linear = [
        _Text(
            f"{axis} of the velocity of body {label}",
            "body origin",
            "world",
            "m/s",
            "taken for body axes, as the angular part is; or for the velocity of the "
            f"centre of mass, {apart}",
        )
        for axis in _XYZ
    ]
    first = int(names.model.jnt_dofadr[joint]) + 3
    return linear + _rates(
        f"angular velocity of body {label}",
        "taken for world axes, as the linear part is: the body's "
        f"xmat @ qvel[{first}:{first + 3}] gives those",
    )


def _ball_position(names: ElementNames, joint: int) -> list[_Text]:
    _, label = _body(names, joint)
    what = f"orientation of body {label} relative to its place in the parent"
    return _quaternion(what, "body to parent")


def _ball_velocity(names: ElementNames, joint: int) -> list[_Text]:
    _, label = _body(names, joint)
    return _rates(
        f"angular velocity of body {label} relative to its parent",
        "taken for the parent's axes; or three of qpos's four numbers written here",
    )


def _quaternion(what: str, maps: str) -> list[_Text]:
    return [
        _Text(
            f"{letter} of the unit quaternion (w, x, y, z) of the {what}",
            "–",
            maps,
            "1",
            "read as (x, y, z, w), as ROS, Isaac Lab 3 and PyBullet write it; or "
            "integrated as q += q̇·dt without normalising: use mj_integratePos",
        )
        for letter in "wxyz"
    ]


def _rates(what: str, mistake: str) -> list[_Text]:
    return [
        _Text(f"{axis} of the {what}", "any", "body", "rad/s", mistake) for axis in _XYZ
    ]


def _hinge_position(names: ElementNames, joint: int) -> list[_Text]:
    mistake = "given in degrees, as MJCF's angles are by default: qpos is in radians"
    return [_coordinate(names, joint, "angle", "joint anchor", "rad", mistake)]


def _slide_position(names: ElementNames, joint: int) -> list[_Text]:
    mistake = "taken for a world coordinate: the axis turns with the parent"
    return [_coordinate(names, joint, "displacement", "any", "m", mistake)]


def _hinge_velocity(names: ElementNames, joint: int) -> list[_Text]:
    return [_rate(names, joint, "angle", "rad/s", "given in degrees per second")]


def _slide_velocity(names: ElementNames, joint: int) -> list[_Text]:
    mistake = "taken for the body's whole velocity: it is relative to the parent"
    return [_rate(names, joint, "displacement", "m/s", mistake)]


def _coordinate(
    names: ElementNames, joint: int, what: str, point: str, unit: str, mistake: str
) -> _Text:
    """Return the position of a joint with one degree of freedom."""
    at = float(names.model.qpos0[names.model.jnt_qposadr[joint]])
    body = _body(names, joint)[1]
    meaning = f"{what} of body {body}, which is as in the model at {at:.4g}"
    return _Text(meaning, point, _axis(names, joint), unit, mistake)


def _rate(names: ElementNames, joint: int, what: str, unit: str, mistake: str) -> _Text:
    """Return the velocity of such a joint."""
    meaning = f"rate of the {what} of body {_body(names, joint)[1]}"
    mistake = _shifted(names, joint) or mistake
    return _Text(meaning, "any", _axis(names, joint), unit, mistake)


def _axis(names: ElementNames, joint: int) -> str:
    """Return the joint's axis, in words."""
    hinge = mujoco.mjtJoint.mjJNT_HINGE.value
    how = "about" if names.model.jnt_type[joint] == hinge else "along"
    x, y, z = (f"{float(c):.3g}" for c in names.model.jnt_axis[joint])
    return f"{how} ({x}, {y}, {z}) of the body"


def _shifted(names: ElementNames, joint: int) -> str:
    """Return the mistake of one index for both, where they differ."""
    qpos, dof = (
        int(names.model.jnt_qposadr[joint]),
        int(names.model.jnt_dofadr[joint]),
    )
    if qpos == dof:
        return ""
    return (
        f"indexed like qpos: its position is qpos[{qpos}], since a quaternion before "
        "it has four numbers in qpos and three in qvel"
    )


_Explain = Callable[[ElementNames, int], list[_Text]]

_KINDS: dict[int, tuple[str, _Explain, _Explain]] = {
    mujoco.mjtJoint.mjJNT_FREE.value: ("free joint", _free_position, _free_velocity),
    mujoco.mjtJoint.mjJNT_BALL.value: ("ball joint", _ball_position, _ball_velocity),
    mujoco.mjtJoint.mjJNT_SLIDE.value: ("slide", _slide_position, _slide_velocity),
    mujoco.mjtJoint.mjJNT_HINGE.value: ("hinge", _hinge_position, _hinge_velocity),
}


_FORCE = (
    "taken for a force at the body's origin, or along body axes; it acts until it is "
    "overwritten"
)
_TORQUE = (
    "taken for body axes, as the angular velocity in qvel is; a force at another point "
    "adds (point − COM) × force"
)


def explain_body(names: ElementNames, body: int) -> list[ElementInfo]:
    """Return the six elements of xfrc_applied of one body."""
    entity, label = names.of("body", body)
    found: list[ElementInfo] = []
    for k in range(6):
        is_force = k < 3
        what = "force on" if is_force else "torque on"
        mistake = _FORCE if is_force else _TORQUE
        if body == 0:
            mistake = "expected to move something: the world does not"
        found.append(
            ElementInfo(
                field="xfrc_applied",
                index=(body, k),
                entity=entity,
                element=f"body {label}",
                meaning=f"{'xyz'[k % 3]} of the {what} body {label}",
                point="centre of mass" if is_force else "any",
                axes="world",
                unit="N" if is_force else "N·m",
                mistake=mistake,
            )
        )
    return found
