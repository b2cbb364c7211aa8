"""Watch: writes that were not announced, detected by torch's count of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.engine import Stage
from simstate.world.calls import Pointer, changed
from simstate.world.slot import Slot


@dataclass(eq=False)
class Watched:
    """A tensor on the watch list, and the slots that are views of it."""

    labels: list[str]
    tensor: Tensor
    stage: Stage
    place: int
    """Its index in the lists."""
    on_write: Callable[[], None] | None = None
    is_derived: bool = False
    """True for a field that is computed from the state: writes to it are rejected."""
    slots: list[Slot] = field(default_factory=list[Slot])
    has_parameters: bool = False
    """True if a slot in it is a parameter or a setting."""

    @cached_property
    def label(self) -> str:
        """The name of the tensor or its slots in error messages."""
        return " or ".join(self.labels)

    def add(self, slot: Slot) -> None:
        """Add a slot that is a view of the tensor; the first goes by its label."""
        if self.slots:
            self.labels.append(slot.label)
            vars(self).pop("label", None)
        self.slots.append(slot)
        self.has_parameters |= slot.is_parameter

    def detach(self) -> None:
        """Detach the tensor and its slots: a graph would grow with each step."""
        if self.tensor.requires_grad:
            self.tensor.detach_()
        for slot in self.slots:
            if slot.tensor.requires_grad:
                slot.tensor.detach_()

    def rejection(self) -> InvalidInputError:
        """Return the error for a write to a field that is computed from the state."""
        return InvalidInputError(
            f"{self.label} was written to, but it is computed from the state and "
            "will be recomputed. Write the state (sim.data.qpos, qvel, "
            "ctrl, …) or use an entity's write_… method.",
            name=self.label,
        )


class WriteWatch:
    """The tensors whose writes are detected.

    Those are the slots that derived values depend on, and the derived fields that a
    user may hold.
    """

    def __init__(self) -> None:
        self._watched: dict[int, Watched] = {}
        """By the id of the tensor."""
        self.lists: tuple[list[Tensor], list[int], list[Pointer], list[int]]
        self.lists = ([], [], [], [])
        """The arguments of `changed`: versions and addresses as last recorded."""

    def add(
        self,
        label: str,
        tensor: Tensor,
        stage: Stage,
        on_write: Callable[[], None] | None = None,
        *,
        is_derived: bool = False,
    ) -> Watched:
        """Detect writes to a tensor from now on."""
        tensors, versions, pointers, addresses = self.lists
        place = len(tensors)
        watched = Watched([label], tensor, stage, place, on_write, is_derived)
        self._watched[id(tensor)] = watched
        # Replaced at once, in case of an interruption.
        self.lists = (
            [*tensors, tensor],
            [*versions, tensor._version],
            [*pointers, tensor.data_ptr],
            [*addresses, tensor.data_ptr()],
        )
        return watched

    def add_derived(self, label: str, tensor: Tensor, stage: Stage) -> None:
        """Detect writes to a field that is computed from the state from now on."""
        if tensor.numel():
            self.add(label, tensor, stage, is_derived=True)

    def add_slot(self, slot: Slot, stage: Stage, base: Tensor | None) -> None:
        """Detect writes to a slot by those to `base`, which it shares with others.

        None: the tensor of which it is a view, or its own.
        """
        if base is None:
            tensor = slot.tensor
            base = tensor._base if tensor._is_view() else tensor
        assert base is not None
        found = self._watched.get(id(base))
        if found is None:
            found = self.add(slot.label, base, stage)
        found.add(slot)

    def written(self, places: Iterable[int]) -> list[tuple[Watched, int]]:
        """Return what `changed` has found, with the versions of the tensors.

        Raises:
            InvalidInputError: one was given other memory, so that writes are lost.
        """
        tensors, _, pointers, addresses = self.lists
        found: list[tuple[Watched, int]] = []
        for place in places:
            watched = self._watched[id(tensors[place])]
            if pointers[place]() != addresses[place]:
                raise InvalidInputError(
                    f"{watched.label} was given other memory, with set_() or .data =, "
                    "so that the simulation no longer sees it: write into it with "
                    "[:] = … instead.",
                    name=watched.label,
                )
            found.append((watched, tensors[place]._version))
        return found

    def record(self, watched: Watched, version: int) -> None:
        """Record the writes to a tensor up to a version as handled."""
        self.lists[1][watched.place] = version

    def acknowledge(self, storages: frozenset[int]) -> None:
        """Ignore the writes so far to tensors in these storages: they were undone.

        Other writes are detected later.
        """
        tensors, versions, _, _ = self.lists
        for place in changed(*self.lists):
            tensor = tensors[place]
            if tensor.untyped_storage().data_ptr() in storages:
                versions[place] = tensor._version
