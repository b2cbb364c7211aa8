"""Settings of cameras, actuators, geoms and rays at the ends of their ranges."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
from tests.raised import raises

from simstate import (
    CameraCfg,
    CollisionCfg,
    EntityCfg,
    InvalidInputError,
    MotorActuatorCfg,
    PositionActuatorCfg,
    SceneCfg,
)
from simstate.scene.build import build_scene
from simstate.scene.ray_cfg import (
    DownwardRingPattern,
    GridPattern,
    LidarPattern,
    OutwardRingPattern,
    OwnPattern,
)

pytestmark = pytest.mark.fast

ALLOWED = {
    "effort_limit": (1e-9, math.inf, None), "armature": (0.0, None),
    "friction": (0.0, None), "delay_s": (0.0,), "max_delay_s": (0.0, None),
}  # fmt: skip
REFUSED = {
    "effort_limit": (0.0, -1.0, math.nan), "armature": (-1e-9, math.inf),
    "friction": (-1e-9, math.inf), "delay_s": (-1e-9, None), "max_delay_s": (-1e-9,),
}  # fmt: skip


@pytest.mark.parametrize("name", ALLOWED)
def test_numbers_of_an_actuator(name):
    for value in ALLOWED[name]:
        MotorActuatorCfg(joints=".*", **{name: value})
    for value in REFUSED[name]:
        with raises(InvalidInputError, name=name):
            MotorActuatorCfg(joints=".*", **{name: value})


def test_gains_delays_and_inputs_of_a_servo():
    def servo(**given):
        return PositionActuatorCfg(**{"joints": ".*", "stiffness": 2.0, **given})

    servo(stiffness=0.0, damping=0.0, delay_s=0.01, max_delay_s=0.01)
    assert servo(inputs=("pos", "vel", "ff")).holding_controls(0.3) == [0.3, 0.0, 0.0]
    assert servo().holding_controls(0.3) == [0.3]
    for name in ("stiffness", "damping"):
        with raises(InvalidInputError, name=name):
            servo(**{name: -1e-9})
    with raises(InvalidInputError, name="delay_s"):
        servo(delay_s=0.02, max_delay_s=0.01)
    for inputs in ((), ("vel",), ("pos", "acc")):
        with pytest.raises(InvalidInputError):
            servo(inputs=inputs)


MASK = 2**31 - 1
GEOM = {
    "contype": ((0, MASK), (-1, MASK + 1, 0.5)),
    "conaffinity": ((0, MASK), (-1, MASK + 1)),
    "priority": ((-MASK, MASK), (-MASK - 1, MASK + 1)),
    "condim": ((1, 3, 4, 6), (0, 2, 5, 7)),
    "friction": (((0.0,), (1, 0, 0)), ((), (1, 1, 1, 1), (1, -0.1), 1.0, (math.nan,))),
    "solref": (
        ((0.02, 1.0), (-200.0, -9.0)),
        ((0.02, -1.0), (-200.0, 9.0), (0.0, 1.0), (0.02, 0.0), (0.02,), (1, 1, 1)),
    ),
}
"""Of each setting of a geom what is allowed, and what is not."""


@pytest.mark.parametrize("name", GEOM)
def test_settings_of_collisions(name):
    allowed, refused = GEOM[name]
    for value in allowed:
        assert CollisionCfg(geoms=".*", **{name: value}).stated == {name: value}
    for value in refused:
        with raises(InvalidInputError, name=name):
            CollisionCfg(geoms=".*", **{name: value})


def seen_by(**given) -> mujoco.MjModel:
    geom = '<geom size=".1"/>'
    text = f"<mujoco><worldbody><body><freejoint/>{geom}</body></worldbody></mujoco>"
    return build_scene(
        SceneCfg(
            entities={"a": EntityCfg(model=text)}, ground=False,
            cameras={"eye": CameraCfg(**given)},
        )
    ).model  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 0}, {"height": 0}, {"width": 2**15 + 1}, {"height": 2**15 + 1},
        {"fovy": 0.0}, {"fovy": 180.0}, {"intrinsic": (0.0, 90, 40, 30)},
        {"intrinsic": (90, -1.0, 40, 30)}, {"intrinsic": (90, 90, 40)},
        {"follow": True}, {"fovy": 40.0, "intrinsic": (90, 90, 40, 30)},
        {"look_at": (1.0, 2, 3), "rot": (1.0, 0, 0, 0)},
        {"look_at": (0.5, 0.5, 0.5), "pos": (0.5, 0.5, 0.5)},
    ],
    ids=str,
)  # fmt: skip
def test_cameras_that_cannot_be(wrong):
    with pytest.raises(InvalidInputError):
        seen_by(**wrong)


def test_a_camera_looks_at_its_target():
    """Its −z axis, also straight down; y is up where it can be."""
    for pos, target in (((1.0, 2, 3), (0.5, -1, 0.2)), ((1.0, 2, 3), (1, 2, 0))):
        model = seen_by(pos=pos, look_at=target, width=1, height=2**15, fovy=179.0)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        axes = data.cam_xmat[0].reshape(3, 3)
        way = np.subtract(target, pos)
        np.testing.assert_allclose(-axes[:, 2], way / np.linalg.norm(way), atol=1e-12)
        assert axes[2, 0] == pytest.approx(0.0, abs=1e-12)
        assert axes[2, 1] >= -1e-12
        assert np.linalg.det(axes) == pytest.approx(1.0)


def test_a_grid_has_its_ends_and_its_order():
    origins, directions = GridPattern(
        size=(0.4, 0.2), resolution=0.1, direction=(0.0, 0.3, -1.0)
    ).rays()
    x, y = np.meshgrid(np.linspace(-0.2, 0.2, 5), np.linspace(-0.1, 0.1, 3))
    np.testing.assert_allclose(origins[:, 0], x.ravel(), atol=1e-12)
    np.testing.assert_allclose(origins[:, 1], y.ravel(), atol=1e-12)
    assert not origins[:, 2].any()
    np.testing.assert_array_equal(directions, [[0.0, 0.3, -1.0]] * 15)
    assert len(GridPattern(size=(0.0, 0.0)).rays()[0]) == 1
    for wrong in ({"resolution": 0.0}, {"resolution": -0.1}, {"resolution": math.nan},
                  {"size": (-0.1, 0.2)}, {"size": (0.1, -0.2)}):  # fmt: skip
        with raises(InvalidInputError, name="resolution"):
            GridPattern(**wrong).rays()


def test_rings_and_lidars():
    turn = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]])
    origins, directions = OutwardRingPattern(count=4, radius=0.3).rays()
    np.testing.assert_allclose(directions, turn, atol=1e-12)
    np.testing.assert_allclose(origins, 0.3 * turn, atol=1e-12)
    for center in (True, False):
        origins, _ = DownwardRingPattern(
            rings=((0.2, 4), (0.0, 1)), include_center=center
        ).rays()
        expected = [[0, 0, 0]] * center + [*(0.2 * turn), [0, 0, 0]]
        np.testing.assert_allclose(origins, expected, atol=1e-12)
    with raises(InvalidInputError, name="radius"):
        DownwardRingPattern(rings=((-0.1, 3),)).rays()
    for name in ("channels", "count"):
        assert len(LidarPattern(**{name: 1}).rays()[1]) in (16, 36)
        with raises(InvalidInputError, name=name):
            LidarPattern(**{name: 0}).rays()
    _, part = LidarPattern(channels=1, elevation=(30.0, 30.0), count=3,
                           azimuth=(0.0, 90.0)).rays()  # fmt: skip
    flat = math.cos(math.radians(30))
    half = flat * math.sqrt(0.5)
    expected = [[flat, 0, 0.5], [half, half, 0.5], [0, flat, 0.5]]
    np.testing.assert_allclose(part, expected, atol=1e-12)
    _, whole = LidarPattern(channels=1, elevation=(0.0, 0.0), count=4).rays()
    np.testing.assert_allclose(whole, turn[[2, 3, 0, 1]], atol=1e-12)


def test_own_rays():
    two = [[0.0, 0, 1], [0, 2, 0]]
    origins, directions = OwnPattern(directions=two, origins=[[1, 2, 3]]).rays()
    np.testing.assert_array_equal(origins, [[1, 2, 3]] * 2)
    np.testing.assert_array_equal(directions, two)
    for wrong in ({"directions": two[0]}, {"directions": [[0, 1]]},
                  {"directions": two, "origins": [[0, 1]]},
                  {"directions": two, "origins": [[0, 0, 1]] * 3}):  # fmt: skip
        with pytest.raises(InvalidInputError):
            OwnPattern(**wrong).rays()
