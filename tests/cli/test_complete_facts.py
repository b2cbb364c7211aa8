"""All facts that commands print, against MuJoCo, the file or a count by hand."""

from __future__ import annotations

import json
import math
import re
import statistics
import time
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import placeholder_of, profile_table

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.cli import bench, main, new_task, options, run_tables
from simstate.cli.bench_worlds import BenchedWorlds
from simstate.cli.console import console, escaped, plain_warnings
from simstate.cli.element_facts import facts_about
from simstate.cli.inspect import fact_card, fact_table, summary
from simstate.cli.inspection import inspect_scene
from simstate.cli.model_scene import moving_worlds, scene_of
from simstate.cli.name_guess import meant
from simstate.cli.picture_options import FilmWriter, PictureOptions
from simstate.cli.plan import default_residual
from simstate.record import Recording
from simstate.train.checkpoint import check_unused, newest_run

RICH = """
<mujoco><compiler angle="radian"/><option timestep="0.004" gravity="0.1 0.2 -9"/>
<worldbody>
  <geom name="floor" type="plane" size="2 3 0.1" friction="0.7 0.02 0.003"/>
  <light name="lamp"/><camera name="eye"/>
  <body name="trunk" pos="0.1 0.2 0.9"><freejoint name="root"/>
    <inertial pos="0.01 0.02 0.03" mass="2.5" diaginertia="0.03 0.04 0.05"/>
    <geom name="box" type="box" size="0.3 0.2 0.1" pos="0.1 0 0.05" contype="3"
      conaffinity="5"/>
    <site name="imu" pos="0.02 0.03 0.04" quat="0.5 0.5 0.5 0.5"/>
    <body name="leg" pos="0.3 0.1 0">
      <joint name="hip" axis="0 1 0" range="-0.6 1.2" limited="true" damping="0.3"
        armature="0.02" frictionloss="0.1"/>
      <geom name="leg" type="capsule" size="0.02 0.2" mass="0.7"/>
      <body name="foot" pos="0 0 -0.4">
        <joint name="push" type="slide" axis="0 0 1" damping="0.7" armature="0.4"
          frictionloss="0.2"/>
        <geom name="foot" size="0.05" mass="0.2"/>
        <body name="head" pos="0 0 0.1"><joint name="neck" type="ball"/>
          <geom name="head" size="0.06" mass="0.1"/></body>
      </body>
    </body>
  </body>
  <body name="target" mocap="true" pos="1 1 1"/>
</worldbody>
<tendon><fixed name="rope"><joint joint="hip" coef="2"/><joint joint="push" coef="3"/>
</fixed></tendon>
<equality><joint name="tie" joint1="hip" joint2="push" active="false"/></equality>
<actuator>
  <motor name="drive" joint="hip" gear="3" ctrlrange="-2 3" ctrllimited="true"/>
  <position name="pull" tendon="rope" kp="4" forcerange="-5 6" forcelimited="true"/>
  <general name="fan" site="imu" gear="0 0 1 0 0 0"/>
  <adhesion name="stick" body="foot" ctrlrange="0 1"/>
  <intvelocity name="slow" joint="push" kp="3" actrange="-1 2"/>
</actuator>
<sensor><gyro name="gyro" site="imu"/><jointpos name="angle" joint="hip"/></sensor>
<keyframe><key name="home" qpos="0 0 1 1 0 0 0 0.2 0.1 1 0 0 0"/></keyframe>
</mujoco>
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("model") / "rich.xml"
    found.write_text(RICH)
    return found


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(RICH)


def six(values) -> list[float]:
    return [float(f"{x:.6g}") for x in values]


def test_facts_about_each_element(model):
    (trunk,) = facts_about(model, "trunk")
    assert trunk == {
        "kind": "body", "name": "trunk", "id": 1, "parent": "world", "mass [kg]": 2.5,
        "COM, link's axes [m]": [0.01, 0.02, 0.03],
        "principal inertia [kg·m²]": six(model.body_inertia[1]),
        "position, parent's axes [m]": [0.1, 0.2, 0.9], "joints": ["root"],
    }  # fmt: skip
    body, geom = facts_about(model, "leg")
    assert (body["kind"], body["joints"], body["parent"]) == ("body", ["hip"], "trunk")
    assert (geom["type"], geom["body"]) == ("capsule", "leg")
    (target,) = facts_about(model, "target")
    assert target["joints"] == []
    (box,) = facts_about(model, "box")
    assert box["contype, conaffinity"] == [3, 5]
    assert box["size [m]"] == [0.3, 0.2, 0.1]
    assert box["position, body's axes [m]"] == six(model.geom("box").pos)
    (floor,) = facts_about(model, "floor")
    (friction,) = [v for k, v in floor.items() if "friction" in k]
    assert friction == [0.7, 0.02, 0.003]
    (site,) = facts_about(model, "imu")
    assert site["position, body's axes [m]"] == [0.02, 0.03, 0.04]
    assert site["orientation, wxyz"] == [0.5, 0.5, 0.5, 0.5]
    for kind, name in (("camera", "eye"), ("light", "lamp"), ("equality", "tie"),
                       ("tendon", "rope"), ("key", "home")):  # fmt: skip
        assert facts_about(model, name) == [{"kind": kind, "name": name, "id": 0}]


def test_facts_about_joints(model):
    (root,) = facts_about(model, "root")
    assert (root["qpos"], root["qvel"], root["type"]) == ("0:7", "0:6", "free")
    assert not [key for key in root if "damping" in key or "axis" in key]
    (hip,) = facts_about(model, "hip")
    assert hip == {
        "kind": "joint", "name": "hip", "id": 1, "type": "hinge", "body": "leg",
        "qpos": "7:8", "qvel": "6:7", "axis, body's axes": [0.0, 1.0, 0.0],
        "range [rad]": [-0.6, 1.2], "damping [N·m·s/rad]": 0.3,
        "armature [kg·m²]": 0.02, "dry friction [N·m]": 0.1,
    }  # fmt: skip
    (push,) = facts_about(model, "push")
    assert push["range [m]"] == "free"
    assert push["damping [N·s/m]"] == 0.7
    assert push["armature [kg]"] == 0.4
    assert push["dry friction [N]"] == 0.2
    (neck,) = facts_about(model, "neck")
    assert (neck["qpos"], neck["qvel"], neck["type"]) == ("9:13", "8:11", "ball")


def test_facts_about_actuators_and_sensors(model):
    wanted = {
        "drive": ("joint", "joint hip", [-2.0, 3.0], "free"),
        "pull": ("tendon", "tendon rope", "free", [-5.0, 6.0]),
        "fan": ("site", "site imu", "free", "free"),
        "stick": ("body", "body foot", [0.0, 1.0], "free"),
        "slow": ("joint", "joint push", "free", "free"),
    }
    for name, (kind, on, control, force) in wanted.items():
        (one,) = facts_about(model, name)
        assert (one["transmission"], one["acts on"]) == (kind, on)
        assert (one["control range"], one["force range"]) == (control, force)
    (gyro,) = facts_about(model, "gyro")
    assert (gyro["type"], gyro["sensordata"]) == ("gyro", "0:3")
    (angle,) = facts_about(model, "angle")
    assert (angle["type"], angle["sensordata"]) == ("jointpos", "3:4")


def test_facts_of_a_whole_model(path, model):
    found = inspect_scene(scene_of(str(path)))
    assert found["base"] == "free"
    assert found["mass"] == pytest.approx(model.body_mass.sum())
    sizes = {k: v for k, v in found["sizes"].items() if v}
    assert sizes == {
        "links": 5, "1-DoF joints": 2, "ball joints": 1, "free joints": 1,
        "actuators": 5, "controls": 5, "activations": 1, "sensors": 2, "geoms": 5,
        "sites": 1, "tendons": 1, "mocap bodies": 1, "equalities": 1,
    }  # fmt: skip
    assert found["options"] == {
        "timestep": 0.004, "integrator": "euler", "gravity": [0.1, 0.2, -9.0]
    }  # fmt: skip
    links = {link["link"]: link for link in found["links"]}
    assert links["foot"]["parent"] == "leg"
    assert links["trunk"]["parent"] == "world"
    assert links["trunk"]["com"] == pytest.approx([0.01, 0.02, 0.03])
    assert links["leg"]["mass"] == pytest.approx(0.7)
    joints = {joint["joint"]: joint for joint in found["joints"]}
    assert [j["type"] for j in found["joints"]] == ["free", "hinge", "slide", "ball"]
    start = {f["field"]: f["columns"] for f in found["state"]}
    where = {"root": ((0, 7), (0, 6)), "hip": ((7, 8), (6, 7)),
             "push": ((8, 9), (7, 8)), "neck": ((9, 13), (8, 11))}  # fmt: skip
    for name, (pos, vel) in where.items():
        first, second = start["qpos"][0], start["qvel"][0]
        assert joints[name]["position_columns"] == [first + k for k in pos]
        assert joints[name]["velocity_columns"] == [second + k for k in vel]
    assert joints["hip"]["range"] == [-0.6, 1.2]
    assert joints["push"]["range"] is None
    assert [joints[n]["unit"] for n in ("hip", "push")] == ["rad", "m"]
    assert joints["neck"]["link"] == "head"
    controls = {one["control"]: one for one in found["controls"]}
    assert controls["drive"]["range"] == [-2.0, 3.0]
    assert controls["pull"]["range"] is None
    assert controls["fan"]["columns"] == [start["ctrl"][0] + 2, start["ctrl"][0] + 3]
    assert found["sites"] == ["imu"]
    assert found["tendons"] == ["rope"]
    assert found["equalities"] == ["tie"]
    assert found["keyframes"] == ["home"]
    assert found["cameras"] == ["eye"]
    assert [s["columns"] for s in found["sensors"]] == [[0, 3], [3, 4]]
    for field in found["state"]:
        first, last = field["columns"]
        assert field["count"] == last - first > 0
    assert found["nstate"] == max(f["columns"][1] for f in found["state"])
    assert found["nstate"] == mujoco.mj_stateSize(
        model, mujoco.mjtState.mjSTATE_INTEGRATION.value
    )
    text = summary("rich", found)
    assert "rich: free base" in text
    assert f"{found['nstate']} values per world" in text
    assert f"{found['nstate'] / 128:.1f} KiB" in text
    assert "gravity (0.1, 0.2, -9)" in text
    assert "keyframes  home" in text
    assert "none" not in summary("x", {**found, "base": "none"})


def test_cells_of_tables():
    fact = {"kind": "joint", "name": "a", "columns": [3, 4], "other_columns": [3, 7],
            "none": None, "number": 1.23456789, "many": [1.0, 2.5], "empty": [],
            "texts": ["x", "y"], "count": 0, "text": ""}  # fmt: skip
    lines = fact_card(fact).splitlines()
    assert lines[0] == "joint a"
    cells = dict(re.split(r"\s{2,}", line.strip()) for line in lines[1:])
    assert cells == {
        "columns": "3", "other_columns": "3:7", "none": "–", "number": "1.235",
        "many": "1, 2.5", "empty": "–", "texts": "x, y", "count": "0", "text": "–",
    }  # fmt: skip
    widths = {line.index(cell) for line, cell in zip(lines[1:], cells.values(),
                                                     strict=True)}  # fmt: skip
    assert len(widths) == 1  # they are aligned
    table = fact_table("title", [fact, fact])
    assert table.row_count == 2
    assert [c.header for c in table.columns][3] == "other columns"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.tensor(1.23456), "1.235"),
        (torch.tensor(float("nan")), "–"),
        (torch.arange(7.0), "0, 1, 2, 3, 4, 5, 6"),
        (torch.arange(8.0), "0, 1, 2, 3, 4, 5, 6, … (8)"),
        (torch.arange(6.0).reshape(3, 2), "0, 1, … (3×2)"),
    ],
)
def test_values_of_tables(value, text):
    assert run_tables.format_value(value) == text


def test_tables_of_a_world():
    sim = Simulation(SceneCfg(entities={"it": EntityCfg(model="cartpole")}), 3)
    sim.data.qpos[:] = torch.tensor([[1, 2], [3, 4], [5, 6]]) / 7
    sim.data.time[:] = torch.tensor([0.1, 0.2, 0.3])
    entity = sim.scene["it"]
    table = run_tables.joint_table(entity, 1)
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == ["slider", "pole"]
    assert cells[1] == [f"{3 / 7:.4g}", f"{4 / 7:.4g}"]
    assert "t = 0.2 s" in run_tables.quantity_table(entity, 1).title
    values = run_tables.quantity_values(entity, 2)
    assert (
        not {"root_link_pos_w", "joint_pos"} & set(values) or "joint_pos" not in values
    )
    np.testing.assert_allclose(
        values["body_link_pos_w"], entity.data.body_link_pos_w[2].numpy()
    )
    assert "body_link_pose_w" not in values


# Benchmarks.


def test_rates_are_those_of_the_rounds():
    seconds = [0.5, 0.25, 1.0, 0.2, 0.4]
    rate = bench.Rate.of(100, seconds)
    first, middle, third = statistics.quantiles([100 / s for s in seconds], n=4)
    assert (rate.low, rate.median, rate.high) == (first, middle, third)
    assert bench.Rate(1000.0, 900.0, 1300.0).text == "1,000 ± 20 %"
    one = bench.Result(3, bench.Rate(30.0, 1, 1), bench.Rate(12.0, 1, 1), 5)
    assert one.ratio == 2.5


def test_calls_are_timed_in_turn(monkeypatch):
    now, order = [0.0], []
    monkeypatch.setattr(bench.time, "perf_counter", lambda: now[0])

    def call(name: str, seconds: float):
        def prepare() -> None:
            now[0] += 100.0 * 0.001
            order.append(f"prepare {name}")

        def work() -> None:
            now[0] += seconds
            order.append(name)

        return prepare, work

    reported: list[float] = []
    calls = {"a": call("a", 0.5), "b": call("b", 2.0)}
    times = bench.take_turns(calls, 20.0, reported.append)
    rounds = len(times["a"])
    assert rounds == 8  # of 2.7 s each, until 20 s have passed
    np.testing.assert_allclose(times["a"], [0.5] * rounds)
    np.testing.assert_allclose(times["b"], [2.0] * rounds)
    names = [word for word in order if " " not in word]
    assert names[:8] == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert order[0::2] == [f"prepare {word}" for word in order[1::2]]
    np.testing.assert_allclose(reported[:2], [2.7 / 20, 5.4 / 20])
    few = bench.take_turns(calls, 0.001, reported.append)
    assert len(few["a"]) == 5  # at least


def test_benched_worlds_start_again_and_their_loop_is_the_same():
    what = BenchedWorlds("cartpole", "native", "cpu", 0.3, 4)
    here = what.made(70)
    loop = here.loop
    assert len(loop.datas) == 64  # at most
    here.run()
    here.rewind()
    here.run()
    saved = here.save()
    loop.rewind()
    loop.run()
    other = what.made(70)
    other.load(saved)
    sim = moving_worlds(scene_of("cartpole"), 70, "native", "cpu", 0.3, 4)
    sim.step(20)
    for k in (0, 63):
        np.testing.assert_array_equal(loop.datas[k].qpos, sim.data.qpos[k].numpy())
    part = moving_worlds(scene_of("cartpole"), 2, "native", "cpu", 0.3, 4, 5)
    whole = moving_worlds(scene_of("cartpole"), 7, "native", "cpu", 0.3, 4)
    assert torch.equal(part.data.qvel, whole.data.qvel[5:])


# Recordings.


def test_facts_of_a_recording(tmp_path, capsys):
    sim = Simulation(SceneCfg(entities={"a": EntityCfg(model="cartpole")}), 4, seed=9)
    path = tmp_path / "run.simrec"
    with sim.record(path, quantities=["a.joint_pos"], worlds=[3, 1],
                    snapshot_every=0.02):  # fmt: skip
        sim.step()
        for _ in range(9):
            sim.step()
    assert main(["info", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    with Recording(path) as recording:
        assert facts["samples"] == len(recording) == 11  # with the start
        assert facts["steps"] == 10
        assert facts["blocks"] == len(recording.blocks)
        assert facts["snapshots before steps"] == recording.snapshot_steps
    assert facts["worlds"] == [3, 1]
    assert facts["whole"] is True
    assert facts["missing"] == "nothing"
    assert facts["time [s]"] == pytest.approx([0.0, 0.05])
    assert "4 worlds on native, seed 9, time step 0.005 s" in facts["recording of"]
    assert facts["columns"]["a.joint_pos"]["shape"] == [2]
    assert not {"columns", "worlds"} & set(facts["header"])
    assert main(["info", str(path)]) == 0
    text = capsys.readouterr().out
    assert "samples: 11" in text
    assert "worlds: 3, 1" in text
    assert "time [s]: 0, 0.05" in text


def test_long_lists_are_cut(tmp_path, capsys):
    sim = Simulation(SceneCfg(entities={"a": EntityCfg(model="cartpole")}), 14)
    for count, ending in ((12, "11"), (13, "11 … (13)")):
        path = tmp_path / f"{count}.simrec"
        with sim.record(path, worlds=list(range(count))):
            sim.step()
        assert main(["info", str(path)]) == 0
        (line,) = [x for x in capsys.readouterr().out.splitlines() if "worlds:" in x]
        assert line.endswith(ending)


# Films.


class Frames:
    """Keeps the frames of a film."""

    def __init__(self, *_: object) -> None:
        self.frames: list[int] = []
        made.append(self)

    def add(self, picture: int) -> None:
        self.frames.append(picture)

    def close(self) -> None:
        self.frames.append(-1)


made: list[Frames] = []


def test_frames_of_a_film_are_due_at_their_times(monkeypatch, tmp_path):
    monkeypatch.setattr("simstate.train.video.VideoFile", Frames)
    drawn = iter(range(100))
    film = FilmWriter(lambda: next(drawn), tmp_path / "a.gif", 10.0)
    for elapsed in (0.05, 0.1, 0.11, 0.4, 0.4, 0.401):
        film.add(elapsed)
    film.close()
    # 0 from 0 s, 1 from 0.1 s, 2 twice until 0.4 s, 3 after it.
    assert made[-1].frames == [0, 1, 2, 2, 3, -1]


def test_a_film_has_a_frame_and_a_picture_may_be_transparent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for wrong in (
        PictureOptions(picture=Path("a.jpg")), PictureOptions(transparent=True),
        PictureOptions(film=Path("a.png")), PictureOptions(film=Path("none/a.gif")),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            wrong.check()
    PictureOptions(picture=Path("a.PNG"), transparent=True).check()
    args = ["run", "arm", "--envs", "2", "--no-check", "--size", "32", "24"]
    assert main([*args, "--seconds", "0.03", "--film", "a.gif"]) == 1
    short = [*args, "--seconds", "0.04", "--film", "a.gif", "--renderer", "software"]
    assert main(short) == 0


def test_worlds_that_are_drawn():
    course = type("Course", (), {})()
    course.worlds = type("Worlds", (), {"num_envs": 200})()
    assert PictureOptions().drawn_worlds(course) == 9
    assert PictureOptions(sheet=True).drawn_worlds(course) == 100
    course.worlds.num_envs = 4
    assert PictureOptions(sheet=True).drawn_worlds(course) == 4


# Names and options.


def raised(code: str) -> str:
    """The suggestion for the error of some code."""
    try:
        exec(compile(code, "user.py", "exec"), {"velocity": 1, "make": make})
    except Exception as error:
        return meant(error)
    raise AssertionError("no error")


def make(height: float = 1.0) -> None:
    """Takes one argument."""
    del height


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("velocty", "velocity"), ("import math; math.sqr(2)", "sqrt"),
        ("from math import sqr", "sqrt"), ("make(heigth=2)", "height"),
        ("prnt(3)", "print"),
    ],
)  # fmt: skip
def test_unknown_names_are_guessed(code, name):
    assert repr(name) in raised(code)


@pytest.mark.parametrize("code", ["qqqqqqq", "1 / 0", "make(1, 2, 3)", "''.zzzzzz"])
def test_nothing_is_guessed_otherwise(code):
    assert raised(code) == ""


def test_placeholders_of_settings():
    found = {
        int: "N", float: "VALUE", str: "TEXT", Path: "PATH", bool: None,
        tuple[int, ...]: "N ...", tuple[int, float]: "N VALUE",
        float | None: "VALUE", int | str: "N|TEXT", bool | None: None,
        tuple[bool, int]: "VALUE N",
    }  # fmt: skip
    for hint, text in found.items():
        assert placeholder_of(hint) == text


def test_folders_are_checked_from_the_first_that_exists(tmp_path):
    options.check_folder("--out", None)
    options.check_folder("--out", tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    for wrong in (tmp_path / "file", tmp_path / "file" / "b"):
        with pytest.raises(ValueError):
            options.check_folder("--out", wrong)
    options.check_writable("--out", tmp_path / "file")
    for wrong in (tmp_path, tmp_path / "a" / "b"):
        with pytest.raises(ValueError):
            options.check_writable("--out", wrong)


def test_a_folder_of_a_run_is_not_written_over(tmp_path):
    check_unused(tmp_path)
    (tmp_path / "other.npz").touch()
    check_unused(tmp_path)
    (tmp_path / "model_3.npz").touch()
    with pytest.raises(ValueError):
        check_unused(tmp_path)


def test_a_warning_is_printed_once(capsys):
    import warnings

    with plain_warnings():
        for text in ("one [x]", "one [x]", "two"):
            warnings.warn(text, stacklevel=1)
    assert capsys.readouterr().err.splitlines() == ["warning: one [x]", "warning: two"]
    assert escaped("a[b] [c]") == r"a\[b] \[c]"
    assert console().width == 120


# A cost without one.


def test_the_residual_of_a_model_is_its_distance_from_the_default():
    robot = {"robot": EntityCfg(model="quadruped")}
    sim = Simulation(SceneCfg(entities=robot), 2)
    generator = torch.Generator().manual_seed(0)
    sim.data.qvel[:] = torch.randn(2, sim.model.nv, generator=generator)
    quat = torch.randn(2, 4, generator=generator).double()
    sim.data.qpos[:, 3:7] = quat / quat.norm(dim=1, keepdim=True)
    sim.data.qpos[:, :3] += 0.3
    sim.data.qpos[:, 7:] += 0.1 * torch.arange(12)
    sim.forward()
    found = default_residual(sim).numpy()
    entity = sim.scene["robot"]
    default = entity.data.default_root_state.numpy()
    for w in range(2):
        qpos = sim.data.qpos[w].numpy()
        turned = np.zeros(4)
        back = np.zeros(4)
        mujoco.mju_negQuat(back, default[w, 3:7].astype(float))
        mujoco.mju_mulQuat(turned, back, qpos[3:7])
        joints = qpos[7:] - entity.data.default_joint_pos[w].numpy()
        speed, moved = 0.1 * sim.data.qvel[w].numpy(), qpos[:3] - default[w, :3]
        wanted = np.concatenate([joints, speed, moved, 2 * turned[1:]])
        np.testing.assert_allclose(found[w], wanted, atol=1e-9)


# New tasks.


JOINTS_ALONE = """
<mujoco><option timestep="0.004"/><worldbody>
  <body><joint name="a" axis="0 1 0"/><geom size="0.1"/>
    <body pos="0.3 0 0"><joint name="b" axis="0 1 0"/><geom size="0.1"/></body></body>
</worldbody></mujoco>
"""


@pytest.mark.parametrize(
    ("model", "class_name"),
    [
        ("quadruped", "JointPositionActionCfg"), ("cartpole", "ControlActionCfg"),
        ("alone.xml", "JointEffortActionCfg"),
    ],
)  # fmt: skip
def test_a_new_task_has_what_its_model_needs(model, class_name, tmp_path, monkeypatch):
    from simstate.env import Env, tasks

    monkeypatch.chdir(tmp_path)
    Path("alone.xml").write_text(JOINTS_ALONE)
    answer = new_task.NewTaskCommand(Path("mine.py"), model).execute()
    assert answer.facts == {"file": "mine.py"}
    text = Path("mine.py").read_text()
    assert f"{class_name}(" in text
    assert ("def forward(" in text) is (model == "quadruped")
    assert ("def stillness(" in text) is (model != "quadruped")
    assert ("MotorActuatorCfg(" in text) is (model == "alone.xml")
    cfg = tasks.make_cfg("mine.py")
    env = Env(cfg, 2)
    assert env.sim.timestep * cfg.decimation == pytest.approx(0.02, rel=0.3)
    assert cfg.decimation == max(1, round(0.02 / env.sim.timestep))
    floats = env.scene["robot"].index.base == "free"
    assert ("low" in cfg.terminations) is floats
    if floats:
        height = float(env.scene["robot"].data.default_root_state[0, 2])
        stated = cfg.terminations["low"].params["height"]
        assert stated == float(f"{0.4 * height:.3g}")
    names = list(cfg.observations["policy"].terms)
    assert ("joint_pos" in names) is (env.scene["robot"].num_joints > 0)
    assert ("height" in names) is floats
    env.step(torch.zeros(2, env.action_dim))


def test_core_seconds_are_listed_with_their_sum():
    table = profile_table({"physics": 3.0, "learning": 1.0})
    cells = [list(column.cells) for column in table.columns]
    assert cells == [
        ["physics", "learning", "all"], ["3.0", "1.0", "4.0"], ["75", "25", "100"]
    ]  # fmt: skip


def test_the_newest_run_is_the_one_written_last(tmp_path):
    import os

    for k, name in enumerate(("b", "a", "c")):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "model_1.npz"
        file.touch()
        os.utime(file, (1000 + (5, 9, 7)[k], 1000 + (5, 9, 7)[k]))
    assert newest_run(tmp_path).name == "a"
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError):
        newest_run(tmp_path / "empty")


def test_times_of_a_run(tmp_path, capsys):
    start = time.perf_counter()
    args = ["run", "cartpole", "--envs", "3", "--seconds", "0.1", "--no-check"]
    assert main([*args, "--json"]) == 0
    spent = time.perf_counter() - start
    found = json.loads(capsys.readouterr().out)
    assert found["steps"] == 20
    assert 0.0 < found["elapsed_s"] < spent
    rate = 20 * 3 / found["elapsed_s"]
    assert found["world_steps_per_second"] == pytest.approx(rate)
    assert found["bare_mujoco_steps_per_second"] > 1000.0
    assert math.isclose(found["simulated_s"], 0.1)
    assert found["finished"] is True
    assert found["integrator"] is None
    assert found["written"] == []
    task = ["run", "Cartpole-Balance", "--envs", "2", "--seconds", "0.1", "--json"]
    assert main(task) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bare_mujoco_steps_per_second"] is None
    assert found["simulated_s"] == pytest.approx(0.1, rel=0.3)


def test_runs_of_a_sweep_have_folders_and_a_table(tmp_path, monkeypatch):
    """With a training that only logs its reward."""
    from simstate.cli import sweep
    from simstate.cli.console import PlainConsole
    from simstate.train.run_cfg import RunCfg

    monkeypatch.chdir(tmp_path)
    made: list[tuple[int, Path]] = []

    class Run:
        """Stands for a TrainingRun."""

        def __init__(self, cfg, folder):
            self.cfg, self.folder = cfg, folder
            made.append((cfg.seed, folder))

        @staticmethod
        def resume(folder, task):
            made.append((-1, folder))
            return type("Run", (), {"folder": folder, "cfg": None})()

    class Command:
        """Stands for a TrainCommand."""

        seeds, seed, grid, run_dir, resume = (4, 2), None, (), None, False

        def run_cfg(self):
            return RunCfg.for_task("Cartpole-Balance")

        def train(self, run, out):
            run.folder.mkdir(parents=True, exist_ok=True)
            (run.folder / "model_1.npz").touch()
            reward = float(len(made))
            line = {"iteration": 1, "Train/mean_reward": reward,
                    "Train/mean_episode_length": 10.0 * reward}  # fmt: skip
            (run.folder / "progress.jsonl").write_text(json.dumps(line) + "\n")
            return 0

    monkeypatch.setattr("simstate.train.training_run.TrainingRun", Run)
    command = Command()
    out = PlainConsole(file=(tmp_path / "out.txt").open("w+"), width=120)
    assert sweep.sweep(command, out) == 0
    assert [seed for seed, _ in made] == [4, 2]
    folder = made[0][1].parent
    assert folder.parent == Path("runs") / "Cartpole-Balance"
    assert folder.name.startswith("sweep_")
    out.file.seek(0)
    text = out.file.read()
    assert "Run 1 of 2: seed_4" in text
    assert "Run 2 of 2: seed_2" in text
    assert re.search(r"all +2 +1.50 ± 0.71 +15.00 ± 7.07 +2.00", text)
    assert (folder / "summary.png").stat().st_size > 1000
    command.run_dir = folder
    with pytest.raises(ValueError):  # they are there already
        sweep.sweep(command, out)
    command.resume = True
    assert sweep.sweep(command, out) == 0
    assert [seed for seed, _ in made[2:]] == [-1, -1]
    command.train = lambda run, out: 130
    assert sweep.sweep(command, out) == 130


def test_states_of_simulators_are_compared(tmp_path, capsys):
    from simstate.simulators.state_file import save_states

    sim = Simulation(SceneCfg(entities={"a": EntityCfg(model="cartpole")}), 2)
    save_states(sim.get_states(mode="tensor"), tmp_path / "a.npz", "drake")
    sim.data.qpos[1, 0] += 0.25
    save_states(sim.get_states(mode="tensor"), tmp_path / "b.npz")
    args = ["diff", str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), "--json"]
    assert main(args) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["notes"] == ["From drake on the left, unknown on the right."]
    assert found["max_error"] == pytest.approx(0.25)
    assert {one["world"] for one in found["differences"]} == {1}
    assert main([*args, "--tolerance", "0.3"]) == 0
