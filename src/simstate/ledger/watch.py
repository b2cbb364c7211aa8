"""Watch: writes that nobody announced, found by torch's count of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from torch import Tensor

from simstate.engine import Stage
from simstate.errors import InvalidInputError
from simstate.ledger.slot import Slot
from simstate.world.calls import has_changed

Key = TypeVar("Key")

_version = operator.attrgetter("_version")


class WriteCounts(Generic[Key]):
    """Torch's counts of the writes to some tensors, as they were last noted.

    They are compared all at once: it is done at every read.
    """

    def __init__(self) -> None:
        # Replaced as one, should an interruption come in between.
        self._lists: tuple[list[Key], list[Tensor], list[int], list[int]]
        self._lists = ([], [], [], [])

    @property
    def keys(self) -> list[Key]:
        """What the tensors are known by."""
        return self._lists[0]

    def add(self, key: Key, tensor: Tensor) -> None:
        """See writes to a tensor from now on."""
        keys, tensors, counts, addresses = self._lists
        self._lists = (
            [*keys, key],
            [*tensors, tensor],
            [*counts, tensor._version],
            [*addresses, tensor.data_ptr()],
        )

    def risen(self) -> list[tuple[Key, int]]:
        """Those that were written since they were noted, with their present counts."""
        keys, tensors, counts, _ = self._lists
        now = list(map(_version, tensors))
        if now == counts:
            return []
        found = zip(keys, now, counts, strict=True)
        return [(key, count) for key, count, noted in found if count != noted]

    def has_changed(self) -> bool:
        """Return True if one was written to, or given other memory, since recorded."""
        _, tensors, counts, addresses = self._lists
        return has_changed(tensors, counts, addresses)

    def note(self, key: Key, count: int) -> None:
        """Take note of the writes to a tensor up to a count."""
        keys, _, counts, _ = self._lists
        counts[keys.index(key)] = count

    def is_moved(self, key: Key) -> bool:
        """Return whether a tensor was given other memory."""
        keys, tensors, _, addresses = self._lists
        place = keys.index(key)
        return tensors[place].data_ptr() != addresses[place]

    def moved(self) -> list[Key]:
        """Those that were given other memory."""
        keys, tensors, _, addresses = self._lists
        now = list(map(Tensor.data_ptr, tensors))
        if now == addresses:
            return []
        found = zip(keys, now, addresses, strict=True)
        return [key for key, address, first in found if address != first]


@dataclass(eq=False)
class Watched:
    """A tensor whose writes are looked for, and the slots that lie in it."""

    label: str
    tensor: Tensor
    stage: Stage
    on_write: Callable[[], None] | None = None
    slots: list[Slot] = field(default_factory=list[Slot])


class Watch:
    """The tensors in which slots lie that derived values depend on."""

    def __init__(self) -> None:
        self.counts = WriteCounts[Watched]()

    def add(
        self,
        label: str,
        tensor: Tensor,
        stage: Stage,
        on_write: Callable[[], None] | None = None,
    ) -> None:
        """See writes to a tensor from now on."""
        if tensor.numel():
            self.counts.add(Watched(label, tensor, stage, on_write), tensor)

    def add_slot(self, slot: Slot, stage: Stage, base: Tensor | None) -> None:
        """See writes to a slot by those to `base`, which it shares with others.

        None: the tensor of which it is a view, or its own.
        """
        if base is None:
            tensor = slot.tensor
            base = tensor._base if tensor._is_view() else tensor
        known = self.counts.keys
        found = next((w for w in known if w.tensor is base), None)
        if found is None:
            assert base is not None
            self.add(slot.label, base, stage)
            found = self.counts.keys[-1]
        elif found.slots:
            found.label = f"{found.label} or {slot.label}"
        found.slots.append(slot)

    def has_changed(self) -> bool:
        """Return True if a watched tensor was written to or given other memory."""
        return self.counts.has_changed()

    def acknowledge(self, storages: frozenset[int]) -> None:
        """Ignore the writes so far to tensors in these storages: they were undone.

        Other writes are detected later.
        """
        for watched, count in self.counts.risen():
            if watched.tensor.untyped_storage().data_ptr() in storages:
                self.counts.note(watched, count)

    def check_addresses(self) -> None:
        """Raise if a tensor was given other memory, so that writes to it are lost."""
        for watched in self.counts.moved():
            raise _moved(watched)

    def check_address(self, watched: Watched) -> None:
        """Raise if this tensor was given other memory."""
        if self.counts.is_moved(watched):
            raise _moved(watched)


def _moved(watched: Watched) -> InvalidInputError:
    return InvalidInputError(
        f"{watched.label} was given other memory, with set_() or .data =, "
        "so that the simulation no longer sees it: write into it with "
        "[:] = … instead."
    )
