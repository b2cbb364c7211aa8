"""Workers: objects that live on the machines of a cluster, and survive losing one."""

# Ray is loaded when a cluster is made.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from simstate.base.closeable import Closing
from simstate.base.errors import SimStateError
from simstate.data.ray.cluster import RETRIES, Cluster, one_thread


class SavedObject(Protocol):
    """What can live on a worker: all that it is can be saved and loaded."""

    def save(self) -> bytes:
        """All that it is."""
        ...

    def load(self, saved: bytes) -> None:
        """Be what `save` gave."""
        ...


class Workers(Closing):
    """One object on each of some workers, which are called together.

    Since the last `save` every call is remembered. A worker that is lost is replaced:
    its object is made anew, loaded, and called as it was, so that it comes to the same
    bits.

    Args:
        cluster: where they live.
        makes: what makes each object, on its worker; they travel once.
    """

    def __init__(
        self, cluster: Cluster, makes: Sequence[Callable[[], SavedObject]]
    ) -> None:
        self._cluster, self._ray = cluster, cluster.ray
        self._makes = [self._ray.put(make) for make in makes]
        self._saved: list[bytes | None] = [None] * len(makes)
        self._calls: list[list[tuple[str, tuple[Any, ...]]]] = [[] for _ in makes]
        self._is_closed = False
        self._actors: list[Any] = []
        self.replaced = 0
        """How many were lost and replaced."""
        try:
            for k in range(len(makes)):
                self._actors.append(self._started(k))
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._actors)

    def call(self, method: str, *args: Sequence[Any]) -> list[Any]:
        """Call a method of all objects at once; the results in their order.

        Each of `args` has an argument for each object.
        """
        self._check_open()
        mine = [tuple(arg[k] for arg in args) for k in range(len(self))]
        for k, values in enumerate(mine):
            self._calls[k].append((method, values))
        sent = [self._send(k, method, values) for k, values in enumerate(mine)]
        return [self._result(k, result) for k, result in enumerate(sent)]

    def save(self) -> None:
        """Let a lost worker begin here, and no longer where the last call of it did."""
        self._check_open()
        sent = [self._send(k, "save", ()) for k in range(len(self))]
        for k, result in enumerate(sent):
            saved = self._result(k, result, "save")
            self._saved[k], self._calls[k] = saved, []

    def close(self) -> None:
        """End the workers."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors, self._is_closed = [], True

    def _check_open(self) -> None:
        if self._is_closed:
            raise SimStateError(
                "The workers are closed, and what lived on them is gone: make it anew."
            )

    def _started(self, k: int) -> Any:
        remote = self._ray.remote(num_cpus=1, max_restarts=0)(_Holder)
        return remote.remote(self._makes[k])

    def _send(self, k: int, method: str, args: tuple[Any, ...]) -> Any:
        return self._actors[k].call.remote(method, args)

    def _result(self, k: int, sent: Any, again: str | None = None) -> Any:
        """A result; of a worker that was replaced, where this one is lost."""
        errors = self._ray.exceptions
        lost: Exception | None = None
        for _ in range(RETRIES + 1):
            try:
                return self._cluster.wait_for(sent, f"worker {k}")
            except (errors.RayActorError, errors.ObjectLostError) as error:
                lost = error
                self._replace(k)
                sent = self._caught_up(k)
                if again is not None:
                    sent = self._send(k, again, ())
        raise SimStateError(
            f"Worker {k} was lost {RETRIES + 1} times in one call: {lost}"
        ) from lost

    def _replace(self, k: int) -> None:
        """Start a worker anew; the old one may live, if only its answer was lost."""
        self._ray.kill(self._actors[k])
        self.replaced += 1
        self._actors[k] = self._started(k)

    def _caught_up(self, k: int) -> Any:
        """What the last call gives, once a new worker has come where the old was.

        Calls of one worker are done in order: only the last is waited for.
        """
        sent = None
        if (saved := self._saved[k]) is not None:
            sent = self._send(k, "load", (saved,))
        for method, args in self._calls[k]:
            sent = self._send(k, method, args)
        return sent


class _Holder:
    """A worker's process."""

    def __init__(self, make: Callable[[], Any]) -> None:
        one_thread()
        self._held = make()

    def call(self, method: str, args: tuple[Any, ...]) -> Any:
        """Call a method of the object; "pid" is the process."""
        return os.getpid() if method == "pid" else getattr(self._held, method)(*args)
