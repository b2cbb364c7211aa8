"""Configuration of engines, and a state evaluated by an engine's library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class NativeCfg:
    """MuJoCo's C engine: float64, all cores of the CPU."""

    num_threads: int = 0
    """Number of threads, including the caller's; 0: chosen by the work per step."""


@dataclass(frozen=True, kw_only=True)
class WarpCfg:
    """MuJoCo Warp: float32, on CUDA or the CPU."""

    contacts_per_world: int | None = None
    """Capacity for contacts, averaged over the worlds; None: MuJoCo Warp's estimate."""
    constraints_per_world: int | None = None
    """Capacity for constraints in each world; None: MuJoCo Warp's estimate."""


EngineCfg: TypeAlias = 'NativeCfg | WarpCfg | Literal["native", "warp"]'
"""An engine by name, or with its options."""


@dataclass(frozen=True)
class BareForward:
    """The dynamics of all worlds at one state, computed by the library only."""

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
    """The engine with a larger capacity, if contacts or constraints were dropped; None:
    nothing was dropped."""
