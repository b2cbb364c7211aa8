"""The axioms of groups and of their actions, for every group and batch shape."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from torch import Tensor

from simstate.math import quaternion as q
from simstate.math.conventions import rotations as r

pytestmark = [
    pytest.mark.fast,
    pytest.mark.parametrize("shape", [(), (5,), (2, 3)], ids=str),
]

SEEDS = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Group:
    """A group that acts on points; elements have `tail` as their last dimensions."""

    tail: tuple[int, ...]
    one: Tensor
    multiply: Callable[[Tensor, Tensor], Tensor]
    inverse: Callable[[Tensor], Tensor]
    act: Callable[[Tensor, Tensor], Tensor]
    draw: Callable[[Rotation, np.ndarray], np.ndarray]
    """An element of a rotation and a translation."""

    def random(self, shape: tuple[int, ...], seed: int) -> Tensor:
        """Return random elements; shape (*shape, *tail)."""
        rng = np.random.default_rng(seed)
        count = int(np.prod(shape, dtype=int))
        turn = Rotation.random(count, random_state=rng)
        drawn = self.draw(turn, rng.normal(size=(count, 3)))
        return torch.as_tensor(drawn).reshape(*shape, *self.tail)


def placed(turn: Rotation, shift: np.ndarray) -> np.ndarray:
    """Return transforms that turn a point, then move it."""
    found = np.broadcast_to(np.eye(4), (len(shift), 4, 4)).copy()
    found[:, :3, :3], found[:, :3, 3] = turn.as_matrix(), shift
    return found


GROUPS = {
    "quaternions": Group(
        (4,),
        torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64),
        q.multiply,
        q.conjugate,
        q.rotate,
        lambda turn, _: turn.as_quat(scalar_first=True),
    ),
    "rotation matrices": Group(
        (3, 3),
        torch.eye(3, dtype=torch.float64),
        torch.matmul,
        r.passive_from_active,
        r.rotate,
        lambda turn, _: turn.as_matrix(),
    ),
    "transforms": Group(
        (4, 4),
        torch.eye(4, dtype=torch.float64),
        lambda second, first: r.compose(first, second),
        r.invert,
        r.apply_to_position,
        placed,
    ),
}

each_group = pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
some = settings(max_examples=20, deadline=None)


def points(shape: tuple[int, ...], seed: int) -> Tensor:
    return torch.as_tensor(np.random.default_rng(seed).normal(size=(*shape, 3)))


def close(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted.expand_as(found), rtol=0, atol=1e-13)


@each_group
@some
@given(seed=SEEDS)
def test_products_associate(group, shape, seed):
    a, b, c = (group.random(shape, seed + k) for k in range(3))
    left = group.multiply(group.multiply(a, b), c)
    close(left, group.multiply(a, group.multiply(b, c)))


@each_group
@some
@given(seed=SEEDS)
def test_one_is_neutral_on_the_left(group, shape, seed):
    a = group.random(shape, seed)
    close(group.multiply(group.one.expand_as(a), a), a)


@each_group
@some
@given(seed=SEEDS)
def test_one_is_neutral_on_the_right(group, shape, seed):
    a = group.random(shape, seed)
    close(group.multiply(a, group.one.expand_as(a)), a)


@each_group
@some
@given(seed=SEEDS)
def test_an_inverse_on_the_left_gives_one(group, shape, seed):
    a = group.random(shape, seed)
    close(group.multiply(group.inverse(a), a), group.one)


@each_group
@some
@given(seed=SEEDS)
def test_an_inverse_on_the_right_gives_one(group, shape, seed):
    a = group.random(shape, seed)
    close(group.multiply(a, group.inverse(a)), group.one)


@each_group
@some
@given(seed=SEEDS)
def test_the_inverse_of_a_product_is_that_of_its_factors_reversed(group, shape, seed):
    a, b = (group.random(shape, seed + k) for k in range(2))
    reverse = group.multiply(group.inverse(b), group.inverse(a))
    close(group.inverse(group.multiply(a, b)), reverse)


@each_group
@some
@given(seed=SEEDS)
def test_one_moves_no_point(group, shape, seed):
    point = points(shape, seed)
    close(group.act(group.one.expand(*shape, *group.tail), point), point)


@each_group
@some
@given(seed=SEEDS)
def test_a_product_acts_as_its_factors_one_after_the_other(group, shape, seed):
    a, b = (group.random(shape, seed + k) for k in range(2))
    point = points(shape, seed)
    close(group.act(group.multiply(a, b), point), group.act(a, group.act(b, point)))


@each_group
@some
@given(seed=SEEDS)
def test_an_inverse_moves_points_back(group, shape, seed):
    a, point = group.random(shape, seed), points(shape, seed)
    close(group.act(group.inverse(a), group.act(a, point)), point)


@each_group
@some
@given(seed=SEEDS)
def test_distances_are_kept(group, shape, seed):
    a, one, other = group.random(shape, seed), points(shape, seed), points(shape, 1)
    moved = group.act(a, one) - group.act(a, other)
    close(moved.norm(dim=-1), (one - other).norm(dim=-1))


@some
@given(seed=SEEDS)
def test_rotating_by_the_inverse_is_one_call(shape, seed):
    a, point = GROUPS["quaternions"].random(shape, seed), points(shape, seed)
    close(q.rotate_inverse(a, q.rotate(a, point)), point)
