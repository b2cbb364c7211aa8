"""Free parameters: the text of `--free`, resolved to elements of a model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import mujoco
import numpy as np
from numpy.typing import NDArray

from simstate.base.errors import InvalidInputError, listed, unknown_name
from simstate.scene.element_names import OBJECTS
from simstate.simulation import Simulation
from simstate.study.identification.body_inertia import (
    SHAPE,
    principal_inertia,
    shape_of,
)

Array = NDArray[np.float64]

Target: TypeAlias = "tuple[str, tuple[int, ...], float]"
"""Field of MjModel, index of a value, and factor on the parameter written there."""
Kind: TypeAlias = 'Literal["field", "inertia", "delay", "bias"]'

DELAY = "delay"
MAX_DELAY = 0.1
"""Default upper bound of a delay [s]."""
_PLURALS = {"bodies": "body"}
_ITEM = re.compile(
    r"(?P<what>[a-z_]+)(?:\.(?P<axis>[a-z\d]+))?(?:\s+(?P<low>[-+.\de]+)\s*\.\.\s*(?P<high>[-+.\de]+))?"
)
"""An item of a clause: "damping", "com.z", or with bounds "damping 0.1 .. 2"."""
_COMPONENTS = {"com": ("x", "y", "z"), "inertia": SHAPE}
"""Names of the components of attributes that have several."""
_NOT_NEGATIVE = ("mass", "armature", "frictionloss", "friction")
"""Attributes for which MuJoCo does not allow negative values."""
EXAMPLE = "robot joints: damping, armature; robot body base: mass 1 .. 9, com; delay"


@dataclass(frozen=True)
class FreeParameter:
    """A parameter to be identified: its targets in the model, start and bounds."""

    name: str
    """Such as "joint hip damping"; the entity is included if there are several."""
    kind: Kind
    unit: str
    nominal: float
    """Value in the model."""
    low: float
    high: float
    """Bounds."""
    targets: tuple[Target, ...] = ()
    """Model values that depend on the parameter; none for a delay or a bias."""
    element: tuple[str, str] = ("", "")
    """Kind and full name of the element: ("joint", "robot/hip")."""
    attribute: str = ""
    """Name in `--free`: "damping", "com", …"""
    component: int = 0
    """Index within the attribute: 0 … 2 for a centre of mass, 0 … 5 for an inertia."""

    @property
    def item(self) -> str:
        """The item of `--free` that names it: "damping", "com.z"."""
        parts = _COMPONENTS.get(self.attribute)
        return f"{self.attribute}.{parts[self.component]}" if parts else self.attribute

    @property
    def start(self) -> float:
        """Value at which a fit starts: the nominal one, moved off the bounds."""
        margin = 1e-3 * (self.high - self.low)
        return min(max(self.nominal, self.low + margin), self.high - margin)

    @property
    def scale(self) -> float:
        """Typical size of a change: the unit of differences and of uncertainties."""
        if self.kind == "field" and self.attribute != "com" and self.nominal > 0:
            return self.nominal
        return 0.1 * (self.high - self.low)

    def interval(self, value: float, width: float) -> tuple[float, float]:
        """Return a confidence interval from its half-width in the parameter's unit.

        Moments of inertia are linear in squares of lengths, so the interval of the
        logarithm of a length is symmetric in the square.
        """
        if self.kind != "inertia" or not SHAPE[self.component].startswith("d"):
            return float(value - width), float(value + width)
        least = max(1 - 2 * width, math.exp(2 * (self.low - value)))
        return value + math.log(least) / 2, value + math.log(1 + 2 * width) / 2


def parse_free(sim: Simulation, text: str) -> list[FreeParameter]:
    """Return the free parameters that a text such as `EXAMPLE` names.

    Clauses are separated by ";": "delay", or "[ENTITY] KIND [NAMES]: ITEMS" with
    regular expressions as names (none: all elements) and items such as "damping" or
    "com.z", optionally with bounds, "damping 0 .. 2".
    """
    found: list[FreeParameter] = []
    for clause in filter(None, (part.strip() for part in text.split(";"))):
        head, colon, items = clause.rpartition(":")
        if not colon:
            found.append(_delay(clause))
            continue
        entity, kind, patterns = _selector(sim, head.split())
        for what, axis, low, high in _items(items):
            if what not in ATTRIBUTES[kind]:
                raise unknown_name(f"parameter of a {kind}", what, ATTRIBUTES[kind])
            for element in _elements(sim, entity, kind, patterns, what):
                parts = list(_parameters(sim, entity, kind, element, what, low, high))
                found += [one for one in parts if _is_chosen(one, len(parts), axis)]
    if not found:
        raise InvalidInputError(
            f"{text!r} names no free parameter: write for example {EXAMPLE!r}.",
            name="free",
        )
    names = [parameter.name for parameter in found]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InvalidInputError(
            f"{twice[0]!r} is named twice: name it once.", name=twice[0]
        )
    return found


def _delay(clause: str) -> FreeParameter:
    items = list(_items(clause))
    what, _, low, high = items[0]
    if what != DELAY or len(items) > 1:
        raise InvalidInputError(
            f"{clause!r} is not a clause of free parameters: write 'delay' or "
            f"'ENTITY KIND NAMES: ITEMS', such as {EXAMPLE!r}.",
            name=clause,
        )
    least, most = (0.0, MAX_DELAY) if low is None or high is None else (low, high)
    _check_bounds(DELAY, least, most)
    nominal = min(max(0.0, least), most)
    return FreeParameter(DELAY, "delay", "s", nominal, least, most, attribute=DELAY)


def _is_chosen(parameter: FreeParameter, parts: int, axis: str) -> bool:
    """Return True if a component was named, or none was, which selects all."""
    if axis and parts == 1:
        raise InvalidInputError(
            f"{parameter.name} has only one component: omit '.{axis}'.",
            name=parameter.name,
        )
    known = _COMPONENTS.get(parameter.attribute, ())
    if axis and axis not in known:
        raise unknown_name(f"component of {parameter.attribute}", axis, known)
    return not axis or known[parameter.component] == axis


def _items(text: str) -> Iterator[tuple[str, str, float | None, float | None]]:
    """Yield name, axis and bounds of each item."""
    for item in text.split(","):
        found = _ITEM.fullmatch(item.strip())
        try:
            if found is None:
                raise ValueError
            low, high = found["low"], found["high"]
            low, high = (None, None) if low is None else (float(low), float(high))
            yield found["what"], found["axis"] or "", low, high
        except ValueError:
            raise InvalidInputError(
                f"{item.strip()!r} is not a free parameter: write a name, optionally "
                "with bounds, such as 'damping' or 'damping 0.1 .. 2'.",
                name=item.strip(),
            ) from None


def _selector(sim: Simulation, words: Sequence[str]) -> tuple[str, str, list[str]]:
    """Return entity, kind of element and patterns of names."""
    rest = list(words)
    entity = rest.pop(0) if rest and rest[0] in sim.scene else ""
    if not entity and len(sim.scene) == 1:
        (entity,) = sim.scene
    word = rest.pop(0) if rest else ""
    kind = _PLURALS.get(word, word.removesuffix("s"))
    if not entity:
        raise unknown_name("entity of the scene", word, sim.scene)
    if kind not in ATTRIBUTES:
        raise unknown_name(
            f"entity ({listed(sim.scene)}) or kind of element", word, ATTRIBUTES
        )
    return entity, kind, rest or [".*"]


def _elements(
    sim: Simulation, entity: str, kind: str, patterns: Sequence[str], what: str
) -> list[int]:
    """Return the ids of an entity's elements whose names match."""
    model, prefix = sim.model, sim.scene[entity].index.prefix
    known: dict[str, int] = {}
    for k, name in enumerate(element_names(model, kind)):
        free = kind == "joint" and model.jnt_type[k] == mujoco.mjtJoint.mjJNT_FREE.value
        is_world = kind == "body" and k == 0
        if name and name.startswith(prefix) and not free and not is_world:
            known[name.removeprefix(prefix)] = k
    found: list[int] = []
    for pattern in patterns:
        try:
            mine = [k for name, k in known.items() if re.fullmatch(pattern, name)]
        except re.error as error:
            raise InvalidInputError(
                f"{pattern!r} is not a regular expression: {error}.", name=pattern
            ) from error
        if not mine:
            raise unknown_name(f"{kind} of {entity!r} with {what}", pattern, known)
        found += [k for k in mine if k not in found]
    return found


def element_names(model: mujoco.MjModel, kind: str) -> list[str]:
    """Return the full names of all elements of a kind; "" for unnamed ones."""
    count = {"body": model.nbody, "joint": model.njnt, "geom": model.ngeom,
             "actuator": model.nactuator, "tendon": model.ntendon}[kind]  # fmt: skip
    ids = range(count)
    return [mujoco.mj_id2name(model, OBJECTS[kind].value, k) or "" for k in ids]


def _parameters(
    sim: Simulation,
    entity: str,
    kind: str,
    element: int,
    what: str,
    low: float | None,
    high: float | None,
) -> Iterator[FreeParameter]:
    model = sim.model
    full = mujoco.mj_id2name(model, OBJECTS[kind].value, element) or ""
    short = full.removeprefix(sim.scene[entity].index.prefix)
    label = f"{kind} {short} {what}"
    label = label if len(sim.scene) == 1 else f"{entity} {label}"
    targets = _targets(model, kind, element, what)
    for k, mine in enumerate(targets):
        form: Kind = "field" if mine else "bias"
        nominal = 0.0
        if what == "inertia":
            form, nominal = "inertia", float(shape_of(model, element)[k])
        elif mine:
            field, index, factor = mine[0]
            nominal = float(getattr(model, field)[index]) / (factor or 1.0)
        name = label if len(targets) == 1 else f"{label} {_COMPONENTS[what][k]}"
        least, most = _bounds(model, kind, element, what, nominal, k)
        least, most = least if low is None else low, most if high is None else high
        _check_bounds(name, least, most)
        if what in _NOT_NEGATIVE and least < 0:
            raise InvalidInputError(
                f"{name} cannot be negative, got {least:g} .. {most:g}.", name=name
            )
        yield FreeParameter(
            name, form, _unit(model, kind, element, name.rpartition(" ")[2]),
            nominal, least, most, tuple(mine), (kind, full), what, k,
        )  # fmt: skip


def _check_bounds(name: str, low: float, high: float) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInputError(
            f"The bounds of {name} must be finite and ascending, got {low:g} .. "
            f"{high:g}.",
            name=name,
        )


def model_writes(
    model: mujoco.MjModel,
    parameters: Sequence[tuple[FreeParameter, Sequence[Target]]],
    values: Array,
) -> Iterator[tuple[str, tuple[int, ...], Array]]:
    """Yield field, index and values (n, …) of all model values of parameters.

    Args:
        model: the model, which provides the other components of a body's inertia.
        parameters: parameters with their targets in the model.
        values: values of the parameters; shape (n, parameters).
    """
    masses: dict[int, Array] = {}
    shapes: dict[int, Array] = {}
    for (one, targets), column in zip(parameters, values.T, strict=True):
        if one.kind == "inertia":
            body = targets[0][1][0]
            if body not in shapes:
                shapes[body] = np.tile(shape_of(model, body), (len(values), 1))
            shapes[body][:, one.component] = column
            continue
        for field, index, factor in targets:
            if field == "body_mass":
                masses[index[0]] = factor * column
            yield field, index, factor * column
    for body, shape in shapes.items():
        fixed = np.full(len(values), model.body_mass[body])
        moments, axes = principal_inertia(shape, masses.get(body, fixed))
        yield "body_inertia", (body,), moments
        yield "body_iquat", (body,), axes


ATTRIBUTES = {
    "joint": ("damping", "armature", "frictionloss", "stiffness", "bias"),
    "body": ("mass", "com", "inertia"),
    "geom": ("friction",),
    "actuator": ("kp", "kv", "gear"),
    "tendon": ("damping", "frictionloss", "stiffness"),
}
"""Parameters that can be free, by kind of element. `bias` is the offset of a joint
encoder; `inertia` is the shape of a body (see `body_inertia`), whose mass then scales
the moments; `kp` and `kv` are the gains of position and velocity servos."""


def _targets(
    model: mujoco.MjModel, kind: str, element: int, what: str
) -> list[list[Target]]:
    """Return the model values of each component of a parameter."""
    if kind == "joint":
        if what == "bias":
            return [[]]
        if what == "stiffness":
            return [[("jnt_stiffness", (element,), 1.0)]]
        dofs = np.flatnonzero(model.dof_jntid == element)
        return [[(f"dof_{what}", (int(dof),), 1.0) for dof in dofs]]
    if kind == "body":
        if what == "mass":
            return [[("body_mass", (element,), 1.0)]]
        if what == "inertia":
            both = ("body_inertia", "body_iquat")
            return [[(field, (element,), 1.0) for field in both] for _ in SHAPE]
        return [[("body_ipos", (element, k), 1.0)] for k in range(3)]
    if kind == "geom":
        return [[("geom_friction", (element, 0), 1.0)]]
    if kind == "tendon":
        return [[(f"tendon_{what}", (element,), 1.0)]]
    if what == "gear":
        return [[("actuator_gear", (int(model.actuator_outadr[element]), 0), 1.0)]]
    bias = model.actuator_biasprm[element]
    term = 1 if what == "kp" else 2
    found: list[Target] = [("actuator_biasprm", (element, term), -1.0)]
    if bias[term] == 0:
        name = model.actuator(element).name
        raise InvalidInputError(
            f"Actuator {name!r} has no {what}, as it is not a servo: use gear instead.",
            name=name,
        )
    # The gain of a position servo is kp, even if kv has the same value.
    has_gain = what == "kp" or bias[1] == 0
    if has_gain and model.actuator_gainprm[element, 0] == -bias[term]:
        found.append(("actuator_gainprm", (element, 0), 1.0))
    return [found]


def _bounds(
    model: mujoco.MjModel,
    kind: str,
    element: int,
    what: str,
    nominal: float,
    component: int,
) -> tuple[float, float]:
    """Return bounds of plausible values, derived from the masses of the model."""
    if what == "bias":
        return -0.5, 0.5
    if kind == "body":
        mass = max(float(model.body_mass[element]), 1e-9)
        size = math.sqrt(float(model.body_inertia[element].max()) / mass)
        if what == "com":
            reach = 2.0 * size + 0.02
            return nominal - reach, nominal + reach
        if what == "inertia":  # lengths by factors of three, or up to the body's size
            reach = math.log(10) / 2 if component < 3 else size
            return nominal - reach, nominal + reach
        return 0.1 * nominal, 10.0 * nominal
    if kind in ("geom", "actuator"):
        ends = sorted((0.05 * nominal, 20.0 * nominal))
        return (ends[0], ends[1]) if nominal else (0.0, 10.0)
    dof = int(np.flatnonzero(model.dof_jntid == element)[0]) if kind == "joint" else 0
    inertia = float(model.dof_M0[dof]) if kind == "joint" else 1.0
    typical = {"armature": 1.0, "damping": 10.0, "frictionloss": 20.0}.get(what, 100.0)
    return 0.0, max(10.0 * nominal, typical * inertia)


def _unit(model: mujoco.MjModel, kind: str, element: int, what: str) -> str:
    fixed = {"mass": "kg", "friction": "1", "d1": "1", "d2": "1", "d3": "1",
             "s12": "m", "s23": "m", "s13": "m", "x": "m", "y": "m", "z": "m",
             "kp": "1", "kv": "1", "gear": "1"}  # fmt: skip
    if what in fixed:
        return fixed[what]
    slide = mujoco.mjtJoint.mjJNT_SLIDE.value
    is_slide = kind == "tendon" or model.jnt_type[element] == slide
    turning = {"damping": "N·m·s/rad", "armature": "kg·m²", "frictionloss": "N·m",
               "stiffness": "N·m/rad", "bias": "rad"}  # fmt: skip
    sliding = {"damping": "N·s/m", "armature": "kg", "frictionloss": "N",
               "stiffness": "N/m", "bias": "m"}  # fmt: skip
    return (sliding if is_slide else turning)[what]
