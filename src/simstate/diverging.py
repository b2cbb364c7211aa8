"""Diverging: what a step does with worlds that went bad."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from simstate.divergence import (
    Divergence,
    bad_elements,
    divergence_error,
    first_bad_element,
)
from simstate.errors import DivergenceError, listed, warn
from simstate.ids import int_list
from simstate.ledger import Backup
from simstate.physics import Physics

OnDivergence = Literal["raise", "mask"]


class Diverging:
    """Gives bad worlds what they had before the step, and marks or reports them.

    Where the engine can (`Engine.can_settle`) and worlds are only marked, it does so by
    a mask that the host never looks at.
    """

    def __init__(
        self, physics: Physics, diverged: Tensor, on_divergence: OnDivergence
    ) -> None:
        self.on_divergence: OnDivergence = on_divergence
        self.newly = torch.zeros_like(diverged)
        """The worlds that went bad in the last step; shape (num_envs,)."""
        self._physics = physics
        physics.report_bad = self.report
        self._diverged = diverged
        self._marks = diverged.numpy() if diverged.device.type == "cpu" else None
        self._some = (-1, -1, False)
        self._found: Divergence | None = None
        self._settled: tuple[Tensor, Backup] | None = None
        """The bad state and what was saved, of a step that settled unseen."""

    @property
    def some(self) -> bool:
        """Whether any world has diverged and waits for a reset."""
        known = (self._physics.ledger.puts, self._diverged._version)
        if self._some[:2] != known:
            if self._marks is not None:  # a search of bytes costs least
                some = 1 in self._marks.tobytes()
            else:
                some = bool(self._diverged.any())
            self._some = (*known, some)
        return self._some[2]

    def look(self) -> None:
        """Look at the marks again: they may have been written unseen."""
        self._some = (-1, -1, False)

    def clear(self) -> None:
        """Forget what diverged in the step before."""
        if self._found is not None or self._settled is not None:
            self.newly.zero_()
            self._found = self._settled = None

    def put_back(self, bad: Tensor, n: int, saved: Backup) -> DivergenceError | None:
        """Give bad worlds their state back and mark them; returns what to raise."""
        physics = self._physics
        before = physics.state_before(saved)
        self.newly.copy_(bad)
        found = self._found = self._describe(before, physics.engine.state)
        ids = bad.nonzero().flatten()
        stage = saved.put_back(ids)
        physics.fresh.write(stage, ids, "a step that diverged")
        if physics.fresh.mode != "auto":  # in auto mode the first read does it
            physics.forward(ids)
        if self.on_divergence == "raise":
            return divergence_error(physics.engine, found, before["time"], n)
        self._diverged |= bad
        return None

    def report(self, env_ids: Tensor | None) -> None:
        """Warn of worlds that were evaluated with bad numbers, None: of all.

        MuJoCo takes a bad control for 0, and Warp a bad quaternion for an attitude: the
        accelerations need not show it. Worlds that diverged have been told already.
        """
        engine = self._physics.engine
        bad = engine.find_bad()
        if bad is None:
            return
        told = set(int_list(self._diverged.nonzero().flatten()))
        chosen = None if env_ids is None else set(int_list(env_ids))
        worlds = [
            i
            for i in int_list(bad.nonzero().flatten())
            if i not in told and (chosen is None or i in chosen) and not engine.loss(i)
        ]
        if worlds:
            fields = engine.split(engine.state)
            warn(
                f"In {len(worlds)} of {engine.num_envs} worlds ({listed(worlds, 10)}): "
                f"{first_bad_element(engine, fields, fields, worlds[0])}. What was "
                "evaluated there means nothing."
            )

    def settle(self, moving: Tensor | None, saved: Backup) -> None:
        """Put worlds back that are bad, or have been, without looking which."""
        bad = self._physics.engine.bad_worlds() & ~self._diverged
        if moving is not None:
            bad &= torch.zeros_like(bad).index_fill(0, moving, True)
        self.newly.copy_(bad)
        self._settled = (self._physics.engine.state, saved)
        still = bad | self._diverged
        saved.put_back_where(still)
        self._diverged.copy_(still)

    def found(self) -> Divergence | None:
        """What diverged in the last step, in words; None: nothing did."""
        if self._found is None and self._settled is not None:
            after, saved = self._settled
            self._settled = None
            if bool(self.newly.any()):
                before = self._physics.state_before(saved)
                self._found = self._describe(before, after)
        return self._found

    def _describe(self, before: dict[str, Tensor], after: Tensor) -> Divergence:
        ids = self.newly.nonzero().flatten()
        engine = self._physics.engine
        elements = bad_elements(engine, before, engine.split(after), ids)
        return Divergence(int_list(ids), elements, after[ids].clone())
