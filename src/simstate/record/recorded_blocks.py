"""RecordedBlocks: the samples, steps and snapshots in the file of a recording."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from simstate.base.errors import RecordingError
from simstate.record.changes import WRONG, Step, steps_from_bytes
from simstate.record.compression import size_of, unpacked
from simstate.record.container import SNAPSHOT, ContainerReader, RecordPlace
from simstate.record.header import END, STEP, STEPS

T = TypeVar("T")


@dataclass(frozen=True)
class BlockPlace:
    """The samples and steps of a block."""

    first_sample: int
    samples: int
    first_step: int
    steps: int
    place: RecordPlace


class RecordedBlocks:
    """The blocks of a file in order, each read on demand.

    Args:
        file: the file.
        contracts: dtype and shape of each column.
        num_worlds: number of worlds whose columns were recorded.
    """

    def __init__(
        self, file: ContainerReader, contracts: Mapping[str, Any], num_worlds: int
    ) -> None:
        self._file, self._contracts, self._num_worlds = file, contracts, num_worlds
        self._channels = {name: k + 1 for k, name in enumerate([*contracts, STEPS])}
        self.snapshots = self._find_snapshots()
        """Steps before which there are snapshots, in rising order."""
        self.missing = ""
        """Description of the missing blocks; "": none."""
        self.places = self._find_blocks()
        """The blocks in order, up to the first missing one."""
        self.num_samples = sum(block.samples for block in self.places)
        self.num_steps = sum(block.steps for block in self.places)
        is_ended = END in file.attachments
        if is_ended and not self.missing:
            self._check_end()
        self.is_whole = is_ended and not self.missing
        """True if the file was completed and no block is missing."""

    def columns(
        self, block: BlockPlace, names: Sequence[str] | None = None
    ) -> dict[str, np.ndarray]:
        """Return columns of one block by name; None: all."""
        messages = self._file.messages(block.place)
        return {
            name: self._array(messages, name, block.samples)
            for name in (self._contracts if names is None else names)
        }

    def steps(self, block: BlockPlace) -> list[Step]:
        """Return the steps of one block."""
        messages = self._file.messages(block.place)
        data = messages.get(self._channels[STEPS], b"")
        found = self._sound(lambda: steps_from_bytes(data))
        if len(found) != block.steps:
            raise self._file.altered("a block has other steps than it says")
        return found

    def kind(self, name: str, samples: int) -> tuple[str, list[int]]:
        """Return dtype and shape of this many samples of a column."""
        contract = self._contracts[name]
        row = [] if name == STEP else [self._num_worlds, *contract["shape"]]
        size_of(contract["dtype"], [samples, *row])
        return contract["dtype"], [samples, *row]

    def _find_snapshots(self) -> list[int]:
        names = [n for n in self._file.attachments if n.startswith(SNAPSHOT)]
        for name in names:
            number = name.removeprefix(SNAPSHOT)
            is_number = number.isascii() and number.isdecimal() and len(number) < 19
            if not is_number or number != str(int(number)):
                raise self._file.altered(f"{name[:80]!r} names no step")
        return sorted(int(name.removeprefix(SNAPSHOT)) for name in names)

    def _find_blocks(self) -> list[BlockPlace]:
        found: list[BlockPlace] = []
        sample = step = 0
        for number, (place, about) in enumerate(self._file.blocks):
            index, first_sample, samples, first_step, steps = self._sound(
                lambda data=about: _numbers(json.loads(data))
            )
            is_next = (index, first_sample, first_step) == (number, sample, step)
            if place is None or not is_next:
                rest = len(self._file.blocks) - number - (place is None)
                self.missing = (
                    f"block {number}, from step {step} on, is not in the file; {rest} "
                    "after it cannot be placed"
                )
                break
            found.append(BlockPlace(first_sample, samples, first_step, steps, place))
            sample, step = sample + samples, step + steps
        return found

    def _check_end(self) -> None:
        """Find blocks that are missing at the end of a completed file."""
        stated = self._sound(lambda: json.loads(self._file.attachment(END)))
        blocks = len(self.places)
        have = {"blocks": blocks, "samples": self.num_samples, "steps": self.num_steps}
        if stated != have:
            self.missing = (
                f"it ends with block {blocks - 1}, but its last line states "
                f"{str(stated)[:120]}"
            )

    def _array(
        self, messages: Mapping[int, bytes], name: str, samples: int
    ) -> np.ndarray:
        dtype, shape = self.kind(name, samples)
        data = messages.get(self._channels[name])
        if data is None:
            raise self._file.altered(f"a block has no {name!r}")
        return self._sound(lambda: unpacked(data, dtype, shape))

    def _sound(self, read: Callable[[], T]) -> T:
        """Return the result of a read; its errors name the file."""
        try:
            return read()
        except (RecordingError, *WRONG) as error:
            raise self._file.altered(str(error)) from error


def _numbers(block: Any) -> list[int]:
    """Return the numbers of a block; raise unless they are integers ≥ 0."""
    keys = ("block", "first_sample", "samples", "first_step", "steps")
    found: list[Any] = [block[key] for key in keys]
    if not all(isinstance(number, int) and number >= 0 for number in found):
        raise ValueError(f"a block of {found}")
    return found
