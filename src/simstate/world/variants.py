"""Variants: worlds that show other objects than the scene was compiled with.

Meshes and heightfields are common to all worlds; which of them a geom shows may differ
(`geom_dataid`), and so may sizes, masses, places and colours. A variant is the same
scene compiled with another choice; what differs is written into the chosen worlds.
"""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from simstate.base.errors import ModelError, SimStateError, listed
from simstate.base.ids import Selection
from simstate.engine import CONSTANT_INPUTS
from simstate.engine.choices import CHOICES
from simstate.world import Write
from simstate.world.worlds import Worlds

_IGNORED = ("name", "paths", "text", "key_", "bvh_", "_")
"""Prefixes of fields that are never separate by world: texts, keyframes, and trees of
bounding boxes, of which any will do."""


def write_variant(worlds: Worlds, variant: mujoco.MjModel, rows: Selection) -> None:
    """Make worlds those of a variant of the model, all of it or nothing."""
    changes = _changes(worlds, variant)
    writes: list[Write] = []
    for name, value in changes.items():
        try:
            tensor = worlds.parameters.expand(name)
        except SimStateError as error:
            raise ModelError(
                f"The variant differs in {name}, which all worlds have in common: "
                f"compile the scene with the assets of all variants. {error}",
                name=name,
            ) from error
        values = torch.as_tensor(value, device=worlds.device).to(tensor.dtype)
        writes.append(
            Write(f"model/{name}", rows, None, values.reshape(tensor[:1].shape))
        )
    worlds.ledger.write(*writes)


def _changes(worlds: Worlds, variant: mujoco.MjModel) -> dict[str, np.ndarray]:
    """The fields in which a variant differs, without those that follow from them."""
    model = worlds.model
    follows = worlds.engine.all_constants - CONSTANT_INPUTS
    changes: dict[str, np.ndarray] = {}
    structure: list[str] = []
    for name in dir(model):
        if name.startswith(_IGNORED) or not isinstance(
            getattr(model, name), np.ndarray
        ):
            continue
        ours, theirs = _array(model, name), _array(variant, name)
        if ours.shape != theirs.shape:
            structure.append(f"{name} {ours.shape} {theirs.shape}")
        elif np.array_equal(ours, theirs) or name in follows:
            continue
        elif name in CHOICES or ours.dtype.kind == "f":
            changes[name] = theirs
        else:
            structure.append(name)
    if structure:
        hint = ""
        if {"body_simple", "dof_simplenum"} & set(structure):
            hint = " Compile both with EntityCfg(com_varies=True)."
        if any(name.startswith(("mesh_", "hfield_")) for name in structure):
            hint += (
                " Meshes and heightfields are common to all worlds: declare those of "
                "all variants, by the same names, in the <asset> of both models."
            )
        raise ModelError(
            "The variant is not the same scene with other meshes, sizes, masses or "
            f"colours; what differs is structure: {listed(structure, 6)}.{hint} "
            "Nothing was written.",
            name=structure[0].split()[0],
        )
    return changes


def _array(model: mujoco.MjModel, name: str) -> np.ndarray:
    return np.asarray(getattr(model, name))
