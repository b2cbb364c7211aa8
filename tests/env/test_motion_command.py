"""A motion of a file: its own values, and what MuJoCo's kinematics makes of them."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation, Slerp

from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.env import (
    MotionCommandCfg,
    RewardTermCfg,
    TerminationTermCfg,
    rewards,
    terminations,
)
from simstate.env.task_course import command_shapes
from simstate.view.one_world import OneWorld

from .conftest import ROBOT

FRAMES, FPS = 21, 20.0
JOINTS = ("knee", "hip")  # not the order of the model
RATE = np.array([0.4, -0.9, 1.3])
"""Angular velocity, world axes [rad/s]: a constant one, about a slanting axis."""
VELOCITY = np.array([0.7, -0.2, 0.1])
START = Rotation.from_euler("ZYX", [0.5, 0.3, -0.2])


def motion():
    """Root position, attitude and joints in each frame."""
    time = np.arange(FRAMES) / FPS
    pos = [0.1, 0.2, 0.8] + time[:, None] * VELOCITY
    turn = Rotation.from_rotvec(time[:, None] * RATE) * START
    joints = np.stack([0.6 + 0.4 * np.sin(5 * time), 0.3 * np.cos(4 * time)], axis=1)
    rates = np.stack([2.0 * np.cos(5 * time), -1.2 * np.sin(4 * time)], axis=1)
    return pos, turn, joints, rates


@pytest.fixture
def files(tmp_path):
    """The same motion as CSV and as NPZ, whose bodies are the root and another."""
    pos, turn, joints, rates = motion()
    np.savetxt(
        tmp_path / "m.csv", np.hstack([pos, turn.as_quat(), joints]), delimiter=","
    )
    quat = turn.as_quat(scalar_first=True)
    np.savez(
        tmp_path / "m.npz", fps=[FPS], joint_pos=joints, joint_vel=rates,
        body_pos_w=np.stack([pos, pos + 1], 1), body_quat_w=np.stack([quat, -quat], 1),
        body_lin_vel_w=np.tile(VELOCITY, (FRAMES, 2, 1)),
        body_ang_vel_w=np.tile(RATE, (FRAMES, 2, 1)),
    )  # fmt: skip
    return tmp_path


def plain(frame):
    """The robot in a frame as plain MuJoCo has it, from the numbers of the file."""
    pos, turn, joints, rates = motion()
    model = mujoco.MjModel.from_xml_string(ROBOT)
    data = mujoco.MjData(model)
    data.qpos[:] = [
        *pos[frame], *turn[frame].as_quat(scalar_first=True), *joints[frame][::-1]
    ]  # fmt: skip
    data.qvel[:] = [*VELOCITY, *turn[frame].inv().apply(RATE), *rates[frame][::-1]]
    mujoco.mj_forward(model, data)
    return model, data


def tracking(make_env, file, num_envs=5, engine="native", **options):
    given = {"file": file, "motion_joints": JOINTS, **options}
    given |= {"fps": FPS} if str(file).endswith(".csv") else {}
    parts = {name: given.pop(name) for name in ("rewards", "terminations")
             if name in given}  # fmt: skip
    commands = {"motion": MotionCommandCfg(**given)}
    return make_env(num_envs, engine=engine, commands=commands, events={}, **parts)


def test_a_frame_is_the_file_s_and_its_links_are_mujoco_s(make_env, files, engine):
    env = tracking(make_env, files / "m.npz", engine=engine)
    command = env.commands["motion"]
    chosen = [3, 0, 20, 11, 7]
    command.time[:] = torch.tensor(chosen) / FPS
    frames = command.frames
    _, _, joints, rates = motion()
    close = {"atol": 1e-6, "rtol": 0} if engine == "native" else {"atol": 1e-5}
    np.testing.assert_allclose(frames.joint_pos, joints[chosen], **close)
    np.testing.assert_allclose(frames.joint_vel, rates[chosen], **close)
    kind = mujoco.mjtObj.mjOBJ_XBODY.value
    for world, frame in enumerate(chosen):
        model, data = plain(frame)
        np.testing.assert_allclose(frames.body_pos_w[world], data.xpos[1:], **close)
        np.testing.assert_allclose(frames.body_quat_w[world], data.xquat[1:], **close)
        for body in range(1, model.nbody):
            velocity = np.zeros(6)
            mujoco.mj_objectVelocity(model, data, kind, body, velocity, 0)
            for part, found in (
                (velocity[3:], frames.body_lin_vel_w),
                (velocity[:3], frames.body_ang_vel_w),
            ):
                np.testing.assert_allclose(found[world, body - 1], part, atol=2e-5)


def test_velocities_of_a_csv_file_are_differences(make_env, files):
    command = tracking(make_env, files / "m.csv").commands["motion"]
    command.time[:] = torch.tensor([0.0, 0.31, 0.5, 0.77, 1.0])
    frames = command.frames
    lin, ang = frames.body_lin_vel_w[:, 0], frames.body_ang_vel_w[:, 0]
    np.testing.assert_allclose(lin, np.tile(VELOCITY, (5, 1)), atol=1e-9)
    np.testing.assert_allclose(ang, np.tile(RATE, (5, 1)), atol=1e-9)


def test_between_frames_attitudes_turn_evenly(make_env, files):
    command = tracking(make_env, files / "m.npz").commands["motion"]
    times = np.array([0.013, 0.27, 0.555, 0.801, 0.99])
    command.time[:] = torch.as_tensor(times)
    pos, turn, joints, _ = motion()
    grid = np.arange(FRAMES) / FPS
    expected = Slerp(grid, turn)(times).as_quat(scalar_first=True)
    found = command.frames.body_quat_w[:, 0].numpy()
    found *= np.sign(np.sum(found * expected, axis=1, keepdims=True))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    knee = np.interp(times, grid, joints[:, 0])
    np.testing.assert_allclose(command.frames.joint_pos[:, 0], knee, atol=1e-9)
    place = command.frames.body_pos_w[:, 0]
    np.testing.assert_allclose(place, pos[0] + times[:, None] * VELOCITY, atol=1e-9)


def test_an_episode_begins_within_the_motion(make_env, files, engine):
    env = tracking(make_env, files / "m.npz", 24, engine, start=(0.25, 0.75))
    command, data = env.commands["motion"], env.scene["robot"].data
    share = command.time / 1.0
    assert 0.25 <= float(share.min()) < 0.4
    assert 0.6 < float(share.max()) <= 0.75
    atol = 1e-9 if engine == "native" else 1e-4
    for tracked in ("joint_pos", "joint_vel", "root_pos", "body_pos", "body_lin_vel"):
        limit = max(atol, 0.05 if tracked.startswith("body") else atol)  # interpolated
        assert float(command.errors(tracked).max()) < limit, tracked
    frames = command.frames
    torch.testing.assert_close(
        data.root_link_pose_w.double(),
        torch.cat([frames.body_pos_w, frames.body_quat_w], -1)[:, 0].double(),
        atol=1e-5, rtol=0,
    )  # fmt: skip
    asked = torch.cat([frames.joint_pos, frames.joint_vel], 1).float()
    torch.testing.assert_close(command.command, asked)
    assert command.names == ("pos knee", "pos hip", "vel knee", "vel hip")


def test_an_episode_begins_off_the_motion_by_what_is_drawn(make_env, files):
    """Ranges of one number each: a push and a turn along world axes."""
    pose = {"x": (0.1, 0.1), "z": (0.3, 0.3), "yaw": (0.4, 0.4), "roll": (-0.2, -0.2)}
    speed = {"y": (0.5, 0.5), "pitch": (0.7, 0.7)}
    env = tracking(
        make_env, files / "m.npz", 3, start=(0.5, 0.5), pose_range=pose,
        velocity_range=speed, joint_pos_range=(0.05, 0.05),
    )  # fmt: skip
    data = env.scene["robot"].data
    pos, turn, joints, rates = motion()
    at = (FRAMES - 1) // 2
    turned = Rotation.from_euler("xz", [-0.2, 0.4]) * turn[at]  # roll, then yaw
    found = Rotation.from_quat(data.root_link_quat_w[1].numpy(), scalar_first=True)
    assert (turned * found.inv()).magnitude() < 1e-6
    np.testing.assert_allclose(
        data.root_link_pos_w[1], pos[at] + [0.1, 0, 0.3], atol=1e-6
    )
    np.testing.assert_allclose(
        data.root_link_lin_vel_w[1], VELOCITY + np.array([0, 0.5, 0]), atol=1e-6
    )
    np.testing.assert_allclose(
        data.root_link_ang_vel_w[1], RATE + np.array([0, 0.7, 0]), atol=1e-6
    )
    np.testing.assert_allclose(data.joint_pos[1], joints[at][::-1] + 0.05, atol=1e-6)
    np.testing.assert_allclose(data.joint_vel[1], rates[at][::-1], atol=1e-6)


def test_what_is_missing_is_measured_in_the_root_s_axes(make_env, files):
    env = tracking(make_env, files / "m.npz", start=(0.2, 0.8), aligned=False)
    command, robot = env.commands["motion"], env.scene["robot"]
    pose = robot.data.root_link_pose_w.clone()
    was = Rotation.from_quat(pose[:, 3:].numpy(), scalar_first=True)
    moved = was * Rotation.from_rotvec([0.2, -0.1, 0.4])
    pose[:, :3] += torch.tensor([0.3, 0.4, 1.2])
    pose[:, 3:] = torch.as_tensor(moved.as_quat(scalar_first=True))
    robot.write_root_link_pose_to_sim(pose)
    np.testing.assert_allclose(
        command.offset[:, :3], moved.inv().apply([-0.3, -0.4, -1.2]), atol=1e-9
    )
    np.testing.assert_allclose(
        command.offset[:, 3:], np.tile([-0.2, 0.1, -0.4], (5, 1)), atol=1e-9
    )
    np.testing.assert_allclose(command.errors("root_pos"), [[1.3]] * 5)
    angle = np.linalg.norm([0.2, -0.1, 0.4])
    np.testing.assert_allclose(command.errors("root_quat"), [[angle]] * 5)
    np.testing.assert_allclose(command.errors("body_quat")[:, 0], [angle] * 5)
    assert float(rewards.motion_tracked(env, "motion", "root_pos", 2.0)[0]) == (
        pytest.approx(np.exp(-(1.3**2) / 4.0))
    )
    assert bool(terminations.motion_lost(env, "motion", "root_pos", 1.2).all())
    assert not bool(terminations.motion_lost(env, "motion", "root_pos", 1.4).any())


def test_aligned_links_do_not_mind_place_and_heading(make_env, files):
    env = tracking(
        make_env, files / "m.npz", start=(0.5, 0.5), body_names=("thigh", "shin")
    )
    command, robot = env.commands["motion"], env.scene["robot"]
    pose = robot.data.root_link_pose_w.clone()
    was = Rotation.from_quat(pose[:, 3:].numpy(), scalar_first=True)
    turned = Rotation.from_rotvec([0.0, 0.0, 1.1]) * was
    pose[:, 0] += 2.0
    pose[:, 2] += 0.3
    pose[:, 3:] = torch.as_tensor(turned.as_quat(scalar_first=True))
    robot.write_root_link_pose_to_sim(pose)
    np.testing.assert_allclose(command.errors("body_pos"), np.full((5, 2), 0.3))
    np.testing.assert_allclose(command.errors("body_quat"), 0.0, atol=1e-7)
    assert float(command.errors("root_pos")[0, 0]) == pytest.approx(np.hypot(2.0, 0.3))


def test_the_motion_runs_and_ends(make_env, files):
    ends = {
        "over": TerminationTermCfg(
            terminations.motion_ended, params={"command_name": "motion"}, time_out=True
        )
    }
    env = tracking(
        make_env, files / "m.npz", start=(0.0, 0.0), at_end="hold", terminations=ends,
        rewards={"joints": RewardTermCfg("motion_tracked", weight=1.0, params={
            "command_name": "motion", "tracked": "joint_pos", "std": 0.5})},
    )  # fmt: skip
    zero = torch.zeros(5, env.action_dim)
    for _ in range(49):
        _, _, _, truncated, _ = env.step(zero)
        assert not bool(truncated.any())
    assert env.commands["motion"].time.tolist() == pytest.approx([0.98] * 5)
    kept = env.snapshot()
    for _ in range(2):
        _, _, _, truncated, _ = env.step(zero)
    assert bool(truncated.all())
    env.restore(kept)
    assert env.commands["motion"].time.tolist() == pytest.approx([0.98] * 5)
    again = tracking(make_env, files / "m.npz", start=(0.9, 0.95))
    for _ in range(8):
        again.step(zero)
    assert float(again.commands["motion"].time.max()) < 1.0
    assert not bool((again.commands["motion"].time == 0.95 + 0.16).any())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": (0.5, 1.5)}, "between 0 and 1"),
        ({"at_end": "stop"}, "at_end"),
        ({"motion_joints": ("knee", "hipp")}, "hipp"),
        ({"body_names": "shim"}, "shim"),
    ],
)
def test_what_makes_no_sense_is_refused(make_env, files, options, message):
    with pytest.raises((InvalidInputError, UnknownNameError), match=message):
        tracking(make_env, files / "m.npz", **options)


def test_terms_of_motions_need_one(make_env, files):
    env = tracking(make_env, files / "m.npz")
    with pytest.raises(UnknownNameError, match="what is tracked"):
        rewards.motion_tracked(env, "motion", "joint_po", 1.0)


def test_the_viewer_has_the_links_where_the_motion_has_them(make_env, files):
    env = tracking(make_env, files / "m.npz")
    (command,) = env.commands.values()
    command.time[3] = 7 / FPS
    seen = OneWorld(env.sim, {}, 3, 0.5)
    drawn = command_shapes(seen, "motion", command)
    _, data = plain(7)
    names = env.scene["robot"].body_names
    assert len(drawn) == len(names) > 2
    for one, name in zip(drawn, names, strict=True):
        np.testing.assert_allclose(one.pos, data.body(name).xpos, atol=1e-6)
        assert name in one.text
