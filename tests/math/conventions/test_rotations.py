"""Rotations, transforms and Euler angles against scipy and against each other."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from tests.raised import raises

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


def test_there_are_24_sequences():
    assert len(euler.SEQUENCES) == 24


def test_half_of_the_sequences_are_of_tait_and_bryan():
    assert len(TAIT_BRYAN) == 12


each_sequence = pytest.mark.parametrize("sequence", euler.SEQUENCES)


def random_turns() -> np.ndarray:
    """Angles in the order of the turns [deg]; shape (200, 3)."""
    return np.random.default_rng(1).uniform(-180, 180, size=(200, 3))


def scipy_rotation(sequence: str) -> Rotation:
    return Rotation.from_euler(scipy_id(sequence), random_turns(), degrees=True)


@each_sequence
def test_active_matrices_of_angles_are_scipys(sequence):
    matrix = r.active_from_angles(as_listed(sequence, random_turns()), sequence)
    assert np.allclose(matrix, scipy_rotation(sequence).as_matrix(), atol=1e-14)


@each_sequence
def test_passive_matrices_are_the_transposes_of_active_ones(sequence):
    listed = as_listed(sequence, random_turns())
    active = r.active_from_angles(listed, sequence)
    assert torch.equal(r.passive_from_angles(listed, sequence), active.mT)


@each_sequence
def test_angles_of_active_matrices_are_scipys(sequence):
    rotation = scipy_rotation(sequence)
    angles = r.angles_from_active(rotation.as_matrix(), sequence)
    want = as_listed(sequence, rotation.as_euler(scipy_id(sequence), degrees=True))
    found, wanted = (np.exp(1j * np.deg2rad(x)) for x in (angles.numpy(), want))
    assert np.allclose(found, wanted)


@each_sequence
def test_angles_are_above_minus_180_and_at_most_180_degrees(sequence):
    angles = r.angles_from_active(scipy_rotation(sequence).as_matrix(), sequence)
    assert bool(((angles > -180) & (angles <= 180)).all())


@each_sequence
def test_angles_of_a_passive_matrix_are_those_of_its_transpose(sequence):
    active = torch.as_tensor(scipy_rotation(sequence).as_matrix())
    found = r.angles_from_passive(active.mT, sequence)
    assert torch.equal(found, r.angles_from_active(active, sequence))


each_offset = pytest.mark.parametrize("offset", [0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3])
each_pole = pytest.mark.parametrize("pole", [0, 1])


def matrices_near_a_pole(sequence: str, pole: int, offset: float) -> np.ndarray:
    rng = np.random.default_rng(2)
    turns = rng.uniform(-np.pi, np.pi, size=(60, 3))
    poles = (-np.pi / 2, np.pi / 2) if sequence in TAIT_BRYAN else (0.0, np.pi)
    turns[:, 1] = poles[pole] + rng.choice([-1, 1], size=60) * offset
    return Rotation.from_euler(scipy_id(sequence), turns).as_matrix()


@each_sequence
@each_pole
@each_offset
def test_angles_near_a_pole_are_finite(sequence, pole, offset):
    matrix = matrices_near_a_pole(sequence, pole, offset)
    assert bool(r.angles_from_active(matrix, sequence, "rad").isfinite().all())


@each_sequence
@each_pole
@each_offset
def test_angles_near_a_pole_stand_for_the_rotation(sequence, pole, offset):
    """Near a pole two angles are noise alone; together they are still the rotation."""
    matrix = matrices_near_a_pole(sequence, pole, offset)
    angles = r.angles_from_active(matrix, sequence, "rad")
    back = r.active_from_angles(angles, sequence, "rad")
    assert np.allclose(back, matrix, rtol=0, atol=5e-15)


def angles_of_a_loop() -> tuple[np.ndarray, torch.Tensor]:
    """721 attitudes of a loop in pitch, through both poles, and their angles."""
    pitch = np.arange(0, 360.5, 0.5)
    matrix = Rotation.from_euler("y", pitch[:, None], degrees=True).as_matrix()
    return matrix, r.angles_from_active(matrix, "izyx")


def test_no_attitude_of_a_loop_is_lost():
    matrix, angles = angles_of_a_loop()
    assert np.allclose(r.active_from_angles(angles, "izyx"), matrix, atol=1e-14)


def test_the_pitch_of_a_loop_stays_within_90_degrees():
    assert float(angles_of_a_loop()[1][:, 1].abs().max()) <= 90


def test_at_the_top_of_a_loop_only_the_pitch_is_not_zero():
    assert angles_of_a_loop()[1][180].tolist() == pytest.approx([0, 90, 0])


def test_180_degrees_is_in_the_range_and_minus_180_is_not():
    turn = r.active_from_angles([[0, 0, 180.0], [0, 0, -180.0]], "izyx")
    assert r.angles_from_active(turn, "izyx")[:, 2].tolist() == [180.0, 180.0]


def half_turns(offset: float, side: int) -> np.ndarray:
    """Quaternions of turns by π ± offset, also about axes in coordinate planes."""
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(300, 3))
    axes[:100] *= rng.integers(0, 2, size=(100, 3))
    axes = axes[np.linalg.norm(axes, axis=-1) > 0.1]
    axes /= np.linalg.norm(axes, axis=-1, keepdims=True)
    half = 0.5 * (np.pi + side * offset)
    cos = np.full((len(axes), 1), np.cos(half))
    return np.concatenate([cos, np.sin(half) * axes], axis=-1)


near_half_turns = pytest.mark.parametrize(
    "offset", [0.0, 1e-14, 1e-13, 1e-12, 1e-9, 1e-6, 1e-3]
)
both_sides = pytest.mark.parametrize("side", [-1, 1])


@near_half_turns
@both_sides
def test_quaternions_of_matrices_near_half_turns_are_exact(offset, side):
    exact = half_turns(offset, side)
    matrix = Rotation.from_quat(exact, scalar_first=True).as_matrix()
    gap = quaternion.angle_between(r.R_to_quat_wxyz(matrix), torch.as_tensor(exact))
    assert float(gap.max()) < 2e-15


@near_half_turns
@both_sides
def test_quaternions_of_matrices_have_no_negative_scalar(offset, side):
    turn = Rotation.from_quat(half_turns(offset, side), scalar_first=True)
    assert bool((r.R_to_quat_wxyz(turn.as_matrix())[:, 0] >= 0).all())


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


any_seed = given(seed=SEEDS)
some = settings(max_examples=20, deadline=None)


def random_turn(seed: int) -> tuple[Rotation, np.ndarray]:
    """Four rotations and vectors."""
    rng = np.random.default_rng(seed)
    return Rotation.random(4, random_state=rng), rng.normal(size=(4, 3))


@any_seed
@some
def test_an_active_matrix_turns_vectors_as_scipy(seed):
    turn, vec = random_turn(seed)
    assert np.allclose(r.rotate(turn.as_matrix(), vec), turn.apply(vec))


@any_seed
@some
def test_a_passive_matrix_projects_on_the_turned_axes(seed):
    """The axes are the columns of the active matrix."""
    turn, vec = random_turn(seed)
    projections = np.einsum("nij,ni->nj", turn.as_matrix(), vec)
    passive = r.passive_from_active(turn.as_matrix())
    assert np.allclose(r.rotate(passive, vec), projections)


@any_seed
@some
def test_active_to_passive_and_back(seed):
    active = torch.as_tensor(random_turn(seed)[0].as_matrix())
    assert torch.equal(r.active_from_passive(r.passive_from_active(active)), active)


class Places:
    """Point p as observed from b along B's axes and from c along C's, by geometry."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.turn_b, self.turn_c = (Rotation.random(5, random_state=rng) for _ in "bc")
        self.b_a, c_b, self.p_a = rng.normal(size=(3, 5, 3))
        self.p_b = self.turn_b.inv().apply(self.p_a - self.b_a)
        self.p_c = self.turn_c.inv().apply(self.p_b - c_b)
        self.to_b = r.passive_transform(self.turn_b.inv().as_matrix(), self.b_a)
        to_c = r.passive_transform(self.turn_c.inv().as_matrix(), c_b)
        self.both = r.compose(self.to_b, to_c)


@any_seed
@some
def test_a_passive_transform_gives_the_position_from_another_point(seed):
    it = Places(seed)
    assert np.allclose(r.apply_to_position(it.to_b, it.p_a), it.p_b)


@any_seed
@some
def test_composed_transforms_are_applied_in_their_order(seed):
    it = Places(seed)
    assert np.allclose(r.apply_to_position(it.both, it.p_a), it.p_c)


@any_seed
@some
def test_a_vector_is_turned_and_not_moved(seed):
    it = Places(seed)
    turned = it.turn_c.inv().apply(it.turn_b.inv().apply(it.p_a))
    assert np.allclose(r.apply_to_vector(it.both, it.p_a), turned)


@any_seed
@some
def test_an_active_transform_turns_then_moves(seed):
    it = Places(seed)
    moved = r.active_transform(it.turn_b.as_matrix(), it.b_a)
    wanted = it.turn_b.apply(it.p_a) + it.b_a
    assert np.allclose(r.apply_to_position(moved, it.p_a), wanted)


@any_seed
@some
def test_the_inverse_of_an_active_transform_is_the_passive_one(seed):
    it = Places(seed)
    moved = r.active_transform(it.turn_b.as_matrix(), it.b_a)
    assert np.allclose(r.invert(moved), it.to_b)


@pytest.mark.parametrize("turns", [(), (7,)], ids=str)
@pytest.mark.parametrize("places", [(), (7,)], ids=str)
def test_transforms_broadcast(turns, places):
    turn = np.broadcast_to(np.eye(3), (*turns, 3, 3))
    made = r.passive_transform(turn, np.ones((*places, 3)))
    assert made.shape == (*np.broadcast_shapes(turns, places), 4, 4)


each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def quarter_turns(sequence: str, dtype: torch.dtype) -> torch.Tensor:
    quarters = torch.arange(-180.0, 181.0, 90.0, dtype=dtype)
    angles = torch.cartesian_prod(quarters, quarters, quarters)
    return r.active_from_angles(angles, sequence)


@each_dtype
@each_sequence
def test_angles_of_quarter_turns_stay_in_their_range(sequence, dtype):
    angles = r.angles_from_active(quarter_turns(sequence, dtype), sequence)
    assert bool(((angles > -180) & (angles <= 180)).all())


@each_dtype
@each_sequence
def test_angles_of_quarter_turns_stand_for_the_rotation(sequence, dtype):
    turn = quarter_turns(sequence, dtype)
    back = r.active_from_angles(r.angles_from_active(turn, sequence), sequence)
    torch.testing.assert_close(back, turn, rtol=0, atol=20 * torch.finfo(dtype).eps)


def test_transforms_of_two_dtypes_compose_in_the_wider():
    shift = r.active_transform(torch.eye(3, dtype=torch.float32), [1.0, 2.0, 3.0])
    assert r.compose(np.eye(4), shift).dtype == torch.float64


def test_transforms_of_two_dtypes_keep_their_values():
    shift = r.active_transform(torch.eye(3, dtype=torch.float32), [1.0, 2.0, 3.0])
    assert r.compose(np.eye(4), shift)[:3, 3].tolist() == [1.0, 2.0, 3.0]


each_unit = pytest.mark.parametrize("unit", ["deg", "rad"])


def turning(sequence: str, unit: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angles, their rates and the body rates of scipy's rotations, by differences."""
    rng = np.random.default_rng(4)
    scale = 1.0 if unit == "rad" else 180 / np.pi
    turns = rng.uniform(-1.0, 1.0, size=(20, 3))
    turns[:, 1] += np.pi / 2 if sequence not in TAIT_BRYAN else 0.0  # off the poles
    speeds = rng.normal(size=(20, 3))
    step = 1e-6
    ahead, behind = (
        Rotation.from_euler(scipy_id(sequence), turns + side * step * speeds)
        for side in (1, -1)
    )
    rates = (behind.inv() * ahead).as_rotvec() / (2 * step)
    angles, listed = as_listed(sequence, turns), as_listed(sequence, speeds)
    return scale * angles, scale * listed, scale * rates


@each_sequence
@each_unit
def test_rates_of_angles_are_those_of_the_rotation(sequence, unit):
    angles, speeds, rates = turning(sequence, unit)
    found = r.body_rates_from_angle_rates(angles, speeds, sequence, unit=unit)
    np.testing.assert_allclose(found, rates, atol=1e-7 * (57 if unit == "deg" else 1))


@each_sequence
@each_unit
def test_rates_of_angles_come_back_from_body_rates(sequence, unit):
    angles, speeds, _ = turning(sequence, unit)
    rates = r.body_rates_from_angle_rates(angles, speeds, sequence, unit=unit)
    back = r.angle_rates_from_body_rates(angles, rates, sequence, unit=unit)
    np.testing.assert_allclose(back, speeds, atol=1e-11 * (57 if unit == "deg" else 1))


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


def nearly_unit() -> tuple[torch.Tensor, torch.Tensor]:
    """Quaternions of unit length, and the same with errors of rounding."""
    rng = np.random.default_rng(0)
    quat = torch.as_tensor(rng.normal(size=(50, 4)))
    quat /= quat.norm(dim=-1, keepdim=True)
    return quat, quat * (1 + 4e-7 * torch.as_tensor(rng.uniform(-1, 1, size=(50, 1))))


def test_quaternions_within_rounding_are_made_of_unit_length():
    made = checked_values.check_unit(nearly_unit()[1], "quat")
    np.testing.assert_allclose(made.norm(dim=-1), 1.0, rtol=1e-15)


def test_quaternions_within_rounding_keep_their_direction():
    quat, near = nearly_unit()
    made = checked_values.check_unit(near, "quat")
    np.testing.assert_allclose(made, quat, atol=1e-15)


def test_quaternions_of_another_length_are_refused():
    lengths = torch.tensor([[1.0], [1.1], [2.0]])
    with raises(InvalidInputError, name="q"):
        checked_values.check_unit(nearly_unit()[0][:3] * lengths, "q")


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
