"""Description of a model's sensor in words: its objects, axes and units."""

from __future__ import annotations

from collections.abc import Iterable

import mujoco

_OBJECTS = {
    mujoco.mjtObj.mjOBJ_BODY.value: ("body", "centre of mass of", "principal axes of"),
    mujoco.mjtObj.mjOBJ_XBODY.value: ("body", "origin of", ""),
    mujoco.mjtObj.mjOBJ_GEOM.value: ("geom", "centre of", ""),
    mujoco.mjtObj.mjOBJ_SITE.value: ("site", "", ""),
    mujoco.mjtObj.mjOBJ_CAMERA.value: ("camera", "", ""),
    mujoco.mjtObj.mjOBJ_JOINT.value: ("joint", "", ""),
    mujoco.mjtObj.mjOBJ_TENDON.value: ("tendon", "", ""),
    mujoco.mjtObj.mjOBJ_ACTUATOR.value: ("actuator", "", ""),
    mujoco.mjtObj.mjOBJ_MESH.value: ("mesh", "", ""),
    mujoco.mjtObj.mjOBJ_FLEX.value: ("flex", "", ""),
}
"""Kinds of objects that sensors are about, which point of them is meant, and which
axes."""

_SUBTREE = mujoco.mjtObj.mjOBJ_XBODY.value
_TURNS, _SLIDES = "rad", "m"
_UNITS = {
    "pos": {_TURNS: "rad", _SLIDES: "m", "": "rad or m"},
    "vel": {_TURNS: "rad/s", _SLIDES: "m/s", "": "rad/s or m/s"},
    "frc": {_TURNS: "N·m", _SLIDES: "N", "": "N·m or N"},
}
"""Units by what a sensor's type ends with, and by how its object moves."""

_FIELD_UNITS = {"force": "N", "torque": "N·m", "dist": "m", "pos": "m", "origin": "m",
                "point": "m", "depth": "m"}  # fmt: skip


def name_of(model: mujoco.MjModel, kind: int, element: int) -> str:
    """Return an element as "body base"; "–" for none."""
    if int(kind) not in _OBJECTS or element < 0:
        return "–"
    name = mujoco.mj_id2name(model, int(kind), int(element))
    return f"{_OBJECTS[int(kind)][0]} {name or int(element)}"


def point_of(model: mujoco.MjModel, kind: int, element: int) -> str:
    """Return the point of an element that is meant."""
    return _with(_OBJECTS.get(int(kind), ("", "", ""))[1], model, kind, element)


def axes_of(model: mujoco.MjModel, kind: int, element: int) -> str:
    """Return the axes of an element that are meant."""
    return _with(_OBJECTS.get(int(kind), ("", "", ""))[2], model, kind, element)


def side_of(model: mujoco.MjModel, kind: int, element: int) -> str:
    """Return one side of a contact."""
    if element < 0:
        return "anything"
    words = {_SUBTREE: "subtree of", mujoco.mjtObj.mjOBJ_SITE.value: "inside"}
    return _with(words.get(int(kind), ""), model, kind, element)


def _with(word: str, model: mujoco.MjModel, kind: int, element: int) -> str:
    name = name_of(model, kind, element)
    return f"{word} {name}" if word and name != "–" else name


def subject_of(model: mujoco.MjModel, sensor: int, kind: str) -> str:
    """Return the subject of a sensor: the point, or the elements involved."""
    first = (int(model.sensor_objtype[sensor]), int(model.sensor_objid[sensor]))
    other = (int(model.sensor_reftype[sensor]), int(model.sensor_refid[sensor]))
    if kind == "contact":
        return f"{side_of(model, *first)} against {side_of(model, *other)}"
    if kind.startswith("subtree"):
        return f"centre of mass of the subtree of {name_of(model, *first)}"
    if kind.startswith("geom"):
        return f"from {name_of(model, *first)} to {name_of(model, *other)}"
    own = point_of(model, *first)
    if kind in ("camprojection", "insidesite"):
        return f"{own} in {name_of(model, *other)}"
    if kind.startswith("frame") and other[1] >= 0:
        return f"{own}, seen from {point_of(model, *other)}"
    return own


def unit_of(model: mujoco.MjModel, sensor: int, kind: str, general: str) -> str:
    """The unit of a sensor, which for some kinds depends on the object's motion."""
    if not kind.startswith(("joint", "tendon", "actuator")):
        return general
    object_kind, element = model.sensor_objtype[sensor], model.sensor_objid[sensor]
    return _UNITS[kind[-3:]][_motion(model, int(object_kind), int(element))]


def units_of_fields(names: Iterable[str]) -> str:
    """The units of what contact sensors and rangefinders give, in their order."""
    units = [_FIELD_UNITS[name] for name in names if name in _FIELD_UNITS]
    return ", ".join(dict.fromkeys(units)) or "1"


def _motion(model: mujoco.MjModel, kind: int, element: int) -> str:
    """Return the motion of a joint, tendon or driven element; "" if undetermined."""
    if kind == mujoco.mjtObj.mjOBJ_JOINT.value:
        slides = model.jnt_type[element] == mujoco.mjtJoint.mjJNT_SLIDE.value
        free = model.jnt_type[element] == mujoco.mjtJoint.mjJNT_FREE.value
        return "" if free else _SLIDES if slides else _TURNS
    if kind == mujoco.mjtObj.mjOBJ_TENDON.value:
        first, count = int(model.tendon_adr[element]), int(model.tendon_num[element])
        wraps = range(first, first + count)
        joint = mujoco.mjtWrap.mjWRAP_JOINT.value
        if any(model.wrap_type[k] != joint for k in wraps):
            return _SLIDES
        of = mujoco.mjtObj.mjOBJ_JOINT.value
        motions = {_motion(model, of, int(model.wrap_objid[k])) for k in wraps}
        return motions.pop() if len(motions) == 1 else ""
    return _driven(model, element)


def _driven(model: mujoco.MjModel, actuator: int) -> str:
    """Return the motion of what an actuator drives."""
    driven, target = model.actuator_trntype[actuator], model.actuator_trnid[actuator, 0]
    kinds = mujoco.mjtTrn
    joints = (kinds.mjTRN_JOINT.value, kinds.mjTRN_JOINTINPARENT.value)
    if driven in joints:
        return _motion(model, mujoco.mjtObj.mjOBJ_JOINT.value, int(target))
    if driven == kinds.mjTRN_TENDON.value:
        return _motion(model, mujoco.mjtObj.mjOBJ_TENDON.value, int(target))
    return _SLIDES if driven == kinds.mjTRN_SLIDERCRANK.value else ""
