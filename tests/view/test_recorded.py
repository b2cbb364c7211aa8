"""A recording in the viewer: its timeline, its marks, its plots."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from PIL import Image
from tests.inside import actions_of, field_of, is_closed, kept_steps
from tests.raised import raises
from tests.record.conftest import drive, scene
from tests.view.client import Client
from tests.view.scenes import host, run_until, slow_down
from tests.view.test_viewer import WILD

from simstate import EntityCfg, InvalidInputError, SceneCfg, Simulation
from simstate.base.errors import RecordingError
from simstate.cli import main
from simstate.data.replay.recorded_course import RecordedCourse
from simstate.env import Env, tasks
from simstate.record import Recording
from simstate.view import start_viewer
from simstate.view.viewer import Viewer


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Steps of all kinds, with qpos after each of them."""
    path = tmp_path_factory.mktemp("recorded") / "run.simrec"
    sim = Simulation(scene(), 4, seed=3, first_world=20)
    generator = torch.Generator().manual_seed(0)
    drive(sim, 5, generator)
    with sim.record(path, fields=["qpos", "qvel"], worlds=[3, 1], snapshot_every=0.1):
        drive(sim, 20, generator)
        sim.expand("body_mass")[2] *= 1.3
        drive(sim, 20, generator)
    return path


@pytest.fixture
def viewer(path: Path) -> Iterator[Viewer]:
    with (
        RecordedCourse.open(path) as course,
        start_viewer(course, "127.0.0.1", 0, None, None, False) as viewer,
    ):
        yield viewer


def test_the_worlds_are_where_they_were_at_every_step(path: Path) -> None:
    course = RecordedCourse.open(path)
    with Recording(path) as recording:
        qpos, counts = host(recording["qpos"]), host(recording["step"])
        assert course.timeline is not None
        assert course.timeline.num_steps == recording.num_steps == 40
        for step in (40, 0, 17, 18, 3, 31, 30, 16, 40, 25):
            course.go_to(step)
            now = host(field_of(course.worlds, "qpos"))[[3, 1]]
            np.testing.assert_array_equal(now, qpos[counts == step][0])
        course.go_to(40)
        with raises(InvalidInputError, name="end"):
            course.advance()
        with raises(InvalidInputError, name="restore"):
            course.restore(course.snapshot())


def test_few_states_are_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simstate.data.replay.recorded_course.MOST_KEPT", 5)
    course = RecordedCourse.open(path)
    for _ in range(40):
        course.advance()
    assert sorted(kept_steps(course)) == [0, 16, 32]


def test_marks_tell_resets_and_writes_and_when(path: Path) -> None:
    timeline = RecordedCourse.open(path).timeline
    assert timeline is not None
    # `drive` resets the last world where k % 7 = 3, and speeds up world 1 at k % 5 = 2.
    resets = [m.step for m in timeline.of_world(3) if m.kind == "reset"]
    assert resets == [3, 10, 17, 23, 30, 37]
    writes = [m.step for m in timeline.of_world(1) if m.text.startswith("qvel")]
    assert writes == [2, 7, 12, 17, 22, 27, 32, 37]
    assert not [m for m in timeline.of_world(1) if m.kind == "reset"]
    lengths = [0.004 * (1 + k % 3) for k in (*range(20), *range(20))]
    np.testing.assert_allclose(timeline.times, [0, *np.cumsum(lengths)], atol=1e-12)
    assert timeline.step_at(timeline.times[7] + 1e-4) == 7
    ahead = timeline.next_mark(4, 3, True)
    assert ahead is not None
    assert (ahead.step, ahead.kind) == (10, "reset")
    before = timeline.next_mark(10, 3, False)
    assert before is not None
    assert before.step == 3


def test_a_client_scrubs_and_plays(path: Path, viewer: Viewer) -> None:
    client = Client(viewer.url)
    run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
    course = viewer.session.course
    client.set("at step", 33)
    run_until(viewer, lambda: course.at == 33, "the scrub")
    with Recording(path) as recording:
        k = int((recording["step"] == 33).nonzero()[0])
        there = host(field_of(course.worlds, "qpos"))[[3, 1]]
        np.testing.assert_array_equal(there, host(recording["qpos"][k]))
    client.set("back", True)
    run_until(viewer, lambda: course.at == 32, "the step back")
    client.set("world", 3)
    client.set("to the next mark", True)
    run_until(viewer, lambda: course.at == 37, "the mark")
    shown = viewer.panel.timeline
    assert shown is not None
    run_until(viewer, lambda: "**↺ " in shown.list.content, "the list of marks")
    client.set("play", True)
    run_until(viewer, lambda: course.at == 40, "the end")
    run_until(viewer, lambda: "ends here" in viewer.session.problem, "the pause")
    client.set("play", False)
    client.set("play", True)
    run_until(viewer, lambda: course.at < 40, "playing from the begin")
    labels = {(m.get("props") or {}).get("label") for m in client.messages}
    assert not labels & {"reset all worlds", "write", "arm/elbow"}
    client.close()


def test_it_plays_in_short_runs_that_drawing_takes_up(
    viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_down(viewer, 0.05, monkeypatch)
    viewer.session.play(True)
    times = [viewer.session.course.now(0)]
    for _ in range(4):
        viewer.run(0.02)
        times.append(viewer.session.course.now(0))
    # What was drawn for 0.05 s is made up for in the next run, to a whole step.
    np.testing.assert_allclose(np.diff(times)[1:], 0.05, atol=0.0121)


def test_frames_take_a_small_share_of_a_scripts_time(
    viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawing takes 50 ms here; a twentieth of the time may be spent on it."""
    slow_down(viewer, 0.05, monkeypatch)
    clock = sys.modules["simstate.view.viewer"].time
    viewer.session.play(True)
    viewer.sync()
    before, spent = clock.now, 0.0
    for _ in range(500):
        clock.sleep(0.02)
        now = clock.now
        viewer.sync()
        spent += clock.now - now
    assert 0.025 < spent / (clock.now - before) < 0.05


def test_it_pauses_at_the_end_and_stays_there(
    viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_down(viewer, 0.05, monkeypatch)
    session, course = viewer.session, viewer.session.course
    session.go_to(37)
    session.play(True)
    for _ in range(4):
        viewer.run(0.02)
    assert (course.at, session.playing) == (40, False)
    assert session.problem == "The recording ends here."
    for _ in range(3):
        session.play(True)
        viewer.run(0.02)
        assert (course.at, session.playing) == (40, False)
    actions_of(viewer).play(False)
    assert course.at == 40
    actions_of(viewer).play(True)
    assert (course.at, session.playing, session.problem) == (0, True, "")


def test_the_file_is_closed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Recording] = []

    class Noted(Recording):
        def __init__(self, path: str | Path) -> None:
            super().__init__(path)
            opened.append(self)

    def are_closed() -> list[bool]:
        found = [is_closed(recording) for recording in opened]
        opened.clear()
        return found

    monkeypatch.setattr("simstate.data.replay.recorded_course.Recording", Noted)
    with RecordedCourse.open(path) as course:
        course.go_to(12)
        assert not is_closed(opened[0])
    course.close()
    assert are_closed() == [True]
    with raises(RecordingError, name="num_envs"):
        RecordedCourse.open(path, Simulation(scene(), 3))
    assert are_closed() == [True]
    empty = tmp_path / "empty.simrec"
    with Simulation(scene(), 2).record(empty, fields=["qpos"]):
        pass
    with raises(InvalidInputError, name="steps"):
        RecordedCourse.open(empty)
    assert are_closed() == [True]
    options = ["--port", "0", "--seconds", "0.1"]
    assert main(["view", str(path), "--compare", str(path), *options]) == 0
    assert are_closed() == [True, True]
    assert main(["view", str(path), "--compare", "native", *options]) == 0
    assert are_closed() == [True, True]
    assert main(["view", str(path), "--compare", str(empty), *options]) == 1
    assert are_closed() == [True, True]
    picture = str(tmp_path / "it.png")
    assert main(["replay", str(path), "--picture", picture, "--size", "64", "48"]) == 0
    assert are_closed() == [True]
    assert Image.open(picture).size == (64, 48)


def test_a_plot_has_all_of_a_column_at_once(path: Path, viewer: Viewer) -> None:
    (plot,) = viewer.panel.plots
    assert plot.source.value == "recorded qpos"
    plot.part.value = "shoulder"
    plot.sample(3, 0.0)
    with Recording(path) as recording:
        kept = host(recording["qpos"])[:, 0]
    timeline = viewer.session.course.timeline
    assert timeline is not None
    np.testing.assert_array_equal(plot.data[:, 0], timeline.times)
    shoulder = viewer.session.course.worlds.model.joint("arm/shoulder").qposadr[0]
    np.testing.assert_array_equal(plot.data[:, 1], kept[:, shoulder])
    plot.sample(2, 0.0)
    assert "World 2 was not recorded" in plot.about.content


def test_a_divergence_is_marked_and_shown(tmp_path: Path) -> None:
    entities = {"arm": EntityCfg(model=WILD)}
    sim = Simulation(
        SceneCfg(entities=entities, ground=None, timestep=None), 3, on_divergence="mask"
    )
    with sim.record(tmp_path / "wild.simrec", fields=["qpos"]):
        sim.step()
        sim.data.qvel[1, 1] = 1e12
        for _ in range(3):
            sim.step()
        sim.reset([1])
        sim.step()
    course = RecordedCourse.open(tmp_path / "wild.simrec")
    assert course.timeline is not None
    (mark,) = [m for m in course.timeline.marks if m.kind == "divergence"]
    assert (mark.world, mark.step) == (1, 2)
    assert "arm/wild" in mark.text
    with start_viewer(course, "127.0.0.1", 0, None, None, False) as viewer:
        actions_of(viewer).go_to(3)
        assert list(viewer.picture.marks.elements) == [1]
        viewer.picture.look_at(1)
        ball, _ = viewer.picture.marks.shapes(viewer.picture.seen())
        data = mujoco.MjData(sim.model)
        data.qpos[:] = host(field_of(course.worlds, "qpos")[1])
        mujoco.mj_kinematics(sim.model, data)
        anchor = data.xanchor[sim.model.joint("arm/wild").id]
        np.testing.assert_allclose(ball.pos, anchor, atol=1e-9)
        for step in (1, 5):
            actions_of(viewer).go_to(step)
            assert viewer.picture.marks.elements == {}, step


def test_a_task_shows_its_events_and_ends(tmp_path: Path) -> None:
    cfg = tasks.make_cfg("Cartpole-Balance")
    env = Env(cfg, 3, seed=4)
    path = tmp_path / "task.simrec"
    ends: list[tuple[int, int]] = []
    with env.record(path, task="Cartpole-Balance"):
        for k in range(60):
            _, _, terminated, truncated, _ = env.step(torch.full((3, 1), 1.0 - k / 70))
            over = (terminated | truncated).nonzero().flatten().tolist()
            ends += [(k + 1, world) for world in over]
        last = host(env.sim.data.qpos)
    assert ends
    course = RecordedCourse.open(path)
    assert course.timeline is not None
    resets = [(m.step, m.world) for m in course.timeline.marks if m.kind == "reset"]
    assert resets == ends
    terms = {m.text for m in course.timeline.marks if m.text.startswith("ended by")}
    assert terms <= {f"ended by {name}" for name in env.ends.names}
    assert terms
    course.go_to(60)
    there = host(field_of(course.worlds, "qpos"))
    np.testing.assert_array_equal(there, last)
    assert "recorded action" in course.sources()
    assert "reward terms" in course.sources()
