"""Rotations, transforms and Euler angles against scipy and against each other."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from simstate.base.errors import InvalidInputError
from simstate.math import euler, quaternion
from simstate.math.conventions import axes, checked_values, presets
from simstate.math.conventions import rotations as r

pytestmark = pytest.mark.fast

SEEDS = st.integers(0, 2**32 - 1)
TAIT_BRYAN = [s for s in euler.SEQUENCES if len(set(s[1:])) == 3]


def as_listed(sequence: str, turns: np.ndarray) -> np.ndarray:
    """scipy's angles, in the order of the turns, as ours: Tait-Bryan by axis."""
    if sequence not in TAIT_BRYAN:
        return turns
    listed = np.empty_like(turns)
    for k, letter in enumerate(sequence[1:]):
        listed[..., "xyz".index(letter)] = turns[..., k]
    return listed


def scipy_id(sequence: str) -> str:
    return sequence[1:].upper() if sequence[0] == "i" else sequence[1:]


def test_there_are_twelve_of_each():
    assert len(TAIT_BRYAN) == 12
    assert len(euler.SEQUENCES) == 24


@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_sequences_against_scipy(sequence):
    rng = np.random.default_rng(1)
    turns = rng.uniform(-180, 180, size=(200, 3))
    rotation = Rotation.from_euler(scipy_id(sequence), turns, degrees=True)
    listed = as_listed(sequence, turns)
    matrix = r.active_from_angles(listed, sequence)
    assert np.allclose(matrix, rotation.as_matrix(), atol=1e-14)
    assert np.allclose(r.passive_from_angles(listed, sequence), matrix.mT, atol=0)
    angles = r.angles_from_active(rotation.as_matrix(), sequence)
    want = as_listed(sequence, rotation.as_euler(scipy_id(sequence), degrees=True))
    assert np.allclose(
        np.exp(1j * np.deg2rad(angles.numpy())), np.exp(1j * np.deg2rad(want))
    )
    assert bool(((angles > -180) & (angles <= 180)).all())
    assert torch.equal(r.angles_from_passive(matrix.mT, sequence),
                       r.angles_from_active(matrix, sequence))  # fmt: skip


@pytest.mark.parametrize("sequence", euler.SEQUENCES)
@pytest.mark.parametrize("offset", [0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3])
def test_poles(sequence, offset):
    """Near a pole two angles are noise alone; together they are still the rotation."""
    rng = np.random.default_rng(2)
    turns = rng.uniform(-np.pi, np.pi, size=(60, 3))
    poles = (-np.pi / 2, np.pi / 2) if sequence in TAIT_BRYAN else (0.0, np.pi)
    for pole in poles:
        turns[:, 1] = pole + rng.choice([-1, 1], size=60) * offset
        matrix = Rotation.from_euler(scipy_id(sequence), turns).as_matrix()
        angles = r.angles_from_active(matrix, sequence, "rad")
        assert bool(torch.isfinite(angles).all())
        back = r.active_from_angles(angles, sequence, "rad")
        assert np.allclose(back, matrix, rtol=0, atol=5e-15)


def test_through_the_pole_in_a_loop():
    """A loop in pitch: 721 attitudes, through both poles, none of them lost."""
    pitch = np.arange(0, 360.5, 0.5)
    matrix = Rotation.from_euler("y", pitch[:, None], degrees=True).as_matrix()
    angles = r.angles_from_active(matrix, "izyx")
    back = r.active_from_angles(angles, "izyx")
    assert np.allclose(back, matrix, atol=1e-14)
    assert float(angles[:, 1].abs().max()) <= 90
    assert angles[180].tolist() == pytest.approx([0, 90, 0])


def test_180_degrees_is_in_the_range_and_minus_180_is_not():
    turn = r.active_from_angles([[0, 0, 180.0], [0, 0, -180.0]], "izyx")
    assert r.angles_from_active(turn, "izyx")[:, 2].tolist() == [180.0, 180.0]


@pytest.mark.parametrize("offset", [0.0, 1e-14, 1e-13, 1e-12, 1e-9, 1e-6, 1e-3])
def test_quaternion_at_and_near_half_turns(offset):
    """Also for axes in the coordinate planes, where signs are lost most easily."""
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(300, 3))
    axes[:100] *= rng.integers(0, 2, size=(100, 3))
    axes = axes[np.linalg.norm(axes, axis=-1) > 0.1]
    axes /= np.linalg.norm(axes, axis=-1, keepdims=True)
    for angle in (np.pi - offset, np.pi + offset):
        half = 0.5 * angle
        exact = np.concatenate(
            [np.full((len(axes), 1), np.cos(half)), np.sin(half) * axes], axis=-1
        )
        rotation = Rotation.from_quat(exact, scalar_first=True)
        quat = r.R_to_quat_wxyz(rotation.as_matrix())
        gap = quaternion.angle_between(quat, torch.as_tensor(exact))
        assert float(gap.max()) < 2e-15
        assert bool((quat[:, 0] >= 0).all())


def test_a_quaternion_and_its_matrix_are_one_rotation():
    rotation = Rotation.random(50, random_state=7)
    quat = torch.as_tensor(rotation.as_quat(scalar_first=True))
    want = torch.as_tensor(rotation.as_matrix())
    torch.testing.assert_close(r.active_from_quat(quat), want, rtol=0, atol=1e-15)
    torch.testing.assert_close(r.active_from_quat(-quat), want, rtol=0, atol=1e-15)


def test_sign_of_a_half_turn_is_settled():
    """q and −q are one rotation: at w = 0 the first component that is not is > 0."""
    quat = torch.tensor([[0, -0.6, 0.8, 0], [0, 0, 0, -1], [-0.0, 0, -1, 0]])
    want = torch.tensor([[0, 0.6, -0.8, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
    assert torch.equal(quaternion.canonical(quat), want)


@given(seed=SEEDS)
@settings(max_examples=20, deadline=None)
def test_passive_and_active(seed):
    rng = np.random.default_rng(seed)
    rotation = Rotation.random(4, random_state=rng)
    vec = rng.normal(size=(4, 3))
    active = rotation.as_matrix()
    passive = r.passive_from_active(active)
    assert np.allclose(r.rotate(active, vec), rotation.apply(vec))
    # B axes are A's, turned; components along them are projections on B's axes.
    axes_b = rotation.as_matrix()  # columns
    projections = np.einsum("nij,ni->nj", axes_b, vec)
    assert np.allclose(r.rotate(passive, vec), projections)
    assert torch.equal(r.active_from_passive(passive), torch.as_tensor(active))


@given(seed=SEEDS)
@settings(max_examples=20, deadline=None)
def test_transforms(seed):
    rng = np.random.default_rng(seed)
    turn_b, turn_c = (Rotation.random(5, random_state=rng) for _ in range(2))
    b_a, c_b, p_a = rng.normal(size=(3, 5, 3))
    # Where b, c and p are, by geometry: p as seen from b along B's axes, and so on.
    p_b = turn_b.inv().apply(p_a - b_a)
    p_c = turn_c.inv().apply(p_b - c_b)
    to_b = r.passive_transform(turn_b.inv().as_matrix(), b_a)
    to_c = r.passive_transform(turn_c.inv().as_matrix(), c_b)
    assert np.allclose(r.apply_to_position(to_b, p_a), p_b)
    both = r.compose(to_b, to_c)
    assert np.allclose(r.apply_to_position(both, p_a), p_c)
    assert np.allclose(r.apply_to_position(r.invert(both), p_c), p_a)
    turned = turn_c.inv().apply(turn_b.inv().apply(p_a))
    assert np.allclose(r.apply_to_vector(both, p_a), turned)
    moved = r.active_transform(turn_b.as_matrix(), b_a)
    assert np.allclose(r.apply_to_position(moved, p_a), turn_b.apply(p_a) + b_a)
    # The active transform of a passive one is its inverse.
    assert np.allclose(r.invert(moved), to_b)
    eye = np.broadcast_to(np.eye(4), (5, 4, 4))
    assert np.allclose(r.compose(both, r.invert(both)), eye, atol=1e-14)


def test_transforms_broadcast():
    one = r.passive_transform(np.eye(3), np.ones((7, 3)))
    assert one.shape == (7, 4, 4)
    many = r.passive_transform(np.broadcast_to(np.eye(3), (7, 3, 3)), [1.0, 0, 0])
    assert many.shape == (7, 4, 4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("sequence", euler.SEQUENCES)
def test_angles_of_quarter_turns_stay_in_their_range(sequence, dtype):
    quarters = torch.arange(-180.0, 181.0, 90.0, dtype=dtype)
    R = r.active_from_angles(
        torch.cartesian_prod(quarters, quarters, quarters), sequence
    )
    angles = r.angles_from_active(R, sequence)
    assert bool(((angles > -180) & (angles <= 180)).all())
    back = r.active_from_angles(angles, sequence)
    torch.testing.assert_close(back, R, rtol=0, atol=20 * torch.finfo(dtype).eps)


def test_transforms_of_two_dtypes_compose():
    shift = r.active_transform(torch.eye(3, dtype=torch.float32), [1.0, 2.0, 3.0])
    both = r.compose(np.eye(4), shift)
    assert both.dtype == torch.float64
    assert both[:3, 3].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("sequence", euler.SEQUENCES)
@pytest.mark.parametrize("unit", ["deg", "rad"])
def test_rates_of_angles_are_those_of_the_rotation(sequence, unit):
    """By differences of scipy's rotations, and back."""
    rng = np.random.default_rng(4)
    scale = 1.0 if unit == "rad" else 180 / np.pi
    middle = np.pi / 2 if sequence not in TAIT_BRYAN else 0.0  # away from the poles
    turns = rng.uniform(-1.0, 1.0, size=(20, 3))
    turns[:, 1] += middle
    speeds = rng.normal(size=(20, 3))
    step = 1e-6
    ahead, behind = (
        Rotation.from_euler(scipy_id(sequence), turns + side * step * speeds)
        for side in (1, -1)
    )
    rates = (behind.inv() * ahead).as_rotvec() / (2 * step)  # body axes [rad/s]
    angles, listed = as_listed(sequence, turns), as_listed(sequence, speeds)
    given = (scale * angles, scale * listed, sequence)
    found = r.body_rates_from_angle_rates(*given, unit=unit)
    np.testing.assert_allclose(found, scale * rates, atol=1e-7 * scale)
    back = r.angle_rates_from_body_rates(given[0], found, sequence, unit=unit)
    np.testing.assert_allclose(back, scale * listed, atol=1e-11 * scale)


def test_axes_that_are_known_are_the_right_handed_ones():
    for kind, letters in (("world", "EWNSUD"), ("body", "FALRUD")):
        unit = dict(zip(letters, np.kron(np.eye(3), [[1], [-1]]), strict=True))
        right = {
            "".join(three)
            for three in itertools.product(letters, repeat=3)
            if np.array_equal(np.cross(unit[three[0]], unit[three[1]]), unit[three[2]])
        }
        assert len(right) == 24
        assert set(axes.known(kind)) - {axes.Z_UP} == right
    assert axes.Z_UP in axes.known("world")
    assert axes.Z_UP not in axes.known("body")


def test_quaternions_within_rounding_are_made_of_unit_length():
    rng = np.random.default_rng(0)
    quat = torch.as_tensor(rng.normal(size=(50, 4)))
    quat /= quat.norm(dim=-1, keepdim=True)
    near = quat * (1 + 4e-7 * torch.as_tensor(rng.uniform(-1, 1, size=(50, 1))))
    made = checked_values.check_unit(near, "quat")
    np.testing.assert_allclose(made.norm(dim=-1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(made, quat, atol=1e-15)
    with pytest.raises(InvalidInputError, match=r"at \[1\] the length is 1.1"):
        checked_values.check_unit(quat[:3] * torch.tensor([[1.0], [1.1], [2.0]]), "q")


def test_a_convention_is_described_in_full():
    found = {name: presets.PRESETS[name].describe() for name in presets.PRESETS}
    assert len(set(found.values())) == len(found)
    for name, text in found.items():
        given = presets.PRESETS[name]
        assert f"world {given.world}, body {given.body}" in text
        assert ("[deg]" in text) == (
            given.attitude.has_angles and given.angle_unit == "deg"
        )
        assert f"[{given.angle_unit}/s]" in text
        if given.attitude.sequence:
            assert given.attitude.sequence in text
        assert ", ".join(given.order) in text
