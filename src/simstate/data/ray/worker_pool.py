"""Workers: objects on the machines of a cluster that survive the loss of a machine."""

# Ray is loaded when a cluster is created.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from simstate.base.closeable import Closing
from simstate.base.errors import SimStateError
from simstate.data.ray.cluster import RETRIES, Cluster, one_thread


class SavedObject(Protocol):
    """An object on a worker, whose complete state can be saved and loaded."""

    def save(self) -> bytes:
        """Return the complete state of the object."""
        ...

    def load(self, saved: bytes) -> None:
        """Restore a state that `save` returned."""
        ...


@dataclass(frozen=True)
class _Since:
    """The last save, and the calls after it, which all workers have completed."""

    saved: Sequence[bytes] | None = None
    """Result of `save` on each worker; None: start with new objects."""
    number: int = 0
    """Number of calls before the save."""
    calls: list[_Call] = field(default_factory=list["_Call"])


@dataclass(frozen=True)
class _Call:
    """A call of all objects, with the arguments of each."""

    method: str
    args: Sequence[tuple[Any, ...]]


class Workers(Closing):
    """Objects on workers, one on each, which are called together.

    A call is atomic. Calls are numbered, and one is accepted once all workers have
    completed it. If it fails or is interrupted, `sync` or the next call restores the
    workers that are ahead or behind to the last accepted call: they load the last save
    and repeat the calls since then, with bitwise the same results. A lost worker is
    replaced in the same way.

    Args:
        cluster: the cluster of the workers.
        makes: functions that create the objects, called on the workers; sent once.
    """

    def __init__(
        self, cluster: Cluster, makes: Sequence[Callable[[], SavedObject]]
    ) -> None:
        self._cluster, self._ray = cluster, cluster.ray
        self._makes = [cluster.put(make) for make in makes]
        self._since = _Since()
        self._attempt: _Call | None = None
        """A call that some workers may have completed and that is not accepted."""
        self._is_closed = False
        self._actors: list[Any] = []
        self.replaced = 0
        """Number of workers that were lost and replaced."""
        try:
            for k in range(len(makes)):
                self._actors.append(self._started(k))
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._actors)

    @property
    def number(self) -> int:
        """Number of accepted calls."""
        return self._since.number + len(self._since.calls)

    @property
    def num_unsaved(self) -> int:
        """Number of calls since the last save."""
        return len(self._since.calls)

    def call(self, method: str, *args: Sequence[Any]) -> list[Any]:
        """Call a method of all objects at once; return the results in their order.

        Each of `args` has an argument for each object.
        """
        results = self.attempt(method, *args)
        self.commit()
        return results

    def attempt(self, method: str, *args: Sequence[Any]) -> list[Any]:
        """Call a method as `call` does; it is accepted by `commit`, or rolled back."""
        self.sync()
        each = [tuple(arg[k] for arg in args) for k in range(len(self))]
        self._attempt = _Call(method, each)
        sent = [self._send(k, method, values) for k, values in enumerate(each)]
        return [self._result(k, result) for k, result in enumerate(sent)]

    def commit(self) -> None:
        """Accept the last attempt."""
        assert self._attempt is not None
        self._since.calls.append(self._attempt)
        self._attempt = None

    def sync(self) -> None:
        """Restore all workers to the last accepted call."""
        self._check_open()
        if self._attempt is None:
            return
        if self._since.calls and self._since.calls[-1] is self._attempt:
            self._attempt = None  # interrupted within `commit`: all workers completed
            return
        self._attempt = _Call("ask", [("number",)] * len(self))
        for k, number in enumerate(self._ask("number")):
            if number != self.number:
                self._result(k, self._repeat(k))
        self._attempt = None

    def ask(self, method: str) -> list[Any]:
        """Call a method that changes no object; "pid" returns the process ids."""
        self.sync()
        return self._ask(method)

    def _ask(self, method: str) -> list[Any]:
        again = "ask", (method,)
        sent = [self._send(k, *again) for k in range(len(self))]
        return [self._result(k, result, again) for k, result in enumerate(sent)]

    def save(self) -> None:
        """Save the objects; workers that are lost or out of step restart from here."""
        self._since = _Since(self.ask("save"), self.number)

    def close(self) -> None:
        """End the workers."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors, self._is_closed = [], True

    def _check_open(self) -> None:
        if self._is_closed:
            raise SimStateError(
                "The workers are closed and their objects are gone: create new ones.",
                name="workers",
            )

    def _started(self, k: int) -> Any:
        remote = self._ray.remote(num_cpus=1, max_restarts=0)(_Holder)
        return remote.remote(self._makes[k])

    def _send(self, k: int, method: str, args: tuple[Any, ...]) -> Any:
        return self._actors[k].call.remote(method, args)

    def _result(
        self, k: int, sent: Any, again: tuple[str, tuple[Any, ...]] | None = None
    ) -> Any:
        """Return a result; replace the worker and repeat the call if it is lost."""
        errors = self._ray.exceptions
        lost: Exception | None = None
        for _ in range(RETRIES + 1):
            try:
                return self._cluster.wait_for(sent, f"worker {k}")
            except (errors.RayActorError, errors.ObjectLostError) as error:
                lost = error
                self._replace(k)
                sent = self._repeat(k)
                if self._attempt is not None:
                    sent = self._send(k, self._attempt.method, self._attempt.args[k])
                if again is not None:
                    sent = self._send(k, *again)
        raise SimStateError(
            f"Worker {k} was lost {RETRIES + 1} times in one call: {lost}",
            name="workers",
        ) from lost

    def _replace(self, k: int) -> None:
        """Start another worker; kill the old one, in case only its answer was lost."""
        self._ray.kill(self._actors[k])
        self.replaced += 1
        self._actors[k] = self._started(k)

    def _repeat(self, k: int) -> Any:
        """Replay the accepted calls on a worker; return the last result.

        Calls of one worker are executed in order: only the last one is waited for.
        """
        since = self._since
        saved = None if since.saved is None else since.saved[k]
        sent = self._send(k, "start", (saved, since.number))
        for call in since.calls:
            sent = self._send(k, call.method, call.args[k])
        return sent


class _Holder:
    """A worker's process, which counts the calls of its object."""

    def __init__(self, make: Callable[[], Any]) -> None:
        one_thread()
        self._make, self._held, self._number = make, make(), 0

    def call(self, method: str, args: tuple[Any, ...]) -> Any:
        """Call a method of the object and count it; or call `ask` or `start`."""
        if method in ("ask", "start"):
            return getattr(self, method)(*args)
        result = getattr(self._held, method)(*args)
        self._number += 1
        return result

    def ask(self, method: str) -> Any:
        """Call a method that changes nothing; "number" returns the number of calls."""
        own = {"number": self._number, "pid": os.getpid()}
        return own[method] if method in own else getattr(self._held, method)()

    def start(self, saved: bytes | None, number: int) -> None:
        """Restore the object to its state after `number` calls; None: create one."""
        if saved is not None:
            self._held.load(saved)
        elif self._number:
            self._held = self._make()
        self._number = number
