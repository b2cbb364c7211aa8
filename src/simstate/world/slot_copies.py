"""SlotCopies: the slots of some worlds, copied, checked and written again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.base.ids import Selection
from simstate.engine import Stage
from simstate.world.layout import Packed
from simstate.world.saved import check_saved
from simstate.world.slot import Owner

if TYPE_CHECKING:
    from simstate.world.ledger import Ledger


class SlotCopies:
    """Copies of a ledger's slots, for snapshots and replays.

    `copy` takes the slots of some worlds, `check` and `can_put` say whether values can
    be put, and `put`, `put_packed` and `put_some` write them.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def copy(self, rows: Selection, owners: Sequence[Owner]) -> Packed:
        """Return the values of the slots in some worlds, on the host."""
        self._ledger.observe()
        return self._ledger.plan(owners).copy(rows)

    def check(
        self, values: Mapping[str, Tensor], owners: Sequence[Owner], count: int
    ) -> None:
        """Raise unless `put` can write these values, with `count` rows each."""
        check_saved(self._ledger, values, owners, count)

    def can_put(self, packed: Packed, owners: Sequence[Owner]) -> bool:
        """Return True if `put_packed` can write a copy unchanged.

        It must be one of these slots, with finite numbers throughout. Other copies may
        be written, too, after `check`.
        """
        plan = self._ledger.plan(owners)
        if packed.layout is not plan.layout:
            return False
        try:
            for slot in plan.checked:
                assert slot.check is not None
                slot.check(packed.slot(slot.name), None, None)
        except InvalidInputError:
            return False
        return packed.is_finite

    def put_packed(
        self, packed: Packed, rows: Selection, owners: Sequence[Owner], shared: bool
    ) -> None:
        """Write a copy that `can_put` has accepted, with one row or one for each world.

        `shared` says whether slots that all worlds have in common are written, too.
        """
        self._ledger.observe()
        self._ledger.refuse_rewriting("restore")
        plan, index = self._ledger.plan(owners), rows.host
        self._ledger.announce_put(plan.stage, rows, "a restore")
        for number, chunk in enumerate(plan.chunks):
            memory, piece = plan.memory[number], packed.pieces[number]
            if chunk.shared and not shared:
                continue
            if plan.compared[number]:
                for slot in plan.compared[number]:
                    self._ledger.put_slot(slot, packed.slot(slot.name), rows)
            elif isinstance(memory, Tensor):
                place = slice(None) if chunk.shared else rows.index
                memory[place] = torch.as_tensor(piece, device=memory.device)
            else:
                memory[... if chunk.shared else index] = piece
        self._ledger.follow()

    def put(
        self,
        values: Mapping[str, Tensor],
        rows: Selection,
        owners: Sequence[Owner],
        shared: bool,
    ) -> None:
        """Write values that `check` has seen; slots without one get their initial.

        `shared` says whether slots that all worlds have in common are written, too.
        """
        self._ledger.observe()
        self._ledger.refuse_rewriting("restore")
        for slot in self._ledger.of(owners):
            value = values.get(slot.name)
            if value is None and slot.computed:  # from what the others are then
                self._ledger.announce_put(Stage.CONSTANT, rows, "a restore")
                continue
            if value is None:
                value = slot.initial_of(rows)
            if value is not None and (shared or not slot.shared):
                self._ledger.put_slot(slot, value, rows)
        self._ledger.follow()

    def put_some(self, values: Mapping[str, tuple[Selection, Tensor]]) -> None:
        """Write rows of some slots, as a recording has them; the others stay."""
        self._ledger.observe()
        self._ledger.refuse_rewriting("replay")
        for name, (rows, value) in values.items():
            self._ledger.put_slot(self._ledger[name], value, rows)
        self._ledger.follow()
