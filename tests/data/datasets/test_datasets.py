"""Data sets: what is written is what was, as the libraries of others read it."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import pickle
import resource

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from mcap.reader import make_reader
from tests.raised import raises

from simstate import (
    FileError,
    InvalidInputError,
    RecordingError,
    ShapeError,
    Simulation,
    UnknownNameError,
)
from simstate.cli import main
from simstate.data.datasets import (
    episodes_of,
    read_hdf5,
    read_metasim,
    read_motion,
    write_foxglove,
    write_hdf5,
    write_lerobot,
)
from simstate.data.datasets.recorded_episodes import success_of
from simstate.env import Env, EventTermCfg, TerminationTermCfg, tasks
from simstate.record import Recording, recorder

QUANTITIES = (
    "robot.root_link_pose_w", "robot.root_com_vel_w", "robot.joint_pos",
    "robot.joint_vel", "robot.body_link_pose_w",
)  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A recording of short episodes, and the inputs of each step."""
    path = tmp_path_factory.mktemp("data") / "walk.simrec"
    cfg = tasks.make_cfg("Quadruped-Velocity")
    cfg.episode_length_s = 0.2
    env = Env(cfg, 3, seed=4)
    env.episode_length_buf = torch.tensor([0, 3, 7])
    generator = torch.Generator().manual_seed(1)
    most, recorder.MOST_SAMPLES = recorder.MOST_SAMPLES, 7
    steps = []
    try:
        with env.record(path, quantities=QUANTITIES, task="Quadruped-Velocity"):
            for k in range(33):
                seen = env.observations["policy"]
                pose = env.scene["robot"].data.root_link_pose_w.clone()
                action = torch.randn(3, 12, generator=generator)
                _, reward, terminated, truncated, _ = env.step(action)
                steps.append((seen, pose, action, reward, terminated | truncated))
                if k == 13:
                    env.reset(env_ids=[1])
    finally:
        recorder.MOST_SAMPLES = most
    return path, [torch.stack(part).numpy() for part in zip(*steps, strict=True)]


def by_hand(steps, world, cuts):
    """The steps of a world, cut after its ends and after a reset by hand."""
    ended = steps[4][:, world].nonzero()[0].tolist()
    places = sorted({*ended, *cuts})
    starts = [0, *(p + 1 for p in places)]
    return [(a, p + 1) for a, p in zip(starts, places, strict=False)]


def test_episodes_are_cut_where_they_ended(inputs):
    path, steps = inputs
    everything = list(episodes_of(path, complete=False))
    assert sum(map(len, everything)) == 3 * 33
    for world, cuts in ((0, []), (1, [13]), (2, [])):
        mine = [e for e in everything if e.world == world]
        for episode, (a, b) in zip(mine, by_hand(steps, world, cuts), strict=False):
            np.testing.assert_array_equal(
                episode.columns["action"], steps[2][a:b, world]
            )
            np.testing.assert_array_equal(
                episode.columns["observation/policy"], steps[0][a:b, world]
            )
    complete = list(episodes_of(path))
    assert len(complete) == int(steps[4].sum())
    assert {e.ends for e in complete} >= {("time_out",)}
    kept = list(episodes_of(path, keep=success_of(path, "time_out")))
    assert 0 < len(kept) <= len(complete)


def test_episodes_are_in_the_order_in_which_they_ended(tmp_path, monkeypatch):
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.terminations["late"] = TerminationTermCfg(
        lambda env: env.episode_length_buf >= 9 - 2 * torch.arange(3)
    )
    ends = []
    for most in (2, 1000):  # samples in a block: the order does not depend on it
        monkeypatch.setattr(recorder, "MOST_SAMPLES", most)
        env = Env(cfg, num_envs=3, seed=1)
        path = tmp_path / f"{most}.simrec"
        with env.record(path):
            for _ in range(19):
                env.step(torch.zeros(3, 1))
        ends.append([(one.world, one.number) for one in episodes_of(path)])
    by_time = sorted(
        (length * (number + 1), world, number)
        for world, length in enumerate((9, 7, 5))
        for number in range(19 // length)
    )
    assert ends[0] == ends[1] == [(world, number) for _, world, number in by_time]


@pytest.mark.parametrize("most", [2, 1000])
def test_steps_between_an_end_and_a_reset_are_of_no_episode(
    most, tmp_path, monkeypatch
):
    monkeypatch.setattr(recorder, "MOST_SAMPLES", most)
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.08  # four steps
    env = Env(cfg, num_envs=2, seed=1, auto_reset=False)
    actions = torch.rand(13, 2, 1)
    with env.record(tmp_path / "run.simrec"):
        for k, action in enumerate(actions):
            # World 0 is reset in steps 4 and 9, world 1 in 7, after three more steps.
            env.step(action, reset_ids={4: [0], 7: [1], 9: [0]}.get(k, ()))
    spans = {0: [(0, 4), (5, 9), (10, 13)], 1: [(0, 4), (8, 12)]}
    for world, parts in spans.items():
        every = episodes_of(tmp_path / "run.simrec", complete=False)
        mine = [one for one in every if one.world == world]
        assert [one.number for one in mine] == list(range(len(parts)))
        for one, (first, end) in zip(mine, parts, strict=True):
            np.testing.assert_array_equal(
                one.columns["action"], actions[first:end, world]
            )
            assert one.is_complete == (end < 13)


def test_a_success_is_a_term_of_the_task(inputs, tmp_path):
    path, _ = inputs
    with raises(UnknownNameError, name="timeout"):
        write_hdf5(path, tmp_path / "demos.hdf5", success="timeout")
    sim = Simulation(tasks.make_cfg("Cartpole-Balance").scene)
    with sim.record(tmp_path / "sim.simrec", fields=["ctrl"]):
        pass
    with raises(UnknownNameError, name="time_out"):
        success_of(tmp_path / "sim.simrec", "time_out")
    assert not (tmp_path / "demos.hdf5").exists()


@pytest.mark.parametrize("most", [3, 1000])
def test_an_episode_may_start_later_than_the_one_before_it_ended(
    most, tmp_path, monkeypatch
):
    """An event sets the time at a reset: each episode starts 1 s after another."""
    monkeypatch.setattr(recorder, "MOST_SAMPLES", most)
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.08  # four steps
    starts = itertools.count(1.0)

    def set_clock(env, env_ids):
        env.sim.data.time[env_ids] = next(starts)

    cfg.events["clock"] = EventTermCfg(set_clock, mode="reset")
    env = Env(cfg, num_envs=2, seed=1)
    with env.record(tmp_path / "run.simrec"):
        for _ in range(10):
            env.step(torch.zeros(2, 1))
    every = list(episodes_of(tmp_path / "run.simrec", complete=False))
    lengths = {(one.world, one.number): len(one) for one in every}
    assert lengths == {(w, k): n for w in (0, 1) for k, n in enumerate((4, 4, 2))}
    assert all(np.ptp(one.columns["time"]) < 0.08 for one in every)


def test_a_data_set_is_not_replaced_by_none(inputs, tmp_path):
    path, _ = inputs
    (tmp_path / "demos.hdf5").write_text("those of yesterday")
    with raises(InvalidInputError, name="episodes"):
        write_hdf5(path, tmp_path / "demos.hdf5", keep=lambda _: False)
    assert (tmp_path / "demos.hdf5").read_text() == "those of yesterday"


def test_h5py_reads_what_isaac_lab_would(inputs, tmp_path):
    path, steps = inputs
    count = write_hdf5(path, tmp_path / "demos.hdf5", success="time_out")
    assert count == int(steps[4].sum())
    first = next(iter(episodes_of(path)))
    with h5py.File(tmp_path / "demos.hdf5") as file:
        assert file.attrs["format_version"] == 1
        demo = file["data/demo_0"]
        assert file["data"].attrs["total"] == sum(len(e) for e in episodes_of(path))
        assert demo.attrs["num_samples"] == len(first)
        assert bool(demo.attrs["success"])
        np.testing.assert_array_equal(demo["actions"], first.columns["action"])
        np.testing.assert_array_equal(
            demo["obs/policy"], first.columns["observation/policy"]
        )
        states = demo["states/articulation/robot"]
        pose = first.columns["robot.root_link_pose_w"]
        np.testing.assert_array_equal(states["root_pose"][:, :3], pose[:, :3])
        # Version 1 has (x, y, z, w): the scalar is last.
        np.testing.assert_array_equal(states["root_pose"][:, 6], pose[:, 3])
        told_names = json.loads(states["root_pose"].attrs["names"])
        assert told_names == ["x", "y", "z", "qx", "qy", "qz", "qw"]
        units = json.loads(states["root_pose"].attrs["units"])
        assert units == ["m", "m", "m", "1", "1", "1", "1"]
        assert states["joint_position"].attrs["unit"] == "rad"
        assert "units" not in states["joint_position"].attrs  # all have the one
        assert json.loads(states["joint_position"].attrs["names"])[1] == "FL_thigh"
        assert json.loads(file["data"].attrs["env_args"])["env_name"] == (
            "Quadruped-Velocity"
        )
        assert np.asarray(demo["dones"])[-1] == 1
    demos = read_hdf5(tmp_path / "demos.hdf5")
    assert len(demos) == count
    back = demos[0]
    np.testing.assert_array_equal(back.actions, first.columns["action"])
    where = "states/articulation/robot/root_pose"
    np.testing.assert_array_equal(back.arrays[where], pose)  # (w, x, y, z) again
    assert back.contracts["obs/policy"]["names"][0]
    assert back.contracts[where]["names"] == ["x", "y", "z", "qw", "qx", "qy", "qz"]


def test_an_older_file_of_isaac_lab(tmp_path):
    pose = np.arange(14.0).reshape(2, 7)
    with h5py.File(tmp_path / "old.hdf5", "w") as file:
        for name in ("demo_10", "demo_2"):
            group = file.create_group(f"data/{name}")
            group.create_dataset("actions", data=np.ones((2, 3)))
            group.create_dataset("initial_state/articulation/arm/root_pose", data=pose)
    demos = read_hdf5(tmp_path / "old.hdf5")
    assert [demo.name for demo in demos] == ["demo_2", "demo_10"]
    arrays = demos[0].arrays
    np.testing.assert_array_equal(
        arrays["initial_state/articulation/arm/root_pose"], pose
    )
    (tmp_path / "text.hdf5").write_text("none")
    with raises(InvalidInputError, file="text.hdf5"):
        read_hdf5(tmp_path / "text.hdf5")


def test_parquet_has_what_lerobot_wants(inputs, tmp_path):
    path, _ = inputs
    keep = success_of(path, "time_out")
    count = write_lerobot(path, tmp_path / "set", task="walk", keep=keep)
    episodes = list(episodes_of(path, keep=keep))
    assert count == len(episodes)
    info = json.loads((tmp_path / "set/meta/info.json").read_text())
    assert info["codebase_version"] == "v3.0"
    assert (info["fps"], info["total_episodes"]) == (50, count)
    features = info["features"]
    assert features["action"]["names"][0].endswith("FL_hip")
    pose = features["observation.robot.root_link_pose_w"]
    assert (pose["shape"], pose["axes"]) == ([7], "world")
    table = pq.read_table(tmp_path / "set/data/chunk-000/file-000.parquet")
    frames = table.to_pandas()
    assert len(frames) == info["total_frames"] == sum(map(len, episodes))
    for k, episode in enumerate(episodes):
        mine = frames[frames.episode_index == k]
        np.testing.assert_allclose(
            np.stack(mine["action"]), episode.columns["action"], rtol=1e-6
        )
        np.testing.assert_allclose(
            mine.timestamp, 0.02 * np.arange(len(episode)), rtol=1e-6
        )
    stats = json.loads((tmp_path / "set/meta/stats.json").read_text())
    actions = np.stack(frames["action"])
    np.testing.assert_allclose(stats["action"]["mean"], actions.mean(0), atol=1e-6)
    np.testing.assert_allclose(stats["action"]["std"], actions.std(0), atol=1e-5)
    rows = pq.read_table(
        tmp_path / "set/meta/episodes/chunk-000/file-000.parquet"
    ).to_pylist()
    assert [row["length"] for row in rows] == [len(e) for e in episodes]
    with raises(InvalidInputError, file="set"):
        write_lerobot(path, tmp_path / "set")
    with raises(InvalidInputError, name="episodes"):
        write_lerobot(path, tmp_path / "none", keep=lambda _: False)
    assert not (tmp_path / "none").exists()


def test_a_log_for_foxglove(inputs, tmp_path):
    path, _ = inputs
    names = ["joint_pos", "body_link_pose_w", "reward"]
    count = write_foxglove(path, tmp_path / "run.mcap", worlds=[2, 0], names=names)
    recording = Recording(path)
    assert count == 2 * 33 * 4
    with open(tmp_path / "run.mcap", "rb") as file:
        found = list(make_reader(file).iter_messages(log_time_order=False))
        schema, channel, _ = next(m for m in found if m[1].topic.endswith("joint_pos"))
        told_schema = json.loads(schema.data)
        assert channel.topic == "/world_2/robot.joint_pos"
        assert (told_schema["unit"], schema.encoding) == ("rad", "jsonschema")
        assert "FR_calf" in told_schema["properties"]
        joints = [
            (m.log_time, json.loads(m.data))
            for _, c, m in found
            if c.topic == "/world_0/robot.joint_pos"
        ]
        values = recording["joint_pos"][:, 0]
        for k in (0, 12, 32):
            assert joints[k][0] == k * 20_000_000  # on, over the ends of episodes
            assert joints[k][1]["FR_calf"] == float(values[k, 5])
        frames = [json.loads(m.data) for _, c, m in found if c.topic == "/tf"]
        base = frames[0]["transforms"][0]
        pose = recording["body_link_pose_w"][0, 2, 0]
        assert base["child_frame_id"].startswith("world_2/")
        assert base["rotation"]["w"] == float(pose[3])
        assert base["translation"]["z"] == float(pose[2])


def test_a_log_has_the_time_of_the_worlds_too(inputs, tmp_path):
    path, _ = inputs
    write_foxglove(path, tmp_path / "run.mcap", worlds=[1])
    recording = Recording(path)
    assert recording.time[:, 1].diff().min() < 0  # an episode has ended
    with open(tmp_path / "run.mcap", "rb") as file:
        found = [
            (m.log_time, json.loads(m.data)["value"])
            for _, c, m in make_reader(file).iter_messages()
            if c.topic == "/world_1/time"
        ]
    assert [log for log, _ in found] == [20_000_000 * k for k in range(33)]
    assert [time for _, time in found] == recording.time[:, 1].tolist()


def test_a_log_of_numbers_that_are_none(tmp_path):
    sim = Simulation(tasks.make_cfg("Cartpole-Balance").scene, 2)
    bad = torch.tensor([[1.5, -0.5, 0.0], [torch.nan, torch.inf, -torch.inf]])
    with sim.record(tmp_path / "a.simrec", quantities={"bad": lambda _: bad}):
        sim.step()
    write_foxglove(tmp_path / "a.simrec", tmp_path / "a.mcap", worlds=[0, 1])

    def refuse(text):
        raise AssertionError(text)

    with open(tmp_path / "a.mcap", "rb") as file:
        found = {
            c.topic: json.loads(m.data, parse_constant=refuse)
            for _, c, m in make_reader(file).iter_messages()
        }
    assert [found["/world_0/bad"][f"value_{k}"] for k in range(3)] == [1.5, -0.5, 0.0]
    assert [found["/world_1/bad"][f"value_{k}"] for k in range(3)] == 3 * [None]


@pytest.mark.parametrize("kind", ["hdf5", "foxglove"])
def test_a_recording_is_not_replaced_by_what_is_made_of_it(inputs, tmp_path, kind):
    path = tmp_path / "run.simrec"
    path.write_bytes(inputs[0].read_bytes())
    (tmp_path / "link").symlink_to(path)
    for out in (path, tmp_path / "link"):
        assert main(["export", str(path), "--to", kind, "--out", str(out)]) == 1
    assert path.read_bytes() == inputs[0].read_bytes()


def test_a_log_of_a_world_that_was_not_recorded(inputs, tmp_path):
    with raises(InvalidInputError, name="world"):
        write_foxglove(inputs[0], tmp_path / "a.mcap", worlds=[7])
    assert not (tmp_path / "a.mcap").exists()


def test_recordings_of_different_tasks_make_no_data_set(inputs, tmp_path):
    env = Env(tasks.make_cfg("Cartpole-Balance"), 2)
    with env.record(tmp_path / "cart.simrec"):
        env.step(torch.zeros(2, 1))
    both = [inputs[0], tmp_path / "cart.simrec"]
    with raises(RecordingError, file="cart.simrec"):
        write_hdf5(both, tmp_path / "both.hdf5")
    with raises(RecordingError, file="cart.simrec"):
        write_lerobot(both, tmp_path / "both")


def test_fields_and_functions_are_in_every_format(tmp_path):
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.1
    env = Env(cfg, 2, seed=3)
    own = {"power": (lambda sim: sim.data.qvel[:, 0] * 2, "W")}
    path = tmp_path / "cart.simrec"
    with env.record(
        path, quantities={"joint_pos": "joint_pos", **own}, fields=["qvel"]
    ):
        for _ in range(7):
            env.step(torch.randn(2, 1))
    write_hdf5(path, tmp_path / "cart.hdf5")
    write_lerobot(path, tmp_path / "set")
    write_foxglove(path, tmp_path / "cart.mcap")
    first = next(iter(episodes_of(path)))
    with h5py.File(tmp_path / "cart.hdf5") as file:
        demo = file["data/demo_0"]
        for name in ("qvel", "power"):
            np.testing.assert_array_equal(demo[f"obs/{name}"], first.columns[name])
        assert demo["obs/power"].attrs["unit"] == "W"
        assert "obs/ended" not in demo
        joints = demo["states/articulation/robot/joint_position"]
        assert json.loads(joints.attrs["units"]) == ["m", "rad"]
    info = json.loads((tmp_path / "set/meta/info.json").read_text())
    assert info["features"]["observation.robot.joint_pos"]["units"] == ["m", "rad"]
    assert info["features"]["observation.power"]["unit"] == "W"
    with open(tmp_path / "cart.mcap", "rb") as file:
        schemas = make_reader(file).get_summary().schemas.values()
        inputs = {s.name: json.loads(s.data)["properties"] for s in schemas}
    joints = inputs["simstate.robot.joint_pos"]
    assert joints["slider"]["description"] == "[m]"
    assert joints["pole"]["description"] == "[rad]"
    assert "simstate.power" in inputs


def test_the_command(inputs, tmp_path, capsys):
    path, _ = inputs
    out = str(tmp_path / "a.hdf5")
    assert main(["export", str(path), "--to", "hdf5", "--out", out]) == 0
    assert "episodes" in capsys.readouterr().out
    assert len(read_hdf5(out)) > 3


def test_a_simulation_has_no_episodes(tmp_path):
    sim = Simulation(tasks.make_cfg("Cartpole-Balance").scene)
    sim.record(tmp_path / "a.simrec", fields=["qpos"]).close()
    with raises(RecordingError, name="ctrl"):
        list(episodes_of(tmp_path / "a.simrec"))


# Motions.


def test_motions_of_both_kinds(tmp_path):
    frames, names = 5, ("hip", "knee")
    quat = np.array([[0.8, 0.2, 0.4, 0.4]] * frames)  # w, x, y, z
    joints = np.linspace(0, 1, frames)[:, None] * [1.0, -2.0]
    pos = np.arange(3.0 * frames).reshape(frames, 3)
    rows = np.hstack([pos, quat[:, [1, 2, 3, 0]], joints])
    np.savetxt(tmp_path / "walk.csv", rows, delimiter=",")
    found = read_motion(tmp_path / "walk.csv", names, fps=50)
    np.testing.assert_allclose(found.root_quat, quat)
    np.testing.assert_allclose(found.joint_vel, [[12.5, -25.0]] * frames)
    state = found.states("robot")[3]["robots"]["robot"]
    assert state["dof_pos"] == {"hip": 0.75, "knee": -1.5}
    assert state["rot"] == pytest.approx([0.8, 0.2, 0.4, 0.4])
    np.savez(
        tmp_path / "walk.npz", fps=[30], joint_pos=joints, joint_vel=3 * joints,
        body_pos_w=np.stack([pos, pos + 1], 1), body_quat_w=np.stack([quat, quat], 1),
    )  # fmt: skip
    other = read_motion(tmp_path / "walk.npz", names)
    assert other.fps == 30
    np.testing.assert_array_equal(other.root_pos, pos)
    np.testing.assert_array_equal(other.joint_vel, 3 * joints)
    with raises(ShapeError, name="joint_names"):
        read_motion(tmp_path / "walk.csv", ("a", "b", "c"), fps=50)
    with raises(InvalidInputError, name="fps"):
        read_motion(tmp_path / "walk.csv", names)
    np.savetxt(tmp_path / "wxyz.csv", rows * 2, delimiter=",")
    with raises(InvalidInputError, name="quaternion"):
        read_motion(tmp_path / "wxyz.csv", names, fps=50)
    whole = {
        "fps": [30], "joint_pos": joints, "joint_vel": joints,
        "body_pos_w": pos[:, None], "body_quat_w": quat[:, None],
    }  # fmt: skip
    path = str(tmp_path / "wrong.npz")
    for array, wrong, name in (
        ("fps", [0], "fps"),
        ("fps", [], path),
        ("body_quat_w", 2 * quat[:, None], "quaternion"),
        ("body_quat_w", np.nan * quat[:, None], "body_quat_w"),
        ("joint_vel", joints[1:], "joint_vel"),
        ("body_lin_vel_w", pos, "body_lin_vel_w"),
    ):
        np.savez(path, **{**whole, array: np.array(wrong)})
        with raises(InvalidInputError, name=name):
            read_motion(tmp_path / "wrong.npz", names)


# MetaSim.


def trajectories() -> dict:
    start = {
        "franka": {"pos": np.array([0.1, 0.2, 0.3]), "rot": [1.0, 0, 0, 0],
                   "dof_pos": {"joint1": np.float64(0.4)}},
        "cube": {"pos": [0.5, 0.0, 0.1], "rot": [0.8, 0.6, 0.0, 0.0]},
    }  # fmt: skip
    action = {"dof_pos_target": {"joint1": 0.5}}
    return {"franka": [{"init_state": start, "actions": [action] * 3, "states": None}]}


@pytest.mark.parametrize("ending", ["pkl", "pkl.gz"])
def test_trajectories_of_metasim(tmp_path, ending):
    data = pickle.dumps(trajectories())
    file = tmp_path / f"pick_v2.{ending}"
    file.write_bytes(gzip.compress(data) if ending == "pkl.gz" else data)
    (found,) = read_metasim(file)
    assert len(found) == 3
    assert found.init_state["robots"]["franka"]["pos"] == [0.1, 0.2, 0.3]
    assert found.init_state["robots"]["franka"]["dof_pos"] == {"joint1": 0.4}
    assert list(found.init_state["objects"]) == ["cube"]
    assert found.states is None


def test_a_robot_of_metasim_is_named_where_there_are_several(tmp_path):
    file = tmp_path / "two.json"
    demo = {"init_state": {"robots": {"b": {"pos": [1, 2, 3]}}}, "extra": 7}
    file.write_text(json.dumps({"a": [], "b": [demo, {**demo, "states": [{"b": {}}]}]}))
    with pytest.raises(InvalidInputError):
        read_metasim(file)
    with raises(UnknownNameError, name="c"):
        read_metasim(file, "c")
    assert read_metasim(file, "a") == []
    first, second = read_metasim(file, "b")
    assert (first.states, first.actions, first.extra) == (None, [], 7)
    assert first.init_state == demo["init_state"]
    assert second.states == [{"objects": {}, "robots": {"b": {}}}]


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


def test_a_pickle_runs_no_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "evil_v2.pkl"
    file.write_bytes(pickle.dumps({"franka": [Evil()]}))
    with raises(InvalidInputError, name="posix.mkdir"):
        read_metasim(file)
    assert not (tmp_path / "evil").exists()
    plain = {"franka": [{"init_state": {"franka": {"pos": [0, 0, 1]}}, "actions": []}]}
    (tmp_path / "a.json").write_text(json.dumps(plain))
    assert read_metasim(tmp_path / "a.json", "franka")[0].actions == []
    with raises(InvalidInputError, name="evil.yaml"):
        read_metasim(tmp_path / "evil.yaml" if file.rename("evil.yaml") else file)


def test_attributes_of_other_programs_stay_as_they_are(tmp_path):
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        made = file.create_dataset("data/demo_0/obs/speed", data=np.ones((2, 3)))
        made.attrs["units"] = "m/s"
        made.attrs["names"] = ["x", "y", "z"]
    (demo,) = read_hdf5(tmp_path / "other.hdf5")
    contract = demo.contracts["obs/speed"]
    assert contract["units"] == "m/s"
    assert list(contract["names"]) == ["x", "y", "z"]


def test_no_column_takes_the_place_of_another(tmp_path):
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.1
    env = Env(cfg, 2, seed=3)
    seven = torch.arange(14.0).reshape(2, 7)
    path = tmp_path / "cart.simrec"
    for name in ("policy", "state", "root_pose", "my_root_pose"):
        if name == "policy":
            with raises(InvalidInputError, name="policy"):
                env.record(path, quantities={name: lambda sim: seven})
            continue
        with env.record(path, quantities={name: lambda sim: seven}):
            for _ in range(7):
                env.step(torch.randn(2, 1))
        write_hdf5(path, tmp_path / f"{name}.hdf5")
        demo = read_hdf5(tmp_path / f"{name}.hdf5")[0]
        np.testing.assert_array_equal(demo.arrays[f"obs/{name}"][0], seven[0])
        if name == "state":
            with raises(InvalidInputError, name="state"):
                write_lerobot(path, tmp_path / "set")


def test_an_export_that_fails_midway_leaves_what_was_there(
    inputs, tmp_path, monkeypatch
):
    path, _ = inputs
    for name in ("walk.hdf5", "walk.mcap"):
        (tmp_path / name).write_text("what was there")
    seen = []

    def second_is_broken(episode):
        seen.append(episode)
        if len(seen) == 2:
            raise RuntimeError("broken")
        return True

    with pytest.raises(RuntimeError, match="broken"):
        write_hdf5(path, tmp_path / "walk.hdf5", keep=second_is_broken)
    monkeypatch.setattr("simstate.data.datasets.foxglove._Log.write", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_foxglove(path, tmp_path / "walk.mcap")
    left = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert left == {"walk.hdf5": b"what was there", "walk.mcap": b"what was there"}


@pytest.mark.parametrize("room", [0, 100, 20_000, 60_000])
def test_an_export_to_hdf5_without_room_leaves_what_was_there(inputs, tmp_path, room):
    """The HDF5 library crashes when it closes a file that it failed to write."""
    target = tmp_path / "run.hdf5"
    target.write_bytes(b"what was there")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with raises(FileError, name=str(target)):
            write_hdf5(inputs[0], target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert target.read_bytes() == b"what was there"
    assert list(tmp_path.iterdir()) == [target]


def test_an_export_where_there_is_no_folder_says_so(inputs, tmp_path):
    path, _ = inputs
    with raises(FileError, file="walk.hdf5"):
        write_hdf5(path, tmp_path / "nowhere" / "walk.hdf5")
    with raises(FileError, file="walk.mcap"):
        write_foxglove(path, tmp_path / "nowhere" / "walk.mcap")


def test_what_has_no_joints_is_a_rigid_object(tmp_path):
    cfg = tasks.make_cfg("Cube-Lift")
    cfg.episode_length_s = 0.1
    env = Env(cfg, 2, seed=3)
    quantities = ("cube.root_link_pose_w", "cube.root_com_vel_w", "robot.joint_pos")
    with env.record(tmp_path / "lift.simrec", quantities=quantities):
        for _ in range(12):
            env.step(torch.zeros(2, env.action_dim))
    write_hdf5(tmp_path / "lift.simrec", tmp_path / "lift.hdf5")
    with h5py.File(tmp_path / "lift.hdf5") as file:
        states = file["data/demo_0/states"]
        assert set(states) == {"articulation", "rigid_object"}
        assert set(states["rigid_object/cube"]) == {"root_pose", "root_velocity"}
        assert set(states["articulation"]) == {"robot"}
    (demo, *_) = read_hdf5(tmp_path / "lift.hdf5")
    pose = demo.arrays["states/rigid_object/cube/root_pose"]
    with Recording(tmp_path / "lift.simrec") as recording:
        inputs = recording.read("cube.root_link_pose_w")
    np.testing.assert_array_equal(pose, np.asarray(inputs)[: len(pose), 0])
