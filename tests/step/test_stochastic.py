"""Stochastic schemes: strong orders against closed forms, and orders without noise.

A world is a path of the noise, so one simulation measures an error over all of them.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.step.stochastic_problems import Given, make, slope

from simstate import integrate
from simstate.integrate import (
    DOP853,
    SRIW1,
    GeometricBrownian,
    Process,
    RKMilstein,
)

TOP = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body>
      <joint type="ball"/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 2 2.5"/>
    </body>
  </worldbody>
</mujoco>
"""
PATHS, FINEST, SUBSTEPS = 256, 512, 16
COUNTS = np.array([8, 16, 32])
SCHEMES = integrate.STOCHASTIC_SCHEMES


# ---------------------------------------------------------------- strong orders


@pytest.fixture(scope="module")
def brownian():
    """Increments and time integrals of two paths over [0, 1]; (FINEST, PATHS, 2) each.

    The paths are walked in substeps and the integrals summed up along them.
    """
    steps = walk()
    w = np.cumsum(steps, axis=1)
    return w[:, -1], ((w - steps / 2) / FINEST / SUBSTEPS).sum(axis=1)


def walk():
    """Increments of two paths in substeps; (FINEST, SUBSTEPS, PATHS, 2)."""
    rng = np.random.default_rng(4)
    steps = rng.normal(size=(FINEST, SUBSTEPS, PATHS, 2))
    return steps / np.sqrt(FINEST * SUBSTEPS)


def coarse(fine, num_steps):
    """The same paths over longer steps: Z = Σ (Z_i + h W(start of i))."""
    w, z = (part.reshape(num_steps, -1, PATHS, part.shape[-1]) for part in fine)
    before = np.cumsum(w, axis=1) - w
    return w.sum(axis=1), (z + before / FINEST).sum(axis=1)


def strong_errors(scheme, problem, fine, want):
    """Root mean square error at t = 1 by component; (counts, width)."""
    errors = []
    for count in COUNTS:
        process = problem()
        sim = make(scheme, 1.0 / count, PATHS, process)
        w, z = coarse(fine, count)
        sim.integration.prescribe_noise(torch.tensor(w), torch.tensor(z))
        sim.step(int(count))
        errors.append(np.sqrt(((process.value.numpy() - want) ** 2).mean(axis=0)))
    return np.array(errors)


def strong_orders(*args):
    return np.array([slope(1 / COUNTS, x) for x in strong_errors(*args).T])


MU, SIGMA, A, BETA = 0.3, 0.6, 0.4, 0.5


def multiplicative(stratonovich):
    """GBM; a nonlinear equation; the unit circle: one source moves all of them."""

    def f(t, x):
        gbm, u = x[:, 0], x[:, 1]
        if stratonovich:
            zero = 0 * u
            first = (MU - SIGMA**2 / 2) * gbm
            return np.stack([first, -A * (1 - u**2), zero, zero], -1)
        nonlinear = -(A + BETA**2 * u) * (1 - u**2)
        return np.stack([MU * gbm, nonlinear, -x[:, 2] / 2, -x[:, 3] / 2], -1)

    def g(t, x):
        parts = [SIGMA * x[:, 0], BETA * (1 - x[:, 1] ** 2), -x[:, 3], x[:, 2]]
        return np.stack(parts, -1)[:, None]

    return lambda: Given([1.0, 0.2, 1.0, 0.0], f, g, 1)


def multiplicative_solution(w):
    e = 1.2 * np.exp(-2 * A + 2 * BETA * w)
    gbm = np.exp(MU - SIGMA**2 / 2 + SIGMA * w)
    return np.stack([gbm, (e + 0.2 - 1) / (e + 1 - 0.2), np.cos(w), np.sin(w)], -1)


FOLLOW_PATHS = ["eulermaruyama", "eulerheun", "rkmilstein", "sriw1", "sosri"]
FOLLOW_PATHS += ["siea", "smea"]


@pytest.mark.parametrize("name", FOLLOW_PATHS)
def test_strong_order_with_one_source(name, brownian):
    scheme = SCHEMES[name]
    one = tuple(part[..., :1] for part in brownian)
    want = multiplicative_solution(one[0].sum(axis=0)[:, 0])
    problem = multiplicative(scheme.calculus == "Stratonovich")
    found = strong_orders(scheme(), problem, one, want)
    assert scheme.strong_order - 0.15 < found.min() < scheme.strong_order + 0.25


@pytest.mark.parametrize("name", FOLLOW_PATHS)
def test_strong_order_with_diagonal_noise(name, brownian):
    """Two geometric Brownian motions, each with its own source and rates."""
    scheme = SCHEMES[name]
    mu, sigma = np.array([0.3, -0.4]), np.array([0.6, 0.8])
    drift = mu - sigma**2 / 2
    want = np.array([1.0, 0.7]) * np.exp(drift + sigma * brownian[0].sum(axis=0))
    rate = drift if scheme.calculus == "Stratonovich" else mu

    def g(t, x):
        return np.einsum("k,nk,kl->nkl", sigma, x, np.eye(2))

    found = strong_orders(
        scheme(), lambda: Given([1.0, 0.7], lambda t, x: rate * x, g, 2), brownian, want
    )
    assert scheme.strong_order - 0.15 < found.min() < scheme.strong_order + 0.25


@pytest.mark.parametrize(
    ("name", "order"), [("eulermaruyama", 0.5), ("eulerheun", 1.0)]
)
def test_strong_order_with_several_sources_on_one_number(name, order, brownian):
    """dx = μ x dt + Σ σ_k x dW_k: sources that mix, but commute."""
    scheme = SCHEMES[name]
    sigma = np.array([0.25, -0.35])
    drift = MU - (sigma**2).sum() / 2
    want = 1.4 * np.exp(drift + brownian[0].sum(axis=0) @ sigma)[:, None]
    rate = drift if scheme.calculus == "Stratonovich" else MU

    def g(t, x):
        return sigma[None, :, None] * x[:, None]

    found = strong_orders(
        scheme(), lambda: Given([1.4], lambda t, x: rate * x, g, 2), brownian, want
    )
    assert found == pytest.approx(order, abs=0.15)


ALPHA, GAMMA = 0.8, 0.5


def additive_drift(t, x):
    linear = GAMMA / np.sqrt(1 + t) - x[:, 0] / (2 * (1 + t))
    return np.stack([linear, np.sin(3 * x[:, 1]) - x[:, 1] ** 3], -1)


def additive_noise(t, x):
    rows = [
        [ALPHA * GAMMA / np.sqrt(1 + t), 0.7 * np.cos(2 * t)],
        [0 * t, 0.5 * np.sin(3 * t)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


@pytest.fixture(scope="module")
def additive_solution(brownian):
    """The first has a closed form, the second is Heun's scheme along the substeps."""
    w = brownian[0].sum(axis=0)[:, 0]
    x = np.tile([1.0, 0.3], (PATHS, 1))
    h = 1 / FINEST / SUBSTEPS
    for n, dw in enumerate(walk().reshape(-1, PATHS, 2)):
        t = np.array([n * h])
        middle = dw @ additive_noise(t + h / 2, x)[0]
        first = additive_drift(t, x)
        end = additive_drift(t + h, x + h * first + middle)
        x = x + h * (first + end) / 2 + middle
    linear = 1 / np.sqrt(2) + GAMMA / np.sqrt(2) * (1 + ALPHA * w)
    return np.stack([linear, x[:, 1]], -1)


@pytest.mark.parametrize(
    ("name", "order"),
    [("eulermaruyama", 1.0), ("sra1", 1.5), ("sosra", 1.5), ("sriw1", 1.5)],
)
def test_strong_order_with_additive_noise_that_depends_on_time(
    name, order, brownian, additive_solution
):
    found = strong_orders(
        SCHEMES[name](),
        lambda: Given([1.0, 0.3], additive_drift, additive_noise, 2),
        brownian,
        additive_solution,
    )
    # Better than its order while the deterministic part, of order 2, is the larger.
    assert found.min() > order - 0.15
    if name == "eulermaruyama":  # so the problem tells the schemes apart
        assert found.max() < 1.2


@pytest.mark.parametrize("name", sorted(set(SCHEMES) - {"sra1", "sosra"}))
def test_strong_order_of_one_step(name):
    """dx = σ x dW by quadrature: the root mean square error of a step, less a half."""
    scheme = SCHEMES[name]
    sigma = 0.7
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    steps, errors = np.array([0.004, 0.002]), []
    for h in steps:
        drift = -(sigma**2) / 2 if scheme.calculus == "Stratonovich" else 0.0
        process = Given(
            [1.0], lambda t, x, c=drift: c * x, lambda t, x: sigma * x[:, None], 1
        )
        sim = make(scheme(), h, len(nodes), process)
        w = torch.tensor(nodes * np.sqrt(h))[None, :, None]
        sim.integration.prescribe_noise(w, h / 2 * w)
        sim.step()
        want = np.exp(sigma * nodes * np.sqrt(h) - sigma**2 * h / 2)
        square = (process.value[:, 0].numpy() - want) ** 2
        errors.append(np.sqrt(weights @ square / weights.sum()))
    found = slope(steps, errors) - 0.5
    stated = 1.0 if name == "platenweak2" else scheme.strong_order  # 0.5 for pairs
    assert found == pytest.approx(stated, abs=0.01)


def test_milstein_takes_its_support_value_at_the_start_of_the_step():
    """dx = a (1 + t) x dt + b (1 + t/2) x dW, multiplied out by hand for two steps."""
    a, b, h = -0.5, 0.3, 0.125
    w = np.array([[0.31, -0.2], [-0.44, 0.12]])  # steps, worlds
    x = start = np.array([0.5, 1.7])
    process = Given(
        start[:, None],
        lambda t, x: a * (1 + t)[:, None] * x,
        lambda t, x: (b * (1 + t / 2)[:, None] * x)[:, None],
        1,
    )
    sim = make(RKMilstein(), h, 2, process)
    sim.integration.prescribe_noise(torch.tensor(w)[..., None])
    sim.step(2)
    for step, dw in enumerate(w):
        drift, noise = a * (1 + step * h), b * (1 + step * h / 2)
        support = noise * (drift * np.sqrt(h) + noise)  # (g(x̄) − g(x)) / √h / x
        x = x * (1 + drift * h + noise * dw + support * (dw**2 - h) / 2)
    np.testing.assert_allclose(process.value[:, 0], x, rtol=1e-13)


def test_geometric_brownian_is_an_ito_process():
    process = GeometricBrownian("x", [2.0], 0.4, 0.5)
    sim = make(SRIW1(), 0.1, 1, process)
    w = torch.tensor([[[0.25]], [[-0.1]]])
    z = 0.05 * w
    sim.integration.prescribe_noise(w, z)
    sim.step(2)
    want = 2.0 * np.exp((0.4 - 0.5**2 / 2) * 0.2 + 0.5 * 0.15)
    assert float(process.value) == pytest.approx(want, rel=1e-3)


# --------------------------------------------------------------- without noise


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_order_without_noise(name):
    """A torque-free asymmetric body, and a process that depends on time."""

    class Timed(Process):
        def rate(self, t, sim):
            return t[:, None].cos() * self.value

    def run(integrator, count):
        process = Timed("timed", [1.0])
        sim = make(integrator, 1.0 / count, 1, process, xml=TOP)
        sim.data.qvel[:] = torch.tensor([0.4, 1.5, 0.3])
        sim.step(count)
        return np.concatenate([sim.data.qpos[0], sim.data.qvel[0]]), process.value

    want, _ = run(DOP853(atol=1e-13, rtol=1e-13), 8)
    counts = np.array([16, 32])
    mechanics, timed = [], []
    for count in counts:
        state, value = run(SCHEMES[name](), count)
        mechanics.append(np.abs(state - want).max())
        timed.append(abs(float(value) - np.exp(np.sin(1.0))))
    order = SCHEMES[name].deterministic_order
    found = [slope(1 / counts, mechanics), slope(1 / counts, timed)]
    assert found == pytest.approx([order, order], abs=0.2)
