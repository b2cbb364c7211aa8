"""A motion of a file: its own values, and what MuJoCo's kinematics makes of them."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy import stats
from scipy.spatial.transform import Rotation, Slerp
from tests.raised import raises

from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.env import (
    MotionCommandCfg,
    RewardTermCfg,
    SceneEntityCfg,
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


def test_links_can_be_seen_from_another_link(make_env, files):
    env = tracking(
        make_env, files / "m.npz", start=(0.3, 0.7), anchor="shin",
        body_names=("trunk", "shin"),
    )  # fmt: skip
    command, robot = env.commands["motion"], env.scene["robot"]
    shin = robot.body_names.index("shin")
    before = robot.data.body_link_pose_w[:, shin].clone()
    bend = torch.tensor([0.4, -0.3, 0.2, 0.5, -0.6])
    robot.write_joint_position_to_sim(
        robot.data.joint_pos + bend[:, None] * torch.tensor([0.0, 1.0])
    )  # the knee turns the shin alone, about its origin
    after = robot.data.body_link_pose_w[:, shin]
    np.testing.assert_allclose(command.errors("anchor_pos"), 0.0, atol=0.03)
    turn = Rotation.from_quat(before[:, 3:].numpy(), scalar_first=True).inv() * (
        Rotation.from_quat(after[:, 3:].numpy(), scalar_first=True)
    )
    angles = command.errors("anchor_quat")[:, 0]
    np.testing.assert_allclose(angles, turn.magnitude(), atol=0.02)
    np.testing.assert_allclose(command.offset[:, 4], -bend, atol=0.02)
    # The motion's trunk is turned with the shin's heading about the shin's origin.
    frames = command.frames
    back = Rotation.from_quat(frames.body_quat_w[:, shin].numpy(), scalar_first=True)
    heading = Rotation.from_quat(after[:, 3:].numpy(), scalar_first=True) * back.inv()
    quat = heading.as_quat(scalar_first=True) * [1, 0, 0, 1]
    away = (frames.body_pos_w[:, 0] - frames.body_pos_w[:, shin]).numpy()
    trunk = Rotation.from_quat(quat, scalar_first=True).apply(away)
    base = after[:, :3].numpy().copy()
    base[:, 2] = frames.body_pos_w[:, shin, 2]
    miss = np.linalg.norm(base + trunk - robot.data.root_link_pos_w.numpy(), axis=1)
    np.testing.assert_allclose(command.errors("body_pos")[:, 0], miss, atol=1e-9)


def test_heights_are_compared_alone(make_env, files):
    env = tracking(make_env, files / "m.npz", start=(0.2, 0.8), anchor="thigh")
    command, robot = env.commands["motion"], env.scene["robot"]
    pose = robot.data.root_link_pose_w.clone()
    pose[:, :3] += torch.tensor([3.0, -2.0, 0.0])
    lift = torch.tensor([0.1, -0.2, 0.3, -0.4, 0.5]).double()
    was = {
        tracked: command.errors(tracked).clone()
        for tracked in ("root_height", "anchor_height", "body_height")
    }
    pose[:, 2] += lift
    robot.write_root_link_pose_to_sim(pose)
    for tracked, before in was.items():
        found = command.errors(tracked)
        assert found.shape == (5, 3 if tracked == "body_height" else 1)
        np.testing.assert_allclose(
            found, lift.abs()[:, None].expand_as(found), atol=float(before.max()) + 1e-9
        )
    lost = terminations.motion_lost(env, "motion", "anchor_height", 0.25)
    assert lost.tolist() == [False, False, True, True, True]
    shin = SceneEntityCfg("robot", body_names="shin")
    lost = terminations.motion_lost(env, "motion", "body_height", 0.35, shin)
    assert lost.tolist() == [False, False, False, True, True]


def library(tmp_path, seconds=(1.0, 3.0, 2.4)):
    """Files of standing still at heights 1, 2, …, and of different lengths."""
    paths = []
    for k, length in enumerate(seconds):
        rows = np.zeros((round(length * FPS) + 1, 9))
        rows[:, 2], rows[:, 6] = k + 1.0, 1.0
        rows[:, 7] = np.linspace(0.0, 0.1 * length, len(rows))
        paths.append(tmp_path / f"{k}.csv")
        np.savetxt(paths[-1], rows, delimiter=",")
    return paths


def test_a_library_is_drawn_by_the_second(make_env, tmp_path):
    env = tracking(
        make_env, library(tmp_path), 600, fps=FPS, start=(0.25, 0.75), at_end="hold"
    )
    command, data = env.commands["motion"], env.scene["robot"].data
    clip, time = command.clip, command.time
    np.testing.assert_allclose(data.root_link_pos_w[:, 2], clip + 1.0)
    np.testing.assert_allclose(data.joint_pos[:, 1], 0.1 * time, atol=1e-9)
    duration = torch.tensor([1.0, 3.0, 2.4]).double()
    share = time / duration[clip]
    assert 0.25 <= float(share.min()) < 0.26
    assert 0.74 < float(share.max()) <= 0.75
    counts = np.bincount(clip.numpy(), minlength=3)
    expected = 600 * (duration / duration.sum()).numpy()
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    assert stats.kstest((share - 0.25) / 0.5, "uniform").pvalue > 1e-3
    for _ in range(3):
        env.step(torch.zeros(600, env.action_dim))
    assert bool((command.ended == (command.time >= duration[clip])).all())


def test_one_time_in_each_motion(make_env, tmp_path):
    env = tracking(make_env, library(tmp_path), 90, fps=FPS, start=(1.0, 1.0))
    command = env.commands["motion"]
    assert set(command.clip.tolist()) == {0, 1, 2}
    duration = command.reference.duration
    torch.testing.assert_close(command.time, duration[command.clip])


def failing(make_env, tmp_path, num_envs=40, **options):
    """Worlds that fail in the last second of the second motion alone."""

    def fails(env):
        command = env.commands["motion"]
        return (command.clip == 1) & (command.time > 2.0)

    ends = {"fails": TerminationTermCfg(fails)}
    return tracking(
        make_env, library(tmp_path), num_envs, fps=FPS, sampling="adaptive",
        terminations=ends, **options,
    )  # fmt: skip


def test_starts_move_to_where_episodes_fail(make_env, tmp_path):
    env = failing(make_env, tmp_path, uniform_share=0.2, failure_memory=200)
    starts = env.commands["motion"].starts
    even = np.array([1.0, 1.0, 1.0, 1.0, 0.8, 0.8, 0.8]) / 6.4
    np.testing.assert_allclose(starts.probability, even)
    kept = env.snapshot()
    for _ in range(40):
        env.step(torch.zeros(40, env.action_dim))
    # All failures are in the last of the second motion's three bins.
    near = np.array([0, 0.64, 0.8, 1.0, 0, 0, 0])
    np.testing.assert_allclose(
        starts.probability, 0.2 * even + 0.8 * near / near.sum(), atol=1e-12
    )
    drawn = starts.at(torch.linspace(0, 1, 10_001)[:-1].double())
    assert float((drawn[0] == 1).double().mean()) == pytest.approx(0.89375, abs=1e-3)
    assert float(drawn[1].max()) <= 3.0
    env.restore(kept)
    np.testing.assert_allclose(starts.probability, even)


@pytest.mark.parametrize("auto_reset", [True, False])
def test_a_failure_in_the_step_that_ends_a_motion_is_counted_in_it(
    make_env, tmp_path, auto_reset
):
    env = failing(make_env, tmp_path, 12)
    env.auto_reset = auto_reset
    motion = env.commands["motion"]
    env.step(torch.zeros(12, env.action_dim))
    motion.clip[:] = 1
    motion.time[:] = motion.reference.duration[1] - 0.5 * env.step_dt
    motion.starts.failures[:] = 0.0
    env.step(torch.zeros(12, env.action_dim))  # fails, and the motion is over
    assert bool(env.terminated.all())
    if not auto_reset:
        env.step(torch.zeros(12, env.action_dim), reset_ids=range(12))
    assert motion.starts.failures.nonzero().flatten().tolist() == [3]


def test_failures_are_forgotten(make_env, tmp_path):
    env = failing(make_env, tmp_path, 2, failure_memory=4)
    starts = env.commands["motion"].starts
    one = torch.tensor([1])
    starts.record(one, torch.tensor([2.5]).double(), torch.tensor([True]))
    early, after = torch.tensor([0.5]).double(), []
    for _ in range(3):
        after.append(float(starts.failures.max()))
        starts.record(one, early, torch.tensor([False]))
    np.testing.assert_allclose(after, 0.25 * 0.75 ** np.arange(3))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"anchor": "knee"}, "knee"),
        ({"anchor": "sh.*|th.*"}, "anchor"),
        ({"sampling": "random"}, "random"),
        ({"uniform_share": 1.5}, "uniform_share"),
        ({"failure_memory": 0}, "failure_memory"),
        ({"file": ()}, "file"),
        ({"start": (0.5, 1.5)}, "start"),
        ({"at_end": "stop"}, "stop"),
        ({"motion_joints": ("knee", "hipp")}, "hipp"),
        ({"body_names": "shim"}, "shim"),
    ],
)
def test_what_makes_no_sense_is_refused(make_env, files, options, name):
    with raises((InvalidInputError, UnknownNameError), name=name):
        tracking(make_env, options.pop("file", files / "m.npz"), **options)


def test_terms_of_motions_need_one(make_env, files):
    env = tracking(make_env, files / "m.npz")
    with raises(UnknownNameError, name="joint_po"):
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
