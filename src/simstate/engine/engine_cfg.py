"""The engine of a simulation with its options, and a state evaluated by its library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class NativeCfg:
    """MuJoCo's C engine: float64, all cores of the CPU."""

    num_threads: int = 0
    """Threads, the caller's included; 0: by the work, at most one for each CPU."""


@dataclass(frozen=True, kw_only=True)
class WarpCfg:
    """MuJoCo Warp: float32, on CUDA or the CPU."""

    contacts_per_world: int | None = None
    """Room for contacts, on average over the worlds; None: MuJoCo Warp's guess."""
    constraints_per_world: int | None = None
    """Room for constraints in each world; None: MuJoCo Warp's guess."""


EngineCfg: TypeAlias = 'NativeCfg | WarpCfg | Literal["native", "warp"]'
"""An engine by name, or with its options."""


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
