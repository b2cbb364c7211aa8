"""Memory of contact sensors over the time steps, updated by the core while it steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simstate.engine.core import library
from simstate.engine.core.batch import CoreBatch

if TYPE_CHECKING:
    from simstate.engine.core import _core

Array = NDArray[Any]

SLOTS = (
    "air_time", "contact_time", "last_air_time", "last_contact_time",
    "greatest_force",
)  # fmt: skip
"""The memory of each element, in the order that the core takes it."""


def make_contacts(
    batch: CoreBatch,
    sensors: Array,
    columns: Array,
    singles: Array,
    threshold: float,
    every_step: bool,
    slots: Mapping[str, Array],
    shown: tuple[Array, Array, Array],
) -> _core.Contacts:
    """One contact sensor; a step of the batch that gets it writes into its memory.

    Args:
        batch: the worlds.
        sensors: MuJoCo's sensors of net forces, −1: none; of shape (elements, others).
        columns: where the force of each begins in sensordata; of the same shape.
        singles: MuJoCo's sensors of the strongest contacts; of the same shape.
        threshold: a net force above it counts as touching [N].
        every_step: whether it looks at each step of a call, or at the last alone.
        slots: the live memory by name, SLOTS, float64, (num_worlds, elements), and
            force_history_w (num_worlds, past, elements, 3).
        shown: what the evaluations of a scheme of simstate's have shown so far: the
            latest net force by each element, (num_worlds, elements, 3); the greatest
            of the call and whether an element touched, (num_worlds, elements).
    """
    past = slots["force_history_w"].shape[1]
    return library.module().Contacts(
        batch.core,
        (*columns.shape, past),
        every_step,
        threshold,
        (
            *(np.ascontiguousarray(x, np.int32) for x in (sensors, columns, singles)),
            *(slots[name] for name in SLOTS),
            slots["force_history_w"] if past else None,
            *shown,
        ),
    )
