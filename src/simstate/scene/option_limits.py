"""Ranges of MuJoCo's physics options; MuJoCo itself accepts any number for most."""

from __future__ import annotations

import mujoco

from simstate.base.checks import FINITE, Limits

_POSITIVE, _NOT_NEGATIVE = Limits(more_than=0), Limits(at_least=0)


def _enum(members: type) -> Limits:
    values = [int(member) for member in members.__members__.values()]  # type: ignore[attr-defined]
    return Limits(at_least=min(values), at_most=max(values))


def _bits(count: int) -> Limits:
    return Limits(at_least=0, less_than=1 << count)


_LIMITS = {
    "timestep": _POSITIVE,
    "impratio": _POSITIVE,
    "cone": _enum(mujoco.mjtCone),
    "jacobian": _enum(mujoco.mjtJacobian),
    "solver": _enum(mujoco.mjtSolver),
    "integrator": _enum(mujoco.mjtIntegrator),
    "disableflags": _bits(int(mujoco.mjtDisableBit.mjNDISABLE)),
    "enableflags": _bits(int(mujoco.mjtEnableBit.mjNENABLE)),
    **dict.fromkeys(
        (
            "tolerance", "ls_tolerance", "noslip_tolerance", "ccd_tolerance",
            "sleep_tolerance", "iterations", "ls_iterations", "noslip_iterations",
            "ccd_iterations", "sdf_iterations", "sdf_initpoints", "density",
            "viscosity", "disableactuator",
        ),
        _NOT_NEGATIVE,
    ),
}  # fmt: skip


def option_limits(name: str) -> Limits:
    """Between which limits the numbers of an option ("cone") must be."""
    return _LIMITS.get(name, FINITE)
