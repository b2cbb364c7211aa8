"""Every preset means what its library means: numbers worked out without the library."""

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from tests.math.conventions.bodies import random_bodies

from simstate.math import conventions as c

pytestmark = pytest.mark.fast

# Columns: the axes of NED and FRD in ENU and FLU, written out by hand.
NED = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1.0]])
FRD = np.diag([1.0, -1.0, -1.0])


def expected(name: str, b) -> dict[str, np.ndarray]:
    """Position, attitude, linear and angular velocity as the library writes them."""
    com = b.rotation.apply(b.com)
    at_com = b.velocity + np.cross(b.rates, com)
    to_body = b.rotation.inv().apply
    wxyz = b.rotation.as_quat(scalar_first=True, canonical=True)
    xyzw = b.rotation.as_quat(canonical=True)
    # r_NED = NEDᵀ r_ENU; the FRD body's attitude in NED is NEDᵀ R FRD.
    ned = Rotation.from_matrix(NED.T @ b.rotation.as_matrix() @ FRD)
    ned_wxyz = ned.as_quat(scalar_first=True, canonical=True)
    euler = ned.as_euler("ZYX")[:, ::-1]
    p, v, w = b.position, b.velocity, b.rates
    return {
        "MUJOCO": (p, wxyz, v, w),
        "MUJOCO_QVEL": (p, wxyz, v, to_body(w)),
        "ISAACLAB_2": (p, wxyz, at_com, w),
        "ISAACLAB_3": (p, xyzw, at_com, w),
        "ROS": (p, xyzw, to_body(v), to_body(w)),
        "PX4": (p @ NED, ned_wxyz, v @ NED, to_body(w) @ FRD),
        "PTERA": (
            (p + com) @ NED,
            ned.as_matrix().transpose(0, 2, 1),
            at_com @ NED,
            np.rad2deg(to_body(w) @ FRD),
        ),
        "DRAKE": (p, wxyz, v, w),
        "PINOCCHIO": (p, xyzw, to_body(v), to_body(w)),
        "PYBULLET": (p + com, xyzw, at_com, w),
        "AEROSANDBOX": (
            (p + com) @ NED,
            euler,
            to_body(at_com) @ FRD,
            to_body(w) @ FRD,
        ),
    }[name]


@pytest.mark.parametrize("name", c.PRESETS)
def test_against_numbers_worked_out_with_scipy(name):
    bodies = random_bodies(3, 20)
    state = c.convert(bodies.state, c.PRESETS[name])
    for got, want in zip(state.parts, expected(name, bodies), strict=True):
        assert np.allclose(got, want, rtol=1e-13, atol=1e-13)


def test_there_are_eleven():
    assert len(c.PRESETS) == 11


@pytest.mark.parametrize("name", c.PRESETS)
def test_a_preset_is_an_attribute(name):
    assert c.PRESETS[name] is getattr(c, name)


def first_parts(
    convention: c.Convention,
) -> tuple[c.RigidBodyState, list[torch.Tensor]]:
    """Two states, and the parts of the first in our order."""
    state = c.convert(random_bodies(0, 2).state, convention)
    return state, [part[0] for part in state.parts]


@pytest.mark.parametrize(
    ("convention", "order"), [(c.DRAKE, (1, 0, 3, 2)), (c.AEROSANDBOX, (0, 2, 1, 3))]
)
def test_flat_vectors_have_the_order_of_the_library(convention, order):
    state, parts = first_parts(convention)
    assert torch.equal(state.vector[0], torch.cat([parts[k] for k in order]))


@pytest.mark.parametrize(
    ("convention", "order"), [(c.DRAKE, (3, 2)), (c.MUJOCO, (2, 3))]
)
def test_velocities_have_the_order_of_the_library(convention, order):
    state, parts = first_parts(convention)
    assert torch.equal(state.velocity[0], torch.cat([parts[k] for k in order]))


@pytest.mark.parametrize("name", c.PRESETS)
def test_flat_vector_round_trip(name):
    state = c.convert(random_bodies(1).state, c.PRESETS[name])
    back = c.RigidBodyState.from_vector(state.convention, state.vector, state.com)
    for one, other in zip(state.parts, back.parts, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", c.PRESETS)
def test_a_flat_vector_has_the_size_of_its_convention(name):
    state = c.convert(random_bodies(1).state, c.PRESETS[name])
    assert state.vector.shape == (6, state.convention.size)


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        ("position", [2, 0, -1]),
        ("attitude", [1, 0, 0, 0]),
        ("linear_velocity", [3, 0, 0]),
        ("angular_velocity", [0, 0, -0.5]),
    ],
)
def test_a_robot_facing_north(part, wanted):
    """In ROS it is turned 90° about up; in PX4 it is not turned at all."""
    half = np.sqrt(0.5)
    state = c.RigidBodyState(
        c.ROS, [0, 2, 1.0], [0, 0, half, half], [3, 0, 0.0], [0, 0, 0.5], [0, 0, 0.0]
    )
    assert np.allclose(getattr(c.convert(state, c.PX4), part), wanted)
