"""Which engine runs a simulation, and its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


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
