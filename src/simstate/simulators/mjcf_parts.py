"""The parts of plain MJCF other than bodies: tendons, equalities, pairs."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from simstate.scene.element_names import all_named

Element = ElementTree.Element

SOLIMP = (0.9, 0.95, 0.001, 0.5, 2.0)
"""MuJoCo's default impedance of constraints."""


class ModelNames:
    """A name for every element of a compiled model; those without get `<kind>_<id>`."""

    def __init__(self, model: mujoco.MjModel) -> None:
        obj = mujoco.mjtObj
        self.body = _names(model, obj.mjOBJ_BODY, model.nbody, "body")
        self.joint = _names(model, obj.mjOBJ_JOINT, model.njnt, "joint")
        self.geom = _names(model, obj.mjOBJ_GEOM, model.ngeom, "geom")
        self.site = _names(model, obj.mjOBJ_SITE, model.nsite, "site")
        self.tendon = _names(model, obj.mjOBJ_TENDON, model.ntendon, "tendon")
        self.actuator = _names(model, obj.mjOBJ_ACTUATOR, model.nactuator, "actuator")
        self.equality = _names(model, obj.mjOBJ_EQUALITY, model.neq, "equality")


def _names(
    model: mujoco.MjModel, kind: mujoco.mjtObj, count: int, word: str
) -> list[str]:
    raw = [mujoco.mj_id2name(model, kind.value, i) or "" for i in range(count)]
    return all_named(raw, word)


def numbers(values: ArrayLike) -> str:
    """Format values for MJCF, with all their digits."""
    return " ".join(repr(float(x)) for x in np.atleast_1d(np.asarray(values)))


def set_differing(
    element: Element, name: str, value: ArrayLike, default: ArrayLike
) -> None:
    """Set an attribute unless its value is MuJoCo's default."""
    if np.array_equal(np.asarray(value), np.asarray(default)):
        return
    is_integer = np.asarray(value).dtype.kind in "iu"
    element.set(name, str(int(np.asarray(value))) if is_integer else numbers(value))


def set_powers(
    element: Element, name: str, value: float, higher: np.ndarray, everything: bool
) -> bool:
    """Set a stiffness or damping; return True if nothing of it was left out.

    Only MuJoCo reads higher powers, so they are written only with `everything`.
    """
    has_higher = bool(np.any(higher))
    if has_higher and everything:
        element.set(name, numbers([value, *higher]))
        return True
    set_differing(element, name, value, 0.0)
    return not has_higher


def add_pairs(root: Element, model: mujoco.MjModel, names: ModelNames) -> None:
    """Add the pairs of geoms that have explicit contact parameters."""
    section = root.find("contact")
    if section is None:
        section = ElementTree.SubElement(root, "contact")
    for pair in range(model.npair):
        ElementTree.SubElement(
            section,
            "pair",
            geom1=names.geom[int(model.pair_geom1[pair])],
            geom2=names.geom[int(model.pair_geom2[pair])],
            condim=str(int(model.pair_dim[pair])),
            friction=numbers(model.pair_friction[pair]),
            solref=numbers(model.pair_solref[pair]),
            solreffriction=numbers(model.pair_solreffriction[pair]),
            solimp=numbers(model.pair_solimp[pair]),
            margin=numbers(model.pair_margin[pair]),
            gap=numbers(model.pair_gap[pair]),
        )


def add_tendons(
    root: Element, model: mujoco.MjModel, names: ModelNames, everything: bool = False
) -> list[str]:
    """Add the tendons; return descriptions of what is left out."""
    if not model.ntendon:
        return []
    section = ElementTree.SubElement(root, "tendon")
    left_out: list[str] = []
    for tendon in range(model.ntendon):
        wraps = range(
            model.tendon_adr[tendon],
            model.tendon_adr[tendon] + model.tendon_num[tendon],
        )
        fixed = model.wrap_type[wraps[0]] == mujoco.mjtWrap.mjWRAP_JOINT.value
        element = ElementTree.SubElement(
            section, "fixed" if fixed else "spatial", name=names.tendon[tendon]
        )
        _set_tendon(element, model, tendon)
        for wrap in wraps:
            _add_wrap(element, model, names, wrap)
        for name in ("stiffness", "damping"):
            value = getattr(model, f"tendon_{name}")[tendon]
            higher = getattr(model, f"tendon_{name}poly")[tendon]
            if not set_powers(element, name, value, higher, everything):
                left_out.append(
                    f"higher powers of the {name} of tendon {names.tendon[tendon]!r}"
                )
    return left_out


def _set_tendon(element: Element, model: mujoco.MjModel, tendon: int) -> None:
    for name in ("frictionloss", "armature", "margin"):
        set_differing(element, name, getattr(model, f"tendon_{name}")[tendon], 0.0)
    element.set("springlength", numbers(model.tendon_lengthspring[tendon]))
    if model.tendon_limited[tendon]:
        element.set("limited", "true")
        element.set("range", numbers(model.tendon_range[tendon]))
    if model.tendon_actfrclimited[tendon]:
        element.set("actuatorfrclimited", "true")
        element.set("actuatorfrcrange", numbers(model.tendon_actfrcrange[tendon]))
    for attribute, array, default in (
        ("solreflimit", model.tendon_solref_lim, (0.02, 1.0)),
        ("solimplimit", model.tendon_solimp_lim, SOLIMP),
        ("solreffriction", model.tendon_solref_fri, (0.02, 1.0)),
        ("solimpfriction", model.tendon_solimp_fri, SOLIMP),
    ):
        set_differing(element, attribute, array[tendon], default)


def _add_wrap(
    element: Element, model: mujoco.MjModel, names: ModelNames, wrap: int
) -> None:
    """Add an element of a tendon's path, or a joint of a fixed tendon."""
    kind, target = int(model.wrap_type[wrap]), int(model.wrap_objid[wrap])
    prm = float(model.wrap_prm[wrap])
    wraps = mujoco.mjtWrap
    if kind == wraps.mjWRAP_JOINT.value:
        ElementTree.SubElement(
            element, "joint", joint=names.joint[target], coef=numbers(prm)
        )
    elif kind == wraps.mjWRAP_PULLEY.value:
        ElementTree.SubElement(element, "pulley", divisor=numbers(prm))
    elif kind == wraps.mjWRAP_SITE.value:
        ElementTree.SubElement(element, "site", site=names.site[target])
    else:
        around = ElementTree.SubElement(element, "geom", geom=names.geom[target])
        if prm >= 0:
            around.set("sidesite", names.site[int(prm)])


def add_equalities(
    root: Element, model: mujoco.MjModel, names: ModelNames
) -> list[str]:
    """Add the equality constraints; return descriptions of those left out."""
    if not model.neq:
        return []
    section = ElementTree.SubElement(root, "equality")
    writers: dict[int, Callable[[mujoco.MjModel, ModelNames, int], dict[str, str]]] = {
        mujoco.mjtEq.mjEQ_CONNECT.value: _connect,
        mujoco.mjtEq.mjEQ_WELD.value: _weld,
        mujoco.mjtEq.mjEQ_JOINT.value: _coupling,
        mujoco.mjtEq.mjEQ_TENDON.value: _coupling,
    }
    left_out: list[str] = []
    for equality in range(model.neq):
        kind = int(model.eq_type[equality])
        if kind not in writers:
            left_out.append(f"equality {names.equality[equality]!r}")
            continue
        tag = mujoco.mjtEq(kind).name.removeprefix("mjEQ_").lower()
        element = ElementTree.SubElement(
            section, tag, writers[kind](model, names, equality)
        )
        element.set("name", names.equality[equality])
        if not model.eq_active0[equality]:
            element.set("active", "false")
        set_differing(element, "solref", model.eq_solref[equality], (0.02, 1.0))
        set_differing(element, "solimp", model.eq_solimp[equality], SOLIMP)
    return left_out


def _ends(model: mujoco.MjModel, names: ModelNames, equality: int) -> dict[str, str]:
    """The two bodies or sites of a connect or weld."""
    sites = model.eq_objtype[equality] == mujoco.mjtObj.mjOBJ_SITE.value
    word, table = ("site", names.site) if sites else ("body", names.body)
    return {
        f"{word}1": table[model.eq_obj1id[equality]],
        f"{word}2": table[model.eq_obj2id[equality]],
    }


def _connect(model: mujoco.MjModel, names: ModelNames, equality: int) -> dict[str, str]:
    ends = _ends(model, names, equality)
    if "body1" in ends:
        ends["anchor"] = numbers(model.eq_data[equality, :3])
    return ends


def _weld(model: mujoco.MjModel, names: ModelNames, equality: int) -> dict[str, str]:
    ends = _ends(model, names, equality)
    data = model.eq_data[equality]
    if "body1" in ends:
        ends["anchor"] = numbers(data[:3])
        ends["relpose"] = numbers(data[3:10])
    ends["torquescale"] = numbers(data[10])
    return ends


def _coupling(
    model: mujoco.MjModel, names: ModelNames, equality: int
) -> dict[str, str]:
    joints = model.eq_type[equality] == mujoco.mjtEq.mjEQ_JOINT.value
    word, table = ("joint", names.joint) if joints else ("tendon", names.tendon)
    ends: dict[str, str] = {f"{word}1": table[model.eq_obj1id[equality]]}
    if model.eq_obj2id[equality] >= 0:
        ends[f"{word}2"] = table[model.eq_obj2id[equality]]
    ends["polycoef"] = numbers(model.eq_data[equality, :5])
    return ends
