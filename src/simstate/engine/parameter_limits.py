"""Limits of parameters: values that MuJoCo's compiler rejects, or without meaning.

MuJoCo checks masses, inertias, sizes, ranges and ids when it compiles a model, but not
afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.ids import Index
from simstate.scene.element_names import OBJECTS_OF_FIELDS

IsWrong: TypeAlias = "Callable[[Tensor, Index | None], Tensor]"
"""`is_wrong(values, elements)` returns a mask of wrong values (n, E, …); elements None:
all of them."""

_NOT_NEGATIVE = (
    "body_inertia", "dof_armature", "dof_frictionloss", "geom_friction",
    "pair_friction", "tendon_armature", "tendon_frictionloss",
)  # fmt: skip
_LIMITED = {
    "jnt_range": "jnt_limited",
    "jnt_actfrcrange": "jnt_actfrclimited",
    "tendon_range": "tendon_limited",
    "tendon_actfrcrange": "tendon_actfrclimited",
    "actuator_ctrlrange": "actuator_ctrllimited",
    "actuator_forcerange": "actuator_forcelimited",
    "actuator_actrange": "actuator_actlimited",
}
"""Ranges, and the fields that state whether they are used."""
_SIZES = {
    mujoco.mjtGeom.mjGEOM_PLANE: (2,),
    mujoco.mjtGeom.mjGEOM_SPHERE: (0,),
    mujoco.mjtGeom.mjGEOM_CAPSULE: (0, 1),
    mujoco.mjtGeom.mjGEOM_CYLINDER: (0, 1),
    mujoco.mjtGeom.mjGEOM_ELLIPSOID: (0, 1, 2),
    mujoco.mjtGeom.mjGEOM_BOX: (0, 1, 2),
}
"""The sizes of each type of geom or site that must be positive."""
_MESHES = (mujoco.mjtGeom.mjGEOM_MESH.value, mujoco.mjtGeom.mjGEOM_SDF.value)
_LEAST = 1e-15
"""MuJoCo's mjMINVAL, which masses and sizes must exceed."""


def limits_of(model: mujoco.MjModel, name: str) -> tuple[str, IsWrong] | None:
    """Return what a parameter must be, as text, and a function that finds wrong values.

    A value that the model itself has remains allowed. None: any value is valid.
    """
    if name in _LIMITED:
        used = np.asarray(getattr(model, _LIMITED[name])).astype(bool)
        low, high = np.asarray(getattr(model, name)).T
        return "a range with the smaller value first", _reversed(used & (low < high))
    if name == "geom_dataid":
        return "the id of an asset of the geom's type", _no_asset(model)
    if name == "cam_fovy":
        return "an angle > 0 and < 180 [deg]", _no_field_of_view
    if name == "body_inertia":
        return (
            "three values ≥ 0, each at most the sum of the others",
            _no_inertia(np.minimum(model.body_inertia, 0.0)),
        )
    least = _least(model, name)
    if least is None:
        return None
    text = "≥ 0" if name in _NOT_NEGATIVE else "> 0 where the model needs it, and ≥ 0"
    return text, _below(least)


def _least(model: mujoco.MjModel, name: str) -> np.ndarray | None:
    """Return the smallest allowed values; (E, …)."""
    if name in _NOT_NEGATIVE:
        return np.minimum(getattr(model, name), 0.0)
    if name == "body_mass":
        has_welded = np.zeros(model.nbody, bool)  # children may have the mass
        for body in range(1, model.nbody):
            if not model.body_dofnum[body]:
                has_welded[model.body_parentid[body]] = True
        needed = (model.body_dofnum > 0) & ~has_welded
        return np.minimum(np.where(needed, _LEAST, 0.0), model.body_mass)
    if name in ("geom_size", "site_size"):
        types = getattr(model, name.replace("size", "type"))
        least = np.full((len(types), 3), -np.inf)
        for row, kind in zip(least, types, strict=True):
            row[list(_SIZES.get(mujoco.mjtGeom(int(kind)), ()))] = _LEAST
        return np.minimum(least, getattr(model, name))
    return None


def _no_asset(model: mujoco.MjModel) -> IsWrong:
    types = np.asarray(model.geom_type)
    is_field = types == mujoco.mjtGeom.mjGEOM_HFIELD.value
    # Other geoms may name a mesh that they were fitted to.
    least = np.where(is_field | np.isin(types, _MESHES), 0, -1)
    below = _below(least)
    above = _below(1 - np.where(is_field, model.nhfield, model.nmesh))
    return lambda values, elements: below(values, elements) | above(-values, elements)


def _no_field_of_view(values: Tensor, elements: Index | None) -> Tensor:
    return (values <= 0.0) | (values >= 180.0)


def _below(least: np.ndarray) -> IsWrong:
    bound = torch.as_tensor(least, dtype=torch.float64)

    def is_wrong(values: Tensor, elements: Index | None) -> Tensor:
        of = bound if elements is None else bound[_on_host(elements)]
        return values < of.to(values)

    return is_wrong


def _no_inertia(least: np.ndarray) -> IsWrong:
    below = _below(least)

    def is_wrong(values: Tensor, elements: Index | None) -> Tensor:
        others = values.sum(-1, keepdim=True) - values
        slack = 1e-6 * values.abs().amax(-1, keepdim=True)
        return below(values, elements) | (values > others + slack)

    return is_wrong


def _reversed(used: np.ndarray) -> IsWrong:
    mask = torch.as_tensor(used)

    def is_wrong(values: Tensor, elements: Index | None) -> Tensor:
        of = mask if elements is None else mask[_on_host(elements)]
        wrong = (values[..., 0] >= values[..., 1]) & of.to(values.device)
        return wrong[..., None].expand_as(values)

    return is_wrong


def _on_host(elements: Index) -> Index:
    return elements.cpu() if isinstance(elements, Tensor) else elements


def element_of(model: mujoco.MjModel, name: str, number: int) -> str:
    """Return the element of a parameter as text: "geom 'foot'", "joint 'knee'"."""
    prefix = name.partition("_")[0]
    if prefix == "dof":
        prefix, number = "jnt", int(model.dof_jntid[number])
    kind = OBJECTS_OF_FIELDS.get(prefix)
    if kind is None:
        return f"element {number}"
    found = mujoco.mj_id2name(model, kind.value, number)
    nouns = {"jnt": "joint", "pair": "contact pair", "cam": "camera"}
    noun = nouns.get(prefix, prefix)
    return f"{noun} {found!r}" if found else f"{noun} {number}"
