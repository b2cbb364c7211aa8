"""A scheme, a model's layout and changing masses, as arrays for the core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from simstate.base.errors import InvalidInputError
from simstate.engine.core.batch import Array, CoreBatch
from simstate.engine.field_layout import activation_range, joint_layout
from simstate.engine.tableau import Tableau

ATTITUDES = {"manifold": 0, "high_order": 1, "lie": 2}
"""The attitude modes, as the core numbers them."""


def tableau_arrays(tableau: Tableau, attitude: str) -> dict[str, Any]:
    """Return the weights of a scheme; `a` is padded with zeros to a square."""
    stages = len(tableau.b)
    a = np.zeros((stages, stages))
    for i, row in enumerate(tableau.a):
        a[i, : len(row)] = row
    return {
        "a": a,
        "b": np.array(tableau.b, np.float64),
        "c": np.array(tableau.c, np.float64),
        "control_order": tableau.control_order,
        "first_same_as_last": int(tableau.is_first_same_as_last),
        "attitude": ATTITUDES[attitude],
    }


def optional_row(row: Sequence[float] | None) -> np.ndarray[Any, Any] | None:
    """Return optional weights of a tableau as an array."""
    return None if row is None else np.array(row, np.float64)


def layout_entries(model: mujoco.MjModel) -> dict[str, Any]:
    """Return the columns of scalars and quaternions, and the limits of activations."""
    entries: dict[str, Any] = {}
    for name, pairs in zip(("flat", "quat"), joint_layout(model), strict=True):
        table = np.array(pairs, np.int32).reshape(-1, 2).T
        entries[f"{name}_qpos"], entries[f"{name}_qvel"] = table.copy()
    limits = activation_range(model) or (None, None)
    entries["act_low"], entries["act_high"] = limits
    return entries


@dataclass(frozen=True, eq=False)
class MassArrays:
    """Masses that are part of the state; each of shape (num_worlds, nbody).

    `body_mass`, `body_inertia` and the parameters that depend on them must already be
    expanded in the batch (`expand`, `set_const`); a step writes them.
    """

    rate: NDArray[np.float64]
    """Rate of change of each mass without the loads [kg/s]; an input, whose rows need
    not be contiguous."""
    total_rate: NDArray[np.float64]
    """Rate including the loads' flow at the last evaluation [kg/s]; written."""
    least: NDArray[np.float64]
    """Minimum mass of each body, below which it has run out [kg]; read."""
    empty: NDArray[np.bool_]
    """Bodies that would have run out of mass; written."""
    constants: Sequence[str]
    """Parameters that depend on masses and inertias and differ by world; the others
    that mj_setConst computes keep the model's values."""


def mass_entries(batch: CoreBatch, masses: MassArrays | None) -> dict[str, Any]:
    """Return the arrays of changing masses, and all parameters of mj_setConst."""
    if masses is None:
        return {
            "mass_rate": None,
            "total_mass_rate": None,
            "least_mass": None,
            "empty": None,
            "constants": (),
        }
    if batch.model.nflex:
        raise InvalidInputError(
            "Masses of a model with flexes cannot change in the compiled core: run "
            "without it (SIMSTATE_CORE=0).",
            name="masses",
        )
    own = dict.fromkeys(("body_mass", "body_inertia", *masses.constants))
    constants: list[tuple[str, int, Array | None]] = []
    for name in own:
        rows = batch.expand(name).reshape(batch.nsim, -1).view(np.uint8)
        constants.append((name, rows.shape[1], rows))
    computed: tuple[str, ...] = batch.model._setconst_outputs
    for name in computed:
        if name not in own:
            value: Array = getattr(batch.model, name)
            constants.append((name, value.nbytes, None))
    return {
        "mass_rate": masses.rate,
        "total_mass_rate": masses.total_rate,
        "least_mass": masses.least,
        "empty": masses.empty,
        "constants": tuple(constants),
    }
