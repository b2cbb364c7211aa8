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
    assert float(angles.abs().max()) <= math.pi
    middle = angles[..., "xyz".index(sequence[2])]
    if sequence[1] == sequence[3]:
        assert bool((angles[..., 1] >= 0).all())
    else:
        assert bool((middle.abs() <= math.pi / 2 + 1e-12).all())


@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_at_a_pole_the_last_turn_is_zero(sequence):
    """At both poles, and the same rotation there."""
    proper = sequence[1] == sequence[3]
    listed = [0, 1, 2] if proper else ["xyz".index(letter) for letter in sequence[1:]]
    for middle in (0.0, math.pi) if proper else (-math.pi / 2, math.pi / 2):
        angles = torch.zeros(3, dtype=torch.float64)
        angles[listed] = torch.tensor([0.7, middle, -0.4], dtype=torch.float64)
        quat = euler.to_quaternion(angles, sequence)
        found = euler.from_quaternion(quat, sequence)
        last = listed[2] if sequence[0] == "i" else listed[0]
        assert float(found[last]) == 0.0
        again = torch.as_tensor(as_scipy(found, sequence).as_quat(scalar_first=True))
        assert float(q.angle_between(quat, again.reshape(4))) < 1e-13


def test_angles_are_wrapped_to_half_a_turn():
    angles = torch.linspace(-20, 20, 401, dtype=torch.float64)
    wrapped = euler.wrap(angles)
    np.testing.assert_allclose(wrapped.cos(), angles.cos(), atol=1e-13)
    np.testing.assert_allclose(wrapped.sin(), angles.sin(), atol=1e-13)
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


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("near", [1e-13, 1e-9, 1e-4])
@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_near_a_pole_the_rotation_is_the_same(sequence, near, scale):
    """Both outer angles are determined there, and a length does not matter."""
    proper = sequence[1] == sequence[3]
    listed = [0, 1, 2] if proper else ["xyz".index(letter) for letter in sequence[1:]]
    for pole in (near, math.pi - near):
        angles = torch.zeros(3, dtype=torch.float64)
        middle = pole if proper else pole - math.pi / 2
        angles[listed] = torch.tensor([0.7, middle, -0.4], dtype=torch.float64)
        quat = euler.to_quaternion(angles, sequence)
        found = euler.from_quaternion(scale * quat, sequence)
        again = torch.as_tensor(as_scipy(found, sequence).as_quat(scalar_first=True))
        assert float(q.angle_between(quat, again.reshape(4))) < 1e-13
        last = listed[2] if sequence[0] == "i" else listed[0]
        assert abs(float(found[last])) > 0.1


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
