"""The data of a shared page: frames, thinned columns, marks, tables and the command."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.inside import set_fewest_samples, set_longest_text, set_most_samples
from tests.raised import raises
from tests.record.conftest import ARM, scene
from tests.view.test_shared_page import read_page

from simstate import (
    CameraCfg,
    EntityCfg,
    FileError,
    InvalidInputError,
    SceneCfg,
    Simulation,
)
from simstate.base.mujoco_version import installed_versions
from simstate.data.replay import recording_page
from simstate.data.replay.recording_page import share_recording
from simstate.integrate import RK4
from simstate.record import Recording

STEPS = 23


@pytest.fixture
def path(tmp_path):
    sim, path = Simulation(scene(), 6, seed=2), tmp_path / "my run.simrec"
    columns = {
        "bare": lambda sim: sim.data.qpos[:, :2],
        "none": lambda sim: sim.data.qpos[:, :0],
        "one": (lambda sim: sim.data.qvel[:, 1], "rad/s"),
        "arm.joint_pos": "arm.joint_pos",
    }  # fmt: skip
    with sim.record(path, quantities=columns, worlds=[5, 3, 1, 0, 4]):
        for k in range(STEPS):
            sim.data.ctrl[:] = torch.sin(torch.arange(6.0) + 0.4 * k)[:, None]
            if k % 4 == 2:
                sim.data.qvel[[1, 2, 3]] += 0.1
            sim.step()
    return path


@pytest.fixture
def page(path, tmp_path):
    def make(**options):
        out = tmp_path / "page.html"
        with Recording(path) as recording:
            size = share_recording(recording, out, **options)
        assert size == out.stat().st_size
        return read_page(out)[1:]

    return make


def test_frames_are_the_steps_nearest_to_a_rate(page):
    """23 steps of 4 ms: the first and the last are frames, and none is twice."""
    for fps, count in (
        (30.0, 4),
        (1 / 0.023, 5),
        (250.0, STEPS + 1),
        (1e4, STEPS + 1),
        (1e-3, 2),
    ):
        run, array = page(fps=fps)
        times = array(run["times"])
        assert (
            len(times)
            == count
            == len(array(run["scene"]["pos"]))
            / 3
            / (len(run["scene"]["worlds"]) * len(run["scene"]["bodies"]))
        )
        assert (times[0], times[-1]) == pytest.approx((0.0, 0.004 * STEPS))
        wanted = np.linspace(0.0, 0.004 * STEPS, count)
        assert np.abs(times - wanted).max() <= 0.0041
        assert (np.diff(times) > 0.0).all()


def test_a_page_has_at_most_a_number_of_frames(page, monkeypatch):
    monkeypatch.setattr(recording_page, "MOST_FRAMES", 7)
    assert page(fps=250.0)[0]["times"]["size"] == 7


def test_columns_are_those_that_have_numbers(page, path):
    run, array = page(worlds=[3, 4])
    columns = {column["name"]: column for column in run["columns"]}
    assert list(columns) == ["bare", "one", "arm.joint_pos"]
    assert columns["bare"]["names"] == ["[0]", "[1]"]
    assert columns["one"]["names"] == ["one"]
    assert columns["arm.joint_pos"]["names"] == ["shoulder", "elbow"]
    assert columns["one"]["unit"] == "rad/s"
    assert [column["left_out"] for column in columns.values()] == [0, 0, 0]
    assert [column["every"] for column in columns.values()] == [1, 1, 1]
    with Recording(path) as recording:
        for name, column in columns.items():
            values = array(column["values"]).reshape(2, -1, STEPS + 1)
            then = recording[name][:, [1, 4]].reshape(STEPS + 1, 2, -1)
            np.testing.assert_allclose(values, then.permute(1, 2, 0), rtol=1e-6)
            np.testing.assert_allclose(
                array(column["times"]), recording.elapsed, rtol=1e-6
            )


def test_pictures_are_no_curves(tmp_path):
    eye = CameraCfg(pos=(0, -1, 0.3), look_at=(0, 0, 0.3), width=8, height=6)
    arm = {"arm": EntityCfg(model=ARM.replace("KP", "3"))}
    sim = Simulation(SceneCfg(entities=arm, cameras={"eye": eye}), 2)
    with sim.record(tmp_path / "a.simrec", quantities=["camera/eye", "joint_pos"]):
        sim.step()
    with Recording(tmp_path / "a.simrec") as recording:
        share_recording(recording, tmp_path / "a.html", played_in=sim)
    run = read_page(tmp_path / "a.html")[1]
    assert [column["name"] for column in run["columns"]] == ["arm.joint_pos"]


def test_wide_columns_show_their_first_components(page, path, monkeypatch):
    monkeypatch.setattr(recording_page, "MOST_COMPONENTS", 1)
    run, array = page(worlds=[0])
    columns = {column["name"]: column for column in run["columns"]}
    assert [column["left_out"] for column in columns.values()] == [1, 0, 1]
    joints = columns["arm.joint_pos"]
    assert joints["names"] == ["arm.joint_pos"]
    assert len(joints["contracts"]) == 1
    with Recording(path) as recording:
        np.testing.assert_allclose(
            array(joints["values"]), recording["arm.joint_pos"][:, 3, 0], rtol=1e-6
        )


@pytest.mark.parametrize(
    ("fewest", "most", "values", "every"),
    [
        (24, 4000, 1, 1), (23, 4000, 1, 3), (12, 4000, 1, 4), (1, 4000, 10 * 12, 4),
        (1, 4000, 10 * 24, 1), (1, 6, 10**6, 8), (1, 24, 10**6, 1),
    ],
)  # fmt: skip
def test_samples_are_thinned_to_a_number(
    page, monkeypatch, fewest, most, values, every
):
    """24 samples of five components in two worlds, two values for each interval."""
    set_fewest_samples(monkeypatch, fewest)
    set_most_samples(monkeypatch, most)
    monkeypatch.setattr(recording_page, "MOST_VALUES", values)
    run, array = page(worlds=[0, 4])
    for column in run["columns"]:
        assert column["every"] == every
        count = 24 if every == 1 else 2 * math.ceil(24 / every)
        assert column["times"]["size"] == count
        assert column["values"]["size"] == 2 * count * len(column["names"])
        assert (np.diff(array(column["times"])) >= 0.0).all()


def test_marks_are_those_of_the_worlds_that_are_shown(page, monkeypatch):
    """Worlds 1 to 3 are written before the steps 2, 6, …; 2 was not recorded."""
    run, _ = page(worlds=[1, 4, 3])
    wanted = [
        [round(0.004 * step, 6), "write", world, "qvel was written"]
        for step in range(2, STEPS, 4)
        for world in (1, 3)
    ]
    assert run["marks"] == wanted
    assert run["left_out"] == 0
    monkeypatch.setattr(recording_page, "MOST_MARKS", 5)
    run, _ = page(worlds=[1, 4, 3])
    assert run["marks"] == wanted[:5]
    assert run["left_out"] == len(wanted) - 5


def test_the_first_worlds_are_shown(page):
    assert page()[0]["scene"]["worlds"] == [5, 3, 1, 0]
    assert page(worlds=(np.int64(4),))[0]["scene"]["worlds"] == [4]


def test_tables_state_where_a_page_comes_from(page, path):
    run, _ = page()
    rows = dict(run["tables"]["Run"])
    assert rows["file"] == run["title"] == "my run.simrec"
    assert rows["size"] == f"{path.stat().st_size:,} bytes"
    assert (rows["complete"], rows["kind"], rows["task"]) == ("yes", "sim", "none")
    assert (rows["steps"], rows["samples"]) == (str(STEPS), str(STEPS + 1))
    assert rows["recorded worlds"] == "5, 3, 1, 0, 4"
    assert (rows["num_envs"], rows["entities"]) == ("6", "arm, puck")
    assert run["about"] == (
        "arm, puck · 5 of 6 worlds recorded on native, seed 2, time step 0.004 s"
    )
    assert run["tables"]["Settings"] == []
    versions = dict(run["tables"]["Versions"])
    assert versions == {k: str(v) for k, v in installed_versions().items()}
    assert run["command"] == "simstate replay 'my run.simrec'"


def test_a_page_of_a_recording_that_was_cut_off_says_so(page, path):
    content = path.read_bytes()
    path.write_bytes(content[: content.index(b"\x03\x00\x00\x00end")])
    assert dict(page()[0]["tables"]["Run"])["complete"] == "cut off"


def test_versions_of_the_page_are_listed_where_they_differ(page, monkeypatch):
    here = installed_versions()
    monkeypatch.setattr(
        recording_page, "installed_versions", lambda: {**here, "numpy": "9.9"}
    )
    versions = dict(page()[0]["tables"]["Versions"])
    assert versions.pop("numpy (page)") == "9.9"
    assert versions["numpy"] == here["numpy"]
    assert not [name for name in versions if "page" in name]


def test_long_texts_are_cut(page, monkeypatch):
    set_longest_text(monkeypatch, 13)
    rows = dict(page()[0]["tables"]["Run"])
    assert rows["recorded worlds"] == "5, 3, 1, 0, 4"  # 13 characters
    set_longest_text(monkeypatch, 12)
    assert dict(page()[0]["tables"]["Run"])["recorded worlds"] == "5, 3, 1, 0,…"


def test_the_command_names_a_function_where_code_is_needed(tmp_path):
    arm = SceneCfg(entities={"arm": EntityCfg(model=ARM.replace("KP", "3"))})
    path, out = tmp_path / "a.simrec", tmp_path / "a.html"
    for change in ("none", "force", "integrator"):
        options = {"integrator": RK4()} if change == "integrator" else {}
        sims = [Simulation(arm, 2, **options) for _ in range(2)]
        for sim in sims if change == "force" else ():
            sim.add_force(lambda t, sim: None)
        with sims[0].record(path, fields=["qpos"]):
            sims[0].step()
        with Recording(path) as recording:
            share_recording(recording, out, played_in=sims[1])
        needed = change != "none"
        made = " --made-by FILE.py:FUNCTION" if needed else ""
        assert read_page(out)[1]["command"] == f"simstate replay a.simrec{made}"


def test_the_ending_of_a_page_and_its_folder(path, tmp_path):
    with Recording(path) as recording:
        for name in ("a.htm", "b.HTML"):
            share_recording(recording, tmp_path / name)
        with raises(InvalidInputError, file="a.txt"):
            share_recording(recording, tmp_path / "a.txt")
        with raises(FileError, file="a.html"):
            share_recording(recording, tmp_path / "none" / "a.html")
    assert {one.name for one in tmp_path.iterdir()} == {"a.htm", "b.HTML", path.name}


def test_progress_of_a_page(page):
    shares: list[float] = []
    page(fps=250.0, on_progress=shares.append)
    np.testing.assert_allclose(
        shares, [*(0.9 * np.arange(STEPS + 1) / STEPS), 1.0], atol=1e-12
    )
