"""Attribution of errors: to simstate, or to the library of the engine.

If an engine differs from MuJoCo, the same state is passed to its library directly. If
that gives simstate's results, the difference is due to the library. The report then
states so, with the cause if the contacts differ.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import torch

from simstate.engine.engine_cfg import BareForward
from simstate.simulation import Simulation
from simstate.study.oracles.reference import Reference
from simstate.study.oracles.verdicts import Check, relative_error
from simstate.world.worlds import worlds_of

_GEOMS = {
    int(kind.value): name.removeprefix("mjGEOM_").lower()
    for name, kind in mujoco.mjtGeom.__members__.items()
}
_MAX_ANGLE = 0.05
"""Angle above which two directions count as different [deg]."""


def attributed(sim: Simulation, check: Check) -> Check:
    """Return the check, passed with a note if its error is due to the library."""
    bare = (
        worlds_of(sim).engine.bare_forward() if check.quantity == "joint_acc" else None
    )
    if bare is None or bare.roomier is not None:
        return check
    reference = Reference(sim)
    dofs = list(sim.scene[check.entity].index.dof_adr)
    ours, theirs, mujocos = (
        reference.times_mass_matrix(qacc)[:, dofs]
        for qacc in (sim.data.qacc, bare.qacc, reference.field("qacc"))
    )
    difference = relative_error(ours, theirs)
    if not difference <= check.tolerance:
        return check
    gaps = torch.nan_to_num((theirs - mujocos).abs(), nan=torch.inf).amax(1)
    world = int(gaps.argmax())
    cause = _cause(sim.model, reference.datas[world], bare, world)
    note = (
        f"{bare.library} differs from MuJoCo here by {check.error:.1e}, most in world "
        f"{world}: {cause}."
    )
    return replace(check, error=difference, note=note)


def _cause(model: Any, data: Any, bare: BareForward, world: int) -> str:
    """Return a description of the differences between a world's contacts."""
    mine = bare.contact_world == world
    geoms = bare.contact_geom[mine]
    theirs = Counter(_kinds(model, pair) for pair in geoms)
    mujocos = Counter(_kinds(model, pair) for pair in data.contact.geom)
    for kinds in sorted(theirs | mujocos):
        if theirs[kinds] != mujocos[kinds]:
            return (
                f"contacts of {kinds}: it has {theirs[kinds]}, MuJoCo has "
                f"{mujocos[kinds]}"
            )
    order = _order(geoms, bare.contact_dist[mine])
    own = _order(data.contact.geom, data.contact.dist)
    frames = bare.contact_frame[mine][order]
    cosines = np.sum(frames * data.contact.frame[own].reshape(-1, 3, 3), axis=2)
    degrees = np.rad2deg(np.arccos(np.clip(cosines, -1.0, 1.0)))
    for part, angles in (("normal", degrees[:, 0]), ("tangents", degrees[:, 1])):
        if angles.size and angles.max() > _MAX_ANGLE:
            kinds = _kinds(model, data.contact.geom[own][angles.argmax()])
            return (
                f"the {part} of a contact of {kinds} differ{'s' * (part == 'normal')} "
                f"by {angles.max():.3g}°"
            )
    return "the contacts are the same; it solves for their forces in float32"


def _kinds(model: Any, pair: np.ndarray) -> str:
    """Return the kinds of two geoms: "box and plane"."""
    return " and ".join(sorted(_GEOMS[int(model.geom_type[geom])] for geom in pair))


def _order(geoms: np.ndarray, dist: np.ndarray) -> np.ndarray:
    """Return the order of contacts by their geoms, then by distance."""
    pairs = np.sort(geoms, axis=1)
    return np.lexsort((dist, pairs[:, 1], pairs[:, 0]))
