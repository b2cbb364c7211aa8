"""Memory of contact sensors over time, updated by the core during steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simstate.base import compiled_core
from simstate.engine.core.batch import CoreBatch

if TYPE_CHECKING:
    from simstate.engine.core import _core

Array = NDArray[Any]

SLOTS = (
    "air_time", "contact_time", "last_air_time", "last_contact_time",
    "greatest_force",
)  # fmt: skip
"""The memory of each element, in the order that the core expects."""


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
    """Return a contact sensor of the core; steps that receive it write its memory.

    Args:
        batch: the worlds.
        sensors: MuJoCo's sensors of net forces, −1: none; shape (elements, others).
        columns: first column of each force in sensordata; same shape.
        singles: MuJoCo's sensors of the strongest contacts; same shape.
        threshold: net force above which an element is in contact [N].
        every_step: True to observe each step of a call, False only the last.
        slots: the live memory by name, SLOTS, float64, (num_worlds, elements), and
            force_history_w (num_worlds, past, elements, 3).
        shown: results of the evaluations of simstate's schemes so far: the latest net
            force of each element, (num_worlds, elements, 3); the largest of the call
            and whether an element was in contact, (num_worlds, elements).
    """
    past = slots["force_history_w"].shape[1]
    return compiled_core.module().Contacts(
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
