"""A stand-in for Ray in this process: workers that can be lost on purpose."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from types import SimpleNamespace

import cloudpickle
import torch

from simstate.data.ray import Cluster


@contextmanager
def same_threads():
    """Give torch as many threads at the end as it had: workers take one each."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


class LostError(Exception):
    """What Ray raises of a worker that is gone."""


class AnswerLostError(Exception):
    """What Ray raises of a result that is gone, while its worker may live."""


class RayHere:
    """As much of Ray as workers need. `lose(k)` takes the k-th that was started."""

    cloudpickle = cloudpickle
    exceptions = SimpleNamespace(
        RayActorError=LostError,
        ObjectLostError=AnswerLostError,
        RayTaskError=ZeroDivisionError,
        RayError=LostError,
    )

    def __init__(self) -> None:
        self.started: list = []

    def put(self, thing):
        return cloudpickle.dumps(thing)

    def remote(self, **options):
        assert options == {"num_cpus": 1, "max_restarts": 0}
        return lambda kind: SimpleNamespace(
            remote=lambda make: self.start_actor(kind, make)
        )

    def start_actor(self, kind, make):
        actor = SimpleNamespace(
            held=kind(pickle.loads(make)), is_lost=False, is_killed=False, answers=True
        )
        actor.call = SimpleNamespace(remote=lambda *args: self.call_actor(actor, *args))
        self.started.append(actor)
        return actor

    def call_actor(self, actor, method, args):
        if actor.is_lost:
            return None
        given = pickle.loads(pickle.dumps(args))
        answer = pickle.dumps(actor.held.call(method, given))
        return answer if actor.answers else AnswerLostError

    def lose(self, k: int) -> None:
        self.started[k].is_lost = True

    def lose_answers(self, k: int) -> None:
        self.started[k].answers = False

    def wait(self, results, timeout):
        return results, []

    def get(self, result):
        if result is None:
            raise LostError("the worker has died")
        if result is AnswerLostError:
            raise AnswerLostError
        return pickle.loads(result)

    def kill(self, actor):
        actor.is_lost = actor.is_killed = True


class ClusterHere(Cluster):
    """A cluster of as many workers in this process."""

    def __init__(self, workers: int) -> None:
        self.ray, self.workers, self._patience = RayHere(), workers, 1.0
        self._is_ours = False
