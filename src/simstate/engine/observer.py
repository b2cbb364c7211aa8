"""StepObserver: what looks at the sensors of every time step, while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torch import Tensor

if TYPE_CHECKING:
    from simstate.engine.core import _core


class StepObserver(Protocol):
    """Told of each evaluation of the dynamics, and of each time step that is done.

    What it remembers it keeps in slots of the ledger that move with a step, and writes
    through aliases: a step that is undone, or a world that diverges, takes it along.
    """

    every_step: bool
    """Whether it wants to see the sensors between the n steps of one call."""

    compiled: _core.Contacts | None
    """The same in the compiled core, for steps of the engine's own; None: it is not
    in use. It is then not told of these."""

    def begin_step(self) -> None:
        """Forget what evaluations have shown so far: a call of `sim.step` begins."""
        ...

    def evaluated(self) -> None:
        """Look at the sensors: the dynamics have been evaluated."""
        ...

    def stepped(self, n: int, env_ids: Tensor | None) -> None:
        """Take note that these worlds have moved on by n time steps; None: all."""
        ...
