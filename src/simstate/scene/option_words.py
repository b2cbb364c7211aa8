"""The words that MJCF has for those physics options that are choices."""

from __future__ import annotations

from typing import Any

import mujoco

from simstate.base.errors import unknown_name

OPTION_WORDS: dict[str, dict[str, int]] = {
    "integrator": {
        "Euler": mujoco.mjtIntegrator.mjINT_EULER.value,
        "RK4": mujoco.mjtIntegrator.mjINT_RK4.value,
        "implicit": mujoco.mjtIntegrator.mjINT_IMPLICIT.value,
        "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST.value,
    },
    "cone": {
        "pyramidal": mujoco.mjtCone.mjCONE_PYRAMIDAL.value,
        "elliptic": mujoco.mjtCone.mjCONE_ELLIPTIC.value,
    },
    "jacobian": {
        "dense": mujoco.mjtJacobian.mjJAC_DENSE.value,
        "sparse": mujoco.mjtJacobian.mjJAC_SPARSE.value,
        "auto": mujoco.mjtJacobian.mjJAC_AUTO.value,
    },
    "solver": {
        "PGS": mujoco.mjtSolver.mjSOL_PGS.value,
        "CG": mujoco.mjtSolver.mjSOL_CG.value,
        "Newton": mujoco.mjtSolver.mjSOL_NEWTON.value,
    },
}
"""The choices of each option, with the numbers of MuJoCo's enums."""


def option_value(name: str, given: Any) -> Any:
    """Return MuJoCo's value of an option: the number of a word, others unchanged."""
    words = OPTION_WORDS.get(name)
    if words is None or not isinstance(given, str):
        return given
    if given not in words:
        raise unknown_name(name, given, words)
    return words[given]


def option_word(name: str, value: Any) -> Any:
    """Return the value of an option as MJCF writes it: a choice as its word."""
    words = {number: word for word, number in OPTION_WORDS.get(name, {}).items()}
    return words.get(int(value), value) if words else value
