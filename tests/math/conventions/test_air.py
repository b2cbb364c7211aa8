"""Wind angles and flight axes, against their definitions and against scipy."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from tests.math.conventions.bodies import random_bodies
from tests.raised import raises

from simstate.base.errors import InvalidInputError
from simstate.math.conventions import points, wind_angles

pytestmark = pytest.mark.fast

SEEDS = st.integers(0, 2**32 - 1)
NAMES = ("earth", "body", "geometry", "wind", "stability")


@pytest.mark.parametrize(
    ("definition", "alpha", "beta"),
    [("ptera_5_1", 10.98, 14.04), ("stevens", 11.31, 13.77)],
)
def test_both_definitions(definition, alpha, beta):
    got = wind_angles.wind_angles([20.0, 5.0, 4.0], definition)
    assert [round(float(x), 2) for x in got] == [alpha, beta]


@pytest.mark.parametrize(
    ("definition", "formula"),
    [
        ("stevens", lambda u, v, w, V: (np.arctan2(w, u), np.arcsin(v / V))),
        ("ptera_5_1", lambda u, v, w, V: (np.arcsin(w / V), np.arctan2(v, u))),
    ],
)
def test_definitions_are_their_formulas(definition, formula):
    velocity = np.random.default_rng(0).normal(size=(100, 3)) * 20
    found = wind_angles.wind_angles(velocity, definition, "rad")
    assert np.allclose(found, formula(*velocity.T, np.linalg.norm(velocity, axis=-1)))


@given(seed=SEEDS, definition=st.sampled_from(["stevens", "ptera_5_1"]))
@settings(max_examples=30, deadline=None)
def test_angles_there_and_back(seed, definition):
    velocity = torch.as_tensor(np.random.default_rng(seed).normal(size=(9, 3)) * 30)
    alpha, beta = wind_angles.wind_angles(velocity, definition)
    speed = velocity.norm(dim=-1)
    back = wind_angles.velocity_from_wind_angles(speed, alpha, beta, definition)
    assert torch.allclose(back, velocity, atol=1e-12)


AXES = [[0.0, 0, 0], [0, 0, 5], [0, 0, -5], [0, 5, 0], [0, -5, 0], [-5, 0, 0]]
each_definition = pytest.mark.parametrize("definition", ["stevens", "ptera_5_1"])


@each_definition
def test_angles_at_poles_and_at_rest_are_finite(definition):
    found = torch.stack(wind_angles.wind_angles(AXES, definition))
    assert bool(found.isfinite().all())


@each_definition
def test_angles_at_poles_and_at_rest_stand_for_the_velocity(definition):
    alpha, beta = wind_angles.wind_angles(AXES, definition)
    speed = torch.as_tensor(np.linalg.norm(AXES, axis=-1))
    back = wind_angles.velocity_from_wind_angles(speed, alpha, beta, definition)
    assert np.allclose(back, AXES, atol=1e-14)


class Flying:
    """Velocities in body axes, and attitudes; both as `R_pas` takes them."""

    def __init__(self) -> None:
        rng = np.random.default_rng(4)
        self.attitude = Rotation.random(6, random_state=rng).as_matrix()
        self.velocity = rng.normal(size=(6, 3)) * 20
        self.given = {
            "velocity_b": self.velocity,
            "R_pas_E_to_B": self.attitude.transpose(0, 2, 1),
        }

    def in_axes(self, name: str, **options: str) -> np.ndarray:
        """Return the velocity in these axes; shape (6, 3)."""
        turn = wind_angles.R_pas("body", name, **self.given, **options).numpy()
        return np.einsum("nij,nj->ni", turn, self.velocity)


@each_definition
def test_the_velocity_is_along_the_wind_axis_x(definition):
    flying = Flying()
    speed = np.linalg.norm(flying.velocity, axis=-1)
    along_x = np.stack([speed, 0 * speed, 0 * speed], axis=-1)
    assert np.allclose(flying.in_axes("wind", definition=definition), along_x)


def test_the_velocity_is_not_along_the_stability_axis_z():
    assert np.allclose(Flying().in_axes("stability")[:, 2], 0)


def test_the_velocity_is_forwards_in_stability_axes():
    assert (Flying().in_axes("stability")[:, 0] > 0).all()


def test_the_stability_axis_y_is_the_bodys():
    turn = wind_angles.R_pas("body", "stability", **Flying().given)
    assert np.allclose(turn[:, 1], [0, 1, 0])


def test_earth_axes_are_those_of_the_attitude():
    flying = Flying()
    turn = wind_angles.R_pas("body", "earth", **flying.given)
    assert np.allclose(turn, flying.attitude)


def test_geometry_axes_point_back_and_up():
    geometry = wind_angles.R_pas("body", "geometry")
    assert geometry.tolist() == np.diag([-1.0, 1.0, -1.0]).tolist()


def test_wind_axes_of_ptera():
    """Turned from the body's by (0, −α, β) about the fixed axes, as 5.1 builds them."""
    alpha, beta = 7.0, -4.0
    velocity = wind_angles.velocity_from_wind_angles(12.0, alpha, beta, "ptera_5_1")
    wind = wind_angles.R_pas(
        "body", "wind", velocity_b=velocity, definition="ptera_5_1"
    )
    turn = Rotation.from_euler("xyz", [0, -alpha, beta], degrees=True)
    assert np.allclose(wind, turn.as_matrix().T)


def all_turns(seed: int) -> dict[tuple[str, str], np.ndarray]:
    """The rotations between all pairs of axes."""
    rng = np.random.default_rng(seed)
    given = {
        "velocity_b": rng.normal(size=(3, 3)) * 20,
        "R_pas_E_to_B": Rotation.random(3, random_state=rng).as_matrix(),
    }
    return {
        (a, b): wind_angles.R_pas(a, b, **given).numpy()
        for a, b in product(NAMES, repeat=2)
    }


@given(seed=SEEDS)
@settings(max_examples=5, deadline=None)
def test_turns_between_axes_compose(seed):
    turn = all_turns(seed)
    for a, b, third in product(NAMES, repeat=3):
        steps = turn[b, third] @ turn[a, b]
        assert np.allclose(steps, turn[a, third], atol=1e-14)


@given(seed=SEEDS)
@settings(max_examples=5, deadline=None)
def test_turns_between_axes_are_orthogonal(seed):
    for matrix in all_turns(seed).values():
        inverse = np.swapaxes(matrix, -1, -2)
        assert np.allclose(matrix @ inverse, np.eye(3), atol=1e-14)


def test_what_an_axis_needs_is_asked_for():
    with raises(InvalidInputError, name="velocity_b"):
        wind_angles.R_pas("wind", "body")
    with raises(InvalidInputError, name="R_pas_E_to_B"):
        wind_angles.R_pas("earth", "body")


def test_moments_of_forces_at_points():
    """Against the definition: the moment about a point is Σ (r − point) × force."""
    rng = np.random.default_rng(0)
    where, force = rng.normal(size=(2, 8, 5, 3))
    one, other = rng.normal(size=(2, 8, 1, 3))
    about = np.cross(where - one, force).sum(1)
    want = np.cross(where - other, force).sum(1)
    got = points.move_moment(about, force.sum(1), (other - one)[:, 0])
    assert np.allclose(got, want)


def test_velocity_of_another_point():
    b = random_bodies(0, 8)
    offset = np.random.default_rng(1).normal(size=(8, 3))
    h = 1e-6
    ends = [Rotation.from_rotvec(b.rates * t).apply(offset) + b.velocity * t
            for t in (-h, h)]  # fmt: skip
    rate = (ends[1] - ends[0]) / (2 * h)
    assert np.allclose(points.move_velocity(b.velocity, b.rates, offset), rate)


class Masses:
    """Point masses, and their inertia about any point by the sum over them."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.mass = self.rng.uniform(0.1, 1, size=7)
        self.place = self.rng.normal(size=(7, 3))
        self.com = self.mass @ self.place / self.mass.sum()

    def about(self, point: np.ndarray) -> np.ndarray:
        arm, mass = self.place - point, self.mass[:, None, None]
        squares = (arm**2).sum(-1)[:, None, None] * np.eye(3)
        return (mass * (squares - arm[:, :, None] * arm[:, None])).sum(0)


def test_inertia_of_point_masses_moves_as_their_sum():
    it = Masses()
    one, other = it.rng.normal(size=(2, 3))
    got = points.move_inertia(it.about(one), it.mass.sum(), it.com - one, other - one)
    assert np.allclose(got, it.about(other))


def test_an_inertia_smaller_than_its_arm_allows_is_refused():
    it = Masses()
    with raises(InvalidInputError, name="inertia"):
        points.move_inertia(it.about(it.com), it.mass.sum(), [3.0, 0, 0], [0, 0, 0])


def test_a_float32_plate_in_any_axes_has_a_valid_inertia():
    """Its largest moment is the sum of the others: rounding may exceed it."""
    plate = torch.diag(torch.tensor([0.1, 0.3, 0.4]))
    for quat in np.random.default_rng(3).normal(size=(50, 4)):
        rot = torch.as_tensor(Rotation.from_quat(quat).as_matrix()).float()
        turned = rot @ plate @ rot.T
        assert torch.allclose(points.check_inertia(turned), turned, atol=1e-6)


@each_definition
@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize(
    ("velocity", "angles"),
    [
        ((0, 0, 0), [0.0, 0.0]),
        ((0, 5.0, 0), [0.0, 90.0]),
        ((0, 0, -5.0), [-90.0, 0.0]),
    ],
)
def test_no_sign_of_a_zero_makes_half_a_turn(definition, zero, velocity, angles):
    signed = [value or zero for value in velocity]
    found = wind_angles.wind_angles(signed, definition)
    assert [float(angle) for angle in found] == angles


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize(
    ("definition", "angles"), [("stevens", [180.0, 0.0]), ("ptera_5_1", [0.0, 180.0])]
)
def test_backwards_is_half_a_turn(definition, angles, zero):
    found = wind_angles.wind_angles([-5.0, zero, 0.0], definition)
    assert [float(angle) for angle in found] == angles


FORCES = np.random.default_rng(3).normal(size=(4, 5, 3))
OFFSET = np.array([0.5, -0.2, 0.3])


def test_one_point_for_many_loads():
    moments = points.move_moment([0.0, 0.0, 0.0], FORCES, OFFSET)
    np.testing.assert_allclose(moments, -np.cross(OFFSET, FORCES))


def test_one_point_for_many_velocities():
    velocities = points.move_velocity([1.0, 0.0, 0.0], FORCES, OFFSET)
    turning = np.cross(FORCES, OFFSET)
    np.testing.assert_allclose(velocities, np.array([1.0, 0.0, 0.0]) + turning)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rotations_have_the_dtype_of_what_they_are_given(dtype):
    velocity = torch.tensor([20.0, 5.0, 4.0], dtype=dtype)
    found = wind_angles.R_pas("body", "wind", velocity_b=velocity)
    assert found.dtype == dtype
    attitude = wind_angles.R_pas("body", "stability", velocity_b=velocity)
    other = wind_angles.R_pas("earth", "body", R_pas_E_to_B=attitude)
    assert other.dtype == dtype
    torch.testing.assert_close(other, attitude)
    assert wind_angles.R_pas("body", "body").shape == (3, 3)
