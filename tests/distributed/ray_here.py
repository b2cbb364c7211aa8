"""A stand-in for Ray in this process: workers that can be lost on purpose."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

from simstate.distributed import Cluster


class LostError(Exception):
    """What Ray raises of a worker that is gone."""


class RayHere:
    """As much of Ray as workers need. `lose(k)` takes the k-th that was started."""

    exceptions = SimpleNamespace(
        RayActorError=LostError, RayTaskError=ZeroDivisionError, RayError=LostError
    )

    def __init__(self) -> None:
        self.started: list = []

    def put(self, thing):
        return pickle.dumps(thing)

    def remote(self, **options):
        assert options == {"num_cpus": 1, "max_restarts": 0}
        return lambda kind: SimpleNamespace(remote=lambda make: self._start(kind, make))

    def _start(self, kind, make):
        actor = SimpleNamespace(held=kind(pickle.loads(make)), is_lost=False)
        actor.call = SimpleNamespace(remote=lambda *args: self._called(actor, *args))
        self.started.append(actor)
        return actor

    def _called(self, actor, method, args):
        if actor.is_lost:
            return None
        given = pickle.loads(pickle.dumps(args))
        return pickle.dumps(actor.held.call(method, given))

    def lose(self, k: int) -> None:
        self.started[k].is_lost = True

    def wait(self, results, timeout):
        return results, []

    def get(self, result):
        if result is None:
            raise LostError
        return pickle.loads(result)

    def kill(self, actor):
        actor.is_lost = True


class ClusterHere(Cluster):
    """A cluster of as many workers in this process."""

    def __init__(self, workers: int) -> None:
        self.ray, self.workers, self._patience = RayHere(), workers, 1.0
        self._is_ours = False
