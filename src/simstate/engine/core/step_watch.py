"""Detection of errors in a step, in C, for few worlds."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from simstate.engine.core.batch import CoreBatch


class StepWatch:
    """The worlds that are bad after a step, by their numbers or MuJoCo's warnings.

    A batch has one: a new watch replaces the last.

    NumPy takes ten calls for the same, and with one world each costs a microsecond.

    Args:
        batch: the worlds.
        columns: the columns of the state that are looked at.
        limit: what no number there may exceed.
    """

    def __init__(
        self, batch: CoreBatch, columns: Sequence[slice], limit: float
    ) -> None:
        kinds = int(mujoco.mjtWarning.mjNWARNING)
        self._core = batch.core
        ranges = np.array([(x.start, x.stop) for x in columns], np.int32)
        self.counts = np.zeros((batch.nsim, kinds), np.int32)
        """Numbers of warnings when the step began; (num_worlds, mjNWARNING)."""
        self.bad = np.zeros(batch.nsim, bool)
        """Worlds whose state is bad, or that MuJoCo found bad on its way."""
        self.risen = np.zeros((batch.nsim, kinds), bool)
        """Which warnings were given since `begin`; (num_worlds, mjNWARNING)."""
        self._core.watch(limit, (ranges, self.counts, self.bad, self.risen))

    def begin(self) -> None:
        """Record the present warnings; writes `counts`."""
        self._core.count_warnings()

    def warned(self) -> bool:
        """Return True if MuJoCo has warned since `begin`."""
        return self._core.has_warned()

    def look(self) -> tuple[bool, bool]:
        """Return if a world is invalid and if MuJoCo warned; writes `bad`, `risen`."""
        bad, warned = self._core.find_bad()
        return bool(bad), bool(warned)
