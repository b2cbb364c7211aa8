"""StepParts: move worlds by parts of a step, forward and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor

from simstate.engine import Stage
from simstate.step.stepper import Stepper
from simstate.world.worlds import Worlds

_START = "the start of a part"
_HERE = "the state before a look at another"


class StepParts:
    """Moves worlds within a part of a step, which starts where `begin` was called.

    Derived values are then stale, or those of the new state.
    """

    def __init__(self, worlds: Worlds, stepper: Stepper) -> None:
        self._worlds = worlds
        self.stepper = stepper
        """The stepper that moves the worlds."""

    @property
    def time(self) -> Tensor:
        """The time of each world [s], live; (num_envs,)."""
        return self._worlds.engine.field("time").data

    def advance_by(self, stepper: Stepper) -> None:
        """Move worlds by another stepper from now on."""
        self.stepper = stepper

    def begin(self) -> None:
        """Start a part at the current state."""
        self._worlds.ledger.backup("step", _START).save()

    def return_to_start(self, ids: Tensor) -> None:
        """Return worlds to the start of the part."""
        self._restore(_START, ids)
        self.mark_moved(ids)

    def go_to(self, h: Tensor, ids: Tensor) -> None:
        """Move worlds to a time after the start of the part [s]; (n,)."""
        self._restore(_START, ids)
        self._move(h, ids)

    def visit(self, h: Tensor, ids: Tensor, look: Callable[[], None]) -> None:
        """Call `look` with worlds at a time after the start of the part [s]; (n,).

        Their current state is restored afterwards.
        """
        self._look(partial(self.go_to, h, ids), ids, look)

    def look_ahead(self, h: Tensor, ids: Tensor, look: Callable[[], None]) -> None:
        """Call `look` with worlds as they will be after h [s]; restore them."""
        self._look(partial(self._move, h, ids), ids, look)

    def _look(
        self, go: Callable[[], None], ids: Tensor, look: Callable[[], None]
    ) -> None:
        self._worlds.ledger.backup("step", _HERE).save()
        go()
        look()
        self._restore(_HERE, ids)
        self.mark_moved(ids)

    def _move(self, h: Tensor, ids: Tensor) -> None:
        self.stepper.move(h, ids)
        self.mark_moved(ids, self.stepper.current_through)

    def _restore(self, purpose: str, ids: Tensor) -> None:
        """Restore worlds, except for their count of evaluations."""
        counted = self.stepper.evaluations
        count = None if counted is None else counted.clone()
        constants = self._worlds.ledger.backup("step", purpose).restore(ids)
        if counted is not None and count is not None:
            counted.copy_(count)
        if constants:
            self._worlds.parameters.set_const(ids)

    def mark_moved(self, ids: Tensor, current_through: Stage = Stage.CONSTANT) -> None:
        """Mark derived values in these worlds as stale, beyond the current stage."""
        fresh = self._worlds.fresh
        fresh.write(Stage.POSITION, ids, "a part of a step")
        if current_through > Stage.CONSTANT:
            fresh.mark_current(current_through, ids, evaluated=True)
        if fresh.mode != "auto":  # in auto mode the first read does it
            self._worlds.forward(ids)
