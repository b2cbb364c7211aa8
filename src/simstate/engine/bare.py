"""A state evaluated by an engine's library alone, to separate its errors from ours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from simstate.engine.engine_cfg import EngineCfg


@dataclass(frozen=True)
class BareForward:
    """The dynamics of all worlds at one state, by the library without our code."""

    library: str
    """Name of the library."""
    qacc: Tensor
    """Accelerations; shape (num_envs, nv)."""
    contact_world: np.ndarray
    """The world of each contact; shape (contacts,)."""
    contact_geom: np.ndarray
    """The two geoms of each contact; shape (contacts, 2)."""
    contact_dist: np.ndarray
    """Distance of each contact, negative inside [m]; shape (contacts,)."""
    contact_frame: np.ndarray
    """Normal and two tangents of each contact, world axes; shape (contacts, 3, 3)."""
    roomier: EngineCfg | None
    """The engine with more room, if contacts or constraints were dropped for want of
    it; None: nothing was."""
