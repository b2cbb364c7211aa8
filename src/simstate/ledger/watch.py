"""Watch: writes that nobody announced, found by torch's count of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from simstate.engine import Stage
from simstate.errors import InvalidInputError
from simstate.ledger.memory import Backup
from simstate.ledger.slot import Slot


@dataclass(eq=False)
class Watched:
    """A tensor whose writes are looked for, and the slots that lie in it."""

    label: str
    tensor: Tensor
    stage: Stage
    version: int
    address: int
    on_write: Callable[[], None] | None = None
    slots: list[Slot] = field(default_factory=list[Slot])


class Watch:
    """The tensors in which slots lie that derived values depend on."""

    def __init__(self) -> None:
        self.tensors: list[Watched] = []

    def add(
        self,
        label: str,
        tensor: Tensor,
        stage: Stage,
        on_write: Callable[[], None] | None = None,
    ) -> None:
        """See writes to a tensor from now on."""
        if tensor.numel():
            version, address = tensor._version, tensor.data_ptr()
            watched = Watched(label, tensor, stage, version, address, on_write)
            self.tensors.append(watched)

    def add_slot(self, slot: Slot, stage: Stage, base: Tensor | None) -> None:
        """See writes to a slot by those to `base`, which it shares with others.

        None: the tensor of which it is a view, or its own.
        """
        if base is None:
            tensor = slot.tensor
            base = tensor._base if tensor._is_view() else tensor
        found = next((w for w in self.tensors if w.tensor is base), None)
        if found is None:
            assert base is not None
            self.add(slot.label, base, stage)
            found = self.tensors[-1]
        elif found.slots:
            found.label = f"{found.label} or {slot.label}"
        found.slots.append(slot)

    def acknowledge(self, backup: Backup) -> None:
        """Take note that writes to what a backup holds were taken back.

        Other writes are found later on: they have happened.
        """
        for watched in self.tensors:
            if watched.version != watched.tensor._version and backup.holds(
                watched.tensor
            ):
                watched.version = watched.tensor._version

    def check_addresses(self) -> None:
        """Raise if a tensor was given other memory, so that writes to it are lost."""
        for watched in self.tensors:
            if watched.tensor.data_ptr() != watched.address:
                raise InvalidInputError(
                    f"{watched.label} was given other memory, with set_() or .data =, "
                    "so that the simulation no longer sees it: write into it with "
                    "[:] = … instead."
                )
