"""A world's NumPy stream against NumPy's own generators."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from numpy.random import PCG64, Generator, SeedSequence
from tests.conftest import SMALL
from tests.raised import raises

from simstate import InvalidInputError, ShapeError, Simulation, UnknownNameError

NUM = 3


def make(**options) -> Simulation:
    return Simulation(mujoco.MjModel.from_xml_string(SMALL), num_envs=NUM, **options)


def numpys(seeds) -> list[Generator]:
    return [Generator(PCG64(SeedSequence(seed))) for seed in seeds]


def mixed(rng: Generator) -> np.ndarray:
    """Draws of several kinds; 32-bit ones leave a half in the generator."""
    small = rng.integers(0, 1000, size=3, dtype=np.int32)
    return np.concatenate(
        [rng.uniform(-0.1, 0.1, 4), rng.standard_normal(5), small, rng.random(1)]
    )


def test_draws_have_numpys_bits():
    sim = make(seed=7)
    theirs = numpys([7, 8, 9])
    for _ in range(3):
        want = [mixed(rng) for rng in theirs]
        np.testing.assert_array_equal(sim.numpy_rng.draw(mixed), want)


def test_worlds_that_do_not_draw_keep_their_place():
    sim = make(seed=3)
    theirs = numpys([3, 4, 5])
    np.testing.assert_array_equal(
        sim.numpy_rng.draw(mixed, [2, 0]), [mixed(theirs[2]), mixed(theirs[0])]
    )
    np.testing.assert_array_equal(sim.numpy_rng.draw(mixed), [mixed(r) for r in theirs])


def test_world_k_has_the_same_numbers_in_any_batch():
    whole, part = make(seed=11), make(seed=11, first_world=2)
    np.testing.assert_array_equal(
        whole.numpy_rng.draw(mixed)[2], part.numpy_rng.draw(mixed)[0]
    )


def test_seeds_by_world_and_for_all():
    sim = make()
    sim.numpy_rng.seed([90, 17], env_ids=[1, 2])
    np.testing.assert_array_equal(
        sim.numpy_rng.draw(mixed), [mixed(rng) for rng in numpys([0, 90, 17])]
    )
    sim.numpy_rng.seed(40, env_ids=[2])
    np.testing.assert_array_equal(
        sim.numpy_rng.draw(mixed, [2]), [mixed(rng) for rng in numpys([42])]
    )
    with raises(InvalidInputError, name="seed"):
        sim.numpy_rng.seed([1, 2, 3], env_ids=[0, 1])
    with raises(InvalidInputError, name="seed"):
        sim.numpy_rng.seed(-1)


def test_resets_keep_streams_and_snapshots_hold_them():
    sim = make(seed=5)
    theirs = numpys([5, 6, 7])
    sim.numpy_rng.draw(mixed)
    sim.reset()
    for rng in theirs:
        mixed(rng)
    then = sim.snapshot()
    want = [mixed(rng) for rng in theirs]
    np.testing.assert_array_equal(sim.numpy_rng.draw(mixed), want)
    sim.restore(then)
    np.testing.assert_array_equal(sim.numpy_rng.draw(mixed), want)


def test_a_step_that_fails_gives_its_draws_back():
    sim = make(seed=2)
    theirs = numpys([2, 3, 4])
    assert sim.numpy_rng is sim.numpy_rng

    def draw_and_fail(sim, env_ids):
        sim.numpy_rng.draw(mixed, env_ids)
        raise RuntimeError("after the draw")

    sim.add_task(draw_and_fail, period=0.008)
    with pytest.raises(RuntimeError, match="after the draw"):
        sim.step(3)
    np.testing.assert_array_equal(sim.numpy_rng.draw(mixed), [mixed(r) for r in theirs])


def test_raw_writes_are_not_normalised():
    sim = make()
    values = sim.data.qpos[[2, 0]].clone()
    values[:, 3:7] = torch.tensor([[0.5, 0.4, 0.3, 0.2], [0.9, -0.1, 0.3, 0.5]])
    other = sim.data.qpos[1].clone()
    sim.write_field("qpos", values, env_ids=[2, 0])
    assert torch.equal(sim.data.qpos[[2, 0]], values)
    assert torch.equal(sim.data.qpos[1], other)
    data = mujoco.MjData(sim.model)
    data.qpos[:] = values[1]
    mujoco.mj_forward(sim.model, data)
    np.testing.assert_array_equal(sim.data.xmat[0].numpy().reshape(-1, 9), data.xmat)
    with raises(UnknownNameError, name="xpos"):
        sim.write_field("xpos", values)
    with pytest.raises(ShapeError):
        sim.write_field("qpos", values[:, :3], env_ids=[2, 0])
    with pytest.raises(InvalidInputError):
        sim.write_field("qvel", np.full((NUM, sim.model.nv), np.nan))
