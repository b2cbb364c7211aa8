"""Quaternions and other forms of rotations, with scipy's as the oracle."""

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


FORMS = {
    "matrix": (q.to_matrix, q.from_matrix, Rotation.as_matrix, (3, 3)),
    "rotation vector": (
        q.to_rotation_vector, q.from_rotation_vector, Rotation.as_rotvec, (3,),
    ),
    "mrp": (q.to_mrp, q.from_mrp, Rotation.as_mrp, (3,)),
}  # fmt: skip
each_shape = pytest.mark.parametrize("shape", [*SHAPES, (3, 4), (4, 3)], ids=str)
each_form = pytest.mark.parametrize("form", FORMS)
any_seed = given(seed=st.integers(0, 2**32 - 1))


@each_shape
@any_seed
def test_vectors_are_turned_as_by_scipy(shape, seed):
    quat, vec = random_quats(shape, seed), random_vectors(shape, seed)
    turned = as_scipy(quat).apply(vec.numpy().reshape(-1, 3)).reshape(*shape, 3)
    assert np.allclose(q.rotate(quat, vec), turned)


@each_form
@each_shape
@any_seed
def test_other_forms_are_scipys(form, shape, seed):
    to, _, theirs, tail = FORMS[form]
    quat = random_quats(shape, seed)
    wanted = theirs(as_scipy(quat)).reshape(*shape, *tail)
    assert np.allclose(to(quat), wanted, atol=1e-14)


@each_form
@each_shape
@any_seed
def test_quaternions_of_other_forms_are_scipys(form, shape, seed):
    _, of, theirs, tail = FORMS[form]
    quat = random_quats(shape, seed)
    given_ = torch.as_tensor(theirs(as_scipy(quat)).reshape(*shape, *tail))
    assert same_rotation(of(given_), quat)


@each_form
@each_shape
def test_a_quaternion_of_another_form_has_its_batch_shape(form, shape):
    to, of, *_ = FORMS[form]
    assert of(to(random_quats(shape, 5))).shape == (*shape, 4)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_shadow_set_of_parameters_is_the_same_rotation(shape):
    mrp = q.to_mrp(random_quats(shape, 3))
    shadow = -mrp / (mrp * mrp).sum(-1, keepdim=True)
    assert same_rotation(q.from_mrp(shadow), q.from_mrp(mrp))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_of_a_quaternion_and_its_negative_one_is_canonical(shape, sign):
    """In a half turn, the first component that is not zero is positive."""
    quat = random_quats(shape, 6)
    quat[..., 0] = 0.0
    assert torch.equal(q.canonical(sign * quat), quat * quat[..., 1:2].sign())


def test_a_quaternion_of_length_zero_is_no_turn():
    """As in MuJoCo; any other becomes of unit length."""
    quat = torch.tensor([[0.0] * 4, [0.0, 3.0, 0.0, -4.0]], dtype=torch.float64)
    assert q.normalize(quat).tolist() == [[1, 0, 0, 0], [0, 0.6, 0, -0.8]]


@pytest.mark.parametrize("length", [1e-16, np.nextafter(1e-15, 0), 1e-15, 2e-15, 1e-9])
def test_short_quaternions_are_mujocos(length):
    """It takes those below 1e-15 for no turn, and only those."""
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


def test_a_rotation_vector_of_zero_is_no_turn():
    zero = torch.zeros(3, dtype=torch.float64)
    assert q.from_rotation_vector(zero).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_no_turn_has_a_rotation_vector_of_zero():
    one = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    assert q.to_rotation_vector(one).tolist() == [0.0, 0.0, 0.0]


def test_angle_ignores_the_sign():
    quat = random_quats((10,), 4)
    assert same_rotation(quat, -quat)
