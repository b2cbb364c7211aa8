"""Meanings of the elements of ctrl and act, by actuator type."""

from __future__ import annotations

import mujoco

from simstate.entity.explanation.element import ElementInfo, ElementNames
from simstate.entity.explanation.transmissions import Transmission, transmission
from simstate.scene.actuators import force_law

_DYN, _GAIN, _BIAS = mujoco.mjtDyn, mujoco.mjtGain, mujoco.mjtBias
_FILTERS = (_DYN.mjDYN_FILTER.value, _DYN.mjDYN_FILTEREXACT.value)

_PERSISTS = "expected to fall back to zero: it acts until it is overwritten"


def explain_actuator(names: ElementNames, actuator: int) -> list[ElementInfo]:
    """Return the elements of ctrl and act of one actuator."""
    model = names.model
    entity, label = names.of("actuator", actuator)
    kind = actuator_kind(model, actuator)
    on = transmission(names, actuator)
    common = {"entity": entity, "element": f"{kind} actuator {label} on {on.target}"}
    first, count = (
        int(model.actuator_ctrladr[actuator]),
        int(model.actuator_ctrlnum[actuator]),
    )
    found: list[ElementInfo] = []
    for k in range(count):
        meaning, unit, mistake = _control(model, actuator, kind, on, k)
        found.append(
            ElementInfo(
                field="ctrl",
                index=(first + k,),
                meaning=meaning,
                unit=unit,
                point=on.point,
                axes=on.axes,
                mistake=mistake,
                **common,
            )
        )
    for k in range(int(model.actuator_actnum[actuator])):
        meaning, unit, mistake = _activation(model, actuator, kind, on, k)
        found.append(
            ElementInfo(
                field="act",
                index=(int(model.actuator_actadr[actuator]) + k,),
                meaning=meaning,
                unit=unit,
                point="–",
                axes="–",
                mistake=mistake,
                **common,
            )
        )
    return found


def actuator_kind(model: mujoco.MjModel, actuator: int) -> str:
    """The MJCF element that such an actuator comes from; "general" if from none."""
    dyn, gain, bias = (
        int(values[actuator])
        for values in (
            model.actuator_dyntype,
            model.actuator_gaintype,
            model.actuator_biastype,
        )
    )
    if int(model.actuator_plugin[actuator]) >= 0:
        return "plugin"
    if int(model.actuator_trntype[actuator]) == mujoco.mjtTrn.mjTRN_BODY.value:
        return "adhesion"
    by_gain = {
        _GAIN.mjGAIN_MUSCLE.value: "muscle",
        _GAIN.mjGAIN_DCMOTOR.value: "dcmotor",
        _GAIN.mjGAIN_PID.value: "pid",
        _GAIN.mjGAIN_SO3.value: "orientation",
    }
    if gain in by_gain:
        return by_gain[gain]
    is_direct = dyn == _DYN.mjDYN_NONE.value
    k0, k1, k2 = (float(x) for x in model.actuator_gainprm[actuator][:3])
    affine = bias == _BIAS.mjBIAS_AFFINE.value
    if gain == _GAIN.mjGAIN_AFFINE.value and not affine:
        return "damper" if k0 == k1 == 0 and k2 <= 0 and is_direct else "general"
    law = force_law(model, actuator)
    if law == "motor":
        return "motor" if is_direct else "general"
    if gain != _GAIN.mjGAIN_FIXED.value or not affine:
        return "general"
    if law == "position" and k0 != 0:
        if dyn == _DYN.mjDYN_INTEGRATOR.value:
            return "intvelocity"
        return "position" if is_direct or dyn in _FILTERS else "general"
    if law == "velocity" and k0 != 0 and (is_direct or dyn in _FILTERS):
        return "velocity"
    pressure = int(model.actuator_ctrlspec[actuator]) == _PRESSURE
    return "cylinder" if pressure else "general"


_PRESSURE = mujoco.mjtCtrlInput.mjINPUT_PRESSURE.value


def _control(
    model: mujoco.MjModel, actuator: int, kind: str, on: Transmission, k: int
) -> tuple[str, str, str]:
    """Meaning, unit and usual mistake of the k-th control."""
    name = mujoco.mj_actuatorInputName(model, actuator, k)
    gain = float(model.actuator_gainprm[actuator, 0])
    geared = f", {on.gear}" if on.gear else ""
    length, force = on.length_unit, on.force_unit
    rate = "rad/s" if length == "rad" else f"{length}/s"
    has_inputs = kind in ("pid", "dcmotor")
    if kind == "position" or (has_inputs and name == "pos"):
        servo = f", gain {gain:g}" if kind == "position" else ""
        meaning = f"position that the servo goes to{geared}{servo}"
        return meaning, length, _servo_mistake(model, actuator, on)
    if kind in ("velocity", "intvelocity") or (has_inputs and name == "vel"):
        meaning = f"velocity that the servo goes to{geared}"
        return meaning, rate, "given as a position or as a torque: it is a rate"
    if kind == "motor" or (has_inputs and name == "ff"):
        scale = f"gain {gain:g} times " if kind == "motor" and gain != 1.0 else ""
        meaning = f"force or torque{geared}"
        if scale:
            meaning = f"what {scale}gives the force or torque{geared}"
        return meaning, force, _PERSISTS
    return _other_control(kind, name, on, gain, model, actuator)


def _other_control(
    kind: str,
    name: str | None,
    on: Transmission,
    gain: float,
    model: mujoco.MjModel,
    actuator: int,
) -> tuple[str, str, str]:
    """Return the same of the actuators that are neither servos nor motors."""
    if kind == "damper":
        slope = -float(model.actuator_gainprm[actuator, 2])
        return (
            f"how strongly it damps: the force is −{slope:g}·ctrl·velocity",
            "1",
            "given negative, which feeds energy in instead of taking it out",
        )
    if kind == "cylinder":
        meaning = f"pressure, of which the area {gain:g} m² makes the force"
        return meaning, "Pa", "given as a force"
    if kind == "muscle":
        return "excitation from 0 to 1", "1", "taken for a force: a muscle only pulls"
    if kind == "adhesion":
        meaning = f"adhesion: the contacts pull with {gain:g}·ctrl in all"
        return meaning, "1", "expected to act without a contact; or given negative"
    if kind == "dcmotor":
        return "voltage at the terminals", "V", "taken for a torque: current follows"
    if kind == "orientation":
        is_quat = int(model.actuator_ctrlnum[actuator]) == 4
        of = "unit quaternion (w, x, y, z)" if is_quat else "rotation vector"
        meaning = f"{name}: component of the {of} that the servo goes to"
        if is_quat:
            return meaning, "1", "given as (x, y, z, w), as a rotation vector or zero"
        return meaning, "rad", "given as a quaternion or as Euler angles"
    if kind == "plugin":
        return "what the plugin takes it for", "plugin's own", _PERSISTS
    return (
        f"input of a general actuator, whose force is gain·(act or ctrl) + bias on "
        f"{on.target}",
        "actuator's own",
        "taken for a force or a target without looking at gain, bias and dynamics",
    )


def _servo_mistake(model: mujoco.MjModel, actuator: int, on: Transmission) -> str:
    if on.length_unit == "0":
        return "expected to hold a place: this transmission has no length"
    column = int(model.actuator_ctrladr[actuator])
    mistakes = ["given in degrees"] if on.length_unit == "rad" else []
    if model.actuator_ctrllimited[column]:
        low, high = (float(x) for x in model.actuator_ctrlrange[column])
        mistakes.append(
            f"written beyond {low:g} … {high:g}, to which MuJoCo clamps it silently"
        )
    return "; or ".join(mistakes) or "taken for a force: it is a target"


def _activation(
    model: mujoco.MjModel, actuator: int, kind: str, on: Transmission, k: int
) -> tuple[str, str, str]:
    """Meaning, unit and usual mistake of the k-th activation."""
    dyn = int(model.actuator_dyntype[actuator])
    forgotten = "left out of a saved state: without it the motion continues differently"
    if kind == "intvelocity":
        meaning = "position target: the integral of the control"
        return meaning, on.length_unit, "not set when the pose is: the servo then jumps"
    if kind == "muscle":
        return "muscle activation from 0 to 1, which follows ctrl", "1", forgotten
    if dyn in _FILTERS:
        unit = _control(model, actuator, kind, on, 0)[1]
        constant = float(model.actuator_dynprm[actuator, 0])
        meaning = f"the control, filtered with a time constant of {constant:g} s"
        return meaning, unit, forgotten
    if dyn == _DYN.mjDYN_INTEGRATOR.value:
        return "the integral of the control", "control's unit · s", forgotten
    if kind == "pid":
        return f"state {k} of the controller (integral)", "controller's own", forgotten
    if kind == "dcmotor":
        return f"state {k} of the motor's electrics", "motor's own", forgotten
    return f"state {k} of the actuator's own dynamics", "actuator's own", forgotten
