"""Processes: extra states, ready made and your own, under every kind of scheme."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy.stats import kstest
from tests.inside import processes_of
from tests.raised import raises

from simstate import Simulation
from simstate.base.errors import DivergenceError, InvalidInputError, ShapeError
from simstate.integrate import (
    DP54,
    RK4,
    SRA1,
    SRIW1,
    EulerMaruyama,
    GeometricBrownian,
    OrnsteinUhlenbeck,
    Process,
)

SLIDE = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body>
      <joint type="slide" axis="1 0 0"/>
      <geom type="sphere" size="0.1" mass="2"/>
    </body>
  </worldbody>
</mujoco>
"""


def make(scheme, num_envs=4, h=0.01, **options):
    model = mujoco.MjModel.from_xml_string(SLIDE)
    model.opt.timestep = h
    return Simulation(model, num_envs, integrator=scheme, **options)


class Oscillator(Process):
    """x'' = −x."""

    def rate(self, t, sim):
        return torch.stack([self.value[:, 1], -self.value[:, 0]], dim=1)


@pytest.mark.parametrize("engine_scheme", [RK4(), DP54()])
def test_a_process_has_the_order_of_the_scheme_and_drives_forces(engine_scheme):
    """A force model reads it at every stage: 2 v' = cos t."""
    sim = make(engine_scheme, 2, h=0.05)
    process = Oscillator("swing", [[1.0, 0.0], [2.0, 0.0]])
    sim.add_process(process)

    def push(t, sim):
        sim.data.qfrc_applied[:, 0] += process.value[:, 0]

    sim.add_force(push)
    sim.step(20)
    want = np.array([[np.cos(1.0), -np.sin(1.0)]])
    np.testing.assert_allclose(process.value, want * [[1], [2]], atol=3e-7)
    speed = np.sin(1.0) / 2 * np.array([1, 2])
    np.testing.assert_allclose(sim.data.qvel[:, 0], speed, atol=3e-7)


def test_reset_and_restore_bring_the_value_of_chosen_worlds_back():
    sim = make(RK4(), 3)
    process = Oscillator("swing", [1.0, 0.0])
    sim.add_process(process)
    sim.step(5)
    kept, there = sim.snapshot(), process.value.clone()
    sim.step(5)
    moved = process.value.clone()
    sim.restore(kept)
    assert torch.equal(process.value, there)
    sim.step(5)
    assert torch.equal(process.value, moved)
    sim.reset([1])
    assert process.value[1].tolist() == [1.0, 0.0]
    assert torch.equal(process.value[[0, 2]], moved[[0, 2]])


@pytest.mark.parametrize("scheme", [SRA1(), SRIW1()])
def test_ornstein_uhlenbeck_has_its_mean_variance_and_correlation(scheme):
    n, tau, std, mean, start = 8192, 0.6, 1.5, 0.4, 2.0
    sim = make(scheme, n, h=0.05, seed=11)
    process = OrnsteinUhlenbeck("ou", [start], tau, std, mean)
    sim.add_process(process)
    sim.step(10)
    early = process.value[:, 0].numpy().copy()
    sim.step(10)
    late = process.value[:, 0].numpy()
    for t, x in ((0.5, early), (1.0, late)):
        variance = std**2 * (1 - np.exp(-2 * t / tau))
        centre = mean + (start - mean) * np.exp(-t / tau)
        assert abs(x.mean() - centre) < 4 * np.sqrt(variance / n)
        assert abs(x.var() / variance - 1) < 4 * np.sqrt(2 / n)
        assert kstest((x - centre) / np.sqrt(variance), "norm").pvalue > 1e-3
    # Regressed on the early value the late one has the slope exp(−Δt/τ).
    residual = std**2 * (1 - np.exp(-1.0 / tau))
    slope = np.cov(early, late)[0, 1] / early.var()
    spread = np.sqrt(residual / (n * early.var()))
    assert abs(slope - np.exp(-0.5 / tau)) < 4 * spread


def test_euler_maruyama_on_ornstein_uhlenbeck_is_the_known_recursion():
    n, steps, h, tau, std = 3, 6, 0.1, 0.7, 2.0
    w = np.random.default_rng(3).normal(size=(steps, n, 2)) * np.sqrt(h)
    sim = make(EulerMaruyama(), n, h=h)
    process = OrnsteinUhlenbeck("ou", [1.0, -1.0], tau, std, 0.5)
    sim.add_process(process)
    sim.integration.prescribe_noise(torch.tensor(w))
    sim.step(steps)
    x = np.tile([1.0, -1.0], (n, 1))
    for dw in w:  # each number has a source of its own
        x = x + h * (0.5 - x) / tau + std * np.sqrt(2 / tau) * dw
    np.testing.assert_allclose(process.value, x, rtol=0, atol=1e-13)


def test_geometric_brownian_has_its_moments():
    n, mu, sigma = 4096, 0.3, 0.4
    sim = make(SRIW1(), n, h=0.1, seed=5)
    process = GeometricBrownian("gbm", [1.5], mu, sigma)
    sim.add_process(process)
    sim.step(10)
    logs = np.log(process.value[:, 0].numpy() / 1.5)
    assert abs(logs.mean() - (mu - sigma**2 / 2)) < 4 * sigma / np.sqrt(n) + 1e-3
    assert abs(logs.var() / sigma**2 - 1) < 4 * np.sqrt(2 / n) + 5e-3


# ----------------------------------------------------------------------- errors


@pytest.mark.parametrize("name", ["", "qpos", "qvel", "act", "mass"])
def test_a_name_of_the_mechanics_is_refused(name):
    with raises(InvalidInputError, name="name"):
        Oscillator(name, [0.0, 0.0])


@pytest.mark.parametrize("initial", [0.0, [], [[[1.0]]]])
def test_an_initial_value_of_a_wrong_shape_is_refused(initial):
    with raises(ShapeError, name="initial"):
        Oscillator("swing", initial)


def test_initial_values_must_be_finite_and_fit_the_worlds():
    with raises(InvalidInputError, name="initial"):
        Oscillator("swing", [np.nan, 0.0])
    sim = make(RK4(), 4)
    with raises(ShapeError, name="initial"):
        sim.add_process(Oscillator("swing", np.zeros((3, 2))))
    sim.add_process(Oscillator("swing", [0.0, 1.0]))  # it was not left half added


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: OrnsteinUhlenbeck("x", [0.0], 0.0, 1.0), "time_constant"),
        (lambda: OrnsteinUhlenbeck("x", [0.0], 1.0, -1.0), "std"),
        (lambda: OrnsteinUhlenbeck("x", [0.0], float("nan"), 1.0), "time_constant"),
        (lambda: GeometricBrownian("x", [0.0], 1.0, 0.0), "volatility"),
    ],
)
def test_parameters_must_be_positive(build, name):
    with raises(InvalidInputError, name=name):
        build()


def test_processes_need_an_integrator_and_names_that_differ():
    with raises(InvalidInputError, name="swing"):
        make(None).add_process(Oscillator("swing", [0.0, 0.0]))
    sim = make(RK4())
    sim.add_process(Oscillator("swing", [0.0, 0.0]))
    with raises(InvalidInputError, name="swing"):
        sim.add_process(Oscillator("swing", [0.0, 0.0]))
    with raises(InvalidInputError, name="gust"):
        sim.add_process(OrnsteinUhlenbeck("gust", [0.0], 1.0, 1.0))
    assert [process.name for process in processes_of(sim)] == ["swing"]


class Fixed(Process):
    """A rate that is given."""

    def __init__(self, rate):
        super().__init__("fixed", [1.0])
        self.given = rate

    def rate(self, t, sim):
        return self.given


@pytest.mark.parametrize("scheme", [RK4(), SRIW1()])
def test_a_rate_of_a_wrong_shape_leaves_the_state(scheme):
    sim = make(scheme)
    process = Fixed(torch.zeros(4, 3))
    sim.add_process(process)
    sim.data.qvel[:] = 1.0
    before = sim.state.clone()
    with raises(ShapeError, name="rate"):
        sim.step()
    assert torch.equal(sim.state, before)
    assert process.value.tolist() == [[1.0]] * 4


@pytest.mark.parametrize("scheme", [RK4(), SRIW1()])
def test_a_rate_that_is_not_finite_is_named_and_leaves_the_value(scheme):
    sim = make(scheme)
    process = Fixed(torch.full((4, 1), float("nan")))
    sim.add_process(process)
    with raises(InvalidInputError, name="fixed"):
        sim.step()
    assert process.value.tolist() == [[1.0]] * 4


class Exploding(Process):
    """x' = x³ from different values: infinite after 1 / (2 x²)."""

    def rate(self, t, sim):
        return self.value**3


@pytest.mark.parametrize("mode", ["raise", "mask"])
def test_a_process_that_diverges_is_named(mode):
    sim = make(RK4(), num_envs=3, on_divergence=mode)
    heat = Exploding("heat", [[0.1, 0.2], [0.2, 9.0], [0.1, 0.3]])
    sim.add_process(Oscillator("other", [1.0, 0.0]))
    sim.add_process(heat)
    if mode == "raise":
        with raises(DivergenceError, worlds=[1]):
            sim.step(20)
    else:
        sim.step(20)
        assert "process 'heat': value[1]" in sim.divergence.cause.elements[0]
    assert heat.value[1].tolist() == [0.2, 9.0]
    assert heat.value[0, 0] > 0.1  # the others have advanced


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: GeometricBrownian("x", [1.0], float("nan"), 1.0), "drift"),
        (lambda: OrnsteinUhlenbeck("x", [1.0], 1.0, 1.0, float("nan")), "mean"),
        (lambda: OrnsteinUhlenbeck("x", [1.0], 1.0, float("inf")), "std"),
    ],
)
def test_parameters_must_be_finite(build, name):
    with raises(InvalidInputError, name=name):
        build()


def test_what_is_not_a_process_is_refused():
    with pytest.raises(InvalidInputError):
        make(RK4()).add_process("swing")


def test_a_process_belongs_to_one_simulation():
    process = Oscillator("swing", [1.0, 0.0])
    make(RK4()).add_process(process)
    with pytest.raises(InvalidInputError):
        make(RK4()).add_process(process)


def test_a_rate_may_be_an_array():
    class Clock(Process):
        def rate(self, t, sim):
            return np.full((sim.num_envs, 2), 3.0)

    model = mujoco.MjModel.from_xml_string(SLIDE)
    sim = Simulation(model, 2, integrator=RK4())
    clock = Clock("clock", [1.0, 2.0])
    sim.add_process(clock)
    sim.step(10)
    passed = 30 * sim.timestep
    np.testing.assert_allclose(clock.value, [[1 + passed, 2 + passed]] * 2)
