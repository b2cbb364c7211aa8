"""The terms of a simulator's dynamics that comparisons switch on one after another."""

from __future__ import annotations

from typing import Literal, TypeAlias

import mujoco

Term: TypeAlias = Literal["actuators", "constraints", "contacts"]
"""Servos and motors; equalities, joint limits and dry friction; contacts."""
Terms: TypeAlias = "frozenset[Term]"

NO_TERMS: Terms = frozenset()
ALL_TERMS: Terms = frozenset[Term](("actuators", "constraints", "contacts"))

LADDER: tuple[Terms, ...] = (
    NO_TERMS,
    frozenset[Term](("actuators",)),
    frozenset[Term](("actuators", "constraints")),
    ALL_TERMS,
)
"""Each rung has one term more."""

_OFF = mujoco.mjtDisableBit
_BITS: dict[Term, int] = {
    "actuators": _OFF.mjDSBL_ACTUATION.value,
    "constraints": _OFF.mjDSBL_EQUALITY.value
    | _OFF.mjDSBL_LIMIT.value
    | _OFF.mjDSBL_FRICTIONLOSS.value,
    "contacts": _OFF.mjDSBL_CONTACT.value,
}


def switch_off(model: mujoco.MjModel, terms: Terms) -> None:
    """Switch off in a MuJoCo model, in place, the terms that are not named."""
    for term, bits in _BITS.items():
        if term not in terms:
            model.opt.disableflags |= bits
