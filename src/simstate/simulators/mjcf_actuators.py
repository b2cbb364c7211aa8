"""Actuators of plain MJCF, and the kinds that all parsers support."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import mujoco

from simstate.scene.actuators import force_law
from simstate.simulators.mjcf_parts import (
    ModelNames,
    numbers,
    set_differing,
    set_powers,
)

Element = ElementTree.Element

_TRN, _DYN = mujoco.mjtTrn, mujoco.mjtDyn
_GAIN, _BIAS = mujoco.mjtGain, mujoco.mjtBias
_NO_DYNAMICS = _DYN.mjDYN_NONE.value


def _words(*kinds: Any) -> dict[int, str]:
    """Return the words of MJCF for members of one of MuJoCo's enumerations."""
    return {kind.value: kind.name.partition("_")[2].lower() for kind in kinds}


_TRANSMISSIONS = _words(_TRN.mjTRN_JOINT, _TRN.mjTRN_JOINTINPARENT, _TRN.mjTRN_TENDON)
_OTHER_TRANSMISSIONS = (
    _TRN.mjTRN_SITE.value, _TRN.mjTRN_BODY.value, _TRN.mjTRN_SLIDERCRANK.value,
)  # fmt: skip
_DYNAMICS = _words(
    _DYN.mjDYN_NONE, _DYN.mjDYN_INTEGRATOR, _DYN.mjDYN_FILTER, _DYN.mjDYN_FILTEREXACT,
    _DYN.mjDYN_MUSCLE,
)  # fmt: skip
_GAINS = _words(_GAIN.mjGAIN_FIXED, _GAIN.mjGAIN_AFFINE, _GAIN.mjGAIN_MUSCLE)
_BIASES = _words(_BIAS.mjBIAS_NONE, _BIAS.mjBIAS_AFFINE, _BIAS.mjBIAS_MUSCLE)


def add_actuators(
    root: Element, model: mujoco.MjModel, names: ModelNames, everything: bool = False
) -> list[str]:
    """Add the actuators; return descriptions of those left out.

    Without `everything`, only servos and motors on joints and tendons are written.
    """
    if not model.nactuator:
        return []
    section = ElementTree.SubElement(root, "actuator")
    simple = simple_actuators(model)
    left_out: list[str] = []
    for actuator in range(model.nactuator):
        name = names.actuator[actuator]
        if actuator in simple:
            element = _simple_actuator(section, model, actuator)
        elif everything and _is_general(model, actuator):
            element = _general_actuator(section, model, actuator)
        else:
            left_out.append(f"actuator {name!r}, neither servo nor motor")
            continue
        element.set("name", name)
        _set_transmission(element, model, names, actuator)
        _set_ranges(element, model, actuator)
        if everything:
            _set_armature_and_damping(element, model, actuator)
    return left_out


def simple_actuators(model: mujoco.MjModel) -> list[int]:
    """Return the servos and motors on joints and tendons, which all parsers support."""
    return [
        actuator
        for actuator in range(model.nactuator)
        if actuator_kind(model, actuator) is not None
        and int(model.actuator_trntype[actuator]) in _TRANSMISSIONS
    ]


def _simple_actuator(section: Element, model: mujoco.MjModel, actuator: int) -> Element:
    kind = actuator_kind(model, actuator)
    assert kind is not None
    element = ElementTree.SubElement(section, kind)
    bias = model.actuator_biasprm[actuator]
    if kind == "position":
        element.set("kp", numbers(-bias[1]))
        element.set("kv", numbers(-bias[2]))
    elif kind == "velocity":
        element.set("kv", numbers(-bias[2]))
    return element


def _is_general(model: mujoco.MjModel, actuator: int) -> bool:
    """Return True if MJCF's element `general` can represent the actuator."""
    single = model.actuator_ctrlnum[actuator] == model.actuator_outnum[actuator] == 1
    return bool(
        single
        and int(model.actuator_dyntype[actuator]) in _DYNAMICS
        and int(model.actuator_gaintype[actuator]) in _GAINS
        and int(model.actuator_biastype[actuator]) in _BIASES
        and int(model.actuator_trntype[actuator])
        in (*_TRANSMISSIONS, *_OTHER_TRANSMISSIONS)
        and model.actuator_plugin[actuator] < 0
        and not model.actuator_delay[actuator]
    )


def _general_actuator(
    section: Element, model: mujoco.MjModel, actuator: int
) -> Element:
    element = ElementTree.SubElement(
        section,
        "general",
        dyntype=_DYNAMICS[int(model.actuator_dyntype[actuator])],
        gaintype=_GAINS[int(model.actuator_gaintype[actuator])],
        biastype=_BIASES[int(model.actuator_biastype[actuator])],
        dynprm=numbers(model.actuator_dynprm[actuator]),
        gainprm=numbers(model.actuator_gainprm[actuator]),
        biasprm=numbers(model.actuator_biasprm[actuator]),
        lengthrange=numbers(model.actuator_lengthrange[actuator]),
    )
    if model.actuator_actnum[actuator] > 1:
        element.set("actdim", str(int(model.actuator_actnum[actuator])))
    if model.actuator_actlimited[actuator]:
        element.set("actlimited", "true")
        element.set("actrange", numbers(model.actuator_actrange[actuator]))
    if model.actuator_actearly[actuator]:
        element.set("actearly", "true")
    return element


def _set_armature_and_damping(
    element: Element, model: mujoco.MjModel, actuator: int
) -> None:
    """Set those that `fold_actuators` has not moved to a joint or tendon."""
    set_differing(element, "armature", model.actuator_armature[actuator], 0.0)
    damping, higher = model.actuator_damping, model.actuator_dampingpoly
    set_powers(element, "damping", damping[actuator], higher[actuator], True)


def _set_transmission(
    element: Element, model: mujoco.MjModel, names: ModelNames, actuator: int
) -> None:
    """Set an actuator's transmission and gear."""
    kind = int(model.actuator_trntype[actuator])
    target, second = (int(i) for i in model.actuator_trnid[actuator])
    output = int(model.actuator_outadr[actuator])
    element.set("gear", numbers(model.actuator_gear[output]))
    if kind in _TRANSMISSIONS:
        word = _TRANSMISSIONS[kind]
        table = names.tendon if word == "tendon" else names.joint
        element.set(word, table[target])
    elif kind == mujoco.mjtTrn.mjTRN_BODY.value:
        element.set("body", names.body[target])
    elif kind == mujoco.mjtTrn.mjTRN_SITE.value:
        element.set("site", names.site[target])
        if second >= 0:
            element.set("refsite", names.site[second])
    else:
        element.set("cranksite", names.site[target])
        element.set("slidersite", names.site[second])
        element.set("cranklength", numbers(model.actuator_cranklength[actuator]))


def _set_ranges(element: Element, model: mujoco.MjModel, actuator: int) -> None:
    """Set the ranges of an actuator's control and force."""
    column = int(model.actuator_ctrladr[actuator])
    if model.actuator_ctrllimited[column]:
        element.set("ctrllimited", "true")
        element.set("ctrlrange", numbers(model.actuator_ctrlrange[column]))
    if model.actuator_forcelimited[actuator]:
        element.set("forcelimited", "true")
        element.set("forcerange", numbers(model.actuator_forcerange[actuator]))


def actuator_kind(model: mujoco.MjModel, actuator: int) -> str | None:
    """Return "motor", "position" or "velocity"; None for any other actuator."""
    single = model.actuator_ctrlnum[actuator] == model.actuator_outnum[actuator] == 1
    law = force_law(model, actuator)
    is_scaled = law == "motor" and model.actuator_gainprm[actuator, 0] != 1.0
    if not single or is_scaled or model.actuator_dyntype[actuator] != _NO_DYNAMICS:
        return None
    return law
