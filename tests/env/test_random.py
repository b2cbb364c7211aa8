"""The worlds' random numbers: the published generator, and independence of worlds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from simstate.env.random import WorldRandom
from simstate.errors import InvalidInputError

CPU = torch.device("cpu")
ALL = slice(None)


def test_a_stream_is_splitmix64():
    """The first numbers of the reference implementation from the state 1234567."""
    rng = WorldRandom(1, 0, CPU)
    rng._start[0] = 1234567
    rng._drawn[0] = 0
    bits = rng.bits(ALL, 5)[0].numpy().view(np.uint64).tolist()
    assert bits == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_a_draw_depends_on_the_worlds_own_draws_alone():
    one, two = WorldRandom(4, 5, CPU), WorldRandom(6, 5, CPU)
    first = one.uniform(ALL, 3)
    assert torch.equal(first, two.uniform(ALL, 3)[:4])
    two.uniform(torch.tensor([1, 5]), 7)
    left, right = one.uniform(ALL, 2), two.uniform(ALL, 2)
    assert torch.equal(left[[0, 2, 3]], right[[0, 2, 3]])
    assert not torch.equal(left[1], right[1])
    # Two draws of one number are one draw of two.
    three = WorldRandom(4, 5, CPU)
    split = [three.uniform(ALL, 1), three.uniform(ALL, 2)]
    assert torch.equal(first, torch.cat(split, dim=1))


def test_worlds_and_seeds_differ():
    numbers = [WorldRandom(64, seed, CPU).uniform(ALL, 4) for seed in range(20)]
    flat = torch.stack(numbers).flatten()
    assert flat.unique().numel() == flat.numel()


def test_seeding_some_worlds_leaves_the_others():
    rng, twin = WorldRandom(3, 5, CPU), WorldRandom(3, 5, CPU)
    first = rng.uniform(ALL, 2)
    twin.uniform(ALL, 2)
    rng.seed(5, torch.tensor([1]))
    again, going_on = rng.uniform(ALL, 2), twin.uniform(ALL, 2)
    assert torch.equal(again[1], first[1])
    assert torch.equal(again[[0, 2]], going_on[[0, 2]])


def test_distributions_are_what_they_say():
    rng = WorldRandom(200, 1, CPU)
    uniform = rng.uniform(ALL, 500, -2.0, 3.0)
    assert float(uniform.min()) >= -2.0
    assert float(uniform.max()) < 3.0
    assert stats.kstest(uniform.flatten(), "uniform", args=(-2.0, 5.0)).pvalue > 1e-3
    normal = rng.normal(ALL, 500)
    assert stats.kstest(normal.flatten(), "norm").pvalue > 1e-3
    # Neighbouring worlds and neighbouring draws have nothing to do with each other.
    for left, right in ((normal[1:], normal[:-1]), (normal[:, 1:], normal[:, :-1])):
        correlation = np.corrcoef(left.flatten(), right.flatten())[0, 1]
        assert abs(correlation) < 5.0 / left.numel() ** 0.5


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(InvalidInputError, match="whole number ≥ 0"):
        WorldRandom(2, seed, CPU)
