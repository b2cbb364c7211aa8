"""Contacts under adaptive schemes: geoms that can touch, and the time step for them."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from simstate.base.errors import warn
from simstate.step.schemes.schemes import Adaptive

DEFAULT_CONTACT_TIMESTEP = 0.002
"""Maximum of the default contact time step [s]: MuJoCo's default time step, a tenth of
the default time constant of `solref`."""
_MANY = 5
_OFF = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT.value
_NO_CONTACTS = _OFF | mujoco.mjtDisableBit.mjDSBL_CONTACT.value
_NO_LIMITS = _OFF | mujoco.mjtDisableBit.mjDSBL_LIMIT.value
_FLAT = (mujoco.mjtGeom.mjGEOM_PLANE.value, mujoco.mjtGeom.mjGEOM_HFIELD.value)


def can_touch(model: mujoco.MjModel) -> bool:
    """Return True if a contact or a limit can become active within a step."""
    if model.nflex and not model.opt.disableflags & _NO_CONTACTS:
        return True
    if len(touching_geoms(model)):
        return True
    limited = bool(model.jnt_limited.any() or model.tendon_limited.any())
    return limited and not model.opt.disableflags & _NO_LIMITS


def touching_geoms(model: mujoco.MjModel) -> NDArray[np.int32]:
    """Return the pairs of geoms that MuJoCo tests for contacts; shape (n, 2).

    Pairs of geoms that do not move relative to each other are left out.
    """
    if model.opt.disableflags & _NO_CONTACTS:
        return np.zeros((0, 2), np.int32)
    moving = np.flatnonzero(model.body_weldid[model.geom_bodyid] != 0)
    first = np.repeat(moving, model.ngeom)
    second = np.tile(np.arange(model.ngeom), len(moving))
    wanted = _by_mask(model, first, second) & ~_is_filtered(model, first, second)
    pairs = np.stack([first[wanted], second[wanted]], axis=1)
    explicit = np.stack([model.pair_geom1, model.pair_geom2], axis=1)
    both = np.sort(np.concatenate([pairs, explicit]), axis=1).astype(np.int32)
    found = np.unique(both, axis=0)
    return found[_can_move(model, found)]


def _by_mask(model: mujoco.MjModel, a: NDArray[np.int64], b: NDArray[np.int64]):
    kind, affinity = model.geom_contype, model.geom_conaffinity
    return (kind[a] & affinity[b] | kind[b] & affinity[a]) != 0


def _is_filtered(model: mujoco.MjModel, a: NDArray[np.int64], b: NDArray[np.int64]):
    """Return the pairs that MuJoCo excludes: a body and its parent, and <exclude>."""
    body_a, body_b = model.geom_bodyid[a], model.geom_bodyid[b]
    weld = model.body_weldid
    parent = weld[model.body_parentid[weld]]
    weld_a, weld_b = weld[body_a], weld[body_b]
    related = (weld_a == parent[weld_b]) | (weld_b == parent[weld_a])
    filtered = related & (weld_a != 0) & (weld_b != 0)
    if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT.value:
        filtered = np.zeros_like(filtered)
    low, high = np.minimum(body_a, body_b), np.maximum(body_a, body_b)
    return filtered | np.isin((low << 16) + high, model.exclude_signature)


def _can_move(model: mujoco.MjModel, pairs: NDArray[np.int32]) -> NDArray[np.bool_]:
    weld = model.body_weldid[model.geom_bodyid[pairs]]
    is_flat = np.isin(model.geom_type[pairs], _FLAT).all(axis=1)
    return (weld[:, 0] != weld[:, 1]) & ~is_flat


def contact_timestep(
    scheme: object, model: mujoco.MjModel, quiet: bool = False
) -> float | None:
    """Return the time step that limits the stiffness of contacts [s].

    None if the scheme has fixed steps, whose length then limits it. Unless `quiet`,
    warn if the model's time step is much longer, so that contacts are stiffer than with
    MuJoCo's own stepper.
    """
    if not isinstance(scheme, Adaptive):
        return None
    timestep, chosen = float(model.opt.timestep), scheme.contact_timestep
    if chosen is None:
        chosen = min(timestep, DEFAULT_CONTACT_TIMESTEP)
    if not quiet and timestep > _MANY * chosen and can_touch(model):
        warn(
            f"{scheme.name} is adaptive, so the stiffness of contacts is limited by "
            f"contact_timestep={chosen:g} s instead of timestep={timestep:g} s: time "
            f"constants of solref are at least {2 * chosen:g} s, with MuJoCo's own "
            f"stepper {2 * timestep:g} s. Set {scheme.name}(contact_timestep=…), or "
            "lower the model's timestep."
        )
    return chosen
