"""Physics options of a scene, derived from those of its models.

MuJoCo has one set of options, sizes and visual settings for a world, but each model
file states its own. Values of the scene have precedence over those of the models. If
models disagree, physics options raise an error and visual settings give a warning.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import mujoco
import numpy as np
import torch

from simstate.base.checks import FINITE, Limits
from simstate.base.errors import InvalidInputError, ModelError, unknown_name, warn
from simstate.scene.scene_cfg import SceneCfg

Users = tuple[str, ...]
"""The names of the entities that share a specification."""

Specs = Mapping[Users, mujoco.MjSpec]
"""The distinct specifications of the entities."""

SIZES = (
    "memory",
    "nuserdata",
    "nuser_body",
    "nuser_jnt",
    "nuser_geom",
    "nuser_site",
    "nuser_cam",
    "nuser_tendon",
    "nuser_actuator",
    "nuser_sensor",
    "njmax",
    "nconmax",
    "nstack",
)
"""The attributes of MJCF's <size> that are not counted from the elements."""

FLAGS: dict[str, Any] = {
    "disableflags": mujoco.mjtDisableBit,
    "enableflags": mujoco.mjtEnableBit,
    "disableactuator": None,
}
"""Options that are sets of flags, and MuJoCo's enums of the flags."""

VISUAL = ("global_", "quality", "headlight", "map", "scale", "rgba")
"""The groups of visual settings."""


def settle(parent: mujoco.MjSpec, specs: Specs, scene: SceneCfg) -> None:
    """Give the scene and all its entities the same options, sizes and visual settings.

    The entities need them too, so that MuJoCo finds no conflict when they are attached.
    """
    everyone = (parent, *specs.values())
    _settle_options(everyone, specs, scene)
    _settle_sizes(everyone, specs, scene.sizes)
    _settle_looks(everyone, specs)
    if sum(map(len, specs)) == 1:
        _take_statistics(parent, next(iter(specs.values())))


def _settle_options(
    everyone: Sequence[mujoco.MjSpec], specs: Specs, scene: SceneCfg
) -> None:
    given = dict(scene.options)
    if scene.timestep is not None:
        given["timestep"] = scene.timestep
    if scene.gravity is not None:
        given["gravity"] = scene.gravity
    names = field_names(mujoco.MjSpec().option)
    _check_known("physics option", given, names)
    for name in names:
        if name in given:
            value = option_value(name, given[name])
        elif name in FLAGS:
            value = _agreed_bits(name, specs)
        else:
            value = _agreed_option(name, specs)
        for spec in everyone:
            _set_option(spec, name, value)
        settled = torch.as_tensor(getattr(everyone[0].option, name))
        option_limits(name).check(settled, name)


def _set_option(spec: mujoco.MjSpec, name: str, value: Any) -> None:
    try:
        setattr(spec.option, name, value)
    except (TypeError, ValueError) as error:
        default = option_word(name, getattr(mujoco.MjSpec().option, name))
        raise InvalidInputError(
            f"Physics option {name!r} cannot be {value!r}: it must have the type of "
            f"its default, {default!r}.",
            name=name,
        ) from error


def _agreed_option(name: str, specs: Specs) -> Any:
    """Return the value that the models state for an option, else MuJoCo's default."""
    default = getattr(mujoco.MjSpec().option, name)
    bit = _authored_bits()[name]
    stated = {
        users: option_word(name, copy.copy(getattr(spec.option, name)))
        for users, spec in specs.items()
        if spec.authored.option & bit
        or not np.array_equal(getattr(spec.option, name), default)
    }
    remedy = f"{name}=" if name in ("timestep", "gravity") else f"options={{{name!r}: "
    return option_value(name, _agreed(name, stated, default, remedy))


def _agreed_bits(name: str, specs: Specs) -> int:
    """Return the combined flags of the models; each flag is an option by itself."""
    default = int(getattr(mujoco.MjSpec().option, name))
    clear, raised = ("disable", "enable")
    if name.startswith("disable"):
        clear, raised = raised, clear
    values = {users: int(getattr(spec.option, name)) for users, spec in specs.items()}
    authored = {
        users: int(getattr(spec.authored, name)) | (values[users] ^ default)
        for users, spec in specs.items()
    }
    settled = 0
    for bit in (1 << k for k in range(31)):
        stated = {
            users: raised if values[users] & bit else clear
            for users, bits in authored.items()
            if bits & bit
        }
        usual = raised if default & bit else clear
        what, remedy = _flag_name(name, bit), f"options={{{name!r}: "
        if _agreed(what, stated, usual, remedy) == raised:
            settled |= bit
    return settled


def _flag_name(option: str, bit: int) -> str:
    """Return the MJCF name of a flag bit."""
    number = bit.bit_length() - 1
    if option == "disableactuator":
        return f"actuator group {number}"
    kinds: Any = FLAGS[option]
    for kind in kinds.__members__.values():
        if int(kind.value) == bit:
            return f"the flag {kind.name.split('_', 1)[1].lower()}"
    return f"bit {number} of {option}"


def _settle_sizes(
    everyone: Sequence[mujoco.MjSpec], specs: Specs, given: Mapping[str, int]
) -> None:
    _check_known("size", given, SIZES)
    for name in SIZES:
        default = getattr(mujoco.MjSpec(), name)
        stated = {
            users: int(getattr(spec, name))
            for users, spec in specs.items()
            if getattr(spec, name) != default
        }
        value = given.get(name)
        if value is None:
            value = _agreed(name, stated, default, f"sizes={{{name!r}: ")
        for spec in everyone:
            _set_size(spec, name, value)
    for spec in specs.values():
        spec.nkey = 0  # counted from the keyframes, which are compiled by now


def _set_size(spec: mujoco.MjSpec, name: str, value: Any) -> None:
    try:
        setattr(spec, name, value)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"Size {name!r} must be an integer, got {value!r}.", name=name
        ) from error


def _agreed(what: str, stated: Mapping[Users, Any], default: Any, remedy: str) -> Any:
    """Return the stated value, or the default if none is; raise if they differ."""
    values = list(stated.values())
    if any(not np.array_equal(value, values[0]) for value in values[1:]):
        said = _by_entity(stated)
        end = "…})" if remedy.endswith(": ") else "…)"
        raise ModelError(
            f"The entities' models state different values of {what} ({said}). "
            f"Set it with SceneCfg({remedy}{end}.",
            name=what,
        )
    return values[0] if values else default


def _by_entity(stated: Mapping[Users, Any]) -> str:
    """Return the values of the entities on one line."""
    return ", ".join(
        f"{name}: {value}" for users, value in stated.items() for name in users
    )


def _settle_looks(everyone: Sequence[mujoco.MjSpec], specs: Specs) -> None:
    """Set the visual settings of the models; if they differ, the first entity's."""
    differ: list[str] = []
    for group in VISUAL:
        default: Any = getattr(mujoco.MjSpec().visual, group)
        for name in field_names(default):
            usual = copy.copy(getattr(default, name))
            read = _reader(group, name)
            stated = {
                users: copy.copy(read(spec))
                for users, spec in specs.items()
                if not np.array_equal(read(spec), usual)
            }
            if not stated:
                continue
            first, *others = stated.values()
            if any(not np.array_equal(first, other) for other in others):
                differ.append(f"{group.rstrip('_')}.{name} ({_by_entity(stated)})")
            for spec in everyone:
                setattr(getattr(spec.visual, group), name, first)
    if differ:
        warn(
            "The entities' models state different visual settings; the scene uses "
            f"the first: {'; '.join(differ)}.",
            UserWarning,
        )


def _reader(group: str, name: str) -> Callable[[mujoco.MjSpec], Any]:
    return lambda spec: getattr(getattr(spec.visual, group), name)


def _take_statistics(parent: mujoco.MjSpec, spec: mujoco.MjSpec) -> None:
    """Copy the statistics that a file states, which are valid only for its model."""
    for name in field_names(spec.stat):
        value = copy.copy(getattr(spec.stat, name))
        if not np.isnan(value).any():
            setattr(parent.stat, name, value)


def field_names(part: Any) -> list[str]:
    """Return the names of the values of a part of a specification or model."""
    return [
        name
        for name in dir(part)
        if not name.startswith("_") and not callable(getattr(part, name))
    ]


def _check_known(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    names = list(known)
    for name in given:
        if name not in names:
            raise unknown_name(kind, name, names)


@cache
def _authored_bits() -> dict[str, int]:
    """Return the bit of `spec.authored.option` that is set if a file states an option.

    MuJoCo assigns them in the order of its fields, which is not known in Python: each
    is found by reading a file that states only that option.
    """
    option = mujoco.MjSpec().option
    bits: dict[str, int] = {}
    for name in field_names(option):
        if name in FLAGS:
            continue
        numbers = np.atleast_1d(getattr(option, name))
        text = " ".join(str(option_word(name, number)) for number in numbers)
        spec = mujoco.MjSpec.from_string(f'<mujoco><option {name}="{text}"/></mujoco>')
        bits[name] = int(spec.authored.option)
    return bits


_POSITIVE, _NOT_NEGATIVE = Limits(more_than=0), Limits(at_least=0)


def _enum(members: type) -> Limits:
    values = [int(member) for member in members.__members__.values()]  # type: ignore[attr-defined]
    return Limits(at_least=min(values), at_most=max(values))


def _bits(count: int) -> Limits:
    return Limits(at_least=0, less_than=1 << count)


_LIMITS = {
    "timestep": _POSITIVE,
    "impratio": _POSITIVE,
    "cone": _enum(mujoco.mjtCone),
    "jacobian": _enum(mujoco.mjtJacobian),
    "solver": _enum(mujoco.mjtSolver),
    "integrator": _enum(mujoco.mjtIntegrator),
    "disableflags": _bits(int(mujoco.mjtDisableBit.mjNDISABLE)),
    "enableflags": _bits(int(mujoco.mjtEnableBit.mjNENABLE)),
    **dict.fromkeys(
        (
            "tolerance", "ls_tolerance", "noslip_tolerance", "ccd_tolerance",
            "sleep_tolerance", "iterations", "ls_iterations", "noslip_iterations",
            "ccd_iterations", "sdf_iterations", "sdf_initpoints", "density",
            "viscosity", "disableactuator",
        ),
        _NOT_NEGATIVE,
    ),
}  # fmt: skip


def option_limits(name: str) -> Limits:
    """Return the limits for the values of an option ("cone")."""
    return _LIMITS.get(name, FINITE)


OPTION_WORDS: dict[str, dict[str, int]] = {
    "integrator": {
        "Euler": mujoco.mjtIntegrator.mjINT_EULER.value,
        "RK4": mujoco.mjtIntegrator.mjINT_RK4.value,
        "implicit": mujoco.mjtIntegrator.mjINT_IMPLICIT.value,
        "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST.value,
    },
    "cone": {
        "pyramidal": mujoco.mjtCone.mjCONE_PYRAMIDAL.value,
        "elliptic": mujoco.mjtCone.mjCONE_ELLIPTIC.value,
    },
    "jacobian": {
        "dense": mujoco.mjtJacobian.mjJAC_DENSE.value,
        "sparse": mujoco.mjtJacobian.mjJAC_SPARSE.value,
        "auto": mujoco.mjtJacobian.mjJAC_AUTO.value,
    },
    "solver": {
        "PGS": mujoco.mjtSolver.mjSOL_PGS.value,
        "CG": mujoco.mjtSolver.mjSOL_CG.value,
        "Newton": mujoco.mjtSolver.mjSOL_NEWTON.value,
    },
}
"""The choices of each option, with the values of MuJoCo's enums."""


def option_value(name: str, given: Any) -> Any:
    """Return MuJoCo's value of an option: that of a word, others unchanged."""
    words = OPTION_WORDS.get(name)
    if words is None or not isinstance(given, str):
        return given
    if given not in words:
        raise unknown_name(name, given, words)
    return words[given]


def option_word(name: str, value: Any) -> Any:
    """Return the value of an option as MJCF writes it: a choice as its word."""
    words = {number: word for word, number in OPTION_WORDS.get(name, {}).items()}
    return words.get(int(value), value) if words else value
