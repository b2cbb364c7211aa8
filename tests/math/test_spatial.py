"""Velocity transfer against a rigid motion written out by hand."""

import torch

from simstate.math import (
    acceleration_from_cacc,
    compute_velocity_from_cvel,
    move_velocity,
)


def test_compute_velocity_from_cvel_is_linear_then_angular():
    # Turning about z at 2 rad/s around (1, 0, 0), which moves up at 0.5 m/s.
    cvel = torch.tensor([0.0, 0.0, 2.0, 0.0, 0.0, 0.5], dtype=torch.float64)
    com = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    point = torch.tensor([1.0, 3.0, 7.0], dtype=torch.float64)
    velocity = compute_velocity_from_cvel(point, com, cvel)
    assert velocity.tolist() == [-6.0, 0.0, 0.5, 0.0, 0.0, 2.0]


def test_move_velocity_there_and_back():
    generator = torch.Generator().manual_seed(0)
    velocity = torch.randn(9, 6, generator=generator, dtype=torch.float64)
    offset = torch.randn(9, 3, generator=generator, dtype=torch.float64)
    back = move_velocity(move_velocity(velocity, offset), -offset)
    assert torch.allclose(back, velocity)


def test_centripetal_acceleration():
    """A point at 3 m from a fixed axis, at a constant 2 rad/s: 12 m/s² inwards."""
    cvel = torch.tensor([0.0, 0.0, 2.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    zero = torch.zeros(3, dtype=torch.float64)
    point = torch.tensor([3.0, 0.0, 0.0], dtype=torch.float64)
    acc = acceleration_from_cacc(point, zero, cvel, torch.zeros(6, dtype=torch.float64))
    assert acc.tolist() == [-12.0, 0.0, 0.0, 0.0, 0.0, 0.0]
