"""Tolerances of adaptive schemes, by kind of value: positions, attitudes, rates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import mujoco

from simstate.base.errors import IntegrationError, InvalidInputError, unknown_name
from simstate.engine.core import Failure
from simstate.world.invalid_values import describe_element

Tolerance: TypeAlias = "float | Mapping[str, float] | None"
"""One for all values in their units, or by kind; None: the defaults."""

ABSOLUTE: dict[str, float] = {
    "position": 1e-6,
    "attitude": 1e-7,
    "velocity": 1e-6,
    "rate": 1e-7,
    "joint": 1e-7,
    "joint_rate": 1e-7,
    "activation": 1e-6,
    "mass": 1e-6,
    "process": 1e-6,
}
"""Default absolute tolerances by kind: m, rad, m/s, rad/s, rad or m, rad/s or m/s, the
activation's unit, kg, and the process's unit. A rotation by 1e-7 rad moves a point at
a distance of 10 m by 1e-6 m."""
RELATIVE = 1e-6
"""Default relative tolerance of every kind."""

GROUPS: dict[str, tuple[str, ...]] = {
    "qpos": ("position", "attitude", "joint"),
    "qvel": ("velocity", "rate", "joint_rate"),
    "act": ("activation",),
}
"""The kinds of a field of MuJoCo, whose name denotes all of them."""


def check_tolerance(name: str, given: Tolerance) -> None:
    """Raise unless every tolerance is a finite number above zero."""
    values = given if isinstance(given, Mapping) else {"": given}
    for key, value in values.items():
        if given is not None and not 0 < _as_number(value) < math.inf:
            where = f" for {key}" if key else ""
            raise InvalidInputError(
                f"{name} must be finite and > 0, got {value!r}{where}.", name=name
            )


def check_kinds(given: Tolerance, processes: Iterable[str]) -> None:
    """Raise if a kind is unknown."""
    known = [*ABSOLUTE, *GROUPS, *processes]
    for name in given if isinstance(given, Mapping) else ():
        if name not in known:
            raise unknown_name("kind of value with a tolerance", name, known)


def tolerance(given: Tolerance, kind: str, defaults: Mapping[str, float]) -> float:
    """Return the tolerance of a kind, or of a process by its name."""
    default = defaults.get(kind, defaults["process"])
    if given is None:
        return default
    if not isinstance(given, Mapping):
        return float(given)
    if kind in given:
        return float(given[kind])
    for group, kinds in GROUPS.items():
        if kind in kinds and group in given:
            return float(given[group])
    if kind not in ABSOLUTE and "process" in given:
        return float(given["process"])
    return default


def block_kinds(model: mujoco.MjModel, block: str, width: int) -> list[str]:
    """Return the kinds of the values of a block of the state, by dof."""
    if block == "qpos":
        return _dof_kinds(model, "position", "attitude", "joint")
    if block == "qvel":
        return _dof_kinds(model, "velocity", "rate", "joint_rate")
    return [{"act": "activation"}.get(block, block)] * width


def _dof_kinds(model: mujoco.MjModel, place: str, turn: str, joint: str) -> list[str]:
    kinds: list[str] = []
    for kind in model.jnt_type:
        if kind == mujoco.mjtJoint.mjJNT_FREE.value:
            kinds += [place] * 3 + [turn] * 3
        elif kind == mujoco.mjtJoint.mjJNT_BALL.value:
            kinds += [turn] * 3
        else:
            kinds.append(joint)
    return kinds


def tolerances_of(
    atol: Tolerance, rtol: Tolerance, model: mujoco.MjModel, block: str, num_dofs: int
) -> tuple[list[float], list[float]]:
    """Return the absolute and the relative tolerances of a block, by dof."""
    kinds = block_kinds(model, block, num_dofs)
    relative = dict.fromkeys(ABSOLUTE, RELATIVE)
    return (
        [tolerance(atol, kind, ABSOLUTE) for kind in kinds],
        [tolerance(rtol, kind, relative) for kind in kinds],
    )


def _as_number(value: object) -> float:
    """Return a number of any type as a float; NaN for anything else."""
    if isinstance(value, bool | str):
        return math.nan
    try:
        return float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def tolerance_error(
    model: mujoco.MjModel, scheme: str, worlds: list[int], step: float, first: Failure
) -> IntegrationError:
    """Return the error for worlds that cannot continue, describing the first.

    Args:
        model: the scene's model.
        scheme: the scheme's name.
        worlds: the ids of these worlds.
        step: the step that the first would need [s].
        first: the reason why it could not continue.
    """
    field = "qvel" if first.block == "qpos" else first.block
    where = element = f"{first.block}[{first.element}]"
    if field == "mass":
        body = model.body(first.element).name
        where = f"the mass of body {body or first.element!r}"
    elif field in ("qvel", "act"):
        where = f"{first.block} of {describe_element(model, field, first.element)}"
    message = (
        f"{scheme} cannot meet its tolerance in world {worlds[0]} at t = "
        f"{first.time:.9g} s: it would need a step of {step:.3g} s, because with "
        f"{first.step:.3g} s the error of {where} was {first.error:.3g} times its "
        "tolerance. Discontinuous loads need fixed steps (RK4) or integrator=None; "
        "otherwise raise atol and rtol, or lower min_step. The state from before the "
        "step was restored."
    )
    return IntegrationError(message, worlds, name=element)
