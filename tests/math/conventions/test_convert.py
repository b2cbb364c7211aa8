"""Conversion: the laws that hold between any two conventions."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from tests.math.conventions.bodies import random_bodies, tensor
from tests.raised import raises

from simstate.base.errors import ConventionError, InvalidInputError
from simstate.math import conventions as c
from simstate.math import euler, quaternion
from simstate.math.conventions import axes

pytestmark = pytest.mark.fast

PAIRS = list(product(c.PRESETS.values(), repeat=2))
SEEDS = st.integers(0, 2**32 - 1)


def random_convention(rng: np.random.Generator) -> c.Convention:
    form = rng.choice(
        [
            "quaternion_wxyz",
            "quaternion_xyzw",
            "quaternion_jpl",
            "matrix",
            "euler",
            "mrp",
            "crp",
            "rotation_vector",
        ]
    )
    senses = {"quaternion_xyzw": ["active"], "quaternion_jpl": ["passive"]}
    return c.Convention(
        name="random",
        world=str(rng.choice(axes.known("world"))),
        body=str(rng.choice(axes.known("body"))),
        attitude=c.Attitude(
            form,
            rng.choice(senses.get(str(form), ["active", "passive"])),
            rng.choice(["world_to_body", "body_to_world"]),
            str(rng.choice(euler.SEQUENCES)) if form == "euler" else "",
        ),
        angle_unit=rng.choice(["rad", "deg"]),
        position_point=rng.choice(["origin", "com"]),
        velocity_point=rng.choice(["origin", "com"]),
        linear_axes=rng.choice(["world", "body"]),
        angular_axes=rng.choice(["world", "body"]),
        order=tuple(rng.permutation(["position", "attitude", "linear", "angular"])),
    )


def close(left: c.RigidBodyState, right: c.RigidBodyState, atol=1e-12) -> bool:
    gap = c.difference(left, right)
    return all(bool((value < atol).all()) for value in vars(gap).values())


def identical(left: c.RigidBodyState, right: c.RigidBodyState) -> None:
    """The same numbers, not only the same rotation."""
    for one, other in zip(left.parts, right.parts, strict=True):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-12)
    assert torch.allclose(left.com, right.com, rtol=0, atol=1e-15)


@given(seed=SEEDS)
@settings(max_examples=6, deadline=None)
def test_there_and_back_between_all_presets(seed):
    state = random_bodies(seed).state
    for source, target in PAIRS:
        start = c.convert(state, source)
        identical(c.convert(c.convert(start, target), target, source), start)


@given(seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_there_and_back_between_random_conventions(seed):
    rng = np.random.default_rng(seed)
    start = c.convert(random_bodies(seed).state, random_convention(rng))
    there = c.convert(start, random_convention(rng))
    assert close(c.convert(there, start.convention), start)


@given(seed=SEEDS)
@settings(max_examples=1, deadline=None)
def test_the_way_does_not_matter(seed):
    state = random_bodies(seed, 3).state
    for source, target in PAIRS:
        direct = c.convert(c.convert(state, source), target)
        for middle in c.PRESETS.values():
            by_way = c.convert(c.convert(c.convert(state, source), middle), target)
            assert close(by_way, direct)


class Dynamics:
    """Energy and momenta by their definitions, in the MuJoCo world with NumPy alone."""

    def __init__(self, seed: int) -> None:
        self.b = b = random_bodies(seed)
        self.conventions = (
            *c.PRESETS.values(), random_convention(np.random.default_rng(seed)),
        )  # fmt: skip
        rot, arm = b.rotation.as_matrix(), b.rotation.apply(b.com)
        velocity = b.velocity + np.cross(b.rates, arm)
        spin = np.einsum("nij,njk,nlk,nl->ni", rot, b.inertia, rot, b.rates)
        squares = b.mass * (velocity**2).sum(-1) + (spin * b.rates).sum(-1)
        self.energy = 0.5 * squares
        self.momentum = b.mass[:, None] * velocity
        self.angular = spin + np.cross(b.position + arm, self.momentum)

    def inertia_in(self, convention: c.Convention) -> torch.Tensor:
        return c.convert_inertia(self.b.inertia, c.MUJOCO, convention)

    def in_mujoco(self, vector: torch.Tensor, convention: c.Convention) -> np.ndarray:
        """Return a vector of a convention's world in MuJoCo's."""
        return (
            vector.numpy() @ axes.rotation("ENU", convention.world, "world").numpy().T
        )


some = settings(max_examples=25, deadline=None)


@given(seed=SEEDS)
@some
def test_kinetic_energy_is_the_same_in_each(seed):
    it = Dynamics(seed)
    for convention in it.conventions:
        state = c.convert(it.b.state, convention)
        found = c.kinetic_energy(state, it.b.mass, it.inertia_in(convention))
        assert np.allclose(found, it.energy, rtol=1e-12)


@given(seed=SEEDS)
@some
def test_linear_momentum_is_the_same_in_each(seed):
    it = Dynamics(seed)
    for convention in it.conventions:
        found = c.linear_momentum(c.convert(it.b.state, convention), it.b.mass)
        found = it.in_mujoco(found, convention)
        assert np.allclose(found, it.momentum, rtol=1e-12, atol=1e-12)


@given(seed=SEEDS)
@some
def test_angular_momentum_is_the_same_in_each(seed):
    it = Dynamics(seed)
    for convention in it.conventions:
        state = c.convert(it.b.state, convention)
        found = c.angular_momentum(state, it.b.mass, it.inertia_in(convention))
        found = it.in_mujoco(found, convention)
        assert np.allclose(found, it.angular, rtol=1e-12, atol=1e-11)


def test_velocity_is_the_derivative_of_position():
    """Finite differences of the positions that a convention gives, in each of them."""
    b = random_bodies(5, 10)
    h = 1e-6

    def at(time: float) -> c.RigidBodyState:
        from scipy.spatial.transform import Rotation

        turned = Rotation.from_rotvec(b.rates * time) * b.rotation
        quat = turned.as_quat(scalar_first=True)
        place = b.position + b.velocity * time
        return c.RigidBodyState(c.MUJOCO, place, quat, b.velocity, b.rates, b.com)

    for preset in c.PRESETS.values():
        if preset.position_point != preset.velocity_point:
            continue  # Isaac Lab: the position is not that of the point that moves
        before, now, after = (c.convert(at(t), preset) for t in (-h, 0, h))
        rate = (after.position - before.position) / (2 * h)
        velocity = now.linear_velocity
        if preset.linear_axes == "body":
            velocity = quaternion.rotate(now.quat_wb, velocity)
        assert torch.allclose(rate, velocity, atol=1e-8)


@pytest.mark.parametrize("offset", [0.0, 1e-14, 1e-12, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("form", ["matrix", "mrp", "rotation_vector", "euler"])
def test_half_turns_in_every_form(form, offset):
    rng = np.random.default_rng(0)
    directions = np.concatenate([rng.normal(size=(100, 3)), np.eye(3), -np.eye(3)])
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    attitude = c.Attitude(form, sequence="izyx" if form == "euler" else "")
    target = replace(c.MUJOCO, name=form, attitude=attitude)
    zeros = np.zeros((len(directions), 3))
    for angle in (np.pi - offset, np.pi + offset):
        half = 0.5 * angle
        cos = np.full((len(directions), 1), np.cos(half))
        quat = np.concatenate([cos, np.sin(half) * directions], axis=-1)
        start = c.RigidBodyState(c.MUJOCO, zeros, quat, zeros, zeros)
        assert close(c.convert(c.convert(start, target), c.MUJOCO), start, 1e-14)


def test_euler_angles_are_in_range_and_finite_at_the_poles():
    pole = tensor([[np.deg2rad(30), s * np.pi / 2, np.deg2rad(20)] for s in (1, -1)])
    rad = replace(c.MUJOCO, name="rad", attitude=c.Attitude("euler", sequence="izyx"))
    zeros = torch.zeros(2, 3, dtype=torch.float64)
    state = c.RigidBodyState(rad, zeros, pole, zeros, zeros)
    there = c.convert(c.convert(state, c.MUJOCO), replace(rad, angle_unit="deg"))
    # Roll and yaw turn about one line there: the yaw gets both.
    assert np.allclose(there.attitude, [[0, 90, -10], [0, -90, 50]])


def test_shadow_set_of_mrps():
    """Two sets stand for one rotation; the shorter is given back."""
    mrp = replace(c.MUJOCO, name="mrp", attitude=c.Attitude("mrp"))
    long = tensor([[0.9, 0.8, -0.7]])
    zeros = torch.zeros(1, 3, dtype=torch.float64)
    state = c.RigidBodyState(mrp, zeros, long, zeros, zeros)
    back = c.convert(c.convert(state, c.MUJOCO), mrp)
    assert torch.allclose(back.attitude, -long / (long**2).sum())


def jpl_matrix(values: torch.Tensor) -> torch.Tensor:
    """Direction cosines of JPL quaternions xyzw, as Trawny and Roumeliotis define."""
    v, w = values[..., :3], values[..., 3, None, None]
    zero = torch.zeros_like(v[..., 0])
    skew = torch.stack(
        [zero, -v[..., 2], v[..., 1], v[..., 2], zero, -v[..., 0], -v[..., 1],
         v[..., 0], zero], dim=-1,
    ).unflatten(-1, (3, 3))  # fmt: skip
    outer = v[..., :, None] * v[..., None, :]
    return (2 * w**2 - 1) * torch.eye(3, dtype=v.dtype) - 2 * w * skew + 2 * outer


@pytest.mark.parametrize("turns", ["world_to_body", "body_to_world"])
def test_jpl_quaternions_have_their_own_direction_cosines(turns):
    jpl = replace(
        c.MUJOCO, name="jpl", attitude=c.Attitude("quaternion_jpl", turns=turns)
    )
    state = random_bodies(5).state
    values = c.convert(state, jpl).attitude
    mujoco = c.convert(state, c.MUJOCO).attitude
    rot_wb = quaternion.to_matrix(mujoco)
    wanted = rot_wb.mT if turns == "world_to_body" else rot_wb
    assert torch.allclose(jpl_matrix(values), wanted, atol=1e-14)


def test_jpls_usual_quaternion_has_hamiltons_components():
    state = random_bodies(6).state
    jpl = replace(c.MUJOCO, name="jpl", attitude=c.Attitude("quaternion_jpl"))
    xyzw = replace(c.MUJOCO, name="xyzw", attitude=c.Attitude("quaternion_xyzw"))
    assert torch.equal(c.convert(state, jpl).attitude, c.convert(state, xyzw).attitude)


def test_classical_rodrigues_parameters_are_scipys_rotation():
    crp = replace(c.MUJOCO, name="crp", attitude=c.Attitude("crp"))
    state = random_bodies(7).state
    values = c.convert(state, crp).attitude
    quat = c.convert(state, c.MUJOCO).attitude
    turn = Rotation.from_quat(quat.reshape(-1, 4).numpy(), scalar_first=True)
    rotvec = turn.as_rotvec()
    angle = np.linalg.norm(rotvec, axis=-1, keepdims=True)
    wanted = np.tan(angle / 2) * rotvec / angle
    assert np.allclose(values.reshape(-1, 3), wanted, rtol=1e-12)


def test_the_source_must_be_what_the_state_says():
    with raises(ConventionError, name="MUJOCO"):
        c.convert(random_bodies(0).state, c.ROS, c.PX4)


@pytest.mark.parametrize("given", [{"source": c.MUJOCO}, {}])
def test_the_source_may_be_left_out(given):
    state = random_bodies(0).state
    identical(c.convert(state, target=c.PX4, **given), c.convert(state, c.PX4))


@pytest.mark.parametrize("wrong", [(), ("ROS",), (None, "ROS"), ("MUJOCO", c.ROS)])
def test_a_state_is_converted_to_a_convention_alone(wrong):
    with raises(InvalidInputError, name="convention"):
        c.convert(random_bodies(0).state, *wrong)


@pytest.mark.parametrize("mix", [lambda *states: c.join(states), c.difference])
def test_states_of_two_conventions_are_not_mixed(mix):
    state = random_bodies(0).state
    with raises(ConventionError, name="PTERA"):
        mix(state, c.convert(state, c.PTERA))


def test_converted_states_join_with_others():
    state = random_bodies(0).state
    both = c.join([state, c.convert(c.convert(state, c.PTERA), c.MUJOCO)])
    assert close(both[:6], both[6:])


def test_joined_states_have_the_parts_of_each():
    one, two = random_bodies(3, 4).state, random_bodies(5, 6).state
    both = c.join([one, two])
    for part, first, second in zip(both.parts, one.parts, two.parts, strict=True):
        assert torch.equal(part, torch.cat([first, second]))


def test_joined_states_have_the_com_of_each():
    one, two = random_bodies(3, 4).state, random_bodies(5, 6).state
    assert torch.equal(c.join([one, two]).com, torch.cat([one.com, two.com]))


@pytest.mark.parametrize("without", [0, 1])
def test_joined_states_have_no_com_if_one_has_none(without):
    states = [random_bodies(3, 4).state, random_bodies(5, 6).state]
    states[without] = states[without].with_com(None)
    assert c.join(states).com is None


def test_a_name_is_no_part_of_a_convention():
    assert replace(c.MUJOCO, name="mine") == c.MUJOCO


def test_equal_conventions_mix_whatever_their_names():
    state = random_bodies(0).state
    renamed = replace(c.MUJOCO, name="mine")
    assert c.join([state, c.convert(state, renamed)]).batch_shape == (12,)


def test_without_com_the_points_cannot_be_joined():
    with raises(InvalidInputError, name="com"):
        c.convert(random_bodies(0).state.with_com(None), c.PTERA)


def test_where_points_are_the_same_no_com_is_needed():
    assert c.convert(random_bodies(0).state.with_com(None), c.PX4).com is None


def test_float32_and_devices_are_kept():
    state = random_bodies(0).state
    small = c.RigidBodyState(c.MUJOCO, *(part.float() for part in state.parts))
    there = c.convert(small, c.ROS)
    assert all(part.dtype == torch.float32 for part in there.parts)
