"""Two side by side: the second goes along, and what differs is drawn and plotted."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import companion_parts, field_of, ledger_of
from tests.raised import raises
from tests.record.conftest import drive, scene
from tests.simulators.looped import INFO
from tests.view.client import Client
from tests.view.scenes import host, make_sim, run_until
from tests.view.test_shapes import Scene

from simstate import InvalidInputError, Simulation
from simstate.cli import main
from simstate.cli.named_worlds import Viewed
from simstate.data.replay.recorded_course import RecordedCourse
from simstate.env import Env, EventTermCfg, events, tasks
from simstate.env.task_course import TaskCourse
from simstate.simulators import register
from simstate.view import ComparedCourse, Course, start_viewer
from simstate.view.companion import HEAT, Companion, heat
from simstate.view.plot_sources import Source
from simstate.view.shapes import Arrow
from simstate.world.worlds import worlds_of

register(INFO)


def course_of(sim: Simulation) -> Course:
    return Course(sim, sim.rays)


def recorded(path: Path, kp: float) -> Path:
    sim = Simulation(scene(kp), 3, seed=3)
    with sim.record(path, fields=["qpos"], snapshot_every=0.05):
        drive(sim, 24, torch.Generator().manual_seed(0))
    return path


@pytest.fixture
def pair() -> ComparedCourse:
    """Two simulations, in the second of which world 1 has heavier hands."""
    first, second = make_sim(), make_sim()
    hand = second.model.body("robot/hand").id
    second.expand("body_mass")[1, hand] *= 1.5
    return ComparedCourse(course_of(first), course_of(second), "heavier")


def test_both_take_the_same_inputs_and_steps(pair: ComparedCourse) -> None:
    first, second = pair.first.worlds, pair.second.worlds
    pair.inputs()[1].write(2, 1.4)
    pair.positions()[0].write(0, 0.3)
    for _ in range(20):
        pair.advance()
    assert float(second.data.ctrl[2, 1]) == 1.4
    assert torch.equal(first.state[[0, 2]], second.state[[0, 2]])
    assert not torch.equal(first.state[1], second.state[1])
    kept = pair.remember()
    before = first.state.clone(), second.state.clone()
    pair.advance()
    pair.recall(kept)
    assert torch.equal(first.state, before[0])
    assert torch.equal(second.state, before[1])
    pair.reset([1])
    assert torch.equal(first.data.qpos, second.data.qpos)


@pytest.fixture
def other_worlds(pair: ComparedCourse) -> ComparedCourse:
    """Of which the second has other parameters and settings, and is elsewhere."""
    first, second = pair.first.worlds, pair.second.worlds
    first.expand("dof_damping")[:] += 0.02
    second.expand("body_mass")[2] *= 1.1
    second.expand("geom_friction")[0] *= 0.7
    second.scene["robot"].data.default_joint_pos[1] += 0.03
    second.data.qvel[:, 3] += 0.4
    for _ in range(12):
        pair.advance()
    return pair


def parameters(course: Course) -> dict[str, torch.Tensor]:
    ledger = ledger_of(course.worlds)
    kinds = "parameter", "setting"
    return {
        name: slot.tensor.clone()
        for name, slot in ledger.slots.items()
        if slot.kind in kinds
    }


@pytest.mark.parametrize("anew", [[1], [2, 0], [0, 1, 2]])
def test_a_reset_leaves_the_other_worlds_and_what_is_compared(
    other_worlds: ComparedCourse, anew: list[int]
) -> None:
    pair = other_worlds
    first, second = pair.first.worlds, pair.second.worlds
    own = parameters(pair.first), parameters(pair.second)
    before = first.state.clone(), second.state.clone()
    pair.reset(anew)
    others = [k for k in range(3) if k not in anew]
    assert torch.equal(first.state[anew], second.state[anew])
    assert bool((second.time[anew] == 0.0).all())
    assert not torch.equal(second.state[anew], before[1][anew])
    assert torch.equal(first.state[others], before[0][others])
    assert torch.equal(second.state[others], before[1][others])
    for course, were in zip((pair.first, pair.second), own, strict=True):
        are = parameters(course)
        assert were.keys() <= are.keys()
        for name, value in were.items():
            assert torch.equal(are[name], value), name


def test_both_in_the_same_state_keep_their_own_parameters(
    other_worlds: ComparedCourse,
) -> None:
    pair = other_worlds
    first, second = pair.first.worlds, pair.second.worlds
    own, before = parameters(pair.second), first.state.clone()
    assert {"model/body_mass", "model/geom_friction"} <= own.keys()
    assert not torch.equal(second.state, before)
    pair.join()
    assert torch.equal(first.state, before)
    assert torch.equal(second.state, before)
    are = parameters(pair.second)
    assert own.keys() == are.keys()
    for name, value in own.items():
        assert torch.equal(are[name], value), name
    # They part again, as MuJoCo with these masses says.
    masses = host(second.expand("body_mass")[1])
    hand = second.model.body("robot/hand").id
    assert masses[hand] == 1.5 * second.model.body_mass[hand]
    pair.advance()
    assert not torch.equal(first.data.qvel[1], second.data.qvel[1])


def test_models_of_other_values_are_put_in_the_same_state() -> None:
    stiff, soft = (Simulation(scene(kp), 3, seed=3) for kp in (3.0, 2.1))
    drive(stiff, 9, torch.Generator().manual_seed(1))
    pair = ComparedCourse(course_of(stiff), course_of(soft), "soft")
    pair.join()
    assert torch.equal(stiff.state, soft.state)


def test_a_task_draws_the_same_at_a_reset_on_both_sides() -> None:
    cfg = tasks.make_cfg("Cartpole-Balance")
    drawn = EventTermCfg(
        events.randomize_mass, params={"mass_range": (0.5, 1.5)}, mode="reset"
    )
    cfg = replace(cfg, events={**cfg.events, "mass": drawn})
    first, second = (TaskCourse(Env(cfg, 3, seed=5), None) for _ in range(2))
    pair = ComparedCourse(first, second, "it")
    for _ in range(3):
        pair.advance()
    were = first.worlds.expand("body_mass").clone()
    pair.reset([2])
    masses = first.worlds.expand("body_mass"), second.worlds.expand("body_mass")
    assert not torch.equal(masses[0][2], were[2])
    assert torch.equal(*masses)
    pair.advance()
    assert torch.equal(first.worlds.state, second.worlds.state)


def test_the_difference_is_that_of_the_bodies(pair: ComparedCourse) -> None:
    for _ in range(30):
        pair.advance()
    model = pair.worlds.model
    places = []
    for course in (pair.first, pair.second):
        data = mujoco.MjData(model)
        data.qpos[:] = host(course.worlds.data.qpos[1])
        mujoco.mj_kinematics(model, data)
        places.append(data.xpos.copy())
    gaps = places[1] - places[0]
    far = np.linalg.norm(gaps, axis=1)
    sources = pair.sources()
    name = "difference of robot.joint_pos"
    assert next(iter(sources)) == name
    joints = sources[name].read(1)
    qpos = host(pair.second.worlds.data.qpos[1] - pair.first.worlds.data.qpos[1])
    np.testing.assert_allclose(joints, qpos[7:9], atol=1e-12)
    np.testing.assert_array_equal(sources[name].read(0), 0.0)
    assert model.body(int(far.argmax())).name in pair.remark(1)
    with start_viewer(pair, "127.0.0.1", 0, None, 3, False) as viewer:
        viewer.picture.look_at(1)
        _, draw = pair.overlays()["difference"]
        shapes = draw(viewer.picture.seen())
        hand = model.body("robot/hand").id
        (arrow,) = [s for s in shapes if s.text.startswith("robot/hand:")]
        assert isinstance(arrow, Arrow)
        along = arrow.vector / np.linalg.norm(arrow.vector)
        np.testing.assert_allclose(along, gaps[hand] / far[hand], atol=1e-6)
        np.testing.assert_allclose(arrow.start, places[0][hand], atol=1e-9)
        lengths = [np.linalg.norm(s.vector) for s in shapes if isinstance(s, Arrow)]
        longest = 0.3 * viewer.picture.size  # the gaps are smaller
        assert max(lengths) == pytest.approx(longest, rel=1e-6)
        assert f"drawn {longest / far.max():.3g} times as long" in arrow.text
        assert f"{far.max():.3g} m, at " in pair.remark(1)
        viewer.picture.scale = 3.0
        again = [s for s in draw(viewer.picture.seen()) if isinstance(s, Arrow)]
        longer = max(float(np.linalg.norm(s.vector)) for s in again)
        assert longer == pytest.approx(3.0 * longest, rel=1e-6)
        (handle,) = [h for h, body in companion_parts(viewer) if body == hand]
        beside = viewer.picture.offsets[1] + [0.0, viewer.picture.spacing, 0.0]
        np.testing.assert_allclose(
            handle.batched_positions[1], places[1][hand] + beside, atol=1e-5
        )
        assert handle.batched_colors[0].tolist() == HEAT[0].tolist()
        wanted = heat(np.array(far[hand] / viewer.picture.size))
        np.testing.assert_allclose(
            handle.batched_colors[1].astype(int), wanted.astype(int), atol=2
        )
        assert handle.batched_colors[1].tolist() != HEAT[0].tolist()
        viewer.picture.over = True
        viewer.picture.update()
        np.testing.assert_allclose(
            handle.batched_positions[1],
            places[1][hand] + viewer.picture.offsets[1],
            atol=1e-5,
        )
    pair.join()
    assert pair.remark(1) == "heavier has all bodies at the same positions"


def test_differences_of_the_motion_are_listed_before_the_solvers(
    pair: ComparedCourse,
) -> None:
    pair.advance()
    assert pair.differences(2).startswith("1 values of world 2 differ in heavier:")
    assert "| model.body_mass | missing on the left |" in pair.differences(2)
    count, _, *table = pair.differences(1).splitlines()
    names = [line.split("|")[1].strip() for line in table[2:]]
    assert int(count.split()[0]) >= len(names) > 3
    assert len(names) <= 12
    solver = ["qacc" in name for name in names]
    assert sorted(solver) == solver
    assert any("qvel" in name for name in names)
    assert not all(solver)


def test_a_click_on_a_body_of_the_other_course_says_how_far_it_is(
    pair: ComparedCourse,
) -> None:
    for _ in range(30):
        pair.advance()
    page, clicked = Scene(), []
    server = SimpleNamespace(scene=page, atomic=nullcontext)
    ours, theirs = (worlds_of(c.worlds) for c in (pair.first, pair.second))
    companion = Companion(
        server, ours, theirs, [0, 1], 0.5, "heavier", lambda *told: clicked.append(told)
    )
    offsets = np.array([[0.0, 0.0, 0.0], [3.0, 2.0, 1.0]])
    companion.update(offsets)
    hand = pair.worlds.model.body("robot/hand").id
    node = page.nodes[f"{hand} 0"]
    for k in (None, 1, 2, -1):
        node.click(SimpleNamespace(instance_index=k))
    ((text, place),) = clicked
    there = host(field_of(pair.second.worlds, "xpos")[1, hand])
    gap = there - host(pair.worlds.data.xpos[1, hand])
    assert text.startswith("**robot/hand** in heavier, world 1: (")
    far = float(text.split("distance ")[1].split(" m")[0])
    assert far == pytest.approx(np.linalg.norm(gap), rel=1e-2)
    np.testing.assert_allclose(place, there + offsets[1], atol=1e-5)
    assert not any("robot/trunk" in name for name in page.nodes)


def test_a_snapshot_is_restored_on_both_sides(pair: ComparedCourse) -> None:
    kept = pair.snapshot()
    for _ in range(5):
        pair.advance()
    pair.restore(kept)
    assert torch.equal(pair.first.worlds.state, pair.second.worlds.state)
    assert float(pair.second.worlds.time[1]) == 0.0
    part = pair.snapshot([2])
    pair.advance()
    pair.restore(part, [2])
    assert [float(x) > 0.0 for x in pair.second.worlds.time] == [True, True, False]
    with pytest.raises(InvalidInputError):
        pair.go_to(3)  # it has no timeline


class Plotted(Course):
    """A course with a source of two components whose history is given."""

    past: np.ndarray

    def sources(self) -> dict[str, Source]:
        def now() -> torch.Tensor:
            return torch.as_tensor(self.past[-1, 1:]).expand(3, 2)

        return {"x": Source("m", "about it", ("a", "b"), now, lambda world: self.past)}


def test_histories_are_compared_at_the_times_of_the_first() -> None:
    first, second = (Plotted(sim := make_sim(), sim.rays) for _ in range(2))
    times = np.array([0.0, 0.1, 0.4]), np.array([0.0, 0.2, 0.5])
    first.past, second.past = (np.stack([t, t, t**2], 1) for t in times)
    source = ComparedCourse(first, second, "other").sources()["difference of x"]
    assert source.about == "other minus the first; about it"
    assert source.history is not None
    wanted = np.interp(times[0], times[1], times[1] ** 2) - times[0] ** 2
    table = source.history(1)
    np.testing.assert_allclose(table[:, 0], times[0])
    np.testing.assert_allclose(table[:, 1], 0.0, atol=1e-12)
    np.testing.assert_allclose(table[:, 2], wanted)
    np.testing.assert_allclose(source.read(1), [0.1, 0.25 - 0.16])


def test_a_client_asks_what_differs(pair: ComparedCourse) -> None:
    with start_viewer(pair, "127.0.0.1", 0, None, 1, False) as viewer:
        client = Client(viewer.url)
        run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
        client.set("world", 1)
        client.set("step", True)
        run_until(viewer, lambda: float(pair.worlds.time[0]) > 0.0, "the step")
        client.set("list differences", True)
        run_until(viewer, lambda: "heavier" in viewer.panel.answer.content, "it")
        assert "qvel" in viewer.panel.answer.content
        client.set("put both in the same state", True)
        second = pair.second.worlds
        run_until(
            viewer,
            lambda: torch.equal(field_of(second, "qpos"), pair.worlds.data.qpos),
            "the same state",
        )
        client.close()


def test_two_recordings_are_compared_at_the_same_time(tmp_path: Path) -> None:
    paths = [recorded(tmp_path / f"{kp}.simrec", kp) for kp in (3.0, 3.3)]
    first, second = (RecordedCourse.open(path) for path in paths)
    pair = ComparedCourse(first, second, "stiffer")
    pair.go_to(17)
    assert (first.at, second.at) == (17, 17)
    source = pair.sources()["difference of recorded qpos"]
    assert source.history is not None
    table = source.history(2)
    np.testing.assert_array_equal(table[0, 1:], 0.0)
    qpos = [host(field_of(c.worlds, "qpos")[2]) for c in (first, second)]
    np.testing.assert_array_equal(table[17, 1:], qpos[1] - qpos[0])
    assert np.abs(table[17, 1:]).max() > 0.0
    with raises(InvalidInputError, name="join"):
        pair.join()


def test_a_recording_next_to_its_inputs_in_another_simulator(tmp_path: Path) -> None:
    """Plain MuJoCo takes the same steps; wrenches on bodies are not passed on."""
    path = recorded(tmp_path / "run.simrec", 3.0)
    viewed = Viewed(str(path), None, None, None, 0.0, 0, "native", "cpu")
    with ExitStack() as stack:
        pair = viewed.compared(viewed.course(stack), "looped", stack)
        assert isinstance(pair, ComparedCourse)
        pair.go_to(24)
        gaps = pair.second.worlds.data.qpos - pair.worlds.data.qpos
        arms = host(gaps[:, :2])
        assert np.abs(host(gaps[1, 2:5])).max() > 0.0  # the puck, which was pushed
        np.testing.assert_allclose(arms, 0.0, atol=1e-9)
        pair.go_to(0)
        assert torch.equal(pair.second.worlds.data.qpos, pair.worlds.data.qpos)


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    sim, other = make_sim(3), make_sim(2)
    with raises(InvalidInputError, name="num_envs"):
        ComparedCourse(course_of(sim), course_of(other), "other")
    path = recorded(tmp_path / "run.simrec", 3.0)
    with raises(InvalidInputError, name="model"):
        ComparedCourse(course_of(sim), RecordedCourse.open(path), "it")
    alike = course_of(Simulation(scene(), 3))
    with raises(InvalidInputError, name="recording"):
        ComparedCourse(alike, RecordedCourse.open(path), "it")


@pytest.mark.parametrize("what", ["arm", "Cartpole-Balance"])
def test_the_command_shows_two_side_by_side(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--port", "0", "--seconds", "0.3"]
    assert main(["view", what, "--compare", "looped", *options]) == 0
    assert "http://localhost:" in capsys.readouterr().out
    assert main(["view", what, "--compare", "nothing", *options]) == 1
    assert "looped" in capsys.readouterr().err
