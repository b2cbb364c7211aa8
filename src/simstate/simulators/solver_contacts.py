"""Which geoms MuJoCo lets touch."""

from __future__ import annotations

import mujoco


def may_touch(model: mujoco.MjModel, one: int, two: int) -> bool:
    """Return True if MuJoCo's filters or a contact pair let two geoms collide."""
    bits = mujoco.mjtDisableBit
    off = bits.mjDSBL_CONTACT.value | bits.mjDSBL_CONSTRAINT.value
    if model.opt.disableflags & off:
        return False
    pairs = zip(model.pair_geom1, model.pair_geom2, strict=True)
    if any({int(a), int(b)} == {one, two} for a, b in pairs):
        return True
    bodies = model.geom_bodyid[[one, two]]
    welded = model.body_weldid[bodies]
    if welded[0] == welded[1]:
        return False
    parents = model.body_weldid[model.body_parentid[welded]]
    filtering = not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT
    if (
        filtering
        and 0 not in welded
        and (welded[0] == parents[1] or welded[1] == parents[0])
    ):
        return False
    low, high = sorted(int(b) for b in bodies)
    if (low << 16) + high in {int(s) for s in model.exclude_signature}:
        return False
    types, affinities = model.geom_contype, model.geom_conaffinity
    return bool(types[one] & affinities[two] or types[two] & affinities[one])
