"""Divergence: how a step handles worlds whose values become invalid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from simstate.base.errors import DivergenceError
from simstate.base.ids import Selection, int_list
from simstate.engine import Seen, Stage
from simstate.step.stepper import Stepper
from simstate.world import Backup
from simstate.world.invalid_values import Found, bad_elements, divergence_error
from simstate.world.worlds import Worlds

OnDivergence = Literal["raise", "mask"]


class Divergence:
    """The worlds that have diverged, and the cause; `sim.divergence`.

    A world diverges if a step leads to NaN, infinite or huge values. Its state from
    before the step is restored, and the other worlds advance. With mode "raise" the
    step then raises DivergenceError; with "mask" the world is marked in `worlds` and
    stays where it is until it is reset.
    """

    def __init__(self, worlds: Worlds, diverged: Tensor, mode: OnDivergence) -> None:
        self.worlds = diverged
        """Worlds that have diverged and await a reset; bool, shape (num_envs,)."""
        self.new = torch.zeros_like(diverged)
        """Worlds that diverged in the last step; bool, shape (num_envs,)."""
        self._parts = worlds
        self._ledger = worlds.ledger
        self._everywhere = worlds.everywhere
        self._marks = diverged.numpy() if diverged.device.type == "cpu" else None
        self._any = (-1, -1, False)
        self._found: Found | None = None
        self._unread: tuple[Tensor, Backup] | None = None
        """The invalid state and the backup of a step that restored worlds unread."""
        self._moving: Tensor | None = None
        self.mode = mode

    @property
    def mode(self) -> OnDivergence:
        """The effect of a world that diverges in a step: "raise" or "mask"."""
        return self._mode

    @mode.setter
    def mode(self, value: OnDivergence) -> None:
        self._mode: OnDivergence = value
        can_settle = value == "mask" and self._parts.engine.can_settle
        self.settle: Callable[[], None] | None = self._settle if can_settle else None
        """Restores worlds within a step, without the host reading which they are.

        None if the engine cannot, or if a divergence raises.
        """

    @property
    def cause(self) -> Found | None:
        """Description of the worlds that diverged in the last step; None if none."""
        if self._found is None and self._unread is not None:
            after, saved = self._unread
            self._unread = None
            if bool(self.new.any()):
                before = self._parts.state_before(saved)
                self._found = self._describe(before, after)
        return self._found

    @property
    def any(self) -> bool:
        """True if any world has diverged and awaits a reset."""
        known = (self._ledger.puts, self.worlds._version)
        if self._any[:2] != known:
            if self._marks is not None:  # searching bytes is fastest
                found = 1 in self._marks.tobytes()
            else:
                found = bool(self.worlds.any())
            self._any = (*known, found)
        return self._any[2]

    def look_again(self) -> None:
        """Read the marks again: they may have been written without being counted."""
        self._any = (-1, -1, False)

    # Within a step.

    def begin(self, rows: Selection, stepper: Stepper) -> Tensor | None:
        """Clear the last result and return the worlds to advance; None: all.

        A stepper that `settles` advances worlds that have diverged, too, and restores
        them: the host need not read which they are.
        """
        if self._found is not None or self._unread is not None:
            self.new.zero_()
            self._found = self._unread = None
        self._moving = None
        settles = self.settle is not None and stepper.settles
        if rows is self._everywhere:
            if settles:
                return None
            puts, version, some = self._any
            known = (self._ledger.puts, self.worlds._version)
            if not some and (puts, version) == known:
                return None
            if not self.any:
                return None
        elif rows.is_all and (settles or not self.any):
            return None
        ids = rows.tensor(self.worlds.device)
        self._moving = ids[~self.worlds[ids]]
        return self._moving

    def _settle(self) -> None:
        saved = self._saved()
        bad = self._parts.engine.bad_worlds() & ~self.worlds
        if self._moving is not None:
            bad &= torch.zeros_like(bad).index_fill(0, self._moving, True)
        self.new.copy_(bad)
        self._unread = (self._parts.engine.state, saved)
        all_marked = bad | self.worlds
        saved.restore_where(all_marked)
        self.worlds.copy_(all_marked)

    def handle(
        self,
        seen: int,
        find_bad: Callable[[], Tensor | None],
        n: int,
        moving: Tensor | None,
    ) -> DivergenceError | None:
        """Report warnings, restore the worlds that diverged and mark them.

        Args:
            seen: flags of `Seen` that the stepper returned.
            find_bad: returns the mask of worlds that diverged, or None.
            n: number of time steps.
            moving: the worlds that were advanced; None: all.

        Returns:
            The error to raise after the step, or None.
        """
        if seen & Seen.WARNED and self._parts.engine.report_warnings(moving):
            _ = self.cause  # described while the engine knows what was dropped
        bad = find_bad() if seen & (Seen.BAD | Seen.STUCK) else None
        if bad is not None and moving is not None:
            bad &= torch.zeros_like(bad).index_fill(0, moving, True)
        if bad is None or not bool(bad.any()):
            return None
        return self._restore(bad, n)

    def _restore(self, bad: Tensor, n: int) -> DivergenceError | None:
        worlds, saved = self._parts, self._saved()
        before = worlds.state_before(saved)
        self.new.copy_(bad)
        found = self._found = self._describe(before, worlds.engine.state)
        ids = bad.nonzero().flatten()
        stage = Stage.CONSTANT if saved.restore(ids) else Stage.POSITION
        worlds.fresh.write(stage, ids, "a step that diverged", parameters=True)
        if worlds.fresh.mode != "auto":  # in auto mode the first read does it
            worlds.forward(ids)
        if self.mode == "raise":
            return divergence_error(worlds.engine, found, before, n)
        self.worlds |= bad
        return None

    def _saved(self) -> Backup:
        """Return the backup that the call around this step has made."""
        return self._ledger.backup_of_step()

    def _describe(self, before: dict[str, Tensor], after: Tensor) -> Found:
        ids = self.new.nonzero().flatten()
        engine = self._parts.engine
        processes = {
            name.removeprefix("process/"): slot.tensor
            for name, slot in self._ledger.slots.items()
            if name.startswith("process/")
        }
        elements = bad_elements(engine, before, engine.split(after), ids, processes)
        return Found(int_list(ids), elements, after[ids].clone())
