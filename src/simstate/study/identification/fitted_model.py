"""The fitted model: estimates in a compiled model, in MJCF and in specifications."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from simstate.base.errors import InvalidInputError
from simstate.study.identification.free_parameters import (
    FreeParameter,
    model_writes,
)

Array = NDArray[np.float64]


def fitted_model(
    model: mujoco.MjModel, parameters: Sequence[FreeParameter], values: Array
) -> mujoco.MjModel:
    """Return a copy of a compiled model with the values of parameters."""
    changed = copy.copy(model)
    mine = [(one, one.targets) for one in parameters]
    for field, index, value in model_writes(model, mine, values[None]):
        getattr(changed, field)[index] = value[0]
    mujoco.mj_setConst(changed, mujoco.MjData(changed))
    return changed


def mjcf_changes(
    model: mujoco.MjModel, parameters: Sequence[FreeParameter]
) -> list[str]:
    """Return the changes of a fitted model as MJCF elements with their attributes."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for one in parameters:
        if one.targets:
            words = found.setdefault(one.element, {})
            words |= _attributes(model, one)
    lines: list[str] = []
    for (kind, name), words in found.items():
        short = name.rpartition("/")[2]
        body = " ".join(f'{word}="{text}"' for word, text in words.items())
        if kind == "body":
            lines.append(f'<body name="{short}"><inertial {body}/></body>')
        else:
            lines.append(f'<{_tag(model, kind, name)} name="{short}" {body}/>')
    return lines


def change_spec(
    spec: Any, model: mujoco.MjModel, parameters: Sequence[FreeParameter]
) -> None:
    """Write the parameters of a fitted model into a specification."""
    for one in parameters:
        if one.targets:
            _change(spec, model, one)


def _attributes(model: mujoco.MjModel, parameter: FreeParameter) -> dict[str, str]:
    """Return the MJCF attributes of a fitted parameter's element."""
    kind, name = parameter.element
    field, index, factor = parameter.targets[0]
    if kind == "body":
        body = model.body(name)
        values = {"pos": body.ipos, "quat": body.iquat, "mass": body.mass,
                  "diaginertia": body.inertia}  # fmt: skip
    elif kind == "actuator":
        values = _servo(model, name)[1]
    elif parameter.attribute == "friction":
        values = {"friction": model.geom(name).friction}
    else:
        values = {parameter.attribute: [getattr(model, field)[index] / factor]}
    return {word: " ".join(f"{x:.10g}" for x in row) for word, row in values.items()}


def _tag(model: mujoco.MjModel, kind: str, name: str) -> str:
    """Return the MJCF tag of an element."""
    if kind == "actuator":
        return _servo(model, name)[0]
    if kind != "tendon":
        return kind
    first = model.wrap_type[model.tendon_adr[model.tendon(name).id]]
    return "fixed" if first == mujoco.mjtWrap.mjWRAP_JOINT.value else "spatial"


def _servo(model: mujoco.MjModel, name: str) -> tuple[str, dict[str, Any]]:
    """Return the MJCF element of an actuator, with the attributes of its gains."""
    actuator = model.actuator(name)
    gain, bias = float(actuator.gainprm[0]), actuator.biasprm
    gear = {"gear": actuator.gear}
    if gain == 1 and not bias.any():
        return "motor", gear
    if bias[1] and gain == -bias[1]:
        return "position", {"kp": [gain], "kv": [-bias[2]], **gear}
    if bias[2] and gain == -bias[2] and not bias[1]:
        return "velocity", {"kv": [gain], **gear}
    return "general", {"gainprm": actuator.gainprm, "biasprm": bias, **gear}


def _change(spec: Any, model: mujoco.MjModel, parameter: FreeParameter) -> None:
    """Write one parameter of the fitted model into a specification."""
    kind, name = parameter.element
    element = getattr(spec, kind)(name)
    if element is None:
        element = getattr(spec, kind)(name.rpartition("/")[2])
    if element is None:
        raise InvalidInputError(f"The specification has no {kind} {name!r}.", name=name)
    what = parameter.attribute
    if kind == "body":
        body = model.body(name)
        element.explicitinertial = True
        element.fullinertia = np.full(6, np.nan)
        element.mass, element.inertia = float(body.mass[0]), body.inertia
        element.ipos, element.iquat = body.ipos, body.iquat
        spec.compiler.inertiafromgeom = 2
    elif kind == "actuator":
        actuator = model.actuator(name)
        element.gainprm[:], element.biasprm[:] = actuator.gainprm, actuator.biasprm
        element.gear[:] = actuator.gear
    elif what == "friction":
        element.friction = model.geom(name).friction
    else:
        field, index, factor = parameter.targets[0]
        value = float(getattr(model, field)[index]) / factor
        current = getattr(element, what)
        if isinstance(current, np.ndarray):  # of a polynomial, the linear coefficient
            current[0] = value
        else:
            setattr(element, what, value)
