"""What a step changes and what goes wrong in it, looked at in C: for few worlds."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from simstate.engine.core.batch import CoreBatch

Array = NDArray[Any]


class Watch:
    """The state before a step, and the worlds that are bad after it.

    NumPy takes ten calls for the same, and with one world each costs a microsecond.

    Args:
        batch: the worlds.
        before: takes the first columns of the state, float64; (num_worlds, k).
        others: the further columns of the state that must be finite.
        limit: what no number of the state may exceed.
    """

    def __init__(
        self, batch: CoreBatch, before: Array, others: slice, limit: float
    ) -> None:
        kinds = int(mujoco.mjtWarning.mjNWARNING)
        self._batch = batch
        self._before = before
        self._others: tuple[int, int] = (others.start, others.stop)
        self._limit = limit
        self._counts = np.zeros((batch.nsim, kinds), np.int32)
        self.bad = np.zeros(batch.nsim, bool)
        """Worlds whose state is bad, or that MuJoCo found bad on its way."""
        self.risen = np.zeros((batch.nsim, kinds), bool)
        """Which warnings were given since `remember`; (num_worlds, mjNWARNING)."""

    def remember(self) -> None:
        """Keep the state and the numbers of warnings; writes `before`."""
        self._batch.core.remember(self._before, self._counts)

    def look(self) -> tuple[bool, bool]:
        """Whether a world is bad, and whether MuJoCo warned; writes `bad`, `risen`."""
        bad, warned = self._batch.core.find_bad(
            *(self._counts, self.bad, self.risen, self._limit),
            *(self._before.shape[1], *self._others),
        )
        return bool(bad), bool(warned)
