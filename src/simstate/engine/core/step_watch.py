"""Detection of errors in a step, in C, for few worlds."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from simstate.engine.core.batch import CoreBatch


class StepWatch:
    """Finds worlds that are invalid after a step, by values or MuJoCo's warnings.

    A batch has one: a new watch replaces the previous one.

    NumPy needs ten calls for the same, at a microsecond each for a single world.

    Args:
        batch: the worlds.
        columns: the columns of the state that are checked.
        limit: maximum magnitude of the values.
    """

    def __init__(
        self, batch: CoreBatch, columns: Sequence[slice], limit: float
    ) -> None:
        kinds = int(mujoco.mjtWarning.mjNWARNING)
        self._core = batch.core
        ranges = np.array([(x.start, x.stop) for x in columns], np.int32)
        self.counts = np.zeros((batch.nsim, kinds), np.int32)
        """Numbers of warnings at the start of the step; (num_worlds, mjNWARNING)."""
        self.bad = np.zeros(batch.nsim, bool)
        """Worlds whose state is invalid, or was according to MuJoCo."""
        self._core.watch(limit, (ranges, self.counts, self.bad))

    def begin(self) -> None:
        """Record the present warnings; writes `counts`."""
        self._core.count_warnings()

    def warned(self) -> bool:
        """Return True if MuJoCo has warned since `begin`."""
        return self._core.has_warned()

    def look(self) -> tuple[bool, bool]:
        """Return whether a world is invalid and MuJoCo warned; write `bad`."""
        bad, warned = self._core.find_bad()
        return bool(bad), bool(warned)
