"""Commands of poses and gaits: what is drawn, and how far the worlds are from it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from tests.raised import raises

from simstate import ContactCfg, EntityCfg, SceneCfg
from simstate.base.errors import InvalidInputError
from simstate.env import GaitCommandCfg, PoseCommandCfg
from simstate.env.task_course import command_shapes
from simstate.view.one_world import OneWorld

from .conftest import ROBOT

FOREVER = (1e6, 1e6)
BOX = {"x": (0.1, 0.4), "y": (-0.3, -0.1), "z": (-0.5, 0.2)}
ANGLES = {"roll": (-1.0, 1.0), "pitch": (-0.7, 0.4), "yaw": (1.0, 3.0)}


@pytest.mark.parametrize("frame", ["root", "world"])
def test_poses_and_what_is_missing_to_them(make_env, engine, frame):
    cfg = PoseCommandCfg(
        site_name="foot", frame=frame, resampling_time_s=FOREVER, **BOX, **ANGLES
    )
    env = make_env(12, engine=engine, commands={"pose": cfg})
    term = env.commands["pose"]
    drawn = term.command.double().numpy()
    for column, (low, high) in zip(drawn.T, BOX.values(), strict=False):
        assert low <= column.min() < column.max() < high
    asked = Rotation.from_quat(drawn[:, 3:], scalar_first=True)
    angles = asked.as_euler("ZYX")[:, ::-1]  # roll, pitch, yaw
    for column, (low, high) in zip(angles.T, ANGLES.values(), strict=True):
        assert low - 1e-6 <= column.min() < column.max() <= high + 1e-6

    rng = np.random.default_rng(3)
    turned = Rotation.random(12, random_state=rng)
    origin = rng.normal(size=(12, 3))
    pose = np.concatenate([origin, turned.as_quat(scalar_first=True)], axis=1)
    env.scene["robot"].write_root_link_pose_to_sim(pose)
    place, attitude = drawn[:, :3], asked
    if frame == "root":
        place, attitude = origin + turned.apply(place), turned * asked
    foot = env.sim.data.site_xpos[:, 0].double().numpy()
    matrix = env.sim.data.site_xmat[:, 0].double().numpy().reshape(-1, 3, 3)
    now = Rotation.from_matrix(matrix)
    np.testing.assert_allclose(term.offset.double(), place - foot, atol=5e-6)
    left = (attitude * now.inv()).as_rotvec()
    np.testing.assert_allclose(term.turn.double(), left, atol=5e-6)
    np.testing.assert_allclose(
        term.turn_error().double(), np.linalg.norm(left, axis=1), atol=5e-6
    )


def test_the_viewer_has_a_pose_where_the_site_is_to_be(make_env):
    cfg = PoseCommandCfg(
        site_name="foot", frame="root", resampling_time_s=FOREVER, **BOX, **ANGLES
    )
    env = make_env(4, commands={"pose": cfg})
    term, robot = env.commands["pose"], env.scene["robot"]
    root = robot.data.root_link_pose_w.clone()
    root[2] = torch.tensor([0.4, -0.7, 1.1, 0.5, -0.5, 0.5, 0.5])
    robot.write_root_link_pose_to_sim(root)
    (axes,) = command_shapes(OneWorld(env.sim, {}, 2, 0.5), "pose", term)
    asked = term.command[2].double().numpy()
    turned = Rotation.from_quat([0.5, -0.5, 0.5, 0.5], scalar_first=True)
    place = np.array([0.4, -0.7, 1.1]) + turned.apply(asked[:3])
    np.testing.assert_allclose(axes.pos, place, atol=1e-6)
    whole = turned * Rotation.from_quat(asked[3:], scalar_first=True)
    found = Rotation.from_quat(axes.quat, scalar_first=True)
    assert (found.inv() * whole).magnitude() < 1e-6


def test_a_pose_in_an_unknown_frame_is_refused(make_env):
    cfg = PoseCommandCfg(
        site_name="foot", frame="base", resampling_time_s=FOREVER, **BOX
    )
    with raises(InvalidInputError, name="frame"):
        make_env(commands={"pose": cfg})


def feet_scene() -> SceneCfg:
    feet = ContactCfg(of=("robot/foot", "robot/trunk"), kind="geom")
    return SceneCfg(entities={"robot": EntityCfg(model=ROBOT)}, contacts={"feet": feet})


def gait_cfg(**changes) -> GaitCommandCfg:
    given = {
        "sensor_name": "feet",
        "gaits": {"hop": (0.0, 0.25), "bound": (0.1, 0.6)},
        "frequency": (1.0, 2.0),
        "duty": (0.3, 0.7),
        "resampling_time_s": FOREVER,
    }
    return GaitCommandCfg(**(given | changes))


def test_strides_run_by_the_clock_of_each_world(make_env):
    env = make_env(
        40, scene=feet_scene(), commands={"gait": gait_cfg()}, episode_length_s=10.0
    )
    term = env.commands["gait"]
    assert term.names[:3] == ("frequency", "duty", "sin_trunk")
    frequency, duty = term.command[:, :2].double().unbind(1)
    assert 1.0 <= float(frequency.min()) < float(frequency.max()) < 2.0
    assert set(term.gait.tolist()) == {0, 1}
    start = term.clock.double().clone()
    assert float(start.max() - start.min()) > 0.5
    for _ in range(7):
        env.step(torch.zeros(40, 2))
    ahead = torch.tensor([[0.0, 0.25], [0.1, 0.6]])[term.gait].double()
    expected = (start + 7 * env.step_dt * frequency)[:, None] + ahead
    between = (term.phase.double() - expected + 0.5) % 1.0 - 0.5
    assert float(between.abs().max()) < 1e-5
    stance = (expected % 1.0) < duty[:, None]
    assert float((term.stance == stance).double().mean()) > 0.98
    waves = torch.cat(
        [(2 * math.pi * expected).sin(), (2 * math.pi * expected).cos()], 1
    )
    assert float((term.command[:, 2:].double() - waves).abs().max()) < 1e-4
    touches = env.sim.contacts["feet"].found
    wrong = (term.stance != touches).double().mean(-1)
    torch.testing.assert_close(term.error().double(), wrong, atol=1e-6, rtol=0)
    assert 0.0 < float(wrong.mean()) < 1.0


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"gaits": {"trot": (0.0, 0.5, 0.5, 0.0)}}, "trot"),
        ({"gaits": {"hop": (0.0, math.nan)}}, "hop"),
        ({"gaits": {}}, "gaits"),
        ({"duty": (0.5, 1.5)}, "duty"),
        ({"frequency": (-1.0, 1.5)}, "duty"),
    ],
)
def test_a_gait_that_does_not_fit_is_refused(make_env, changes, name):
    with raises(InvalidInputError, name=name):
        make_env(scene=feet_scene(), commands={"gait": gait_cfg(**changes)})
