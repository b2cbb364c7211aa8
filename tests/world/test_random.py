"""The worlds' random numbers: the published generator, and independence of worlds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from tests.inside import draw_as_on_a_device
from tests.raised import raises

from simstate.base.errors import InvalidInputError
from simstate.engine import core
from simstate.world import Ledger
from simstate.world.random import WorldRandom

ALL = slice(None)
WORD = 2**64
GAMMA = 0x9E3779B97F4A7C15


def streams(num_envs: int, seed: int, first_world: int = 0) -> WorldRandom:
    return WorldRandom(Ledger(num_envs, torch.device("cpu")), seed, first_world)


def mix(z: int) -> int:
    """SplitMix64's finaliser, as its authors publish it, on Python's integers."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def splitmix(start: int, count: int) -> list[int]:
    return [mix((start + k * GAMMA) % WORD) for k in range(1, count + 1)]


def test_a_stream_is_splitmix64():
    """Keyed by seed, global id and count; the generator from the state 1234567."""
    assert splitmix(1234567, 5) == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    for seed in (0, 5, 2**63 - 1, 2**63, 2**63 + 11, 2**64 - 1, 2**64 + 5, 2**200):
        rng = streams(3, seed, first_world=40)
        rng.bits(torch.tensor([2, 0]), 2)
        got = rng.bits(ALL, 3).numpy().view(np.uint64)
        for row, (world, drawn) in enumerate(((40, 2), (41, 0), (42, 2))):
            start = mix((mix(seed % WORD) + (world + 1) * GAMMA) % WORD)
            assert got[row].tolist() == splitmix(start, drawn + 3)[drawn:]


def test_a_world_draws_the_same_in_any_batch():
    whole = streams(6, 9).uniform(ALL, 4)
    parts = [streams(2, 9, first).uniform(ALL, 4) for first in (0, 2, 4)]
    assert torch.equal(whole, torch.cat(parts))


def test_the_first_world_is_number_0_by_default():
    unnumbered = WorldRandom(Ledger(3, torch.device("cpu")), 9)
    assert torch.equal(unnumbered.uniform(ALL, 4), streams(3, 9).uniform(ALL, 4))


def test_worlds_draw_alike_within_and_their_own_after():
    """What they share is what no world draws, and it goes on with their counts."""
    rng, twin = streams(4, 5), streams(4, 5)
    with rng.alike():
        shared = rng.uniform(ALL, 3)
        more = rng.uniform(torch.tensor([2, 0]), 2)
    assert bool((shared == shared[0]).all())
    assert torch.equal(more[0], more[1])
    own, more_own = twin.uniform(ALL, 3), twin.uniform(torch.tensor([2, 0]), 2)
    drawn = torch.cat([shared[0], more[0], own.flatten(), more_own.flatten()])
    assert drawn.unique().numel() == drawn.numel()
    assert torch.equal(rng.uniform(ALL, 2), twin.uniform(ALL, 2))
    with pytest.raises(ZeroDivisionError), rng.alike():
        raise ZeroDivisionError
    assert torch.equal(rng.uniform(ALL, 2), twin.uniform(ALL, 2))


def test_a_draw_depends_on_the_worlds_own_draws_alone():
    one, two = streams(4, 5), streams(6, 5)
    first = one.uniform(ALL, 3)
    assert torch.equal(first, two.uniform(ALL, 3)[:4])
    two.uniform(torch.tensor([1, 5]), 7)
    left, right = one.uniform(ALL, 2), two.uniform(ALL, 2)
    assert torch.equal(left[[0, 2, 3]], right[[0, 2, 3]])
    assert not torch.equal(left[1], right[1])
    # Two draws of one number are one draw of two.
    three = streams(4, 5)
    split = [three.uniform(ALL, 1), three.uniform(ALL, 2)]
    assert torch.equal(first, torch.cat(split, dim=1))


def test_worlds_and_seeds_differ():
    numbers = [streams(64, seed).uniform(ALL, 4) for seed in range(20)]
    flat = torch.stack(numbers).flatten()
    assert flat.unique().numel() == flat.numel()


def test_seeding_some_worlds_leaves_the_others():
    rng, twin = streams(3, 5), streams(3, 5)
    first = rng.uniform(ALL, 2)
    twin.uniform(ALL, 2)
    rng.seed(5, torch.tensor([1]))
    again, going_on = rng.uniform(ALL, 2), twin.uniform(ALL, 2)
    assert torch.equal(again[1], first[1])
    assert torch.equal(again[[0, 2]], going_on[[0, 2]])


def test_distributions_are_what_they_say():
    rng = streams(200, 1)
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
    rng = streams(2, 0)
    first = rng.bits(ALL, 2)
    with raises(InvalidInputError, name="seed"):
        streams(2, seed)
    with raises(InvalidInputError, name="seed"):
        rng.seed(seed)
    rng.seed(0)
    assert torch.equal(rng.bits(ALL, 2), first)


@pytest.mark.parametrize(
    "rows", [[1, 1], [-1], [9], [0.0], True, torch.tensor([2, 0, 2]), "all"], ids=str
)
def test_rows_that_are_no_worlds_are_refused(rows):
    """A world that stands twice would draw the same numbers twice."""
    rng, twin = streams(4, 3), streams(4, 3)
    for call in (
        lambda: rng.bits(rows, 2),
        lambda: rng.uniform(rows, 2),
        lambda: rng.seed(8, rows),
    ):
        with raises(InvalidInputError, name="env_ids"):
            call()
    assert torch.equal(rng.bits(ALL, 3), twin.bits(ALL, 3))


def test_rows_that_change_in_place_are_looked_at_again():
    rng = streams(4, 3)
    rows = torch.tensor([2, 0])
    rng.bits(rows, 1)
    rows[1] = 2
    with raises(InvalidInputError, name="env_ids"):
        rng.bits(rows, 1)


def test_a_devices_rows_are_looked_at_again_when_torch_has_changed_them(monkeypatch):
    """On a device nothing but torch writes into them, so it is asked how often."""
    rng, twin = streams(4, 3), streams(4, 3)
    for one in (rng, twin):
        draw_as_on_a_device(monkeypatch, one)
    rows = torch.tensor([2, 0])
    first = rng.uniform(rows, 1)
    assert torch.equal(first, twin.uniform(torch.tensor([2, 0]), 1))
    rows[1] = 2
    with raises(InvalidInputError, name="env_ids"):
        rng.uniform(rows, 1)
    rows[1] = 4
    with raises(InvalidInputError, name="env_ids"):
        rng.uniform(rows, 1)
    rows[1] = 3
    assert torch.equal(rng.uniform(rows, 2), twin.uniform(torch.tensor([2, 3]), 2))
    looked = []
    monkeypatch.setattr("simstate.world.random.select", looked.append)
    rng.uniform(rows, 1)
    assert not looked


def test_rows_that_numpy_changes_are_looked_at_again():
    """Torch does not count what NumPy writes into memory that they share."""
    rng, twin = streams(4, 3), streams(4, 3)
    numbers = np.array([2, 0])
    rows = torch.from_numpy(numbers)
    rng.uniform(rows, 1)
    numbers[:] = [3, 1]
    assert torch.equal(rng.uniform(rows, 2), twin.uniform(torch.tensor([3, 1]), 2))
    twin.uniform(torch.tensor([2, 0]), 1)
    for wrong in ([1, 1], [4, 0], [-1, 2]):
        numbers[:] = wrong
        with raises(InvalidInputError, name="env_ids"):
            rng.uniform(rows, 1)
    assert torch.equal(rng.bits(ALL, 3), twin.bits(ALL, 3))


@pytest.mark.parametrize("columns", [-1, 1.5, "2", None, True])
@pytest.mark.parametrize("draw", ["bits", "uniform", "normal"])
def test_a_number_of_columns_is_one(draw, columns):
    rng, twin = streams(3, 7), streams(3, 7)
    with raises(InvalidInputError, name="columns"):
        getattr(rng, draw)(ALL, columns)
    assert getattr(rng, draw)(ALL, 0).shape == (3, 0)
    assert torch.equal(rng.bits(ALL, 2), twin.bits(ALL, 2))


def test_slices_are_checked_and_kept_in_order():
    rng, twin = streams(5, 7), streams(5, 7)
    with raises(InvalidInputError, name="env_ids"):
        rng.uniform(slice("a"), 2)
    back = rng.uniform(slice(None, None, -2), 2)
    assert torch.equal(back, twin.uniform(torch.tensor([4, 2, 0]), 2))


@pytest.mark.skipif(not core.is_available(), reason="the compiled core is not there")
@pytest.mark.parametrize(
    "rows", [slice(None), slice(2, 9, 3), torch.tensor([7, 0, 5]), slice(0, 0)]
)
def test_the_core_draws_the_same_bits(monkeypatch, rows):
    """Of streams that have drawn differently much before, from any range."""
    ours = WorldRandom(Ledger(11, torch.device("cpu")), 2**63 + 5, 3)
    monkeypatch.setenv("SIMSTATE_CORE", "0")
    plain = WorldRandom(Ledger(11, torch.device("cpu")), 2**63 + 5, 3)
    for rng in (ours, plain):
        rng.bits(torch.tensor([5, 2]), 4)
    for low, high in ((0.0, 1.0), (-3.7, 0.2), (2, 9)):
        got, want = (rng.uniform(rows, 6, low, high) for rng in (ours, plain))
        assert torch.equal(got, want)
    assert torch.equal(ours.normal(rows, 3), plain.normal(rows, 3))
    assert torch.equal(ours.bits(slice(None), 2), plain.bits(slice(None), 2))


@pytest.mark.skipif(not core.is_available(), reason="the compiled core is not there")
@pytest.mark.parametrize("high", [2.0, 2, torch.tensor([2.0, 3.0])], ids=str)
@pytest.mark.parametrize("low", [-1.0, 0, torch.tensor([-1.0, 0.0])], ids=str)
def test_the_core_draws_where_it_is_there_and_not_without(monkeypatch, low, high):
    """One call for numbers of any kind; none where it is switched off."""
    calls = []

    def counted(*args):
        calls.append(args)
        return made(*args)

    made = core.draws.uniform
    monkeypatch.setattr(core.draws, "uniform", counted)
    ours = streams(5, 7)
    monkeypatch.setenv("SIMSTATE_CORE", "0")
    plain = streams(5, 7)
    drawn = ours.uniform(ALL, 2, low, high)
    assert len(calls) == 1
    assert torch.equal(drawn, plain.uniform(ALL, 2, low, high))
    assert len(calls) == 1
    unit = streams(5, 7).uniform(ALL, 2)
    assert torch.allclose(drawn, low + unit * (torch.as_tensor(high) - low))
