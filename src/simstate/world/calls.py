"""Calls: the open calls of a simulation, each of which is atomic.

A public call that changes worlds is one function passed to `Calls.run`. It records the
call as open, saves the memory that the call may change, calls the function and, on any
exception, restores the memory. This is the only place that implements safety.

With the compiled bracket (`calls.c`) no Python instruction runs between these steps, so
neither Ctrl-C nor an exception set by another thread or a tracer can separate them.
Without a compiler, `Calls` does the same and defers Ctrl-C in between. It gives
no guarantee for exceptions that another thread or a tracer sets, nor where the process
replaces Python's SIGINT handler after the first simulation was created.
"""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable, Sequence
from importlib import import_module
from types import FrameType
from typing import Any, Literal, Protocol, TypeVar

from simstate.base import compiled_core
from simstate.base.errors import ThreadError

T = TypeVar("T")

Scope = Literal["inputs", "step", "run", "sim", "env", "write"]
"""The memory that a call may change.

"inputs": what force models may write; "step": what a step changes; "run" and "sim":
everything that belongs to the simulation; "env": everything; "write": some slots.
"""

MAX_TRIES = 16
"""Attempts to complete a rollback before the next call has to finish it."""


class Saved(Protocol):
    """The memory of a scope and its backup."""

    @property
    def storages(self) -> frozenset[int]:
        """Addresses of the storages that the memory belongs to."""
        ...

    def save(self) -> None:
        """Copy the live memory."""
        ...

    def restore(self) -> bool:
        """Restore the live memory; True if an input of derived constants differed."""
        ...


class Call:
    """An open call; the compiled bracket's have the same attributes."""

    def __init__(self, scope: Scope, what: str, saved: Saved | None) -> None:
        self.scope: Scope = scope
        """The memory that the call may change."""
        self.what = what
        """The name of the call in error messages."""
        self.saved = saved
        """The memory that a rollback restores."""
        self.thread = threading.get_ident()
        """The identifier of the thread that runs the call."""
        self.added: list[str] | None = None
        """Slots that were registered during the call."""
        self.evaluating = False
        """True while force models write inputs and reads refer to a stage."""
        self.failed = False
        """True if the call has ended and its rollback has not: the next caller finishes
        it."""


class Undone(Protocol):
    """Keeps values outside of slots, which are part of no snapshot."""

    def undo(self, call: Call) -> None:
        """Remove what was kept in a call; idempotent, and calls no user code."""
        ...


OnUndo = Callable[[Call, bool], None]
"""`on_undo(call, constants)` runs after the memory of a call was restored.

`constants` is True if an input of derived constants differed. It must be idempotent.
"""


def _load_bracket() -> Any:
    """Return the compiled bracket, or None if it was not built or is switched off."""
    if os.environ.get(compiled_core.SWITCH, "1") == "0":
        return None
    try:
        return import_module("simstate.world._bracket")
    except ImportError:
        return None


_bracket: Any = _load_bracket()


def make_calls(on_undo: OnUndo) -> Calls:
    """Return the open calls of a new ledger."""
    made: Any
    if _bracket is None:
        _interrupts.install()
        made = Calls(on_undo)
    else:
        made = _bracket.Calls(on_undo, wrong_thread)
    _known.add(made)
    return made


def wrong_thread(what: str) -> ThreadError:
    """Return the error for a thread that interferes with the call of another."""
    return ThreadError(
        f"{what} is running in another thread. A simulation belongs to one thread at a "
        "time: wait for it, or use one Simulation for each.",
        name=what,
    )


class Calls:
    """The open calls of one ledger, without the compiled bracket.

    That has the same attributes and methods, except `forget_threads`.
    """

    def __init__(self, on_undo: OnUndo) -> None:
        self.open: list[Call] = []
        """The open calls, innermost last: each is running or has `failed` set."""
        self._on_undo = on_undo
        self._opening = threading.RLock()

    def forget_threads(self) -> None:
        """Release the lock in a forked child: its owner may be in the parent."""
        self._opening = threading.RLock()

    def run(
        self,
        scope: Scope,
        what: str,
        saved: Saved | None,
        call: Callable[..., T],
        /,
        *args: Any,
    ) -> T:
        """Return `call(*args)`; on an exception, restore `saved` first."""
        entry = Call(scope, what, saved)
        with self._opening:  # no other thread opens a call in between
            self.recover()
            index = len(self.open)
            _interrupts.begin()
            try:
                if saved is not None:
                    saved.save()
                self.open.append(entry)
            except BaseException:
                _interrupts.end(drop=True)
                raise
        try:
            try:
                _interrupts.release()
                result = call(*args)
                _interrupts.hold()
            except BaseException:
                _interrupts.hold()  # a second one is deferred from here on
                raise
            self._undo_from(index + 1)
            self.open.remove(entry)
        except BaseException:
            self._undo_from(index)
            _interrupts.end(drop=True)
            raise
        _interrupts.end(drop=False)
        return result

    def recover(self) -> None:
        """Finish the rollback of failed calls.

        Raises:
            ThreadError: another thread is in a call.
        """
        calls = [*self.open]  # other threads close theirs at any time
        first = len(calls)
        while first and calls[first - 1].failed:
            first -= 1
        if first < len(calls):
            error = self._undo_from(first)
            if error is not None:
                raise error
        if first and calls[first - 1].thread != threading.get_ident():
            raise wrong_thread(calls[first - 1].what)

    def _undo_from(self, first: int) -> BaseException | None:
        """Undo calls, innermost first; return the exception that prevented it."""
        while len(self.open) > first:
            error = self._undo(self.open[-1])
            if error is not None:
                for call in self.open[first:]:
                    call.failed = True
                return error
            self.open.pop()
        return None

    def _undo(self, call: Call) -> BaseException | None:
        found, last = False, None
        for _ in range(MAX_TRIES):
            try:
                if call.saved is not None:
                    found = call.saved.restore() or found
                self._on_undo(call, found)
            except BaseException as error:
                last = error
            else:
                return None
        return last


class _Interrupts:
    """Defers SIGINT while a call is opened, closed or rolled back."""

    def __init__(self) -> None:
        self._handler: Any = None
        self._main = threading.main_thread().ident
        self._num_running = 0
        self._is_held = self._is_pending = False

    def install(self) -> None:
        """Replace the handler of SIGINT, once; only the main thread can."""
        handler = signal.getsignal(signal.SIGINT)
        if (
            self._handler is None
            and callable(handler)
            and threading.get_ident() == self._main
        ):
            self._handler = handler
            signal.signal(signal.SIGINT, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._is_held:
            self._is_pending = True
            return
        # If it raises, the running call rolls back: a second one is deferred until
        # then.
        self._is_held = self._num_running > 0
        self._handler(number, frame)
        self._is_held = False

    def begin(self) -> None:
        """Start a call, and defer SIGINT."""
        if threading.get_ident() == self._main:
            self._is_held = True
            self._num_running += 1

    def hold(self) -> None:
        """Defer SIGINT."""
        if threading.get_ident() == self._main:
            self._is_held = True

    def release(self) -> None:
        """Deliver SIGINT, also one that was deferred."""
        if threading.get_ident() == self._main:
            self._is_held = False
            if self._is_pending:
                self._is_pending = False
                signal.raise_signal(signal.SIGINT)

    def end(self, *, drop: bool) -> None:
        """End a call; `drop` forgets a SIGINT that was deferred."""
        if threading.get_ident() == self._main:
            self._num_running -= 1
            if drop:
                self._is_pending = False
            self.release()


_interrupts = _Interrupts()
_known: weakref.WeakSet[Any] = weakref.WeakSet()


def _in_child() -> None:
    """Mark the calls of threads that do not exist in a forked child as failed."""
    for calls in list(_known):
        if isinstance(calls, Calls):
            calls.forget_threads()
        for call in calls.open:
            if call.thread != threading.get_ident():
                call.failed = True


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_in_child)


def make_saved(
    pieces: list[tuple[Any, Any, bool]], storages: frozenset[int]
) -> Saved | None:
    """Return the compiled form of memory and its backup; None: it is not compiled.

    Args:
        pieces: live array, array for its copy, and True if derived constants depend
            on it; NumPy arrays of the same shape, with contiguous rows.
        storages: addresses of the storages that the live arrays belong to.
    """
    return None if _bracket is None else _bracket.Saved(pieces, storages)


Pointer = Callable[[], int]
"""The bound method `data_ptr` of a tensor."""


def _compare(
    tensors: list[Any],
    versions: list[int],
    pointers: list[Pointer],
    addresses: list[int],
) -> Sequence[int]:
    return [
        k
        for k, tensor in enumerate(tensors)
        if tensor._version != versions[k] or pointers[k]() != addresses[k]
    ]


changed: Callable[[list[Any], list[int], list[Pointer], list[int]], Sequence[int]] = (
    _compare if _bracket is None else _bracket.changed
)
"""`changed(tensors, versions, pointers, addresses)`: indices of the tensors that were
written to, or given other memory, since versions and addresses were recorded."""
