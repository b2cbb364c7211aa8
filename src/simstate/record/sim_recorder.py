"""SimRecorder: the recorder that `sim.record(path)` returns."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.base.ids import Ids, Selection
from simstate.record.changes import Step
from simstate.record.columns import columns_of
from simstate.record.recorder import Recorder
from simstate.step.history import Recorded
from simstate.step.stepping_host import SteppingHost


class SimRecorder(Recorder):
    """Records the steps of a simulation, and quantities after them."""

    def __init__(
        self,
        sim: SteppingHost,
        path: str | Path,
        quantities: Recorded,
        fields: Iterable[str],
        every: float | None,
        worlds: Ids,
        inputs: bool,
        snapshot_every: float | None,
    ) -> None:
        if every is not None and not 0 < every < math.inf:
            raise InvalidInputError(
                f"every must be > 0 [s], or None; got {every}.", name="every"
            )
        columns = columns_of(sim, quantities, fields)
        super().__init__(
            sim, path, "sim", columns, ("sim",), worlds=worlds, inputs=inputs,
            snapshot_every=snapshot_every, about={"every": every},
            detach=lambda: sim.detach(self),
        )  # fmt: skip
        self._every = every
        self._until_sample = every or 0.0
        self._step: Step | None = None
        self._span = 0.0
        self.keep(None, 0.0, self.read_columns())
        sim.attach(self)

    def begin(self, n: int, rows: Selection, until: Tensor | None) -> None:
        """Prepare for a step of n time steps of these worlds, `until` a time [s]."""
        self._step = step = self.begin_step()
        step.call["n"] = n
        if not rows.is_all:
            step.arrays["env_ids"] = rows.tensor(self._sim.device).cpu().numpy()
        if until is not None:
            step.arrays["until"] = until.cpu().numpy().copy()
        self._span = n * self._sim.timestep

    def end(self) -> None:
        """Keep the step that was taken, and a sample if one is due."""
        assert self._step is not None
        step, self._step = self._step, None
        found = self._sim.divergence.cause
        if found is not None:
            worlds = [str(world) for world in found.env_ids]
            step.call["diverged"] = dict(zip(worlds, found.elements, strict=False))
        until = self._until_sample - self._span
        is_due = self._every is None or until <= 1e-9 * self._every
        self.keep(step, self._span, self.read_columns() if is_due else None)
        self._until_sample = until + (self._every or 0.0) if is_due else until
        self.write_if_due()
