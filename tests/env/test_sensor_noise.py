"""SensorNoise: its statistics, its memory, its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate.base.errors import InvalidInputError
from simstate.env import ObservationGroupCfg, ObservationTermCfg, SensorNoise


def _zeros(env):
    return torch.zeros(env.num_envs, 3)


def _ones(env):
    return torch.ones(env.num_envs, 3)


def _observed(make_env, noise, steps, func=_zeros, num_envs=400) -> np.ndarray:
    term = ObservationTermCfg(func, noise=noise)
    group = ObservationGroupCfg({"x": term}, noise=True)
    env = make_env(num_envs=num_envs, observations={"policy": group})
    seen = [env.observations["policy"].numpy()]
    for _ in range(steps):
        obs, *_ = env.step(torch.zeros(num_envs, env.action_dim))
        seen.append(obs["policy"].numpy())
    return np.stack(seen)


DT = 0.02
"""Of the hopper's environment: four time steps of 5 ms."""


def test_white_noise_has_its_density(make_env) -> None:
    seen = _observed(make_env, SensorNoise(density=0.01), 30)
    assert seen.std() == pytest.approx(0.01 / math.sqrt(DT), rel=0.02)
    apart = (seen[1:] * seen[:-1]).mean() / seen.var()
    assert abs(apart) < 0.02


def test_a_bias_stays_for_an_episode_and_is_redrawn(make_env) -> None:
    seen = _observed(make_env, SensorNoise(bias_std=0.3, scale_std=0.1), 20, _ones)
    assert np.array_equal(seen[1], seen[20])
    expected = math.hypot(0.3, 0.1)
    assert seen[0].std() == pytest.approx(expected, rel=0.06)
    assert seen[0].mean() == pytest.approx(1.0, abs=0.03)
    long = _observed(make_env, SensorNoise(bias_std=0.3), 101, num_envs=50)
    assert np.array_equal(long[1], long[99])
    assert not np.isclose(long[99], long[101]).any()  # episodes of 100 steps


def test_a_bias_wanders_with_its_correlation_time(make_env) -> None:
    """Autocorrelation exp(−t/τ) of a Gauss-Markov process, with a constant variance."""
    noise = SensorNoise(bias_std=0.5, bias_time=0.4)
    seen = _observed(make_env, noise, 40)
    for k in (0, 20, 40):
        assert seen[k].std() == pytest.approx(0.5, rel=0.07)
    for lag in (10, 30):
        product = np.mean([(seen[k] * seen[k + lag]).mean() for k in range(11)])
        assert product / 0.25 == pytest.approx(math.exp(-lag * DT / 0.4), abs=0.06)
    walk = _observed(make_env, SensorNoise(bias_walk=0.2), 40)
    assert walk[40].std() == pytest.approx(0.2 * math.sqrt(40 * DT), rel=0.06)


def test_steps_and_limits(make_env) -> None:
    noise = SensorNoise(density=0.1, resolution=0.25, limits=(-0.5, 0.75))
    seen = _observed(make_env, noise, 5)
    assert set(np.unique(seen)) == {-0.5, -0.25, 0.0, 0.25, 0.5, 0.75}


def test_the_bias_is_part_of_the_world(make_env) -> None:
    """A snapshot brings it back, and world k has the same in any batch."""
    group = ObservationGroupCfg(
        {"x": ObservationTermCfg(_zeros, noise=SensorNoise(bias_std=1, bias_time=0.3))},
        noise=True,
    )
    env = make_env(num_envs=4, observations={"policy": group})
    action = torch.zeros(4, env.action_dim)
    env.step(action)
    snapshot = env.snapshot()
    first = [env.step(action)[0]["policy"] for _ in range(3)]
    env.restore(snapshot)
    again = [env.step(action)[0]["policy"] for _ in range(3)]
    for one, two in zip(first, again, strict=True):
        assert torch.equal(one, two)
    small = make_env(num_envs=2, observations={"policy": group})
    for _ in range(2):
        small.step(action[:2])
    assert torch.equal(small.observations["policy"], first[0][:2])


def test_numbers_that_make_no_sense() -> None:
    for options, name in (
        ({"density": -1.0}, "density"),
        ({"bias_time": 0.0}, "bias_time"),
        ({"limits": (1.0, 0.0)}, "limits"),
    ):
        with raises(InvalidInputError, name=name):
            SensorNoise(**options)
