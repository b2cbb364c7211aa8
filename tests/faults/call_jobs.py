"""Jobs that move worlds: calls on a simulation, an environment and remote worlds."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from tests.data.ray.ray_here import ClusterHere, RayHere
from tests.env.stateful import stateful_env
from tests.faults.injection import Injection
from tests.faults.job import TRIES, Job, Work, digest_of
from tests.world.test_transactions import ROBOT
from torch import Tensor

from simstate import EntityCfg, NativeCfg, SceneCfg, Simulation, integrate
from simstate.data.ray import Cluster, RemoteEnv
from simstate.env import tasks


class CallsJob(Job):
    """Makes calls on worlds, and the same calls on others that no fault meets.

    A call that a fault ends has been made completely or not at all; it is then made
    again. Afterwards both have the same bits.
    """

    name = "calls"
    variants = 4
    calls = 10

    def run(self, work: Work, variant: int) -> None:
        worlds, twin = self._make(work.threads, variant), self._make(1, variant)
        for k in range(self.calls):
            call = self._call(k, variant)
            before = self._state(worlds)
            call(twin)
            after = self._state(twin)
            for _ in range(TRIES):
                done = work.attempt(lambda call=call: call(worlds))
                now = self._state(worlds)
                if done or now == after:
                    break
                if call.__name__ != "run_on":  # which keeps the steps it has taken
                    half = _names(before, now)
                    assert now == before, f"call {k} is half done: {half}"
            now = self._state(worlds)
            assert now == after or not done, f"call {k}: {_names(after, now)}"
            if now != after:
                return
        work.note("result", digest=digest_of(self._slots(worlds)))

    def _make(self, threads: int, variant: int) -> Any:
        robot = EntityCfg(model=ROBOT)
        scene = SceneCfg(entities={"robot": robot}, ground=False, timestep=0.004)
        schemes = (None, integrate.RK4(), integrate.DP54(), None)
        sim = Simulation(
            scene, 3, integrator=schemes[variant], on_divergence="mask", seed=3,
            engine=NativeCfg(num_threads=threads),
        )  # fmt: skip
        sim.data.qvel[:] = torch.linspace(-1, 1, 21, dtype=sim.dtype).reshape(3, 7)
        sim.expand("body_mass")[:, 1] *= torch.tensor([0.8, 1.1, 1.3]).to(sim.dtype)
        sim.memory("mine", (2,), reset=3.0)
        if variant == 1:
            sim.add_force(_push)
        if variant == 3:
            sim.add_event(lambda s: s.data.qpos[:, 2] - 0.97, action=_stir, name="low")
            sim.add_task(_stir, 0.01, name="stir")
        sim.step(2)
        return sim

    def _call(self, k: int, variant: int) -> Callable[[Any], object]:
        chance = random.Random(100 * variant + k)
        value = chance.uniform(-0.5, 0.5)
        some = chance.sample(range(3), 2)

        def write(sim: Simulation) -> None:
            robot = sim.scene["robot"]
            robot.write_joint_position_to_sim(
                torch.full((2, robot.num_joints), value, dtype=sim.dtype), env_ids=some
            )

        def parameter(sim: Simulation) -> None:
            sim.write_parameter("body_mass", [[1.0 + value], [1.3 - value]], [1], some)

        def run_on(sim: Simulation) -> None:
            sim.run(until=0.011 * (k + 2))

        def copy_worlds(sim: Simulation) -> None:
            sim.restore(sim.snapshot(some), some[::-1])

        return chance.choice(
            [
                write,
                parameter,
                copy_worlds,
                lambda sim: sim.step(3),
                lambda sim: sim.step(2, some),
                run_on,
                lambda sim: sim.reset(some),
                lambda sim: sim.set_states(
                    {"robots": {"robot": {"pos": [value, 0.2, 1.0]}}}, some
                ),
            ]
        )

    def _slots(self, worlds: Any) -> dict[str, Tensor]:
        return dict(worlds.snapshot().slots)

    def _state(self, worlds: Any) -> Mapping[str, str]:
        """Return a digest of each slot, to compare."""
        return {name: digest_of({name: v}) for name, v in self._slots(worlds).items()}


class EnvJob(CallsJob):
    """Steps an environment whose terms, actions and curricula have memory."""

    name = "env"
    variants = 2

    def _make(self, threads: int, variant: int) -> Any:
        del threads
        return stateful_env(3, seed=1 + variant)

    def _call(self, k: int, variant: int) -> Callable[[Any], object]:
        generator = torch.Generator().manual_seed(31 * variant + k)
        action = torch.randn(3, 12, generator=generator)
        if k % 5 == 3:
            return lambda env: env.reset(env_ids=[2, 0])
        if k % 5 == 4:
            return lambda env: env.restore(env.snapshot())
        return lambda env: env.step(action)


class RemoteJob(EnvJob):
    """Steps worlds that live on workers, some of which are lost."""

    name = "remote"
    variants = 2
    calls = 7

    def _make(self, threads: int, variant: int) -> Any:
        del threads
        cluster = ClusterHere(2 + variant)
        cluster.ray = LosingRay()
        cfg = tasks.make_cfg("Cartpole-Balance")
        return RemoteEnv(cluster, cfg, 5, seed=variant, save_every=3)

    def run(self, work: Work, variant: int) -> None:
        LosingRay.injection = work.injection
        super().run(work, variant)

    def _call(self, k: int, variant: int) -> Callable[[Any], object]:
        generator = torch.Generator().manual_seed(31 * variant + k)
        action = torch.randn(5, 1, generator=generator)
        return lambda env: env.step(action)


class LosingRay(RayHere):
    """Loses a worker at the calls that a fault selects.

    Other faults meet the program that calls the workers, which are other processes.
    """

    injection: Injection

    def call_actor(self, actor: Any, method: str, args: Any) -> Any:
        if self.injection.loses_worker():
            self.lose(self.started.index(actor))
        with self.injection.paused():
            return super().call_actor(actor, method, args)

    def start_actor(self, kind: type, make: Any) -> Any:
        with self.injection.paused():
            return super().start_actor(kind, make)


class RayJob(RemoteJob):
    """Steps worlds on workers of Ray itself, whose processes are killed.

    Starting Ray takes seconds, so that it is played only on request.
    """

    name = "ray"
    variants = 1
    ending_s = 90.0
    """Ray's agents try for 60 s to report to a server that was killed with them."""

    def run(self, work: Work, variant: int) -> None:
        self._cluster: Cluster | None = None
        try:
            super().run(work, variant)
        finally:
            if self._cluster is not None:
                self._cluster.close()

    def _make(self, threads: int, variant: int) -> Any:
        if self._cluster is not None:  # the twin
            return super()._make(threads, variant)
        self._cluster = cluster = Cluster(workers=2)
        cluster.ray = KillingRay(cluster.ray)
        cfg = tasks.make_cfg("Cartpole-Balance")
        return RemoteEnv(cluster, cfg, 5, seed=variant, save_every=3)


class KillingRay:
    """Ray, whose workers are killed at the calls that a fault selects."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ray, name)

    def remote(self, **options: Any) -> Any:
        """Return Ray's decorator, whose actors count their calls."""
        decorate = self._ray.remote(**options)

        def start(kind: type) -> Any:
            actors = decorate(kind)
            return SimpleNamespace(remote=lambda make: self.start_actor(actors, make))

        return start

    def start_actor(self, actors: Any, make: Any) -> Any:
        actor = actors.remote(make)

        def call(method: str, args: Any) -> Any:
            if LosingRay.injection.loses_worker():
                self._ray.kill(actor)
            return actor.call.remote(method, args)

        return SimpleNamespace(actor=actor, call=SimpleNamespace(remote=call))

    def kill(self, actor: Any) -> None:
        """Kill a worker."""
        self._ray.kill(actor.actor)


def _names(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return the slots that differ."""
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def _push(t: Tensor, sim: Simulation) -> None:
    sim.data.xfrc_applied[:, 1, :3] += (
        torch.cos(t)[:, None] - 0.3 * sim.data.qvel[:, :3]
    )


def _stir(sim: Simulation, env_ids: Tensor | None = None) -> None:
    rows = slice(None) if env_ids is None else env_ids
    sim.data.qvel[rows, 3] += 0.1
