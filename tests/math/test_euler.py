"""Euler angles in all 24 sequences, with scipy's as the oracle."""

import math

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from simstate.math import euler
from simstate.math import quaternion as q

pytestmark = pytest.mark.fast

SHAPES = [(), (5,), (2, 3), (3, 4)]


def as_scipy(angles: torch.Tensor, sequence: str) -> Rotation:
    """scipy's rotation of angles in the order in which we list them."""
    letters = sequence[1:]
    turns = angles.reshape(-1, 3).numpy()
    if letters[0] != letters[2]:  # ours are about x, y and z; scipy's in their order
        turns = turns[:, ["xyz".index(letter) for letter in letters]]
    return Rotation.from_euler(
        letters.upper() if sequence[0] == "i" else letters, turns
    )


def draw(shape, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    return torch.as_tensor(rng.uniform(-3.1, 3.1, size=(*shape, 3)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_turns_are_scipys(sequence, shape):
    angles = draw(shape)
    quat = euler.to_quaternion(angles, sequence)
    assert quat.shape == (*shape, 4)
    wanted = as_scipy(angles, sequence).as_quat(scalar_first=True).reshape(*shape, 4)
    assert float(q.angle_between(quat, torch.as_tensor(wanted)).max()) < 1e-13


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_angles_stand_for_the_rotation_that_they_are_of(sequence, shape):
    quat = euler.to_quaternion(draw(shape, 1), sequence)
    angles = euler.from_quaternion(quat, sequence)
    assert angles.shape == (*shape, 3)
    again = as_scipy(angles, sequence).as_quat(scalar_first=True).reshape(*shape, 4)
    assert float(q.angle_between(quat, torch.as_tensor(again)).max()) < 1e-13


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_angles_are_within_half_a_turn(sequence, shape):
    quat = euler.to_quaternion(draw(shape, 1), sequence)
    assert float(euler.from_quaternion(quat, sequence).abs().max()) <= math.pi


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_the_middle_angle_is_in_its_own_half(sequence, shape):
    """From 0 to π where the outer axes are one, else from −π/2 to π/2."""
    quat = euler.to_quaternion(draw(shape, 1), sequence)
    angles = euler.from_quaternion(quat, sequence)
    if sequence[1] == sequence[3]:
        assert bool((angles[..., 1] >= 0).all())
    else:
        middle = angles[..., "xyz".index(sequence[2])]
        assert bool((middle.abs() <= math.pi / 2 + 1e-12).all())


def listed_axes(sequence: str) -> list[int]:
    """Where the three turns of a sequence are in our angles."""
    is_proper = sequence[1] == sequence[3]
    return [0, 1, 2] if is_proper else ["xyz".index(letter) for letter in sequence[1:]]


def last_axis(sequence: str) -> int:
    """The angle that is zero at a pole."""
    listed = listed_axes(sequence)
    return listed[2] if sequence[0] == "i" else listed[0]


def turned_to_a_pole(sequence: str, pole: int, near: float = 0.0) -> torch.Tensor:
    """A quaternion whose middle angle is at a pole, 0 or 1, or next to it."""
    middle = near if pole == 0 else math.pi - near
    if sequence[1] != sequence[3]:
        middle -= math.pi / 2
    angles = torch.zeros(3, dtype=torch.float64)
    turns = torch.tensor([0.7, middle, -0.4], dtype=torch.float64)
    angles[listed_axes(sequence)] = turns
    return euler.to_quaternion(angles, sequence)


def gap_to_scipys(quat: torch.Tensor, angles: torch.Tensor, sequence: str) -> float:
    again = torch.as_tensor(as_scipy(angles, sequence).as_quat(scalar_first=True))
    return float(q.angle_between(quat, again.reshape(4)))


@pytest.mark.parametrize("pole", [0, 1])
@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_at_a_pole_the_last_turn_is_zero(sequence, pole):
    found = euler.from_quaternion(turned_to_a_pole(sequence, pole), sequence)
    assert float(found[last_axis(sequence)]) == 0.0


@pytest.mark.parametrize("pole", [0, 1])
@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_at_a_pole_the_rotation_is_the_same(sequence, pole):
    quat = turned_to_a_pole(sequence, pole)
    assert gap_to_scipys(quat, euler.from_quaternion(quat, sequence), sequence) < 1e-13


def test_a_wrapped_angle_has_the_same_direction():
    angles = torch.linspace(-20, 20, 401, dtype=torch.float64)
    wrapped = euler.wrap(angles)
    found, wanted = (torch.polar(torch.ones(()).double(), x) for x in (wrapped, angles))
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-13)


def test_half_a_turn_is_wrapped_to_the_positive_one():
    ends = torch.tensor([math.pi, -math.pi, 3 * math.pi], dtype=torch.float64)
    assert euler.wrap(ends).tolist() == [math.pi] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_wrapped_angle_is_never_beyond_half_a_turn(dtype):
    """Also where the difference is rounded: at odd multiples, and just next to them."""
    half = torch.arange(-199, 200, 2).to(dtype) * torch.pi
    near = [torch.nextafter(half, half + sign) for sign in (-1, 1)]
    found = euler.wrap(torch.cat([half, *near]))
    assert float(found.max()) <= torch.tensor(torch.pi, dtype=dtype)
    assert float(found.min()) >= -torch.tensor(torch.pi, dtype=dtype)


near_a_pole = pytest.mark.parametrize("near", [1e-13, 1e-9, 1e-4])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@near_a_pole
@pytest.mark.parametrize("pole", [0, 1])
@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_near_a_pole_the_rotation_is_the_same(sequence, pole, near, scale):
    """Whatever the length of the quaternion."""
    quat = turned_to_a_pole(sequence, pole, near)
    found = euler.from_quaternion(scale * quat, sequence)
    assert gap_to_scipys(quat, found, sequence) < 1e-13


@near_a_pole
@pytest.mark.parametrize("pole", [0, 1])
@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_near_a_pole_both_outer_angles_are_determined(sequence, pole, near):
    found = euler.from_quaternion(turned_to_a_pole(sequence, pole, near), sequence)
    assert abs(float(found[last_axis(sequence)])) > 0.1


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_rates_are_those_of_scipys_rotations(sequence, shape):
    """The angular velocity in body axes by a difference of rotations."""
    angles, rates, h = draw(shape, 3), draw(shape, 4), 1e-6
    before = as_scipy(angles - h * rates, sequence)
    after = as_scipy(angles + h * rates, sequence)
    wanted = (before.inv() * after).as_rotvec().reshape(*shape, 3) / (2 * h)
    found = euler.rates_to_body(angles, rates, sequence)
    assert np.allclose(found, wanted, rtol=0, atol=1e-8)


@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_rates_come_back_from_the_angular_velocity(sequence):
    angles, rates = draw((4, 5), 5), draw((4, 5), 6)
    body = euler.rates_to_body(angles, rates, sequence)
    back = euler.rates_from_body(angles, body, sequence)
    assert np.allclose(back, rates, rtol=1e-9, atol=1e-9)
