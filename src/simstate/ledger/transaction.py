"""Transactions: a call has happened wholly or not at all, whatever interrupts it.

A transaction saves what the call may change and puts it back if the call does not come
to its end: an exception of a force model, a warning turned into an error, Ctrl-C.
Python may raise the latter between any two instructions, also in the middle of an undo.
So a transaction stays open until its undo is complete, and the next call finishes what
was interrupted: it finds one that is open though no running function holds it.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType, TracebackType
from typing import Protocol

from simstate.engine import Stage, is_running
from simstate.errors import ThreadError
from simstate.ledger.memory import Backup, Scope


class Book(Protocol):
    """What keeps the transactions that are open."""

    open: list[Transaction]

    def recover(self) -> None:
        """Undo what an interrupted call has left half done."""
        ...

    def undone(self, transaction: Transaction, stage: Stage) -> None:
        """Take note that a transaction was undone, with values from a stage on."""
        ...


class Transaction:
    """A context that saves what is in its backup, and puts it back on an exception."""

    __slots__ = (
        "_book", "_frame", "_saved", "_thread", "added", "backup", "evaluating",
        "scope", "what",
    )  # fmt: skip

    def __init__(
        self, book: Book, backup: Backup | None, what: str, scope: Scope
    ) -> None:
        self._book = book
        self.backup = backup
        """What is saved; None: the transaction around this one has it."""
        self.what = what
        self.scope: Scope = scope
        self.added: list[str] = []
        """Slots that were registered since it began."""
        self.evaluating = False
        """Whether force models are writing inputs, for one evaluation."""
        self._saved = False
        self._thread = 0
        self._frame: FrameType | None = None

    def __enter__(self) -> Transaction:
        if self._book.open:
            self._book.recover()
        if self.backup is None:
            return self
        self._thread = threading.get_ident()
        self._frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        opened = self._book.open
        opened.append(self)  # from here on it is open
        if opened[0] is not self:
            self._give_way()
        self.backup.save()
        self._saved = True
        return self

    def _give_way(self) -> None:
        """Raise if another thread has begun a moment before.

        A lock would not do: an interruption may come just before its release.
        """
        opened = self._book.open
        for other in opened[: opened.index(self)]:
            if other._thread != self._thread and other in opened:
                opened.remove(self)
                raise other.elsewhere()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.backup is None:
            return
        if kind is not None:
            self.undo()
        opened = self._book.open
        for inner in opened[opened.index(self) + 1 :]:
            if inner._thread == self._thread:
                opened.remove(inner)
        opened.remove(self)  # from here on it is done

    def undo(self) -> None:
        """Put everything back; may be repeated after an interruption."""
        if self.backup is None or not self._saved:
            return
        stage = self.backup.put_back()
        self._book.undone(self, stage)

    def is_running(self) -> bool:
        """Whether the function that began it is still running.

        If it was begun in another thread that is alive, that is an error of the caller:
        the stack of a thread that runs cannot be looked at.
        """
        if self._frame is None or not is_running(self._thread, self._frame):
            return False
        if self._thread != threading.get_ident():
            raise self.elsewhere()
        return True

    def elsewhere(self) -> ThreadError:
        """The error of a thread that comes second."""
        return ThreadError(
            f"{self.what} is running in another thread. A simulation belongs to "
            "one thread at a time: wait for it, or use one Simulation for each."
        )
