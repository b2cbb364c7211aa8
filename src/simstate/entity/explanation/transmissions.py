"""Transmissions of actuators: the units of length and force, in words."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco

from simstate.entity.explanation.element import ElementNames

_TRN = mujoco.mjtTrn
_FREE, _BALL = mujoco.mjtJoint.mjJNT_FREE.value, mujoco.mjtJoint.mjJNT_BALL.value
_HINGE = mujoco.mjtJoint.mjJNT_HINGE.value


@dataclass(frozen=True)
class Transmission:
    """The target of an actuator."""

    target: str
    """The joint, tendon, site or body, in words."""
    length_unit: str
    """Unit of the actuator's length for a gear of 1."""
    force_unit: str
    """Unit of the actuator's force for a gear of 1."""
    point: str
    axes: str
    gear: str
    """The gear, as far as it scales, in words; "" if it is 1."""


def transmission(names: ElementNames, actuator: int) -> Transmission:
    """Return the transmission of an actuator."""
    model = names.model
    kind = int(model.actuator_trntype[actuator])
    first, second = (int(i) for i in model.actuator_trnid[actuator])
    if kind in (_TRN.mjTRN_JOINT.value, _TRN.mjTRN_JOINTINPARENT.value):
        in_parent = kind == _TRN.mjTRN_JOINTINPARENT.value
        return _of_joint(names, actuator, first, in_parent)
    gear = _scale(names, actuator)
    if kind == _TRN.mjTRN_TENDON.value:
        label = names.of("tendon", first)[1]
        fixed = _is_fixed_tendon(model, first)
        what = "fixed tendon" if fixed else "spatial tendon"
        unit = "coef·joint unit" if fixed else "m"
        force = "joint force / coef" if fixed else "N"
        return Transmission(f"{what} {label}", unit, force, "–", "along it", gear)
    if kind == _TRN.mjTRN_SLIDERCRANK.value:
        rod, crank = names.of("site", second)[1], names.of("site", first)[1]
        target = f"slider-crank from site {crank} to site {rod}"
        return Transmission(target, "m", "N", f"site {rod}", "slider's z", gear)
    if kind == _TRN.mjTRN_SITE.value:
        return _of_site(names, actuator, first, second)
    if kind == _TRN.mjTRN_SO3.value:
        label = names.of("joint", first)[1]
        return Transmission(
            f"orientation of ball joint {label}", "rad", "N·m", "–", "parent", ""
        )
    label = names.of("body", first)[1]
    target = f"contacts of body {label}"
    return Transmission(target, "–", "N", "contacts", "contact normals", "")


def _of_joint(
    names: ElementNames, actuator: int, joint: int, parent: bool
) -> Transmission:
    label, kind = names.of("joint", joint)[1], int(names.model.jnt_type[joint])
    if kind in (_FREE, _BALL):
        what = "free joint" if kind == _FREE else "ball joint"
        own = "parent" if parent else "body"
        axes = f"world, then {own}" if kind == _FREE else own
        unit = "N, N·m" if kind == _FREE else "N·m"
        gear = _numbers(names.model.actuator_gear[_row(names, actuator)])
        count = 6 if kind == _FREE else 3
        text = f"times the gear ({', '.join(gear[:count])})"
        length = "rad" if kind == _BALL else "0"
        point = "body origin" if kind == _FREE else "–"
        return Transmission(f"{what} {label}", length, unit, point, axes, text)
    gear = _scale(names, actuator)
    if kind == _HINGE:
        target = f"hinge {label}"
        return Transmission(target, "rad", "N·m", "–", "joint axis", gear)
    return Transmission(f"slide {label}", "m", "N", "–", "joint axis", gear)


def _of_site(
    names: ElementNames, actuator: int, site: int, reference: int
) -> Transmission:
    gear = names.model.actuator_gear[_row(names, actuator)]
    label = names.of("site", site)[1]
    angular = not gear[:3].any()
    text = f"times the gear ({', '.join(_numbers(gear))})"
    unit = "N·m" if angular else "N" if not gear[3:].any() else "N, N·m"
    if reference < 0:
        return Transmission(
            f"site {label}", "0", unit, f"site {label}", f"site {label}", text
        )
    other = names.of("site", reference)[1]
    length = "rad" if angular else "m"
    target = f"site {label} relative to site {other}"
    return Transmission(target, length, unit, f"site {label}", f"site {other}", text)


def _scale(names: ElementNames, actuator: int) -> str:
    gear = float(names.model.actuator_gear[_row(names, actuator), 0])
    return "" if gear == 1.0 else f"times the gear {gear:g}"


def _row(names: ElementNames, actuator: int) -> int:
    return int(names.model.actuator_outadr[actuator])


def _numbers(values: object) -> list[str]:
    return [f"{float(value):g}" for value in values]  # pyright: ignore


def _is_fixed_tendon(model: mujoco.MjModel, tendon: int) -> bool:
    first = int(model.tendon_adr[tendon])
    return int(model.wrap_type[first]) == mujoco.mjtWrap.mjWRAP_JOINT.value
