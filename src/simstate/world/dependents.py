"""Dependents of a ledger: what is kept outside of slots and follows them."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from simstate.engine import Stage
from simstate.world.calls import Call
from simstate.world.slot import Trees


class DerivedValues(Protocol):
    """Values that are computed from slots; `Freshness` is one."""

    def write(
        self,
        stage: Stage,
        env_ids: Tensor | None,
        reason: str,
        parameters: bool = False,
        trees: Trees = None,
    ) -> None:
        """Mark values from `stage` on as stale in these worlds; None: all."""
        ...


class NoDerivedValues:
    """Nothing is computed from the slots."""

    def write(
        self,
        stage: Stage,
        env_ids: Tensor | None,
        reason: str,
        parameters: bool = False,
        trees: Trees = None,
    ) -> None:
        """Do nothing."""


class CopiedRows(Protocol):
    """Rows of the state that are copies of slots; `StateRows` is one."""

    def follow(self) -> None:
        """Copy slots that were written."""
        ...


class Undone(Protocol):
    """Keeps values outside of slots, which are part of no snapshot."""

    def undo(self, call: Call) -> None:
        """Remove what was kept in a call; idempotent, and calls no user code."""
        ...
