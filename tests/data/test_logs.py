"""Logs in five formats give the same columns, contracts and errors."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
import torch
from mcap.reader import make_reader
from mcap.writer import Writer
from tests.raised import raises

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.data.datasets import write_foxglove, write_hdf5, write_lerobot
from simstate.data.logs import read_log
from simstate.env import Env, tasks
from simstate.record import Log, LogColumn, Recording


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Two worlds of an arm, of which one had another start."""
    path = tmp_path_factory.mktemp("logs") / "arm.simrec"
    scene = SceneCfg(entities={"arm": EntityCfg(model="arm")}, ground=False)
    sim = Simulation(scene, 2, seed=3)
    generator = torch.Generator().manual_seed(4)
    sim.data.qvel[1] = 0.3
    with sim.record(
        path, quantities=["arm.joint_pos", "arm.joint_vel"], fields=["ctrl"]
    ):
        for _ in range(12):
            noise = torch.randn(sim.data.ctrl.shape, generator=generator)
            sim.data.ctrl[:] = noise.double()
            sim.step(3)
    return path


@pytest.fixture(scope="module")
def episodes(tmp_path_factory):
    path = tmp_path_factory.mktemp("logs") / "reach.simrec"
    cfg = tasks.make_cfg("Arm-Reach")
    cfg.episode_length_s = 0.3
    env = Env(cfg, 2, seed=5)
    with env.record(path, quantities=["robot.joint_pos"]):
        for _ in range(40):
            env.step(0.2 * torch.randn(2, env.action_dim))
    return path


def test_recording_has_columns_of_one_world_with_contracts(recording):
    log = read_log(recording, world=1)
    kept = Recording(recording)
    positions = log["joint_pos"]
    np.testing.assert_array_equal(positions.values, kept["joint_pos"][:, 1])
    np.testing.assert_array_equal(positions.time, kept.time[:, 1])
    assert positions.names == tuple(kept.contract("joint_pos")["names"])
    assert (positions.unit, log["joint_vel"].unit) == ("rad, m", "rad/s, m/s")
    step = kept.header["simulation"]["timestep"]
    assert positions.rate == pytest.approx(1 / (3 * step))
    assert log.undetermined == ()


def test_recorded_input_is_at_the_start_of_the_step_that_it_acted_in(recording):
    kept = Recording(recording)
    ctrl = read_log(recording, world=1)["ctrl"]
    np.testing.assert_array_equal(ctrl.time, kept.time[:-1, 1])
    np.testing.assert_array_equal(ctrl.values, kept["ctrl"][1:, 1])


def test_foxglove_file_is_read_like_its_recording(recording, tmp_path):
    write_foxglove(recording, tmp_path / "arm.mcap", worlds=[0, 1])
    log, kept = read_log(tmp_path / "arm.mcap", world=1), read_log(recording, world=1)
    for name in ("arm.joint_pos", "arm.joint_vel", "ctrl"):
        np.testing.assert_allclose(log[name].values, kept[name].values, rtol=1e-12)
        np.testing.assert_allclose(log[name].time, kept[name].time, atol=1e-9)
        assert log[name].names == kept[name].names
        assert log[name].contracts == kept[name].contracts
    with raises(InvalidInputError, name="world"):
        read_log(tmp_path / "arm.mcap", world=7)


@pytest.fixture(scope="module")
def restarted(tmp_path_factory):
    """Three worlds, of which world 1 is reset when the time of its next sample is later
    than that of its last one, and world 2 when it is earlier.
    """
    path = tmp_path_factory.mktemp("logs") / "restarted.simrec"
    scene = SceneCfg(entities={"arm": EntityCfg(model="arm")}, ground=False)
    sim = Simulation(scene, 3, seed=3)
    with sim.record(
        path, quantities=["arm.joint_pos", "arm.joint_pos_target"], fields=["ctrl"]
    ):
        for k in range(9):
            sim.data.ctrl[:] = 0.01 * k + torch.arange(3)[:, None]
            sim.step(1 if k < 2 else 3)
            if k in (1, 5):
                sim.reset([1 if k == 1 else 2])
    return path


def test_a_reset_of_a_simulation_starts_an_episode(restarted):
    kept = Recording(restarted)
    assert len(read_log(restarted)["joint_pos"].time) == 10
    assert (kept.time[1:, 1].diff() > 0).all()  # the reset is not seen in the times
    for world, parts in ((1, [(0, 3), (3, 10)]), (2, [(0, 7), (7, 10)])):
        with raises(InvalidInputError, name="episode"):
            read_log(restarted, world=world)
        for episode, (first, end) in enumerate(parts):
            log = read_log(restarted, world=world, episode=episode)
            np.testing.assert_array_equal(
                log["joint_pos"].values, kept["joint_pos"][first:end, world]
            )
            np.testing.assert_array_equal(
                log["joint_pos"].time, kept.time[first:end, world]
            )
            np.testing.assert_array_equal(
                log["ctrl"].values, kept["ctrl"][first + 1 : end, world]
            )


def test_a_reset_in_a_foxglove_file_starts_an_episode(restarted, tmp_path):
    write_foxglove(restarted, tmp_path / "run.mcap", worlds=[0, 2])
    with raises(InvalidInputError, name="episode"):
        read_log(tmp_path / "run.mcap", world=2)
    for episode in (0, 1):
        log = read_log(tmp_path / "run.mcap", world=2, episode=episode)
        kept = read_log(restarted, world=2, episode=episode)
        assert set(log.columns) == set(kept.columns)
        for name, column in kept.columns.items():
            np.testing.assert_allclose(log[name].time, column.time, atol=1e-9)
            np.testing.assert_allclose(log[name].values, column.values, rtol=1e-12)


def test_a_world_that_waits_in_a_foxglove_file_starts_no_episode(tmp_path):
    scene = SceneCfg(entities={"arm": EntityCfg(model="arm")}, ground=False)
    sim, path = Simulation(scene, 2, seed=3), tmp_path / "run.simrec"
    with sim.record(path, quantities=["arm.joint_pos"], fields=["ctrl"]):
        for k in range(10):
            sim.data.ctrl[:] = 0.01 * k + torch.arange(2)[:, None]
            sim.step(2, [0, 1] if k % 4 < 2 else [1])
            if k == 6:
                sim.reset([0])
    write_foxglove(path, tmp_path / "run.mcap", worlds=[0])
    for episode in (0, 1):
        log = read_log(tmp_path / "run.mcap", world=0, episode=episode)
        kept = read_log(path, world=0, episode=episode)
        for name, column in kept.columns.items():
            np.testing.assert_allclose(log[name].time, column.time, atol=1e-9)
            np.testing.assert_allclose(log[name].values, column.values, rtol=1e-12)


def test_a_foxglove_file_without_the_time_of_the_worlds(restarted, tmp_path):
    write_foxglove(restarted, tmp_path / "run.mcap", worlds=[2], names=["joint_pos"])
    log = read_log(tmp_path / "run.mcap")
    assert any("Resets are not known" in note for note in log.undetermined)


def test_recording_named_mcap_is_read_as_one(recording, tmp_path):
    (tmp_path / "arm.mcap").write_bytes(recording.read_bytes())
    assert set(read_log(tmp_path / "arm.mcap").columns) == set(
        read_log(recording).columns
    )


def test_messages_of_another_program(tmp_path):
    path = tmp_path / "robot.mcap"
    with open(path, "wb") as file:
        writer = Writer(file)
        writer.start()
        data = json.dumps({"type": "object"}).encode()
        schema = writer.register_schema("JointState", "jsonschema", data)
        joints = writer.register_channel("/joint_states", "json", schema)
        other = writer.register_channel("/imu", "cdr", schema)
        for k in range(5):
            message = {"name": ["hip", "knee"], "position": [0.1 * k, -0.2 * k]}
            time = 7_000_000_000 + 20_000_000 * k
            writer.add_message(joints, time, json.dumps(message).encode(), time)
            writer.add_message(other, time, b"\0", time)
        writer.finish()
    log = read_log(path)
    column = log["joint_states.position"]
    np.testing.assert_allclose(column.component("knee"), -0.2 * np.arange(5))
    assert column.rate == pytest.approx(50.0)
    assert (
        "/imu: skipped, because its encoding 'cdr' is not supported."
        in log.undetermined
    )
    assert "joint_states.position: unit, axes not declared." in log.undetermined


def test_table_with_components_and_units(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "time_ms;joint_pos[hip] [rad];joint_pos[knee] [rad];volt [V];mode\n"
        "10;0.1;0.2;3;walk\n20;0.3;0.4;;walk\n30;0.5;0.6;5;stand\n"
    )
    log = read_log(path)
    assert log["joint_pos"].names == ("hip", "knee")
    np.testing.assert_array_equal(log["joint_pos"].component("knee"), [0.2, 0.4, 0.6])
    np.testing.assert_allclose(log["joint_pos"].time, [0.01, 0.02, 0.03])
    assert (log["joint_pos"].unit, log["volt"].unit) == ("rad", "V")
    assert np.isnan(log["volt"].values[1, 0])
    assert log.undetermined[0] == "mode: skipped, because it is not numeric."
    assert "joint_pos: axes not declared." in log.undetermined


def test_unit_of_time_that_is_not_stated(tmp_path):
    (tmp_path / "log.csv").write_text("t,q\n1,0.5\n2,0.6\n3,0.9\n")
    log = read_log(tmp_path / "log.csv")
    assert log.undetermined[0] == "t: unit of time not declared; assumed to be s."
    fast = read_log(tmp_path / "log.csv", time_unit="ms")
    assert fast["q"].rate == pytest.approx(1000.0)


def test_demonstrations_and_lerobot_have_the_episode_of_the_recording(
    episodes, tmp_path
):
    write_hdf5(episodes, tmp_path / "demos.hdf5")
    write_lerobot(episodes, tmp_path / "lerobot")
    with h5py.File(tmp_path / "demos.hdf5") as file:
        joints = file["data/demo_1/states/articulation/robot/joint_position"][:]
        actions = file["data/demo_1/actions"][:]
    log = read_log(tmp_path / "demos.hdf5", episode=1)
    name = "states/articulation/robot/joint_position"
    np.testing.assert_allclose(log[name].values, joints)
    np.testing.assert_allclose(log["actions"].values, actions)
    assert log[name].unit == "rad, m"
    other = read_log(tmp_path / "lerobot", episode=1)["observation.robot.joint_pos"]
    np.testing.assert_allclose(other.values, joints, rtol=1e-6)
    assert other.names == log[name].names
    assert other.rate == pytest.approx(log[name].rate)
    with raises(InvalidInputError, name="episode"):
        read_log(tmp_path / "demos.hdf5")


def test_episode_of_a_recorded_environment(episodes):
    kept = Recording(episodes)
    log = read_log(episodes, world=1, episode=0)
    count = len(log["action"].time)
    np.testing.assert_array_equal(log["action"].values, kept["action"][:count, 1])
    with raises(InvalidInputError, name="episode"):
        read_log(episodes, world=1)


def test_arrays_next_to_a_time(tmp_path):
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["time"] = np.arange(6) * 0.02
        file["q"] = np.arange(12.0).reshape(6, 2)
        file["q"].attrs["unit"] = "deg"
        file["q"].attrs["names"] = json.dumps(["hip", "knee"])
        file["gain"] = 3.0
    log = read_log(tmp_path / "log.h5")
    assert (log["q"].unit, log["q"].names) == ("deg", ("hip", "knee"))
    assert log.notes[-1].startswith("gain: skipped")
    turned = log.declare("q", name="joint_pos", unit="rad", scale=-np.pi / 180)
    np.testing.assert_allclose(turned["joint_pos"].values, -np.radians(log["q"].values))
    assert turned["joint_pos"].unit == "rad"


@pytest.mark.parametrize(
    ("times", "name"),
    [
        ([0.0, 0.1, 0.2, 0.15, 0.3], "time"),
        ([0.0, 0.1, 0.2, 0.2, 0.3], "time"),
        ([0.0, 0.1, 0.2, 0.7, 0.8], "time"),
        ([0.0, 0.1, float("nan"), 0.3, 0.4], "time"),
    ],
)
def test_jump_in_time_is_named(tmp_path, times, name):
    rows = "".join(f"{t},{k}\n" for k, t in enumerate(times))
    (tmp_path / "log.csv").write_text(f"time [s],q [rad]\n{rows}")
    with raises(InvalidInputError, name=name):
        read_log(tmp_path / "log.csv")


def test_part_before_a_jump_is_read(tmp_path):
    (tmp_path / "log.csv").write_text("time [s],q\n0,1\n0.1,2\n0.2,3\n0.9,4\n1,5\n")
    log = read_log(tmp_path / "log.csv", end=0.2)
    np.testing.assert_array_equal(log["q"].values[:, 0], [1, 2, 3])
    with raises(InvalidInputError, name="q"):
        read_log(tmp_path / "log.csv", start=2.0)


def test_file_without_time_needs_a_rate(tmp_path):
    (tmp_path / "log.csv").write_text("q,u\n1,2\n3,4\n5,6\n")
    with raises(InvalidInputError, name="rate"):
        read_log(tmp_path / "log.csv")
    log = read_log(tmp_path / "log.csv", rate=40.0)
    np.testing.assert_allclose(log["u"].time, [0, 0.025, 0.05])


def test_unknown_column_is_named(recording):
    with raises(UnknownNameError, name="arm.joint_poss"):
        read_log(recording, columns=["arm.joint_poss"])
    assert list(read_log(recording, columns=["ctrl"]).columns) == ["ctrl"]


@pytest.mark.parametrize("second", ["q[hip] [rad]", "q[hip] [deg]", "q[hip]"])
def test_columns_of_a_table_with_the_same_heading_are_named(tmp_path, second):
    (tmp_path / "log.csv").write_text(f"t,q[hip] [rad],u,{second}\n0,1,2,3\n1,4,5,6\n")
    with raises(InvalidInputError, name=second):
        read_log(tmp_path / "log.csv")


@pytest.mark.parametrize("name", ["log.txt", "missing.csv", "cut.csv", "text.mcap"])
def test_file_that_is_no_log(tmp_path, name):
    (tmp_path / "log.txt").write_text("t,q\n0,1\n1,2\n")
    (tmp_path / "cut.csv").write_text("t,q\n0,1\n1\n")
    (tmp_path / "text.mcap").write_text("t,q\n0,1\n1\n")
    with pytest.raises(InvalidInputError):
        read_log(tmp_path / name)


@pytest.mark.parametrize("cells", [("0,5", "1,5"), ("2026-01-01 00:00", "1")])
def test_time_that_is_no_number_is_named(tmp_path, cells):
    first, second = cells
    (tmp_path / "log.csv").write_text(f"t [s];q\n{first};1\n{second};2\n")
    with raises(InvalidInputError, name="t [s]") as caught:
        read_log(tmp_path / "log.csv")
    assert repr(first) in str(caught.value)
    (tmp_path / "log.csv").write_text(f"time_ms;t [s];q\n7;{first};1\n8;{second};2\n")
    assert read_log(tmp_path / "log.csv")["q"].time.tolist() == [0.007, 0.008]


def test_times_that_are_missing_are_counted(tmp_path):
    (tmp_path / "log.csv").write_text("t,q\n0,1\n,2\n2,3\n,4\n")
    with raises(InvalidInputError, name="time") as caught:
        read_log(tmp_path / "log.csv")
    assert "4 (2 NaN" in str(caught.value)


def test_unit_of_time_that_is_not_known(tmp_path):
    (tmp_path / "log.csv").write_text("time [min],q\n1,0.5\n2,0.6\n3,0.9\n")
    with raises(InvalidInputError, name="time"):
        read_log(tmp_path / "log.csv")
    assert read_log(tmp_path / "log.csv", time_unit="ms").end == pytest.approx(0.003)


@pytest.mark.parametrize("message", [3.5, [1.0, 2.0], "text"])
def test_messages_that_are_no_objects(tmp_path, message):
    with open(tmp_path / "robot.mcap", "wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("Any", "jsonschema", b"{}")
        channel = writer.register_channel("/raw", "json", schema)
        for time in (0, 10_000_000):
            writer.add_message(channel, time, json.dumps(message).encode(), time)
        writer.finish()
    with raises(InvalidInputError, file="robot.mcap"):
        read_log(tmp_path / "robot.mcap")


def test_damaged_lerobot_folder(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    features = {"x": {"dtype": "float32"}, "y": {"dtype": "float32"}}
    info = {"features": features, "fps": 10, "total_episodes": 1}
    for folder in ("meta", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "meta/info.json").write_text(json.dumps(info))
    (tmp_path / "data/file.parquet").write_bytes(b"cut")
    with raises(InvalidInputError, file="test_damaged_lerobot_folder0"):
        read_log(tmp_path)
    columns = {"episode_index": [0, 0], "frame_index": [0, 1], "x": [1.0, 2.0]}
    parquet.write_table(arrow.table(columns), tmp_path / "data/file.parquet")
    log = read_log(tmp_path)
    assert list(log.columns) == ["x"]
    assert log.notes == ("y: skipped, because the frames do not have it.",)


def test_column_needs_a_row_for_each_time():
    with raises(InvalidInputError, name="q"):
        Log([LogColumn("q", np.arange(3.0), np.zeros((4, 2)))])
    with raises(InvalidInputError, name="q"):
        Log([LogColumn("q", np.arange(4.0), np.zeros((4, 2)), ("a", "b", "c"))])


def write_messages(path, topics, schema=None):
    """Topics by name: messages at 0.5 s, 0.6 s, …"""
    with open(path, "wb") as file:
        writer = Writer(file)
        writer.start()
        data = json.dumps(schema or {"type": "object"}).encode()
        known = writer.register_schema("Any", "jsonschema", data)
        for name, messages in topics.items():
            channel = writer.register_channel(name, "json", known)
            for k, message in enumerate(messages):
                time = 500_000_000 + 100_000_000 * k
                writer.add_message(channel, time, json.dumps(message).encode(), time)
        writer.finish()
    return path


def test_messages_with_numbers_arrays_and_contracts(tmp_path):
    properties = {"torque": {"unit": "N·m", "axes": "b", "point": "hub"}, "x": 3}
    topics = {
        "/motor": [{"torque": 2.0 * k, "x": None, "on": "yes"} for k in range(3)],
        "/level": [{"value": 7.0 + k} for k in range(3)],
        "/pair": [{"value_0": k, "value_1": -k} for k in range(3)],
        "/arrays": [
            {"name": ["a", "b"], "q": [k, 2 * k], "odd": [k, k, k]} for k in range(3)
        ],
        "/words": [{"text": "a"}] * 3,
        "/differs": [{"q": [1, 2]}, {"q": [1, 2]}, {"p": 3}],
    }
    log = read_log(
        write_messages(tmp_path / "a.mcap", topics, {"properties": properties})
    )
    assert list(log.columns) == ["motor", "level", "pair", "arrays.q", "arrays.odd"]
    motor = log["motor"]
    assert motor.names == ("torque", "x")
    np.testing.assert_allclose(motor.time - motor.time[0], [0, 0.1, 0.2], atol=1e-9)
    np.testing.assert_array_equal(motor.component("torque"), [0, 2, 4])
    assert np.isnan(motor.component("x")).all()
    told = motor.contracts[0]
    assert (told.unit, told.axes, told.point) == ("N·m", "b", "hub")
    assert log["level"].names == ("level",)
    assert log["pair"].names == ()
    assert log["arrays.q"].names == ("a", "b")
    assert log["arrays.odd"].names == ()
    np.testing.assert_array_equal(log["arrays.q"].values, [[0, 0], [1, 2], [2, 4]])
    notes = "\n".join(log.notes)
    assert "/words: skipped, because it has no numbers." in notes
    assert "/differs: skipped, because its messages differ" in notes


def test_messages_of_worlds(tmp_path):
    topics = {
        f"/world_{w}/q": [{"value": 10 * w + k} for k in range(3)] for w in (2, 5)
    }
    path = write_messages(tmp_path / "a.mcap", topics | {"/clock": [{"value": 1}] * 3})
    np.testing.assert_array_equal(read_log(path)["q"].values[:, 0], [20, 21, 22])
    second = read_log(path, world=5)
    np.testing.assert_array_equal(second["q"].values[:, 0], [50, 51, 52])
    assert "clock" in second.columns
    with raises(InvalidInputError, name="world"):
        read_log(path, world=3)
    bare = write_messages(tmp_path / "b.mcap", {"/clock": [{"value": 1}] * 3})
    assert list(read_log(bare, world=3).columns) == ["clock"]  # of all worlds


def test_columns_of_a_log_keep_their_names(tmp_path):
    """One value without a name is that of its column; several are counted."""
    path, scene = tmp_path / "a.simrec", SceneCfg(
        entities={"cart": EntityCfg(model="cartpole")}
    )  # fmt: skip
    columns = {
        "one": lambda sim: sim.data.qpos[:, 1], "two": lambda sim: sim.data.qpos[:, :2],
        "cart.joint_pos": "cart.joint_pos", "time_again": "time",
    }  # fmt: skip
    sim = Simulation(scene, 2)
    with sim.record(path, quantities=columns):
        sim.step()
    write_foxglove(path, tmp_path / "a.mcap", worlds=[1])
    log = read_log(tmp_path / "a.mcap", world=1)
    assert log["one"].names == ("one",)
    assert log["two"].names == ()
    assert log["cart.joint_pos"].names == ("slider", "pole")
    with open(tmp_path / "a.mcap", "rb") as file:
        first = {
            channel.topic: set(json.loads(message.data))
            for _, channel, message in make_reader(file).iter_messages()
        }
    assert first["/world_1/one"] == {"timestamp", "value"}
    assert first["/world_1/two"] == {"timestamp", "value_0", "value_1"}
    assert first["/world_1/time_again"] == {"timestamp", "the simulation time [s]"}


def test_arrays_without_a_time_need_a_rate(tmp_path):
    with h5py.File(tmp_path / "log.h5", "w") as file:
        demo = file.create_group("data/demo_0")
        demo["actions"] = np.arange(8.0).reshape(4, 2)
        demo["obs/q"] = np.arange(4.0)
        demo["obs/text"] = np.array([b"a"] * 4)
        demo["obs/short"] = np.arange(3.0)
        demo["obs/q"].attrs["names"] = json.dumps(["hip", "knee"])  # of one component
        demo["obs/q"].attrs["unit"] = "rad"
    with raises(InvalidInputError, name="rate"):
        read_log(tmp_path / "log.h5")
    log = read_log(tmp_path / "log.h5", rate=20.0)
    (q,) = (column for name, column in log.columns.items() if name.endswith("q"))
    np.testing.assert_allclose(q.time, [0, 0.05, 0.1, 0.15])
    assert q.names == (q.name,)
    assert q.unit == "rad"
    np.testing.assert_array_equal(log["actions"].values, np.arange(8.0).reshape(4, 2))
    assert len([note for note in log.notes if "skipped" in note]) == 2


def test_lerobot_features_of_version_2(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    features = {
        "state": {"dtype": "float32", "names": {"motors": ["hip", "knee"], "x": 3}},
        "plain": {"dtype": "float32", "names": ["only"]},
        "wide": {"dtype": "float32", "names": ["one"]},
        "video": {"dtype": "video"},
    }
    info = {"features": features, "fps": 25, "total_episodes": 2}
    for folder in ("meta", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "meta/info.json").write_text(json.dumps(info))
    for part, frames in enumerate(([0, 1], [2])):
        columns = {
            "episode_index": [1] * len(frames), "frame_index": frames,
            "state": [[1.0 * k, -k] for k in frames],
            "plain": [5.0 + k for k in frames], "wide": [[k, k] for k in frames],
        }  # fmt: skip
        table = arrow.table(columns)
        parquet.write_table(table, tmp_path / f"data/part_{part}.parquet")
    log = read_log(tmp_path, episode=1)
    np.testing.assert_allclose(log["state"].time, [0, 0.04, 0.08])
    assert log["state"].names == ("hip", "knee")
    np.testing.assert_array_equal(log["state"].component("knee"), [0, -1, -2])
    assert log["plain"].names == ("only",)
    assert log["wide"].names == ()
    assert log.notes == ("video: skipped, because it is not a signal.",)
    with raises(InvalidInputError, file="test_lerobot_features_of_versi0"):
        read_log(tmp_path, episode=0)
