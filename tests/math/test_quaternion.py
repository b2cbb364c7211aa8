"""Quaternions: the group's axioms, and scipy's rotations as the oracle."""

import mujoco
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from simstate.math import quaternion as q

pytestmark = pytest.mark.fast

SHAPES = [(), (5,), (2, 3)]


def random_quats(shape, seed):
    rng = np.random.default_rng(seed)
    quat = torch.as_tensor(rng.normal(size=(*shape, 4)))
    return q.normalize(quat)


def random_vectors(shape, seed):
    return torch.as_tensor(np.random.default_rng(seed).normal(size=(*shape, 3)))


def as_scipy(quat):
    return Rotation.from_quat(quat.reshape(-1, 4).numpy(), scalar_first=True)


def same_rotation(left, right, tolerance=1e-12):
    return bool((q.angle_between(left, right) < tolerance).all())


@pytest.mark.parametrize("shape", SHAPES)
@given(seed=st.integers(0, 2**32 - 1))
def test_group_axioms(shape, seed):
    a, b, c = (random_quats(shape, seed + k) for k in range(3))
    one = torch.zeros(*shape, 4, dtype=torch.float64)
    one[..., 0] = 1.0
    assert torch.allclose(
        q.multiply(a, q.multiply(b, c)), q.multiply(q.multiply(a, b), c)
    )
    assert torch.allclose(q.multiply(a, q.conjugate(a)), one)
    assert torch.allclose(q.multiply(one, a), a)
    vec = random_vectors(shape, seed)
    rotated = q.rotate(a, q.rotate(b, vec))
    assert torch.allclose(rotated, q.rotate(q.multiply(a, b), vec))
    assert torch.allclose(q.rotate_inverse(a, q.rotate(a, vec)), vec)


@pytest.mark.parametrize("shape", [*SHAPES, (3, 4), (4, 3)], ids=str)
@given(seed=st.integers(0, 2**32 - 1))
def test_agrees_with_scipy(shape, seed):
    quat, vec = random_quats(shape, seed), random_vectors(shape, seed)
    theirs = as_scipy(quat)
    matrix = theirs.as_matrix().reshape(*shape, 3, 3)
    assert np.allclose(q.to_matrix(quat), matrix, atol=1e-14)
    turned = theirs.apply(vec.numpy().reshape(-1, 3)).reshape(*shape, 3)
    assert np.allclose(q.rotate(quat, vec), turned)
    found = q.from_matrix(torch.as_tensor(matrix))
    assert found.shape == (*shape, 4)
    assert same_rotation(found, quat)
    rotvec, mrp = (x.reshape(*shape, 3) for x in (theirs.as_rotvec(), theirs.as_mrp()))
    assert np.allclose(q.to_rotation_vector(quat), rotvec)
    assert np.allclose(q.to_mrp(quat), mrp)
    assert same_rotation(q.from_rotation_vector(torch.as_tensor(rotvec)), quat)
    assert same_rotation(q.from_mrp(torch.as_tensor(mrp)), quat)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_shadow_set_of_parameters_is_the_same_rotation(shape):
    mrp = q.to_mrp(random_quats(shape, 3))
    shadow = -mrp / (mrp * mrp).sum(-1, keepdim=True)
    assert same_rotation(q.from_mrp(shadow), q.from_mrp(mrp))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_of_a_quaternion_and_its_negative_one_is_canonical(shape):
    quat = random_quats(shape, 6)
    quat[..., 0] = 0.0  # a half turn: the first that is not zero is positive
    for given_ in (quat, -quat):
        found = q.canonical(given_)
        assert bool((found[..., 1] > 0).all())
        assert torch.equal(found.abs(), quat.abs())


def test_a_quaternion_of_length_zero_is_no_turn():
    """As in MuJoCo; any other becomes of unit length."""
    quat = torch.tensor([[0.0] * 4, [0.0, 3.0, 0.0, -4.0]], dtype=torch.float64)
    assert q.normalize(quat).tolist() == [[1, 0, 0, 0], [0, 0.6, 0, -0.8]]


def test_short_quaternions_are_mujocos():
    """It takes those below 1e-15 for no turn, and only those."""
    for length in (1e-16, np.nextafter(1e-15, 0), 1e-15, 2e-15, 1e-9):
        wanted = np.array([0.0, length, 0.0, 0.0])
        found = q.normalize(torch.as_tensor(wanted))
        mujoco.mju_normalize4(wanted)
        assert np.allclose(found, wanted)


def test_a_quaternion_of_length_zero_has_no_sign():
    assert not bool(q.canonical(torch.zeros(2, 4)).signbit().any())


def test_derivatives_at_no_turn_are_those_of_a_small_one():
    """A turn's vector is twice the imaginary part; 0 / 0 must not be in the way."""

    def vector(imag):
        return q.to_rotation_vector(torch.cat([torch.ones(1).to(imag), imag]))

    for imag in (torch.zeros(3), 1e-9 * torch.ones(3)):
        found = torch.autograd.functional.jacobian(vector, imag.double())
        torch.testing.assert_close(found, 2.0 * torch.eye(3).double())


@pytest.mark.parametrize("offset", [0.0, 1e-14, 1e-9, 1e-6, 1e-3])
def test_matrix_to_quaternion_at_half_turns(offset):
    """Where the trace is −1, a formula that divides by w loses everything."""
    axes = random_vectors((200,), 0)
    axes = torch.cat([axes, torch.eye(3, dtype=torch.float64)])
    axes = axes / axes.norm(dim=-1, keepdim=True)
    for angle in (np.pi - offset, np.pi + offset):
        matrix = torch.as_tensor(Rotation.from_rotvec(angle * axes.numpy()).as_matrix())
        assert torch.allclose(q.to_matrix(q.from_matrix(matrix)), matrix, atol=1e-14)


@given(st.floats(1e-300, 3.14))
def test_rotation_vector_round_trip(angle):
    vec = torch.tensor([0.6, 0.0, -0.8], dtype=torch.float64) * angle
    back = q.to_rotation_vector(q.from_rotation_vector(vec))
    assert torch.allclose(back, vec, rtol=1e-12, atol=0)


def test_zero_rotation_vector():
    zero = torch.zeros(3, dtype=torch.float64)
    identity = q.from_rotation_vector(zero)
    assert identity.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert q.to_rotation_vector(identity).tolist() == [0.0, 0.0, 0.0]


def test_angle_ignores_the_sign():
    quat = random_quats((10,), 4)
    assert same_rotation(quat, -quat)
