"""Noise that a scheme is not made for: the first step says so, once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from tests.raised import raises
from tests.step.stochastic_problems import Given, make

from simstate import integrate
from simstate.base.errors import InvalidInputError
from simstate.integrate import GeometricBrownian, OrnsteinUhlenbeck

SCHEMES = integrate.STOCHASTIC_SCHEMES


def drift(t, x):
    return np.stack([-x[:, 0], x[:, 0] - 0.5 * x[:, 1]], -1)


def additive(t, x):
    """Two columns that both sources share, changing with time."""
    rows = [[np.cos(t), 0.3 + t], [0.2 * t - 1, 0.5 + 0 * t]]
    return np.moveaxis(np.array(rows), -1, 0)


def diagonal(t, x):
    return np.einsum("nk,kl->nkl", 0.3 * x + (1 + t)[:, None], np.eye(2))


def mixing(t, x):
    """Each source moves both numbers, in proportion to them."""
    matrices = np.array([[[0.3, 0.7], [0.0, -0.2]], [[0.1, 0.0], [0.9, 0.4]]])
    return np.einsum("kij,nj->nki", matrices, x)


def three_mixing(t, x):
    return np.concatenate([mixing(t, x), 0.3 * x[:, None, ::-1]], axis=1)


def of_the_drift_alone(t, x):
    """The noise moves the second number by the first, which no noise moves."""
    zero = 0 * x[:, 0]
    return np.stack([zero, 1 + x[:, 0] ** 2], -1)[:, None]


KINDS = [
    (additive, 2, ()),
    (diagonal, 2, ("additive",)),
    (mixing, 2, ("additive", "diagonal")),
    (three_mixing, 3, ("additive", "diagonal", "paired")),
    (of_the_drift_alone, 1, ("additive",)),
]


@pytest.mark.parametrize(("g", "sources", "warned"), KINDS)
@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_a_scheme_warns_of_noise_that_it_is_not_made_for(name, g, sources, warned):
    scheme = SCHEMES[name]
    process = Given([[1.0, -0.6], [0.4, 2.0]], drift, g, sources)
    sim = make(scheme(), 0.01, 2, process)
    if scheme.noise not in warned:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sim.step(3)
        return
    with pytest.warns(
        RuntimeWarning, match=f"^{scheme.name} attains its order for"
    ) as all_:
        sim.step(3)
    assert len(all_) == 1
    assert "W2Ito1" in str(all_[0].message)
    assert all_[0].filename == __file__  # it points at the step


def test_what_the_warning_says():
    sim = make(integrate.SRIW1(), 0.01, 1, Given([1.0, -0.6], drift, mixing, 2))
    text = r"source 0 changes the diffusion of source 1.*strong order drops to 0\.5"
    with pytest.warns(RuntimeWarning, match=text):
        sim.step()
    sim = make(integrate.DRI1(), 0.01, 1, Given([1.0, -0.6], drift, three_mixing, 3))
    with pytest.warns(RuntimeWarning, match="weak order drops to 1"):
        sim.step()


def test_noise_that_is_added_later_is_looked_at_too():
    class Other:
        num_sources = 1

        def diffusion(self, t, sim):
            return {"qvel": 1 + process.value[:, None, :1]}

    process = OrnsteinUhlenbeck("gust", [0.3], 0.5, 1.0)
    sim = make(integrate.SRA1(), 0.01, 3, process)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step(2)
    sim.add_noise(Other())
    with pytest.warns(
        RuntimeWarning, match="source 0 changes the diffusion of source 1"
    ):
        sim.step()


def test_the_ready_made_processes_are_of_the_kinds_that_they_say():
    for scheme, process in (
        (integrate.SRA1(), OrnsteinUhlenbeck("x", [0.1, 0.2, 0.3], 0.5, 1.0)),
        (integrate.SOSRI(), GeometricBrownian("x", [1.0, 2.0, 0.5], 0.1, 0.4)),
        (integrate.DRI1NM(), GeometricBrownian("x", [1.0, 2.0, 0.5], 0.1, 0.4)),
    ):
        sim = make(scheme, 0.01, 2, process)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sim.step(2)


def test_looking_at_the_noise_changes_nothing():
    """The same numbers as a scheme that does not look, from the same draws."""
    ends = []
    for kind in ("additive", "any"):

        class Scheme(integrate.SRA1):
            noise = kind

        process = Given([[1.0, -0.6], [0.4, 2.0]], drift, additive, 2)
        sim = make(Scheme(), 0.01, 2, process, seed=5)
        sim.step(3)
        ends.append(torch.cat([process.value, sim.state], dim=1).clone())
    assert torch.equal(*ends)


def test_a_place_where_the_noise_is_not_defined_is_not_the_steps_fault():
    """√(1 − x²) at 1: the check looks beyond, SRA1's own stages do not."""

    def g(t, x):
        with np.errstate(invalid="ignore"):
            return (np.sqrt(1 - x**2) + 0.1)[:, None]

    process = Given([1.0], lambda t, x: 0 * x, g, 1)
    sim = make(integrate.SRA1(), 0.01, 1, process)
    sim.integration.prescribe_noise(torch.full((1, 1, 1), -0.1))
    sim.step()
    assert process.value.tolist() == [[pytest.approx(1 - 0.01)]]
    process.f = lambda t, x: np.full_like(x, 1e3)  # now it goes there itself
    with raises(InvalidInputError, name="diffusion"):
        sim.step(2)


def test_noise_may_use_its_tensor_again():
    """A diffusion that fills one buffer gives what one with new tensors does."""

    class Buffered(Given):
        def diffusion(self, t, sim):
            if not hasattr(self, "buffer"):
                self.buffer = torch.empty(sim.num_envs, 1, 2, dtype=torch.float64)
            self.buffer.copy_(super().diffusion(t, sim)["given"])
            return {"given": self.buffer}

    def g(t, x):
        return (0.4 * np.sin(x) + 0.2)[:, None]

    ends = []
    for kind in (Given, Buffered):
        process = kind([1.0, -0.6], drift, g, 1)
        sim = make(integrate.SRIW1(), 0.1, 3, process, seed=2)
        sim.step(4)
        ends.append(process.value.clone())
    assert torch.equal(*ends)
