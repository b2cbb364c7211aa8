"""Parts of the panel without a browser: playback, plots, sliders, the timeline."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises
from tests.view.scenes import host, make_sim

from simstate import InvalidInputError, Simulation
from simstate.base.errors import SimStateError
from simstate.view.companion import FAR, HEAT, NEAR, heat
from simstate.view.course import Course, Input
from simstate.view.divergence_marks import DivergenceMarks, place_of_element
from simstate.view.mouse_drag import on_body
from simstate.view.one_world import OneWorld
from simstate.view.panel import Panel
from simstate.view.plot_sources import Source, sources_of
from simstate.view.plots import MOST_CURVES, MOST_OF_HISTORY, MOST_SAMPLES, Plot
from simstate.view.recorded_timeline import Mark, RecordedTimeline
from simstate.view.session import Session
from simstate.view.shapes import Label, Point
from simstate.view.timeline_controls import MOST_LISTED, MOST_MARKS, TimelineControls
from simstate.view.viewer_actions import Acting, parse_numbers, writable_quantities


class Gui:
    """Keeps the controls that are added; each has its initial value."""

    def __init__(self) -> None:
        self.added: list[SimpleNamespace] = []

    def __enter__(self) -> Gui:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        def add(*values: Any, **more: Any) -> Any:
            if name in ("add_folder", "add_tab_group", "add_tab"):
                return self
            one = SimpleNamespace(kind=name, values=values, content="", **more)
            one.is_removed = False
            one.remove = lambda: setattr(one, "is_removed", True)
            one.on_update = lambda call: setattr(one, "call", call)
            if name == "add_slider":
                _, one.min, one.max, one.step, one.value = values
            elif name == "add_text":
                one.value = values[1]
            elif name == "add_dropdown":
                one.value = more["initial_value"]
            elif name == "add_markdown":
                one.content = values[0]
            self.added.append(one)
            return one

        return add

    def of(self, kind: str) -> list[SimpleNamespace]:
        return [one for one in self.added if one.kind == kind]


# Playback.


class Clock:
    """The time of a session, which tests set."""

    def __init__(self) -> None:
        self.now = 5.0

    def perf_counter(self) -> float:
        return self.now


class Steps:
    """A course of steps of 10 ms that counts them."""

    name, timeline, step_dt = "course", None, 0.01
    at, spent = 0, 0.0

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def advance(self) -> None:
        self.at += 1
        self.clock.now += self.spent

    def go_to(self, step: int) -> None:
        self.at = step

    def remember(self) -> list[Any]:
        return [SimpleNamespace(slots={"x": torch.zeros(2)}, at=self.at)]

    def recall(self, kept: list[Any]) -> None:
        self.at = kept[0].at


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("simstate.view.session.time", clock)
    return clock


def played(clock: Clock, playing: bool = True) -> tuple[Any, Session]:
    course: Any = Steps(clock)
    return course, Session(course, course.advance, playing)


def test_it_plays_as_time_passes_and_keeps_what_is_due(clock: Clock) -> None:
    course, session = played(clock)
    for passed, at in ((0.004, 0), (0.003, 0), (0.003, 1), (0.025, 3), (0.005, 4)):
        clock.now += passed
        session.advance()
        assert course.at == at
    session.speed = 0.5
    clock.now += 0.02
    session.advance()
    assert course.at == 5
    session.speed = 4.0
    clock.now += 0.01
    session.advance()
    assert course.at == 9
    session.speed = 1.0
    clock.now += 70.0  # a tenth of a second is made up for, and a step
    session.advance()
    assert course.at == 20
    session.back()
    assert (course.at, session.playing) == (9, False)
    clock.now += 1.0
    session.advance()
    assert course.at == 9
    session.play()  # the pause is not made up for
    clock.now += 0.0101
    session.advance()
    assert course.at == 10


def test_the_speed_that_is_reached_is_averaged(clock: Clock) -> None:
    _, session = played(clock)
    reached = 0.0
    for passed, done in ((0.02, 0.02), (0.05, 0.05), (0.5, 0.11)):
        clock.now += passed
        session.advance()
        reached += 0.1 * (done / passed - reached)
        assert session.reached == pytest.approx(reached)


def test_slow_steps_are_not_made_up_for(clock: Clock) -> None:
    course, session = played(clock)
    course.spent = 0.06
    clock.now += 0.1
    session.advance()
    assert course.at == 2  # a step began within 0.1 s
    assert session.reached == pytest.approx(0.1 * 0.02 / 0.12)
    clock.now += 0.001
    session.advance()
    assert course.at == 4  # of the time that it took


def test_steps_and_ways_back_of_a_script(clock: Clock) -> None:
    course, session = played(clock)
    session.is_scripted = True
    assert session.lets_pass()
    session.play(False)
    assert not session.lets_pass()
    session.step()
    session.step()
    assert course.at == 0  # the script takes them
    assert [session.lets_pass() for _ in range(4)] == [True, True, False, False]
    with pytest.raises(InvalidInputError):
        session.back()
    session.is_scripted = False
    session.step()
    assert course.at == 1
    session.back()
    assert course.at == 0
    with raises(InvalidInputError, name="back"):
        session.back()


def test_errors_pause_and_are_kept_until_it_plays_again(clock: Clock) -> None:
    course, session = played(clock)

    def fail() -> None:
        raise InvalidInputError("It is wrong.")

    assert session.attempt(lambda: None)
    assert session.playing
    session.ask(fail)
    assert session.playing
    assert not session.goes_on
    assert session.answer()
    assert not session.answer()
    assert (session.playing, session.problem) == (False, "It is wrong.")
    session.play()
    assert (session.playing, session.problem) == (True, "")
    assert session.goes_on
    session.report("told")
    assert (session.playing, session.problem) == (True, "told")
    session.go_to(7)
    assert (course.at, session.problem) == (7, "")


def test_a_speed_stays_within_a_factor_of_64(clock: Clock) -> None:
    _, session = played(clock)
    nothing: Any = None
    picture: Any = SimpleNamespace(world=0)
    acting = Acting(session, picture, nothing, nothing, nothing, nothing, None)
    for _ in range(8):
        acting.scale_speed(2.0)
    assert session.speed == 64.0
    for _ in range(16):
        acting.scale_speed(0.5)
    assert session.speed == 1 / 64
    with pytest.raises(InvalidInputError):
        acting.reload()
    with pytest.raises(InvalidInputError):
        acting.go_to_mark(True)
    with pytest.raises(InvalidInputError):
        acting.join()


# Plots.


def plot_of(source: Source) -> tuple[Plot, Gui]:
    gui = Gui()
    server: Any = SimpleNamespace(gui=gui)
    return Plot(server, {"it": source, "other": source}, "it"), gui


def source_of(count: int, history: Any = None) -> tuple[Source, torch.Tensor]:
    values = torch.arange(3.0 * count).reshape(3, count)
    names = tuple(f"C{k}" for k in range(count))
    return Source("m", "about it", names, lambda: values, history), values


def test_a_plot_keeps_samples_of_one_world_as_time_goes_on() -> None:
    source, values = source_of(3)
    plot, gui = plot_of(source)
    for now in (0.0, 0.1, 0.1, 0.2):
        values += 1.0
        plot.sample(1, now)
    np.testing.assert_allclose(
        plot.data, [[0.0, 4, 5, 6], [0.1, 5, 6, 7], [0.2, 7, 8, 9]]
    )
    plot.draw()
    (chart,) = gui.of("add_uplot")
    np.testing.assert_allclose(np.stack(chart.data).T, plot.data)
    assert [one["label"] for one in chart.values[1]] == ["t [s]", "C0", "C1", "C2"]
    plot.sample(1, 0.05)  # after a reset
    assert plot.data[:, 0].tolist() == [0.05]
    plot.part.value = " c2 "
    plot.sample(1, 0.3)
    assert plot.curves == ["C2"]
    np.testing.assert_allclose(plot.data, [[0.3, 9.0]])
    assert chart.is_removed
    plot.sample(2, 0.3)
    np.testing.assert_allclose(plot.data, [[0.3, 12.0]])
    for k in range(MOST_SAMPLES + 5):
        plot.sample(2, 1.0 + k)
    assert plot.data.shape == (MOST_SAMPLES, 2)
    assert plot.data[-1, 0] == MOST_SAMPLES + 4.0 + 1.0
    plot.part.value = "nothing"
    plot.sample(2, 1e4)
    assert plot.curves == []


def test_a_source_that_cannot_be_read_says_why() -> None:
    def unread() -> torch.Tensor:
        raise SimStateError("It was never written.")

    plot, _ = plot_of(Source("m", "about it", ("a",), unread))
    plot.sample(0, 0.0)
    assert plot.about.content == "It was never written."
    assert plot.data.shape == (0, 2)


def test_a_plot_of_many_components_says_how_many_are_left_out() -> None:
    source, _ = source_of(MOST_CURVES + 3)
    plot, _ = plot_of(source)
    plot.sample(0, 0.0)
    assert len(plot.curves) == MOST_CURVES
    assert "; 3 more components" in plot.about.content
    assert plot.about.content.startswith("about it; [m]")


def test_a_history_is_drawn_with_a_line_at_the_present() -> None:
    count = 2 * MOST_OF_HISTORY + 1
    table = np.stack([np.arange(count), np.sin(np.arange(count)), -np.arange(count)], 1)
    table[3, 1] = np.nan
    asked = []
    source, _ = source_of(2, lambda world: asked.append(world) or table.astype(float))
    plot, gui = plot_of(source)
    plot.sample(2, 10.0)
    assert asked == [2]
    np.testing.assert_array_equal(plot.data, table[::3])
    assert "1 of 3 samples" in plot.about.content
    plot.draw()
    (chart,) = gui.of("add_uplot")
    assert [one["label"] for one in chart.values[1]][-1] == "now"
    times, sine, falling, line = chart.data
    assert (np.diff(times) >= 0).all()
    peak = int(line.argmax())
    assert times[peak - 1 : peak + 2].tolist() == [10.0, 10.0, 10.0]
    assert falling[peak] == pytest.approx(-10.0)
    assert sine[peak] == pytest.approx(np.interp(10.0, [9, 12], np.sin([9, 12])))
    assert line[peak] == np.nanmax(plot.data[:, 1:])
    assert np.unique(np.delete(line, peak)).tolist() == [np.nanmin(plot.data[:, 1:])]
    assert len(line) == len(plot.data) + 3

    def unknown(_: int) -> np.ndarray:
        raise SimStateError("It was not recorded.")

    plot, gui = plot_of(source_of(2, unknown)[0])
    plot.sample(0, 0.0)
    assert plot.about.content.endswith("; It was not recorded.")
    assert gui.of("add_uplot") == []


def test_sources_name_the_components_of_their_tensors() -> None:
    sim = make_sim(2)
    found = sources_of(sim, sim.rays)
    robot = sim.scene["robot"].data
    for name, source in found.items():
        assert source.read(1).shape == (len(source.names),), name
    assert found["robot.joint_pos"].names == ("shoulder", "wrist")
    np.testing.assert_allclose(found["robot.joint_pos"].read(1), robot.joint_pos[1])
    assert found["robot.body_com_pos_w"].names[4:6] == ("arm y", "arm z")
    assert found["robot.root_link_pose_w"].names[3:5] == ("quat w", "quat x")
    limits = found["robot.joint_pos_limits"]
    assert limits.names == (
        "shoulder lower", "shoulder upper", "wrist lower", "wrist upper",
    )  # fmt: skip
    assert found["qpos"].names[:2] == ("qpos[0]", "qpos[1]")
    assert found["xpos"].names[3] == "xpos[1][0]"
    np.testing.assert_allclose(found["qvel"].read(1), host(sim.data.qvel[1]))
    rays = found["rays down.distance"]
    np.testing.assert_allclose(rays.read(1), host(sim.rays["down"].distance[1]))
    assert rays.names[:2] == ("[0]", "[1]")


def test_quantities_to_write_are_whole_and_small() -> None:
    sim = make_sim(1)
    names = [one.name for one in writable_quantities(sim.scene["robot"])]
    assert {"root_link_pose_w", "joint_pos", "body_external_wrench"} <= set(names)
    assert "body_external_force" not in names
    assert "body_link_pos_w" not in names
    np.testing.assert_array_equal(parse_numbers("1, -2.5\n3e2", 3), [1.0, -2.5, 300.0])
    for text in ("1 2", "1 2 3 4", "1 2 inf", "1 2 x"):
        with pytest.raises(InvalidInputError):
            parse_numbers(text, 3)


# Controls.


def timeline_of(marks: int) -> tuple[TimelineControls, Gui, list[int], list[Any]]:
    times = 0.1 * np.arange(201)
    kinds: Any = ("reset", "event", "divergence")
    some = [Mark(2 * k, kinds[k % 3], 1, f"it {k}") for k in range(marks)]
    some += [Mark(5, "write", 1, "written"), Mark(9, "write", 2, "alone")]
    some.sort(key=lambda mark: mark.step)
    gui, gone, asked = Gui(), [], []
    timeline = RecordedTimeline(times, some)
    made = TimelineControls(gui, timeline, asked.append, gone.append)
    return made, gui, gone, asked


def test_the_list_of_marks_is_around_the_present_step() -> None:
    controls, _, _, _ = timeline_of(30)
    controls.show(0, 4)
    assert controls.list.content == "World 0 has no marks."
    controls.show(2, 9)
    assert controls.list.content == "- **✎ 0.900 s: write**, alone"
    controls.show(1, 21)
    lines = controls.list.content.splitlines()
    # Twelve marks have passed, one of them written: four before and four after.
    assert len(lines) == MOST_LISTED + 1
    assert lines[0] == "- **◆ 1.400 s: event**, it 7"
    assert lines[3].startswith("- **◆ 2.000 s")
    assert lines[4] == "- ✖ 2.200 s: divergence, it 11"
    assert lines[-1] == "- … of 31 in world 1"
    controls.show(1, 20)  # at a mark, which has passed
    assert controls.list.content.splitlines() == lines
    for step, first in ((0, "it 0"), (200, "it 22")):
        controls.show(1, step)
        assert controls.list.content.splitlines()[0].endswith(first)


def test_a_world_has_diverged_from_its_mark_to_its_reset() -> None:
    marks = [Mark(4, "divergence", 1, "NaN"), Mark(7, "reset", 1, "again")]
    timeline = RecordedTimeline(0.1 * np.arange(12), marks)
    assert [step for step in range(12) if timeline.diverged(step)] == [4, 5, 6]
    assert timeline.diverged(4) == {1: "NaN"}


def test_the_slider_has_the_marks_of_its_world_and_goes_to_the_last_step() -> None:
    controls, gui, gone, asked = timeline_of(30)
    controls.show(1, 6)
    (old, slider) = gui.of("add_slider")
    assert old.is_removed
    assert (slider.min, slider.max, slider.value) == (0, 200, 6)
    assert 0 < len(slider.marks) <= MOST_MARKS
    assert slider.marks[:3] == ((0, "↺"), (4, "✖"), (8, "◆"))
    controls.show(2, 6)
    assert gui.of("add_slider")[-1].marks == ((9, "✎"),)  # there are no others
    controls.show(2, 8)
    slider = controls.slider
    assert slider.value == 8
    for step in (40, 50):  # a client moves it
        event = SimpleNamespace(client=1, target=SimpleNamespace(value=step))
        with pytest.raises(StopIteration):
            slider.call(event).send(None)
    slider.value = 50
    controls.show(2, 9)
    assert slider.value == 50  # the worlds have not reached it
    for request in asked:
        request()
    assert gone == [50]
    controls.show(2, 51)
    assert slider.value == 51
    event = SimpleNamespace(client=None, target=SimpleNamespace(value=3))
    with pytest.raises(StopIteration):
        slider.call(event).send(None)
    assert len(asked) == 2


def test_sliders_have_a_thousand_steps_and_follow_their_world() -> None:
    gui = Gui()
    server: Any = SimpleNamespace(gui=gui)
    acting: Any = SimpleNamespace()
    panel = Panel(server, lambda call: call(), acting, True)
    now = {"wide": [0.0, 50.0], "off": [2.0, 3.0], "none": [0.0] * 2, "low": [0.0] * 2}
    ends = {"wide": (-40.0, 60.0), "off": (2.0, 4.5), "none": (1.0, 1.0),
            "low": (0.0, 0.5)}  # fmt: skip
    inputs = [
        Input(name, "m", "", *ends[name], lambda w, n=name: now[n][w], print)
        for name in ends
    ]
    panel.add_inputs({"all": inputs, "empty": []})
    wide, off, none, low = gui.of("add_slider")
    assert wide.values[0] == "wide [m]"
    steps = [one.step for one in (wide, off, none, low)]
    assert steps == pytest.approx([0.1, 1e-3, 1e-3, 1e-4])
    assert [one.value for one in (wide, off, none)] == [0.0, 2.0, 1.0]
    assert none.max == pytest.approx(1.001)
    panel.show_state("state", 1, 0)
    assert panel.status.content == "state"
    assert [one.value for one in (wide, off)] == [50.0, 3.0]
    now["wide"][1], now["off"][1] = 50.05, 9.0  # less than a step; out of range
    panel.show_state("state", 1, 0)
    assert [one.value for one in (wide, off)] == [50.0, 4.5]
    now["off"][1] = float("nan")
    panel.show_state("state", 1, 0)
    assert off.value == 4.5


def test_positions_and_inputs_have_the_ranges_of_the_model() -> None:
    sim = make_sim(2)
    course = Course(sim, sim.rays)
    shoulder, wrist = course.positions()
    assert (shoulder.name, shoulder.unit) == ("robot/shoulder", "rad")
    assert (wrist.name, wrist.unit) == ("robot/wrist", "m")
    assert (wrist.low, wrist.high) == (-0.05, 0.08)
    wrist.write(1, 0.03)
    assert wrist.read(1) == pytest.approx(0.03)
    assert float(sim.data.qpos[1, -1]) == pytest.approx(0.03)
    assert float(sim.data.qpos[0, -1]) == pytest.approx(wrist.read(0)) != 0.03
    free = of_bodies(
        '<body><joint name="a"/><joint name="b" type="slide"/><geom size="1"/></body>'
    )
    ends = [(one.low, one.high) for one in Course(free, {}).positions()]
    assert ends == [(-3.15, 3.15), (-1.0, 1.0)]
    assert course.step_dt == 0.004
    course.advance()
    assert course.now(1) == pytest.approx(0.004)


def of_bodies(body: str) -> Simulation:
    text = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
    return Simulation(mujoco.MjModel.from_xml_string(text))


def test_places_of_elements_are_those_of_their_joints_and_bodies() -> None:
    sim = make_sim(2)
    seen = OneWorld(sim, sim.rays, 1, 0.5)
    anchors, coms = host(sim.data.xanchor[1]), host(sim.data.xipos[1])
    root, shoulder, wrist = (
        sim.model.joint(f"robot/{name}").id for name in ("root", "shoulder", "wrist")
    )
    for element, wanted in (
        ("qpos[0]", anchors[root]), ("qpos[6]", anchors[root]),
        ("qpos[7] (robot/shoulder)", anchors[shoulder]), ("qpos[8]", anchors[wrist]),
        ("qvel[5]", anchors[root]), ("qacc[6]", anchors[shoulder]),
        ("qfrc_applied[7]", anchors[wrist]), ("ctrl[0]", anchors[shoulder]),
        ("ctrl[1]", anchors[wrist]), ("xfrc_applied[11]", coms[1]),
        ("xfrc_applied[12]", coms[2]),
    ):  # fmt: skip
        place = place_of_element(seen, element)
        assert place is not None
        np.testing.assert_allclose(place, wanted, err_msg=element)
    for element in ("act[0]", "everything", "time"):
        assert place_of_element(seen, element) is None
    marks = DivergenceMarks()
    marks.elements = {1: "qvel[6] of robot (robot/shoulder) is NaN", 0: "act[0] is NaN"}
    ball, label = marks.shapes(seen)
    assert isinstance(ball, Point)
    assert isinstance(label, Label)
    assert label.text == "✖ qvel[6], robot/shoulder"
    assert ball.radius == pytest.approx(0.04)
    assert marks.shapes(OneWorld(sim, sim.rays, 0, 0.5)) == []
    marks.elements[1] = "qvel[6] is NaN"
    _, label = marks.shapes(seen)
    assert isinstance(label, Label)
    assert label.text == "✖ qvel[6]"
    marks.forget([0, 5])
    assert list(marks.elements) == [1]
    marks.forget()
    assert marks.elements == {}


def test_bodies_without_geoms_have_points_and_labels_where_they_are() -> None:
    sim = of_bodies(
        '<body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>'
    )
    seen, place = OneWorld(sim, {}, 0, 0.5), np.array([3.0, -2.0, 1.0])
    assert on_body(seen, 1, place) is place
    assert seen.outside(place) is place


def test_colours_of_distances_are_logarithmic() -> None:
    found = heat(np.array([0.0, NEAR, FAR, 1e9, np.nan, np.inf]))
    assert found[:2].tolist() == [HEAT[0].tolist()] * 2
    assert found[2:].tolist() == [HEAT[3].tolist()] * 4
    third = NEAR * (FAR / NEAR) ** (1 / 3)
    between = NEAR * (FAR / NEAR) ** (1 / 6)
    np.testing.assert_allclose(heat(np.array(third)), HEAT[1], atol=1)
    np.testing.assert_allclose(heat(np.array(between)), HEAT[:2].mean(0), atol=1)
