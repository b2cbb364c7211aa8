"""What is wrong is refused, with what was given and what is allowed."""

import numpy as np
import pytest
import torch

from simstate.base.errors import InvalidInputError, ShapeError, UnknownNameError
from simstate.math import conventions as c
from simstate.math.conventions import points, wind_angles
from simstate.math.conventions import rotations as r

pytestmark = pytest.mark.fast

ZERO, UNIT = [0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
TWO, THREE = np.zeros((2, 3)), np.zeros((3, 3))


def state(**change):
    given = {"position": ZERO, "attitude": UNIT, "linear_velocity": ZERO}
    given |= {"angular_velocity": ZERO, **change}
    return c.RigidBodyState(given.pop("convention", c.MUJOCO), **given)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: c.Convention(name="x", world="NEU"), UnknownNameError, "right-handed"),
        (lambda: c.Convention(name="x", world="ned"), UnknownNameError, "'ned'"),
        (lambda: c.Convention(name="x", body="FRU"), UnknownNameError, "FRD"),
        (lambda: c.Convention(name="x", body=3), UnknownNameError, "three directions"),
        (
            lambda: c.Convention(name="x", angle_unit="degrees"),
            UnknownNameError,
            "Known: rad, deg",
        ),
        (
            lambda: c.Convention(name="x", angle_unit=180.0),
            UnknownNameError,
            "angle unit '180.0'",
        ),
        (lambda: c.Convention(name="x", velocity_point="cg"), UnknownNameError, "com"),
        (
            lambda: c.Convention(name="x", attitude="wxyz"),
            InvalidInputError,
            "Attitude",
        ),
        (
            lambda: c.Convention(name="x", order=("position",)),
            InvalidInputError,
            "each of",
        ),
        (lambda: c.Attitude("quat"), UnknownNameError, "quaternion_wxyz"),
        (lambda: c.Attitude("euler"), UnknownNameError, "izyx"),
        (lambda: c.Attitude("euler", sequence="zyx"), UnknownNameError, "'ezyx' about"),
        (lambda: c.Attitude("mrp", sequence="izyx"), InvalidInputError, "is for Euler"),
        (lambda: c.Attitude("euler", sequence="321"), UnknownNameError, "is 'izyx'"),
        (lambda: c.Attitude("euler", sequence="313"), UnknownNameError, "is 'izxz'"),
        (
            lambda: r.active_from_angles([1.0, 2, 3], "ZYX"),
            UnknownNameError,
            "'ezyx' about fixed axes",
        ),
        (
            lambda: c.Attitude("quaternion_xyzw", "passive"),
            InvalidInputError,
            "Attitude('quaternion_jpl', turns='world_to_body')",
        ),
        (
            lambda: c.Attitude("quaternion_xyzw", "passive", "body_to_world"),
            InvalidInputError,
            "'active', 'world_to_body'",
        ),
        (
            lambda: c.Attitude("quaternion_jpl", "active"),
            InvalidInputError,
            "passive by definition",
        ),
        (
            lambda: c.Attitude("crp").encode(torch.tensor([0.0, 0.6, 0.0, 0.8])),
            InvalidInputError,
            "Use 'mrp'",
        ),
        (
            lambda: r.angle_rates_from_body_rates(
                [[10, 20, 30], [10, 90, 30]], [1.0, 2, 3], "izyx"
            ),
            InvalidInputError,
            "at [1] are at a pole",
        ),
        (lambda: state(position=[0, 0, float("nan")]), InvalidInputError, "finite"),
        (lambda: state(position=[0.0, 0.0]), ShapeError, "(…, 3)"),
        (lambda: state(attitude=[0.0, 0, 0, 0]), InvalidInputError, "unit quaternions"),
        (lambda: state(attitude=[1.0, 1, 0, 0]), InvalidInputError, "Normalise"),
        (lambda: state(position=torch.zeros(3).int()), InvalidInputError, "floating"),
        (lambda: state(position="1 m"), InvalidInputError, "real numbers"),
        (
            lambda: state(position=np.zeros((2, 3)), com=np.zeros((3, 3))),
            ShapeError,
            "one batch shape",
        ),
        (lambda: state(convention="ROS"), InvalidInputError, "must be a Convention"),
        (
            lambda: state(convention=c.PTERA, attitude=np.eye(3) * 1.1),
            InvalidInputError,
            "orthonormal",
        ),
        (
            lambda: state(convention=c.PTERA, attitude=np.diag([1.0, 1, -1])),
            InvalidInputError,
            "determinant is −1",
        ),
        (lambda: c.join([]), InvalidInputError, "at least one"),
        (lambda: state()[0], ShapeError, "single state"),
        (lambda: c.join([state(), state()]), ShapeError, "no dimension"),
        (
            lambda: c.join([state(position=TWO), state(position=TWO[None])]),
            ShapeError,
            "got (2,) and (1, 2)",
        ),
        (
            lambda: c.difference(state(position=TWO), state(position=THREE)),
            ShapeError,
            "first (2,), second (3,)",
        ),
        (lambda: r.angles_from_active(np.eye(3), "izyq"), UnknownNameError, "izyx"),
        (lambda: r.angles_from_active(np.eye(3), "izyx", "°"), UnknownNameError, "deg"),
        (
            lambda: r.active_from_angles([0, 0, np.inf], "izyx"),
            InvalidInputError,
            "inf",
        ),
        (lambda: r.R_to_quat_wxyz(np.ones((3, 3))), InvalidInputError, "orthonormal"),
        (lambda: r.rotate(np.eye(3), [1.0, 2.0]), ShapeError, "vector"),
        (lambda: r.compose(), InvalidInputError, "no transform"),
        (lambda: r.invert(np.eye(4) * 2), InvalidInputError, "orthonormal"),
        (lambda: r.invert(np.diag([1.0, 1, 1, 2])), InvalidInputError, "last row"),
        (lambda: wind_angles.wind_angles(ZERO, "classic"), UnknownNameError, "stevens"),
        (
            lambda: wind_angles.R_pas("body", "wnd"),
            UnknownNameError,
            "Did you mean 'wind'",
        ),
        (
            lambda: wind_angles.velocity_from_wind_angles(-1.0, 0.0, 0.0),
            InvalidInputError,
            "≥ 0",
        ),
        (
            lambda: points.check_inertia([[1, 0.2, 0], [0, 1, 0], [0, 0, 1.0]]),
            InvalidInputError,
            "not symmetric",
        ),
        (
            lambda: points.check_inertia(np.diag([1.0, 1.0, 2.1])),
            InvalidInputError,
            "sum of the other two",
        ),
        (
            lambda: points.check_inertia(np.diag([1.0, 1.0, -1.0])),
            InvalidInputError,
            "not all positive",
        ),
        (
            # One wrong matrix next to one of a much greater scale.
            lambda: points.check_inertia(
                [np.eye(3) * 1e12, np.eye(3) + np.eye(3, k=1)]
            ),
            InvalidInputError,
            "not symmetric",
        ),
        (
            lambda: points.move_moment(TWO, THREE, ZERO),
            ShapeError,
            "moment (2,), force (3,), offset ()",
        ),
        (lambda: points.move_velocity(TWO, ZERO, THREE), ShapeError, "offset (3,)"),
        (
            lambda: points.move_inertia(np.eye(3), [1.0, 2.0], ZERO, THREE),
            ShapeError,
            "mass (2,)",
        ),
        (
            lambda: wind_angles.velocity_from_wind_angles(
                [1.0, 2.0], [1.0, 2.0, 3.0], 0.0
            ),
            ShapeError,
            "alpha (3,)",
        ),
        (
            lambda: wind_angles.R_pas(
                "earth", "wind", velocity_b=TWO, R_pas_E_to_B=[np.eye(3)] * 3
            ),
            ShapeError,
            "velocity_b (2,)",
        ),
        (lambda: r.rotate([np.eye(3)] * 3, TWO), ShapeError, "R (3,)"),
        (lambda: r.passive_transform([np.eye(3)] * 3, TWO), ShapeError, "b_A_a (2,)"),
        (lambda: r.active_transform([np.eye(3)] * 3, TWO), ShapeError, "shift (2,)"),
        (
            lambda: r.compose([np.eye(4)] * 2, [np.eye(4)] * 3),
            ShapeError,
            "transform 1 (3,)",
        ),
        (
            lambda: r.apply_to_position([np.eye(4)] * 3, TWO),
            ShapeError,
            "position (2,)",
        ),
        (lambda: r.apply_to_vector([np.eye(4)] * 3, TWO), ShapeError, "vector (2,)"),
        (lambda: points.check_mass(0.0), InvalidInputError, "mass must be > 0"),
        (
            lambda: c.kinetic_energy(state(com=ZERO), -1.0, np.eye(3)),
            InvalidInputError,
            "> 0",
        ),
        (
            lambda: c.linear_momentum(state(com=ZERO), np.nan),
            InvalidInputError,
            "finite",
        ),
        (
            lambda: c.angular_momentum(state(com=ZERO), 1.0, np.triu(np.ones((3, 3)))),
            InvalidInputError,
            "not symmetric",
        ),
        (
            lambda: c.convert_inertia(np.diag([1.0, 1.0, 3.0]), c.ROS, c.PX4),
            InvalidInputError,
            "sum of the other two",
        ),
        (
            lambda: c.convert_inertia(np.eye(3), c.ROS, "PX4"),
            InvalidInputError,
            "got 'PX4'",
        ),
        (
            lambda: c.convert(np.zeros(13), c.MUJOCO, c.ROS),
            InvalidInputError,
            "RigidBodyState.from_vector",
        ),
        (lambda: c.convert(state(), "MUJOCO", c.ROS), InvalidInputError, "'MUJOCO'"),
        (lambda: c.Convention(name="x", order=3), InvalidInputError, "got 3"),
        (lambda: points.check_mass("2 kg"), InvalidInputError, "real numbers"),
    ],
)
def test_refused(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)


def test_an_order_given_as_a_list_is_the_same_convention():
    listed = c.Convention(name="x", order=list(c.MUJOCO.order))
    assert listed == c.MUJOCO
    assert hash(listed) == hash(c.MUJOCO)
