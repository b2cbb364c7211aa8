"""Signals at any moment, also within MuJoCo's C code: real ones, by a timer."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator

import pytest
import torch
from tests.env.stateful import stateful_env
from tests.soak import SOAK
from tests.world.test_transactions import make

from simstate import Simulation, integrate
from simstate.env import Env, tasks


@pytest.fixture
def interrupted() -> Iterator[Callable[[float, Callable[[], object]], bool]]:
    """Repeats a call until a SIGALRM raises KeyboardInterrupt in it, as Ctrl-C does.

    Returns whether it was raised: Python loses one that arrives within a finaliser. The
    signal may arrive long after the timer has ended, so calls are repeated until then.
    """
    arrived: list[int] = []

    def interrupt(number, frame):
        arrived.append(number)
        raise KeyboardInterrupt

    def interrupted(seconds: float, call: Callable[[], object]) -> bool:
        arrived.clear()
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            while not arrived:
                call()
        except KeyboardInterrupt:
            return True
        return False

    outer = signal.signal(signal.SIGALRM, interrupt)
    yield interrupted
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, outer)


@pytest.mark.parametrize("integrator", [None, integrate.RK4(), integrate.SRIW1()])
def test_steps_of_a_simulation(interrupted, integrator):
    """Wherever it was hit, the simulation is at one of the states of a quiet run."""
    sim, quiet = make(integrator=integrator), make(integrator=integrator)
    expected = [quiet.snapshot().slots]
    start = sim.snapshot()
    draw = random.Random(1)
    hits = 0
    for i in range(100 * SOAK):
        if i % 20 == 0:
            sim.restore(start)  # well before the arm has lost its mass
        hits += interrupted(draw.uniform(1e-5, 6e-3), lambda: sim.step(3))
        now = sim.snapshot().slots
        steps = round((float(now["time"][0]) - 0.012) / 0.012)
        while len(expected) <= steps:
            quiet.step(3)
            expected.append(quiet.snapshot().slots)
        for name, values in now.items():
            assert torch.equal(values, expected[steps][name]), (name, steps)
    assert hits > 50 * SOAK


@pytest.mark.parametrize("which", ["shipped", "stateful"])
def test_steps_of_an_environment(interrupted, which):
    def env() -> Env:
        if which == "stateful":
            return stateful_env(3, seed=2)
        return Env(tasks.make_cfg("Cartpole-Balance"), num_envs=3, seed=2)

    one, quiet = env(), env()
    action = torch.linspace(-1, 1, 3 * one.action_dim).reshape(3, -1)
    expected = [quiet.snapshot().slots]
    draw = random.Random(2)
    began = time.perf_counter()
    quiet.step(action)
    expected.append(quiet.snapshot().slots)
    some_steps = 3 * (time.perf_counter() - began)
    hits = 0
    for _ in range(60 * SOAK):
        hits += interrupted(draw.uniform(1e-4, some_steps), lambda: one.step(action))
        now = one.snapshot().slots
        steps = int(now["env/step_count"])
        while len(expected) <= steps:
            quiet.step(action)
            expected.append(quiet.snapshot().slots)
        for name, values in now.items():
            assert torch.equal(values, expected[steps][name]), (name, steps)
    assert steps > 5
    assert hits > 30 * SOAK


def test_resets_and_restores(interrupted):
    sim: Simulation = make()
    start = sim.snapshot()
    sim.step(4)
    other = sim.snapshot()
    known = [start.slots, other.slots]
    draw = random.Random(3)
    hits = 0

    def there_and_back() -> None:
        sim.restore(start)
        sim.restore(other)

    for _ in range(150 * SOAK):
        hits += interrupted(draw.uniform(1e-5, 3e-3), there_and_back)
        now = sim.snapshot().slots
        assert any(all(torch.equal(now[n], one[n]) for n in now) for one in known)
    assert hits > 75 * SOAK
