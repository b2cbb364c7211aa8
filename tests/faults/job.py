"""Jobs: programs of users that faults may meet, and what must hold afterwards."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from tests.faults.injection import Injection
from torch import Tensor

from simstate import SimStateError

Note = Mapping[str, Any]
Read = TypeVar("Read")
TRIES = 6
"""How often a user makes a call again that was interrupted."""


class Work:
    """What a job needs while it runs: its folder, and calls that faults may meet."""

    def __init__(
        self,
        folder: Path,
        threads: int,
        injection: Injection,
        note: Callable[..., None],
    ) -> None:
        self.folder, self.threads = folder, threads
        self.injection, self.note = injection, note
        self.is_stopped = False
        """True after a call that did not complete."""

    def attempt(self, call: Callable[[], object]) -> bool:
        """Make a call; return False if a fault ended it with an error it may raise."""
        try:
            self.injection.run(call)
        except (KeyboardInterrupt, MemoryError) as error:
            self.note("stopped", by=type(error).__name__)
        except SimStateError as error:
            self.note("refused", by=type(error).__name__, text=self._plain(str(error)))
        except RuntimeError as error:
            if "allocate memory" not in str(error):
                raise
            self.note("stopped", by="allocation")
        else:
            return True
        self.is_stopped = True
        return False

    def _plain(self, text: str) -> str:
        """Return a message without the folder, which is another one in each run."""
        return text.replace(str(self.folder), "…").split("\n", 1)[0][:200]


class Job(ABC):
    """A program that writes files or moves worlds, and that can be run again.

    A run that completes calls `note("result", digest=…)`, which does not depend on
    faults that it or earlier runs met.
    """

    name: ClassVar[str]
    variants: ClassVar[int] = 1
    ending_s: ClassVar[float] = 0.0
    """Time within which processes of a killed run must have ended [s of wall clock]."""

    def prepare(self, folder: Path, variant: int) -> None:
        """Write the files that are there before the first run."""
        del folder, variant

    @abstractmethod
    def run(self, work: Work, variant: int) -> None:
        """Run the program in a folder where it may have been run before."""

    def check(self, folder: Path, variant: int, notes: Sequence[Note]) -> None:
        """Raise unless the files are as the notes of a run that ended anyhow say."""
        del folder, variant, notes


def digest_of(tensors: Mapping[str, Tensor]) -> str:
    """Return a digest of the names and bits of tensors."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        values = tensors[name].detach().cpu().contiguous()
        total.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        total.update(values.flatten().view(torch.uint8).numpy().tobytes())
    return total.hexdigest()[:16]


def last(notes: Sequence[Note], event: str) -> Note | None:
    """Return the latest note of an event; None: there is none."""
    found = [note for note in notes if note["event"] == event]
    return found[-1] if found else None


def opened(
    read: Callable[[], Read], refusal: type[SimStateError]
) -> tuple[Read | None, str]:
    """Return what is read and ""; or None, and the message that refuses the file."""
    try:
        return read(), ""
    except refusal as error:
        return None, str(error)
