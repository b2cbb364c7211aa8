"""Velocity transfer against a rigid motion written out by hand."""

import pytest
import torch

from simstate.math import (
    acceleration_from_cacc,
    compute_velocity_from_cvel,
    move_velocity,
)
from simstate.math.spatial import move_moment, rigid_rate

pytestmark = pytest.mark.fast


def test_compute_velocity_from_cvel_is_linear_then_angular():
    # Turning about z at 2 rad/s around (1, 0, 0), which moves up at 0.5 m/s.
    cvel = torch.tensor([0.0, 0.0, 2.0, 0.0, 0.0, 0.5], dtype=torch.float64)
    com = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    point = torch.tensor([1.0, 3.0, 7.0], dtype=torch.float64)
    velocity = compute_velocity_from_cvel(point, com, cvel)
    assert velocity.tolist() == [-6.0, 0.0, 0.5, 0.0, 0.0, 2.0]


def random_velocities(shape):
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randn(*shape, 9, generator=generator, dtype=torch.float64)
    return numbers[..., :6], numbers[..., 6:]


@pytest.mark.parametrize("shape", [(), (5,), (2, 3)], ids=str)
def test_a_velocity_that_was_moved_comes_back(shape):
    velocity, offset = random_velocities(shape)
    back = move_velocity(move_velocity(velocity, offset), -offset)
    assert torch.allclose(back, velocity)


@pytest.mark.parametrize("shape", [(9,), (3, 3)], ids=str)
def test_a_velocity_in_a_batch_moves_as_alone(shape):
    velocity, offset = random_velocities(shape)
    found = move_velocity(velocity, offset).view(9, 6)
    each = zip(velocity.reshape(9, 6), offset.reshape(9, 3), strict=True)
    assert torch.equal(found, torch.stack([move_velocity(*one) for one in each]))


def test_centripetal_acceleration():
    """A point at 3 m from a fixed axis, at a constant 2 rad/s: 12 m/s² inwards."""
    cvel = torch.tensor([0.0, 0.0, 2.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    zero = torch.zeros(3, dtype=torch.float64)
    point = torch.tensor([3.0, 0.0, 0.0], dtype=torch.float64)
    acc = acceleration_from_cacc(point, zero, cvel, torch.zeros(6, dtype=torch.float64))
    assert acc.tolist() == [-12.0, 0.0, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("about", "moment"), [((0.0, 0.0, 0.0), -10.0), ((3.0, 0.0, 0.0), 5.0)]
)
def test_a_force_elsewhere_has_a_moment(about, moment):
    """5 N up at (2, 0, 0): about the origin −10 N·m about y, about (3, 0, 0) 5."""
    force = torch.tensor([0.0, 0.0, 5.0], dtype=torch.float64)
    place = torch.tensor([2.0, 0.0, 0.0], dtype=torch.float64)
    none = torch.zeros(3, dtype=torch.float64)
    offset = torch.tensor(about, dtype=torch.float64) - place
    assert move_moment(none, force, offset).tolist() == [0.0, moment, 0.0]


def test_a_moment_moves_on_from_any_point():
    """In two moves, of which the second starts with a moment."""
    generator = torch.Generator().manual_seed(1)
    moment, force, one, other = torch.randn(4, 3, generator=generator).double()
    twice = move_moment(move_moment(moment, force, one), force, other)
    assert torch.allclose(twice, move_moment(moment, force, one + other))


def test_a_point_of_a_turning_body():
    """At 2 rad/s about z, a point at (0, 3, 0) moves at −6 m/s along x."""
    angular = torch.tensor([0.0, 0.0, 2.0], dtype=torch.float64)
    linear = torch.tensor([1.0, 0.0, 0.5], dtype=torch.float64)
    offset = torch.tensor([0.0, 3.0, 0.0], dtype=torch.float64)
    assert rigid_rate(linear, angular, offset).tolist() == [-5.0, 0.0, 0.5]


def test_acceleration_is_the_derivative_of_velocity():
    """Of a point of a body in accelerated motion, by differences of its path."""
    cvel = torch.tensor([0.3, -0.5, 0.8, 1.0, -2.0, 0.4], dtype=torch.float64)
    cacc = torch.tensor([-0.7, 0.2, 0.6, 0.5, 1.5, -0.9], dtype=torch.float64)
    com = torch.tensor([0.2, -0.1, 0.4], dtype=torch.float64)
    point = torch.tensor([1.1, 0.7, -0.6], dtype=torch.float64)
    acc = acceleration_from_cacc(point, com, cvel, cacc)
    h = 1e-5
    now = compute_velocity_from_cvel(point, com, cvel)
    later = compute_velocity_from_cvel(point + h * now[:3], com, cvel + h * cacc)
    torch.testing.assert_close((later - now) / h, acc, rtol=1e-4, atol=1e-4)
