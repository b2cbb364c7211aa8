"""Stochastic schemes: strong and weak orders against closed forms.

A world is a path of the noise, or a node of a quadrature over it, so one simulation
measures an error over all of them.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy.linalg import expm

from simstate import Simulation
from simstate.integrate import (
    DOP853,
    SRA1,
    SRIW1,
    EulerHeun,
    EulerMaruyama,
    GeometricBrownian,
    PlatenWeak2,
    Process,
    RKMilstein,
)

SLIDE = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body>
      <joint type="slide" axis="1 0 0"/>
      <geom type="sphere" size="0.1" mass="1"/>
    </body>
  </worldbody>
</mujoco>
"""
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


def make(scheme, h, num_envs, *processes, xml=SLIDE):
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.timestep = h
    sim = Simulation(model, num_envs, integrator=scheme)
    for process in processes:
        sim.add_process(process)
    return sim


def slope(steps, errors):
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


class Given(Process):
    """dx = f(t, x) dt + Σ_k g_k(t, x) dW_k, from functions of numpy arrays.

    `f` gives (n, width), `g` (n, sources, width).
    """

    def __init__(self, initial, f, g, num_sources):
        super().__init__("given", initial)
        self.f, self.g, self.num_sources = f, g, num_sources

    def rate(self, t, sim):
        return torch.as_tensor(self.f(t.double().numpy(), self.value.numpy()))

    def diffusion(self, t, sim):
        g = self.g(t.double().numpy(), self.value.numpy())
        return {"given": torch.as_tensor(g)}


# ---------------------------------------------------------------- strong orders

PATHS, FINEST = 256, 512


@pytest.fixture(scope="module")
def brownian():
    """Fine increments and time integrals of W over [0, 1]; (FINEST, PATHS, 1) each."""
    rng = np.random.default_rng(4)
    h = 1.0 / FINEST
    w = rng.normal(size=(FINEST, PATHS, 1)) * np.sqrt(h)
    other = rng.normal(size=w.shape) * np.sqrt(h / 3)
    return w, h / 2 * (w + other)


def coarse(fine, num_steps):
    """The same paths over longer steps: Z = Σ (Z_i + h W(start of i))."""
    w, z = (part.reshape(num_steps, -1, PATHS, part.shape[-1]) for part in fine)
    before = np.cumsum(w, axis=1) - w
    return w.sum(axis=1), (z + before / FINEST).sum(axis=1)


def strong_errors(scheme, problem, fine, want, counts):
    """Root mean square error at t = 1 by component; (counts, width)."""
    errors = []
    for count in counts:
        process = problem()
        sim = make(scheme, 1.0 / count, PATHS, process)
        w, z = coarse(fine, count)
        sim.integration.stepper.prescribe(torch.tensor(w), torch.tensor(z))
        sim.step(count)
        errors.append(np.sqrt(((process.value.numpy() - want) ** 2).mean(axis=0)))
    return np.array(errors)


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


@pytest.mark.parametrize(
    ("scheme", "order"),
    [(EulerMaruyama, 0.5), (RKMilstein, 1.0), (SRIW1, 1.5), (EulerHeun, 1.0)],
)
def test_strong_order_with_scalar_noise(scheme, order, brownian):
    problem = multiplicative(scheme is EulerHeun)
    want = multiplicative_solution(brownian[0].sum(axis=0)[:, 0])
    counts = np.array([8, 16, 32, 64])
    errors = strong_errors(scheme(), problem, brownian, want, counts)
    for component in errors.T:
        assert slope(1 / counts, component) == pytest.approx(order, abs=0.17)
    assert scheme.strong_order == order


@pytest.mark.parametrize(
    ("scheme", "order"), [(EulerMaruyama, 1.0), (SRA1, 1.5), (SRIW1, 1.5)]
)
def test_strong_order_with_additive_noise_that_depends_on_time(scheme, order, brownian):
    alpha, beta = 0.8, 0.5

    def f(t, x):
        linear = beta / np.sqrt(1 + t) - x[:, 0] / (2 * (1 + t))
        return np.stack([linear, np.sin(3 * x[:, 1]) - x[:, 1] ** 3], -1)

    def g(t, x):
        parts = [alpha * beta / np.sqrt(1 + t), 0.7 * np.cos(2 * t)]
        return np.stack(parts, -1)[:, None]

    # The first has a closed form, the second a reference over the fine path.
    w = brownian[0].sum(axis=0)[:, 0]
    x = np.tile([1.0, 0.3], (PATHS, 1))
    for n, (dw, dz) in enumerate(zip(*brownian, strict=True)):
        x = rossler(x, n / FINEST, 1 / FINEST, f, g, dw, dz, "SRA1")
    want = np.stack([1 / np.sqrt(2) + beta / np.sqrt(2) * (1 + alpha * w), x[:, 1]], -1)
    counts = np.array([8, 16, 32, 64])
    errors = strong_errors(
        scheme(), lambda: Given([1.0, 0.3], f, g, 1), brownian, want, counts
    )
    # Better than its order while the deterministic part, of order 2, is the larger.
    slopes = [slope(1 / counts, component) for component in errors.T]
    assert min(slopes) > order - 0.15
    if scheme is EulerMaruyama:  # so the problem tells the schemes apart
        assert max(slopes) < 1.2


# ------------------------------------------------------- one step, written again


def rossler(x, t, h, f, g, w, z, name):
    """One step as Rößler (2010) writes it; x (n, d), w and z (n, m), g (n, m, d)."""
    n, root = len(x), np.sqrt(h)
    at = np.full(n, t)
    if name == "SRA1":
        chi = (z / h)[..., None]
        late = g(at + h, x)
        f1 = f(at, x)
        second = x + 0.75 * h * f1 + 1.5 * (late * chi).sum(1)
        f2 = f(at + 0.75 * h, second)
        noise = late * w[..., None] + chi * (g(at, x) - late)
        return x + h * (f1 / 3 + 2 * f2 / 3) + noise.sum(1)
    f1 = f(at, x)
    result = x.copy()
    if name == "RKMilstein":
        result += h * f1
        for k in range(w.shape[1]):
            g1 = g(at, x)[:, k]
            g2 = g(at, x + h * f1 + root * g1)[:, k]  # the support value, at t
            double = (w[:, k, None] ** 2 - h) / (2 * root)
            result += g1 * w[:, k, None] + (g2 - g1) * double
        return result
    first = g(at, x)
    second = x + 0.75 * h * f1 + 1.5 * (first * (z / h)[..., None]).sum(1)
    f2 = f(at + 0.75 * h, second)
    result += h * (f1 / 3 + 2 * f2 / 3)
    for k in range(w.shape[1]):
        i1, i10 = w[:, k, None], z[:, k, None]
        i11, i111 = (i1**2 - h) / 2, (i1**3 - 3 * h * i1) / 6
        g1 = first[:, k]
        g2 = g(at + h / 4, x + h / 4 * f1 + root / 2 * g1)[:, k]
        g3 = g(at + h, x + h * f1 - root * g1)[:, k]
        # Stage 3 of the drift is stage 1: its a0 and b0 are zero.
        point = x + h / 4 * f1 + root * (-5 * g1 + 3 * g2 + g3 / 2)
        g4 = g(at + h / 4, point)[:, k]
        result += i1 * (-g1 + 4 / 3 * g2 + 2 / 3 * g3)
        result += i11 / root * (-g1 + 4 / 3 * g2 - g3 / 3)
        result += i10 / h * (2 * g1 - 4 / 3 * g2 - 2 / 3 * g3)
        result += i111 / h * (-2 * g1 + 5 / 3 * g2 - 2 / 3 * g3 + g4)
    return result


@pytest.mark.parametrize("name", ["RKMilstein", "SRA1", "SRIW1"])
def test_two_steps_are_those_of_the_literature(name):
    """Two numbers, each with its source, coupled by the drift, all of it timed."""

    def f(t, x):
        return np.stack([np.sin(t) - x[:, 0] * x[:, 1], np.cos(x[:, 0]) + t], -1)

    def g(t, x):
        g = np.zeros((len(x), 2, 2))
        g[:, 0, 0] = np.cos(t) + (0.3 * np.sin(x[:, 0]) if name != "SRA1" else 0)
        g[:, 1, 1] = 1 + t**2 + (0.4 * x[:, 1] ** 2 if name != "SRA1" else 0)
        return g

    scheme = {"RKMilstein": RKMilstein, "SRA1": SRA1, "SRIW1": SRIW1}[name]
    rng = np.random.default_rng(1)
    h, n = 0.2, 7
    w, z = rng.normal(size=(2, n, 2)) * np.sqrt(h), rng.normal(size=(2, n, 2)) * h
    x = rng.normal(size=(n, 2))
    process = Given(x, f, g, 2)
    sim = make(scheme(), h, n, process)
    sim.integration.stepper.prescribe(torch.tensor(w), torch.tensor(z))
    for step in range(2):
        sim.step()
        x = rossler(x, step * h, h, f, g, w[step], z[step], name)
        np.testing.assert_allclose(process.value.numpy(), x, rtol=0, atol=1e-13)


# ------------------------------------------------------------------ weak orders


class Signs:
    """Stands in for the stream: the same given numbers, whatever is drawn."""

    def __init__(self, values):
        self.values = torch.tensor(values)
        self.draws = torch.zeros(len(values), dtype=torch.int64)
        self.seeds, self.rows = self.draws.clone(), self.draws.clone()

    def draw(self, count, rows=None):
        return self.values[:, None].expand(-1, count)


def local_moments(scheme, h, make_process, sources, points):
    """E[x] and E[x xᵀ] after one step, by Gauss-Hermite quadrature over the noise."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    axes = [nodes] * (sources + (sources == 1)) + [np.array([-1.0, 1.0])]
    grid = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], -1)
    parts = [weights / weights.sum()] * (len(axes) - 1) + [np.array([0.5, 0.5])]
    parts = np.meshgrid(*parts, indexing="ij")
    weight = np.prod([part.ravel() for part in parts], axis=0)
    w = grid[:, :sources] * np.sqrt(h)
    z = h / 2 * (w + grid[:, 1:2] * np.sqrt(h / 3)) if sources == 1 else 0 * w
    process = make_process()
    sim = make(scheme, h, len(weight), process)
    stepper = sim.integration.stepper
    stepper.stream = Signs(grid[:, -1])
    stepper.prescribe(torch.tensor(w)[None], torch.tensor(z)[None])
    sim.step()
    x = process.value.numpy()
    return weight @ x, np.einsum("n,ni,nj->ij", weight, x, x)


def global_weak_order(scheme, make_process, sources, exact, points):
    """The order of the error of one step, less one, in both moments."""
    steps = np.array([0.04, 0.02, 0.01])
    errors = []
    for h in steps:
        moments = local_moments(scheme, h, make_process, sources, points)
        pairs = zip(moments, exact(h), strict=True)
        errors.append([np.abs(got - want).max() for got, want in pairs])
    return [slope(steps, column) - 1 for column in np.array(errors).T]


@pytest.mark.parametrize(
    ("scheme", "first", "second"),
    [(EulerMaruyama, 1, 1), (RKMilstein, 1, 1), (SRIW1, 2, 1.6), (PlatenWeak2, 2, 2)],
)
def test_weak_order_of_a_nonlinear_equation(scheme, first, second):
    """x = sinh(c + t + W) solves dx = (x/2 + r) dt + r dW with r = √(1 + x²)."""
    c = 0.3

    def r(x):
        return np.sqrt(1 + x**2)

    def exact(h):
        first = np.exp(h / 2) * np.sinh(c + h)
        return first, (np.exp(2 * h) * np.cosh(2 * (c + h)) - 1) / 2

    def process():
        return Given(
            [np.sinh(c)], lambda t, x: x / 2 + r(x), lambda t, x: r(x)[:, None], 1
        )

    measured = global_weak_order(scheme(), process, 1, exact, 16)
    # SRIW1's stages are not symmetric in ±√h: 1.5 in the second moment, in the limit.
    assert measured == pytest.approx([first, second], abs=0.12)


@pytest.mark.parametrize(("scheme", "order"), [(EulerMaruyama, 1), (PlatenWeak2, 2)])
def test_weak_order_with_sources_that_do_not_commute(scheme, order):
    """A linear equation with two sources: both moments by matrix exponentials."""
    a = np.array([[-0.5, 0.8], [-0.3, 0.2]])
    b = np.array([[[0.3, 0.7], [0.0, -0.2]], [[0.1, 0.0], [0.9, 0.4]]])
    start = np.array([1.0, -0.6])
    one = np.eye(2)
    growth = np.kron(a, one) + np.kron(one, a) + sum(np.kron(m, m) for m in b)

    def exact(h):
        second = expm(h * growth) @ np.outer(start, start).ravel()
        return expm(h * a) @ start, second.reshape(2, 2)

    def process():
        return Given(
            start, lambda t, x: x @ a.T, lambda t, x: np.einsum("kij,nj->nki", b, x), 2
        )

    for measured in global_weak_order(scheme(), process, 2, exact, 5):
        assert measured == pytest.approx(order, abs=0.15)


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


def test_weak_order_with_coefficients_that_depend_on_time():
    """dx = cos(t) x dt + (1 + t) x dW."""

    def exact(h):
        drift = np.sin(h)
        noise = ((1 + h) ** 3 - 1) / 3
        return np.exp(drift), np.exp(2 * drift + noise)

    def process():
        return Given(
            [1.0],
            lambda t, x: np.cos(t)[:, None] * x,
            lambda t, x: ((1 + t)[:, None] * x)[:, None],
            1,
        )

    for measured in global_weak_order(PlatenWeak2(), process, 1, exact, 8):
        assert measured == pytest.approx(2, abs=0.2)


def test_geometric_brownian_is_an_ito_process():
    process = GeometricBrownian("x", [2.0], 0.4, 0.5)
    sim = make(SRIW1(), 0.1, 1, process)
    w = torch.tensor([[[0.25]], [[-0.1]]])
    z = 0.05 * w
    sim.integration.stepper.prescribe(w, z)
    sim.step(2)
    want = 2.0 * np.exp((0.4 - 0.5**2 / 2) * 0.2 + 0.5 * 0.15)
    assert float(process.value) == pytest.approx(want, rel=1e-3)


# --------------------------------------------------------------- without noise


@pytest.mark.parametrize(
    ("scheme", "order"),
    [
        (EulerMaruyama, 1),
        (RKMilstein, 1),
        (EulerHeun, 2),
        (SRA1, 2),
        (SRIW1, 2),
        (PlatenWeak2, 2),
    ],
)
def test_order_without_noise(scheme, order):
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

    want, _ = run(DOP853(), 8)
    counts = np.array([16, 32])
    mechanics, timed = [], []
    for count in counts:
        state, value = run(scheme(), count)
        mechanics.append(np.abs(state - want).max())
        timed.append(abs(float(value) - np.exp(np.sin(1.0))))
    assert slope(1 / counts, mechanics) == pytest.approx(order, abs=0.2)
    assert slope(1 / counts, timed) == pytest.approx(order, abs=0.2)
