"""Integers of a model that may differ by world; all others are its structure.

MuJoCo does not check a compiled model: a parent, an address or a count that a world
changes leads to reads out of bounds, which may end the process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.base.ids import Index, Selection, int_list
from simstate.engine.parameter_limits import IsWrong, element_of, limits_of
from simstate.scene.physics_options import option_limits

CHOICES: dict[str, Callable[[mujoco.MjModel], range] | tuple[int, ...] | None] = {
    "geom_dataid": None,  # see limits_of
    "geom_matid": lambda model: range(-1, model.nmat),
    "site_matid": lambda model: range(-1, model.nmat),
    "tendon_matid": lambda model: range(-1, model.nmat),
    "mat_texid": lambda model: range(-1, model.ntex),
    "geom_condim": (1, 3, 4, 6),
    **dict.fromkeys(
        (
            "geom_contype", "geom_conaffinity", "geom_priority", "geom_group",
            "body_contype", "body_conaffinity", "flex_contype", "flex_conaffinity",
            "site_group", "jnt_group", "tendon_group", "actuator_group",
            "jnt_limited", "tendon_limited", "actuator_ctrllimited",
            "actuator_forcelimited", "actuator_actlimited", "jnt_actfrclimited",
            "tendon_actfrclimited", "jnt_actgravcomp", "actuator_actearly",
            "eq_active0", "light_active", "light_castshadow",
        )
    ),
}  # fmt: skip
"""Allowed values by field; None: not limited here."""

_KEPT_UP_TO_DATE = ("body_sameframe", "geom_sameframe", "site_sameframe")
"""Parameters that simstate itself writes where frames differ by world."""


def check_by_world(model: mujoco.MjModel, name: str) -> None:
    """Raise if a parameter is common to all worlds on every engine."""
    if name.startswith(("hfield_", "mesh_", "tex_")):
        raise InvalidInputError(
            f"{name} is common to all worlds. To give them different meshes or "
            "heightfields, compile all of them in one model and select one in each "
            'world: sim.write_variant(…), or sim.expand("geom_dataid").',
            name=name,
        )
    dtype = getattr(getattr(model, name, None), "dtype", np.dtype(float))
    if dtype.kind in "iub" and name not in (*CHOICES, *_KEPT_UP_TO_DATE):
        raise InvalidInputError(
            f"{name} is part of the model's structure, which all worlds share: "
            "compile another model.",
            name=name,
        )


Check: TypeAlias = "Callable[[Tensor, Selection | None, Index | None], None]"
"""`check(values, rows, elements)` raises for invalid values (n, E, …) of a parameter in
some worlds and elements; None: all of them."""


def check_of(model: mujoco.MjModel, name: str) -> Check | None:
    """Return the check of a parameter's values; None if any value is valid."""
    allowed = CHOICES.get(name)
    if allowed is not None:
        known = list(allowed(model) if callable(allowed) else allowed)
        span = f"{known[0]} to {known[-1]}" if callable(allowed) else f"one of {known}"
        return partial(_refuse, model, name, span, partial(_not_among, known))
    if name.startswith("opt."):
        limits = option_limits(name.removeprefix("opt."))
        return partial(
            _refuse, model, name, str(limits), lambda values, _: limits.outside(values)
        )
    found = limits_of(model, name)
    if found is None:
        if np.issubdtype(np.asarray(getattr(model, name)).dtype, np.integer):
            return None
        found = "a number", _is_nan
    return partial(_refuse, model, name, *found)


def _is_nan(values: Tensor, elements: Index | None) -> Tensor:
    return values.isnan()


def _not_among(known: list[int], values: Tensor, elements: Index | None) -> Tensor:
    return ~torch.isin(values, torch.tensor(known, device=values.device))


def _refuse(
    model: mujoco.MjModel,
    name: str,
    allowed: str,
    is_wrong: IsWrong,
    values: Tensor,
    rows: Selection | None,
    elements: Index | None = None,
) -> None:
    """Raise an error that names world and element if some values are wrong."""
    wrong = is_wrong(values, elements) | values.isnan()
    if bool(wrong.any()):
        found = wrong.reshape(len(wrong), -1).any(dim=1)
        if rows is None:
            worlds = int_list(found.nonzero()[:, 0])
        else:
            worlds = int_list(rows.tensor(values.device)[found.expand(rows.count)])
        of = ""
        if values.ndim > 1 and not name.startswith("opt."):
            number = int(wrong.nonzero()[0, 1])
            if elements is not None:
                count = len(getattr(model, name))
                number = int(
                    torch.arange(count, device=values.device)[elements][number]
                )
            of = f" of {element_of(model, name, number)}"
        raise InvalidInputError(
            f"{name}{of} must be {allowed}, got {float(values[wrong][0]):g} in world "
            f"{worlds[0]}.",
            name=name,
            worlds=worlds,
        )
