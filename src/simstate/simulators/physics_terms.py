"""The terms of a simulator's dynamics that comparisons switch on one after another."""

from __future__ import annotations

from typing import Literal, TypeAlias

import mujoco

from simstate.simulators.plain_model import fold_actuators

Term: TypeAlias = Literal[
    "actuators", "equalities", "joint limits", "dry friction", "contacts"
]
"""Effects in addition to inertia, gravity, springs, dampers and the fluid."""
Terms: TypeAlias = "frozenset[Term]"

_OFF = mujoco.mjtDisableBit
_BITS: dict[Term, int] = {
    "equalities": _OFF.mjDSBL_EQUALITY.value,
    "joint limits": _OFF.mjDSBL_LIMIT.value,
    "dry friction": _OFF.mjDSBL_FRICTIONLOSS.value,
    "contacts": _OFF.mjDSBL_CONTACT.value,
}

NO_TERMS: Terms = frozenset()
ALL_TERMS: Terms = frozenset[Term](("actuators", *_BITS))


def switch_off(model: mujoco.MjModel, terms: Terms) -> None:
    """Switch off in a MuJoCo model, in place, the terms that are not named.

    Armature and damping that actuators have of their own stay.
    """
    for term, bit in _BITS.items():
        if term not in terms:
            model.opt.disableflags |= bit
    if "actuators" not in terms:
        # Not by the flag: with it MuJoCo Warp 3.17 leaves the joints' dampers out of
        # its implicit integrators, too.
        fold_actuators(model)
        model.actuator_gear[:] = 0.0
