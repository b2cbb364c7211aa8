"""Wind angles and flight axes, against their definitions and against scipy."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from tests.math.conventions.bodies import random_bodies

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


def test_definitions_are_their_formulas():
    velocity = np.random.default_rng(0).normal(size=(100, 3)) * 20
    u, v, w = velocity.T
    speed = np.linalg.norm(velocity, axis=-1)
    alpha, beta = wind_angles.wind_angles(velocity, "stevens", "rad")
    assert np.allclose(alpha, np.arctan2(w, u))
    assert np.allclose(beta, np.arcsin(v / speed))
    alpha, beta = wind_angles.wind_angles(velocity, "ptera_5_1", "rad")
    assert np.allclose(alpha, np.arcsin(w / speed))
    assert np.allclose(beta, np.arctan2(v, u))


@given(seed=SEEDS, definition=st.sampled_from(["stevens", "ptera_5_1"]))
@settings(max_examples=30, deadline=None)
def test_angles_there_and_back(seed, definition):
    velocity = torch.as_tensor(np.random.default_rng(seed).normal(size=(9, 3)) * 30)
    alpha, beta = wind_angles.wind_angles(velocity, definition)
    speed = velocity.norm(dim=-1)
    back = wind_angles.velocity_from_wind_angles(speed, alpha, beta, definition)
    assert torch.allclose(back, velocity, atol=1e-12)


def test_poles_and_rest_give_numbers():
    axes = [[0.0, 0, 0], [0, 0, 5], [0, 0, -5], [0, 5, 0], [0, -5, 0], [-5, 0, 0]]
    for definition in ("stevens", "ptera_5_1"):
        alpha, beta = wind_angles.wind_angles(axes, definition)
        assert bool(torch.isfinite(alpha).all() and torch.isfinite(beta).all())
        speed = torch.as_tensor(np.linalg.norm(axes, axis=-1))
        back = wind_angles.velocity_from_wind_angles(speed, alpha, beta, definition)
        assert np.allclose(back, axes, atol=1e-14)


def test_axes_are_what_they_are_called():
    rng = np.random.default_rng(4)
    attitude = Rotation.random(6, random_state=rng).as_matrix()  # body to Earth
    velocity = rng.normal(size=(6, 3)) * 20
    given = {"velocity_b": velocity, "R_pas_E_to_B": attitude.transpose(0, 2, 1)}
    speed = np.linalg.norm(velocity, axis=-1)
    along_x = np.stack([speed, 0 * speed, 0 * speed], axis=-1)
    for definition in ("stevens", "ptera_5_1"):
        wind = wind_angles.R_pas("body", "wind", **given, definition=definition).numpy()
        assert np.allclose(np.einsum("nij,nj->ni", wind, velocity), along_x)
    stability = wind_angles.R_pas("body", "stability", **given).numpy()
    seen = np.einsum("nij,nj->ni", stability, velocity)
    assert np.allclose(seen[:, 2], 0)
    assert np.allclose(seen[:, 1], velocity[:, 1])
    assert (seen[:, 0] > 0).all()
    assert np.allclose(stability[:, 1], [0, 1, 0])  # the body's own y axis
    earth = wind_angles.R_pas("body", "earth", **given).numpy()
    assert np.allclose(earth, attitude)
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


@given(seed=SEEDS)
@settings(max_examples=5, deadline=None)
def test_all_pairs_are_rotations_and_compose(seed):
    rng = np.random.default_rng(seed)
    given = {
        "velocity_b": rng.normal(size=(3, 3)) * 20,
        "R_pas_E_to_B": Rotation.random(3, random_state=rng).as_matrix(),
    }
    turn = {
        (a, b): wind_angles.R_pas(a, b, **given).numpy()
        for a, b in product(NAMES, repeat=2)
    }
    for a, b, third in product(NAMES, repeat=3):
        steps = turn[b, third] @ turn[a, b]
        assert np.allclose(steps, turn[a, third], atol=1e-14)
    for matrix in turn.values():
        inverse = np.swapaxes(matrix, -1, -2)
        assert np.allclose(matrix @ inverse, np.eye(3), atol=1e-14)


def test_what_an_axis_needs_is_asked_for():
    with pytest.raises(InvalidInputError, match="give velocity_b"):
        wind_angles.R_pas("wind", "body")
    with pytest.raises(InvalidInputError, match="give R_pas_E_to_B"):
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


def test_inertia_of_point_masses():
    """Against the sum over point masses, about any point."""
    rng = np.random.default_rng(0)
    mass, place = rng.uniform(0.1, 1, size=7), rng.normal(size=(7, 3))

    def about(point: np.ndarray) -> np.ndarray:
        arm = place - point
        squares = (arm**2).sum(-1)[:, None, None] * np.eye(3)
        return (mass[:, None, None] * (squares - arm[:, :, None] * arm[:, None])).sum(0)

    one, other = rng.normal(size=(2, 3))
    com = mass @ place / mass.sum()
    got = points.move_inertia(about(one), mass.sum(), com - one, other - one)
    assert np.allclose(got, about(other))
    with pytest.raises(InvalidInputError, match="do not fit together"):
        points.move_inertia(about(com), mass.sum(), [3.0, 0, 0], [0, 0, 0])


@pytest.mark.parametrize("definition", ["stevens", "ptera_5_1"])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_no_sign_of_a_zero_makes_half_a_turn(definition, zero):
    at_rest = wind_angles.wind_angles([zero, zero, zero], definition)
    sideways = wind_angles.wind_angles([zero, 5.0, zero], definition)
    upwards = wind_angles.wind_angles([zero, zero, -5.0], definition)
    backwards = wind_angles.wind_angles([-5.0, zero, 0.0], definition)
    assert [float(angle) for angle in at_rest] == [0.0, 0.0]
    assert [float(angle) for angle in sideways] == [0.0, 90.0]
    assert [float(angle) for angle in upwards] == [-90.0, 0.0]
    half = [180.0, 0.0] if definition == "stevens" else [0.0, 180.0]
    assert [float(angle) for angle in backwards] == half


def test_one_point_for_many_loads_and_velocities():
    forces = np.random.default_rng(3).normal(size=(4, 5, 3))
    offset = np.array([0.5, -0.2, 0.3])
    moments = points.move_moment([0.0, 0.0, 0.0], forces, offset)
    velocities = points.move_velocity([1.0, 0.0, 0.0], forces, offset)
    np.testing.assert_allclose(moments, -np.cross(offset, forces))
    turning = np.cross(forces, offset)
    np.testing.assert_allclose(velocities, np.array([1.0, 0.0, 0.0]) + turning)
