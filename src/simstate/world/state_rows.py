"""StateRows: the whole state as one tensor that may be written, on every engine."""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.engine import Engine, Stage
from simstate.world import Ledger


class StateRows:
    """Rows of the state. Where the engine keeps none, they are gathered on request.

    What is then written into the gathered rows is found by the ledger, as any other
    write, and goes into the fields: the numbers that have changed, and no others.
    """

    def __init__(self, engine: Engine, ledger: Ledger) -> None:
        self._engine = engine
        self._ledger = ledger
        self._gathered: Tensor | None = None
        self._known: Tensor | None = None
        """Values of the gathered rows when they were returned."""
        if not engine.state_is_live:
            ledger.connect_rows(self.follow)
        else:
            ledger.watch.add("sim.state", engine.state, Stage.POSITION)

    def read(self) -> Tensor:
        """Return the state of all worlds; shape (num_envs, nstate)."""
        if self._engine.state_is_live:
            return self._engine.state
        self._ledger.observe()
        with torch.inference_mode(False):
            self._known = self._engine.state
            if self._gathered is None:
                self._gathered = self._known.clone()
                label, stage = "sim.state", Stage.POSITION
                self._ledger.watch.add(label, self._gathered, stage, self._scatter)
            else:
                self._gathered.data.copy_(self._known)
        return self._gathered

    def follow(self) -> None:
        """Update rows that a caller holds from fields that have changed."""
        if self._gathered is not None:
            self._known = self._engine.state
            self._gathered.data.copy_(self._known)

    def collect(self) -> None:
        """Take over what was written past torch's count of writes."""
        if self._gathered is not None:
            self._scatter()

    def _scatter(self) -> None:
        """Write the values that a caller changed into the fields."""
        assert self._gathered is not None
        assert self._known is not None
        new, old = self._gathered.detach().clone(), self._known
        changed = (new != old) & ~(new.isnan() & old.isnan())
        for name, columns in self._engine.columns.items():
            here = changed[:, columns]
            if bool(here.any()):
                memory = self._engine.field(name).data
                shape = memory.shape
                values = new[:, columns].reshape(shape).to(memory.dtype)
                memory.copy_(torch.where(here.reshape(shape), values, memory))
        self._known = new
