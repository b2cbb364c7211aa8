"""Calls are atomic, with the compiled bracket and without it."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import traceback

import numpy as np
import pytest
from tests.inside import (
    compiled_saved,
    defer_interrupts,
    is_bracket_compiled,
    new_interrupts,
    undo_in_children,
    write_detectors,
)
from tests.raised import raises

from simstate.base.errors import ThreadError
from simstate.world.calls import MAX_TRIES, Call, Calls, make_calls

KINDS = ["compiled", "python"]


class Memory:
    """Values with a backup, and a rollback that can be made to fail."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.live = np.array([[1.5, -2.0, 3.0], [4.0, 5.5, -6.0]])
        self.copy = np.zeros_like(self.live)
        self.num_failures = 0
        """Number of times that `on_undo` raises."""
        self.undone: list[tuple[str, bool]] = []
        if kind == "compiled":
            if not is_bracket_compiled():
                pytest.skip("the bracket is not compiled here")
            self.calls = make_calls(self.on_undo)
        else:
            self.calls = Calls(self.on_undo)

    def saved(self, columns: slice = slice(None), constant: bool = False):
        """Return some columns as memory to save."""
        if self.kind == "compiled":
            pieces = [(self.live[:, columns], self.copy[:, columns], constant)]
            return compiled_saved(pieces)
        return PythonSaved(self.live[:, columns], self.copy[:, columns], constant)

    def on_undo(self, call, constants) -> None:
        if self.num_failures:
            self.num_failures -= 1
            raise KeyboardInterrupt
        self.undone.append((call.what, bool(constants)))


class PythonSaved:
    storages: frozenset[int] = frozenset()

    def __init__(self, live, copy, constant) -> None:
        self.live, self.copy, self.constant = live, copy, constant

    def save(self) -> None:
        self.copy[:] = self.live

    def restore(self) -> bool:
        differs = not np.array_equal(self.live, self.copy)
        self.live[:] = self.copy
        return differs and self.constant


@pytest.fixture(params=KINDS)
def memory(request):
    return Memory(request.param)


def fail(memory, error=ValueError):
    memory.live += 10.0
    raise error


def test_a_call_returns_its_result_and_closes(memory):
    def add(a, b):
        assert [call.what for call in memory.calls.open] == ["adding"]
        assert memory.calls.open[0].scope == "step"
        assert memory.calls.open[0].thread == threading.get_ident()
        memory.live += a * b
        return a + b

    before = memory.live.copy()
    assert memory.calls.run("step", "adding", memory.saved(), add, 2.0, 3.0) == 5.0
    np.testing.assert_array_equal(memory.live, before + 6.0)
    assert memory.calls.open == []
    assert memory.undone == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_an_exception_restores_the_memory(memory, error):
    before = memory.live.copy()
    with pytest.raises(error):
        memory.calls.run("sim", "failing", memory.saved(), fail, memory, error)
    np.testing.assert_array_equal(memory.live, before)
    assert memory.undone == [("failing", False)]
    assert memory.calls.open == []


def test_only_the_saved_columns_are_restored(memory):
    before = memory.live.copy()
    with pytest.raises(ValueError):
        memory.calls.run("step", "x", memory.saved(slice(1, 3)), fail, memory)
    np.testing.assert_array_equal(memory.live[:, 1:], before[:, 1:])
    np.testing.assert_array_equal(memory.live[:, 0], before[:, 0] + 10.0)


def test_a_difference_in_inputs_of_constants_is_reported(memory):
    with pytest.raises(ValueError):
        memory.calls.run("sim", "x", memory.saved(constant=True), fail, memory)
    with pytest.raises(ZeroDivisionError):
        memory.calls.run("sim", "y", memory.saved(constant=True), lambda: 1 / 0)
    assert memory.undone == [("x", True), ("y", False)]


@pytest.mark.parametrize("times", [1, MAX_TRIES - 1])
def test_a_rollback_that_fails_some_times_is_repeated(memory, times):
    before, memory.num_failures = memory.live.copy(), times
    with pytest.raises(ValueError):
        memory.calls.run("sim", "failing", memory.saved(), fail, memory)
    np.testing.assert_array_equal(memory.live, before)
    assert memory.calls.open == []


@pytest.mark.parametrize("times", [MAX_TRIES, MAX_TRIES + 1])
@pytest.mark.parametrize("then", ["recover", "run"])
def test_a_rollback_that_fails_always_is_finished_by_the_next_call(memory, times, then):
    before, memory.num_failures = memory.live.copy(), times
    with pytest.raises(ValueError):
        memory.calls.run("sim", "failing", memory.saved(), fail, memory)
    assert [(call.what, call.failed) for call in memory.calls.open] == [
        ("failing", True)
    ]
    memory.live += 1.0  # what a stray write leaves behind
    if then == "recover":
        memory.calls.recover()
    else:
        memory.calls.run("sim", "next", memory.saved(), lambda: None)
    np.testing.assert_array_equal(memory.live, before)
    assert memory.calls.open == []
    assert memory.undone == [("failing", False)]


def test_a_rollback_that_never_completes_raises_at_the_next_call(memory):
    memory.num_failures = 3 * MAX_TRIES
    with pytest.raises(ValueError):
        memory.calls.run("sim", "failing", memory.saved(), fail, memory)
    with pytest.raises(KeyboardInterrupt):
        memory.calls.recover()
    assert [call.failed for call in memory.calls.open] == [True]
    memory.num_failures = 0
    memory.calls.recover()
    assert memory.calls.open == []


def test_inner_calls_are_undone_first(memory):
    """Also one whose rollback failed, and whose exception was swallowed."""
    before = memory.live.copy()

    def outer():
        memory.live[:, 2] -= 1.0
        memory.num_failures = MAX_TRIES
        inner = memory.saved(slice(0, 1))
        with pytest.raises(ValueError):
            memory.calls.run("write", "inner", inner, fail, memory)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        memory.calls.run("step", "outer", memory.saved(slice(1, 3)), outer)
    np.testing.assert_array_equal(memory.live, before)
    assert [what for what, _ in memory.undone] == ["inner", "outer"]
    assert memory.calls.open == []


def test_an_inner_call_that_failed_is_undone_when_the_outer_one_succeeds(memory):
    before = memory.live.copy()

    def outer():
        memory.live[:, 2] = 7.0
        memory.num_failures = MAX_TRIES
        inner = memory.saved(slice(0, 2))
        with pytest.raises(ValueError):
            memory.calls.run("write", "inner", inner, fail, memory)
        return "done"

    result = memory.calls.run("step", "outer", memory.saved(slice(2, 3)), outer)
    assert result == "done"
    np.testing.assert_array_equal(memory.live[:, :2], before[:, :2])
    assert memory.calls.open == []
    assert memory.undone == [("inner", False)]


def test_an_inner_rollback_that_fails_again_stays_open_after_the_outer_call(memory):
    """It is finished by the next call; the outer one, which succeeded, is over."""
    before = memory.live.copy()

    def outer():
        memory.live[:, 2] = 7.0
        memory.num_failures = 2 * MAX_TRIES
        with pytest.raises(ValueError):
            memory.calls.run("write", "inner", memory.saved(slice(0, 2)), fail, memory)

    memory.calls.run("step", "outer", memory.saved(slice(2, 3)), outer)
    assert [(call.what, call.failed) for call in memory.calls.open] == [("inner", True)]
    memory.calls.recover()
    assert memory.calls.open == []
    assert memory.undone == [("inner", False)]
    np.testing.assert_array_equal(memory.live[:, :2], before[:, :2])
    assert (memory.live[:, 2] == 17.0).all()


def test_a_save_that_fails_starts_no_call(memory):
    class Broken(PythonSaved):
        def save(self) -> None:
            raise MemoryError

    saved = Broken(memory.live, memory.copy, False)
    with pytest.raises(MemoryError):
        memory.calls.run("sim", "x", saved, pytest.fail, "was called")
    assert memory.calls.open == []
    assert memory.undone == []


def test_another_thread_is_refused(memory):
    inside, go_on = threading.Event(), threading.Event()

    def wait():
        inside.set()
        assert go_on.wait(20)

    args = ("sim", "a long call", memory.saved(), wait)
    thread = threading.Thread(target=memory.calls.run, args=args)
    thread.start()
    assert inside.wait(20)
    with raises(ThreadError, name="a long call"):
        memory.calls.run("sim", "x", memory.saved(), pytest.fail)
    with pytest.raises(ThreadError):
        memory.calls.recover()
    go_on.set()
    thread.join()
    memory.calls.recover()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_within_a_call_of_another_thread(memory):
    """In the child, the call of the missing thread is undone by the next call."""
    undo_in_children(memory.calls)
    before = memory.live.copy()
    inside, go_on = threading.Event(), threading.Event()

    def change():
        memory.live += 5.0
        inside.set()
        assert go_on.wait(20)

    args = ("sim", "x", memory.saved(), change)
    thread = threading.Thread(target=memory.calls.run, args=args)
    thread.start()
    assert inside.wait(20)
    child = os.fork()
    if child == 0:
        try:
            memory.calls.recover()
            fine = np.array_equal(memory.live, before) and not memory.calls.open
            os._exit(0 if fine else 1)
        except BaseException:
            traceback.print_exc()
            os._exit(2)
    status = os.waitpid(child, 0)[1]
    go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
    np.testing.assert_array_equal(memory.live, before + 5.0)


def test_interrupts_leave_the_memory_before_or_after(memory):
    """SIGINT at random moments, in the call or around it, sent by another thread."""
    if memory.kind == "python":
        defer_interrupts()
    rng, ready, end = np.random.default_rng(3), threading.Event(), threading.Event()

    def interrupt():
        while ready.wait() and not end.is_set():
            ready.clear()
            for _ in range(int(rng.integers(60))):
                pass
            _thread.interrupt_main(signal.SIGINT)

    def work():
        memory.live += 1.0
        for _ in range(40):
            memory.live *= 1.0
        memory.live += 1.0

    thread, interval = threading.Thread(target=interrupt), sys.getswitchinterval()
    thread.start()
    sys.setswitchinterval(1e-6)
    num_in_calls = 0
    try:
        for _ in range(300):
            before, saved = memory.live.copy(), memory.saved()
            num_done = 0
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012
                ready.set()
                for _ in range(8):
                    memory.calls.run("sim", "work", saved, work)
                    num_done += 1
                while True:  # until it arrives
                    num_done += 0
            num_in_calls += num_done < 8
            change = memory.live - before
            assert (change == change[0, 0]).all()
            assert change[0, 0] in (2.0 * num_done, 2.0 * num_done + 2.0)
            assert memory.calls.open == []
    finally:
        sys.setswitchinterval(interval)
        end.set()
        ready.set()
        thread.join()
    assert num_in_calls > 10


def test_writes_and_other_memory_are_found():
    import torch

    one, two = torch.zeros(3), torch.zeros(2)
    tensors = [one, two]
    versions = [x._version for x in tensors]
    pointers = [x.data_ptr for x in tensors]
    addresses = [x.data_ptr() for x in tensors]
    for changed in write_detectors():
        assert not changed(tensors, versions, pointers, addresses)
    two[1] = 4.0
    for changed in write_detectors():
        assert changed(tensors, versions, pointers, addresses)
    versions = [x._version for x in tensors]
    for changed in write_detectors():
        assert not changed(tensors, versions, pointers, addresses)
    one.data = torch.ones(3)
    versions = [x._version for x in tensors]
    for changed in write_detectors():
        assert changed(tensors, versions, pointers, addresses)


def test_saved_memory_must_be_arrays_of_rows():
    if not is_bracket_compiled():
        pytest.skip("the bracket is not compiled here")
    live = np.zeros((4, 6))
    with pytest.raises(ValueError, match="rows are contiguous"):
        compiled_saved([(live[:, ::2], np.zeros((4, 3)), False)])
    with pytest.raises(ValueError, match="equal size"):
        compiled_saved([(live, np.zeros((4, 3)), False)])
    with pytest.raises(TypeError, match="four or more"):
        make_calls(lambda *_: None).run("sim")  # type: ignore


def test_the_innermost_call_tells_the_thread():
    calls = Calls(lambda *_: None)
    outer, inner = Call("sim", "outer", None), Call("step", "inner", None)
    calls.open[:] = outer, inner
    outer.thread = -1
    calls.recover()
    inner.thread = -1
    outer.thread = threading.get_ident()
    with raises(ThreadError, name="inner"):
        calls.recover()


@pytest.mark.parametrize("fails", [False, True])
def test_ctrl_c_is_deferred_within_calls_only(fails):
    """Also after calls that have ended: each Ctrl-C outside of them is raised."""
    memory = Memory("python")
    with new_interrupts() as interrupts:
        interrupts.install()
        for _ in range(2):
            memory.calls.run("sim", "x", memory.saved(), lambda: None)
            if fails:
                with pytest.raises(ValueError):
                    memory.calls.run("sim", "x", memory.saved(), fail, memory)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        memory.undone.clear()
        before = memory.live.copy()

        def interrupted():
            memory.live += 1.0
            try:
                signal.raise_signal(signal.SIGINT)
            finally:  # the call is being rolled back from here on
                signal.raise_signal(signal.SIGINT)
                memory.undone.append(("deferred", False))

        def undo(call, constants):
            signal.raise_signal(signal.SIGINT)  # a second one, which is dropped
            memory.undone.append((call.what, constants))

        calls = Calls(undo)
        with pytest.raises(KeyboardInterrupt):
            calls.run("sim", "y", memory.saved(), interrupted)
        np.testing.assert_array_equal(memory.live, before)
        assert memory.undone == [("deferred", False), ("y", False)]


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_process_that_handles_no_ctrl_c_keeps_its_setting(handler):
    with new_interrupts() as interrupts:
        signal.signal(signal.SIGINT, handler)
        interrupts.install()
        assert signal.getsignal(signal.SIGINT) == handler
        signal.signal(signal.SIGINT, signal.default_int_handler)
        thread = threading.Thread(target=interrupts.install)
        thread.start()
        thread.join()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        interrupts.install()
        installed = signal.getsignal(signal.SIGINT)
        assert installed is not signal.default_int_handler
        interrupts.install()
        assert signal.getsignal(signal.SIGINT) == installed
