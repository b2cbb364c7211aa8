"""Distributions of dispersions: SciPy's quantiles, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from tests.raised import raises

from simstate import InvalidInputError
from simstate.study.dispersions.distributions import (
    choice,
    draw_worlds,
    log_normal,
    normal,
    uniform,
)

pytestmark = pytest.mark.fast

SHARES = torch.linspace(0.02, 0.98, 25, dtype=torch.float64)[:, None]
DEVIATES = torch.as_tensor(stats.norm.ppf(SHARES.numpy()))


def test_quantiles_are_those_of_scipy():
    for made, wanted in (
        (normal(2.0, 0.3), stats.norm(2.0, 0.3)),
        (log_normal(2.0, 0.3), stats.lognorm(0.3, scale=2.0)),
        (uniform(-1.0, 3.0), stats.uniform(-1.0, 4.0)),
    ):
        given = DEVIATES if made.is_normal else SHARES
        assert (made.shape, made.columns) == ((), 1)
        np.testing.assert_allclose(made.make(given), wanted.ppf(SHARES), rtol=1e-12)


def test_vectors_have_a_deviation_or_a_covariance():
    cov = np.array([[4.0, 1.2, 0.1], [1.2, 2.0, -0.3], [0.1, -0.3, 1.0]])
    made = normal([1.0, 2.0, 3.0], cov=cov)
    assert (made.shape, made.columns) == ((3,), 3)
    root = made.make(torch.eye(3, dtype=torch.float64)).numpy() - [1.0, 2.0, 3.0]
    np.testing.assert_allclose(root.T @ root, cov, atol=1e-12)
    made = normal([[1.0, 2.0], [3.0, 4.0]], 0.5)
    assert (made.shape, made.columns) == ((2, 2), 4)
    moved = made.make(torch.tensor([[1.0, -1.0, 2.0, 0.0]], dtype=torch.float64))
    np.testing.assert_allclose(moved, [[1.5, 1.5, 4.0, 4.0]])
    made = uniform(0.0, [1.0, 4.0])
    found = made.make(torch.tensor([[0.5, 0.25]], dtype=torch.float64))
    np.testing.assert_allclose(found, [[0.5, 1.0]])


def test_each_choice_has_its_share():
    made = choice([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert (made.shape, made.columns) == ((2,), 1)
    shares = torch.tensor([[0.0], [0.33], [0.34], [0.66], [0.67], [1.0]])
    np.testing.assert_array_equal(made.make(shares)[:, 0], [1, 1, 3, 3, 5, 5])
    assert float(choice([7.0]).make(shares)[3]) == 7.0


def test_a_world_draws_the_same_in_any_batch():
    draws = {"a": normal([0.0, 1.0], 1.0), "b": uniform(0.0, 2.0)}
    every = draw_worlds(draws, 5, 3, 0)
    some = draw_worlds(draws, 2, 3, 2)
    other = draw_worlds(draws, 5, 4, 0)
    assert every["a"].shape == (5, 2)
    for name in draws:
        assert torch.equal(some[name], every[name][2:4])
        assert not torch.equal(other[name], every[name])


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda: normal(0.0), "std"),
        (lambda: normal([0.0], 1.0, cov=[[1.0]]), "std"),
        (lambda: normal(0.0, -1e-9), "std"),
        (lambda: normal([0.0, 0.0], [1.0, -1e-9]), "std"),
        (lambda: normal(0.0, cov=[[1.0]]), "cov"),
        (lambda: normal([0.0, 0.0], cov=[[1.0]]), "cov"),
        (lambda: normal([0.0, 0.0], cov=[[1.0, 0.5], [0.4, 1.0]]), "cov"),
        (lambda: normal([0.0, 0.0], cov=[[1.0, 2.0], [2.0, 1.0]]), "cov"),
        (lambda: normal([0.0, 0.0], cov=[[1.0, 0.0], [0.0, 0.0]]), "cov"),
        (lambda: log_normal(0.0, 1.0), "median"),
        (lambda: log_normal(1.0, -1e-9), "sigma"),
        (lambda: log_normal([1.0, 2.0], [1.0, 2.0, 3.0]), "sigma"),
        (lambda: normal([1.0, 2.0], [1.0, 2.0, 3.0]), "std"),
        (lambda: normal([1.0, math.inf], 1.0), "mean"),
        (lambda: normal([math.nan], cov=[[1.0]]), "mean"),
        (lambda: uniform([0.0, 1.0], [1.0, 2.0, 3.0]), "high"),
        (lambda: uniform(0.0, math.nan), "high"),
        (lambda: uniform(1.0, 0.9), "low"),
        (lambda: uniform([0.0, 1.0], [1.0, 0.9]), "low"),
        (lambda: choice([]), "values"),
        (lambda: choice(3.0), "values"),
        (lambda: normal(math.nan, cov=None), "std"),
    ],
    ids=["neither", "both", "deviation", "one deviation", "number", "size", "uneven",
         "indefinite", "singular", "median", "log", "log size", "sizes", "infinite",
         "mean", "range size", "no end", "range", "one range", "none",
         "a number", "NaN"],
)  # fmt: skip
def test_numbers_that_make_no_distribution(made, name):
    with raises(InvalidInputError, name=name):
        made()


def test_what_is_allowed_at_the_ends():
    assert float(normal(2.0, 0.0).make(torch.ones(1, 1))) == 2.0
    assert float(uniform(2.0, 2.0).make(torch.ones(1, 1))) == 2.0
