"""A recording as the viewer plays it: positions, marks, columns and memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.inside import kept_steps
from tests.raised import raises
from tests.record.conftest import scene

from simstate import InvalidInputError, Simulation
from simstate.data.replay import recorded_course
from simstate.data.replay.recorded_course import RecordedCourse
from simstate.env import Env, tasks
from simstate.record import Recording


@pytest.fixture
def path(tmp_path):
    """Twelve steps of one, two and three time steps."""
    sim, path = Simulation(scene(), 3, seed=2), tmp_path / "run.simrec"
    columns = {
        "twice": (lambda sim: 2 * sim.data.qpos[:, 1:3], "rad"),
        "arm.joint_vel": "arm.joint_vel", "qpos": "qpos",
        "puck.root_link_lin_vel_b": "puck.root_link_lin_vel_b",
    }  # fmt: skip
    with sim.record(path, quantities=columns, worlds=[2, 0], snapshot_every=0.04):
        for k in range(12):
            sim.data.ctrl[:] = 0.1 * (k + torch.arange(3.0)[:, None])
            if k == 3:
                sim.data.qfrc_applied[1, 0] = 0.5
            if k == 5:
                sim.reset([1])
            if k == 8:
                sim.expand("body_mass")[2] *= 1.5
            sim.step(1 + k % 3)
    return path


TIMES = np.cumsum([0, *(0.004 * (1 + k % 3) for k in range(12))])


def test_a_step_lasts_until_the_next_one(path):
    with RecordedCourse.open(path) as course:
        for step in range(12):
            assert course.at == step
            assert course.now(0) == pytest.approx(TIMES[step])
            assert course.step_dt == pytest.approx(TIMES[step + 1] - TIMES[step])
            course.advance()
        assert course.at == 12
        assert course.step_dt == pytest.approx(0.012)  # of the last one
        with raises(InvalidInputError, name="end"):
            course.advance()
        for step, at in ((-3, 0), (99, 12), (7, 7)):
            course.go_to(step)
            assert course.at == at
        course.reset([1])
        assert course.at == 0
        assert course.inputs() == course.positions() == []
        assert course.snapshot([1, 2]).num_envs == 2
        assert course.snapshot().num_envs == 3
        with raises(InvalidInputError, name="restore"):
            course.restore(course.snapshot())


def test_marks_are_of_writes_and_resets(path):
    with RecordedCourse.open(path) as course:
        assert course.timeline is not None
        marks = [(m.step, m.kind, m.world) for m in course.timeline.marks]
    assert (3, "write", 1) in marks
    assert (5, "reset", 1) in marks
    # Neither controls are marked, nor what a reset writes besides the time.
    assert {mark for mark in marks if mark[0] < 8} == {(3, "write", 1), (5, "reset", 1)}
    assert [mark for mark in marks if mark[0] == 8] == [
        (8, "write", world) for world in range(3)
    ]
    assert len(marks) == 5


@pytest.mark.parametrize(
    ("most", "kept"), [(13, [*range(13)]), (4, [0, 4, 8, 12]), (3, [0, 8]), (1, [0])]
)
def test_states_are_kept_at_multiples_of_a_stride(path, monkeypatch, most, kept):
    monkeypatch.setattr(recorded_course, "MOST_KEPT", most)
    with RecordedCourse.open(path) as course:
        for _ in range(12):
            course.advance()
        assert sorted(kept_steps(course)) == kept
        course.go_to(5)  # known or not, it is the same state
        once = course.worlds.data.qpos.clone()
        with Recording(path) as recording:
            k = recording["step"].tolist().index(5)
            assert torch.equal(once[[2, 0]], recording["qpos"][k])


def test_states_are_kept_up_to_a_number_of_bytes(path, monkeypatch):
    with RecordedCourse.open(path) as course:
        size = sum(value.nbytes for value in course.snapshot().slots.values())
    monkeypatch.setattr(recorded_course, "MOST_BYTES", 4 * size + size // 2)
    with RecordedCourse.open(path) as course:
        for _ in range(7):
            course.advance()
        assert sorted(kept_steps(course)) == [0, 2, 4, 6]
    monkeypatch.setattr(recorded_course, "MOST_BYTES", 0)
    with RecordedCourse.open(path) as course:
        for _ in range(7):
            course.advance()
        assert sorted(kept_steps(course)) == [0]


def test_steps_are_taken_from_the_first_one_in_other_worlds(path, monkeypatch):
    """Snapshots of the recording would move them to its states."""
    monkeypatch.setattr(recorded_course, "MOST_KEPT", 1)
    other = Simulation(scene(kp=4.0), 3)
    with RecordedCourse.open(path, other, from_begin=True) as course:
        for _ in range(7):
            course.advance()
        there = other.data.qpos.clone()
        course.go_to(2)
        course.go_to(7)
        assert torch.equal(other.data.qpos, there)
    with Recording(path) as recording:
        assert max(step for step in recording.snapshot_steps if step <= 7) > 2
        assert not torch.equal(there[[2, 0]], recording["qpos"][7])


def test_columns_are_sources_of_plots(path):
    with RecordedCourse.open(path) as course, Recording(path) as recording:
        sources = course.sources()
        twice, joints = sources["recorded twice"], sources["recorded arm.joint_vel"]
        assert (twice.unit, twice.names) == ("rad", ("twice[0]", "twice[1]"))
        assert (joints.unit, joints.names) == ("rad/s", ("shoulder", "elbow"))
        assert "recorded puck.root_link_lin_vel_b" in sources
        body = sources["recorded puck.root_link_lin_vel_b"]
        assert body.about == "as recorded, at the link origin, root link axes"
        assert joints.about == "as recorded"
        for world, place in ((2, 0), (0, 1)):
            history = twice.history(world)
            np.testing.assert_allclose(history[:, 0], recording.elapsed.numpy())
            np.testing.assert_array_equal(
                history[:, 1:], recording["twice"][:, place].numpy()
            )
        with raises(InvalidInputError, name="world"):
            twice.history(1)
        with pytest.raises(InvalidInputError):
            twice.read(0)


@pytest.mark.parametrize("auto_reset", [True, False])
def test_marks_of_a_task(tmp_path, auto_reset):
    """Of recorded worlds by the term, of the others by the reset."""
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = 0.1
    env, path = Env(cfg, 3, seed=4, auto_reset=auto_reset), tmp_path / "task.simrec"
    env.episode_length_buf = torch.tensor([0, 2, 2])
    with env.record(path, task="Cartpole-Balance", worlds=[0, 2]):
        for k in range(7):
            renewed = [1, 2] if k == 4 and not auto_reset else ()
            env.step(torch.zeros(3, 1), renewed)
    with RecordedCourse.open(path) as course:
        assert course.timeline is not None
        found = {(m.step, m.kind, m.world, m.text) for m in course.timeline.marks}
    assert [m.step for m in course.timeline.marks] == sorted(
        m.step for m in course.timeline.marks
    )
    # World 0 ends in its fifth step, the others in the third.
    over = "reset" if auto_reset else "event"
    assert (3, over, 2, "ended by time_out") in found
    assert (5, over, 0, "ended by time_out") in found
    if auto_reset:
        assert (3, "reset", 1, "an episode ended, another started") in found
        assert len(found) == 3
    else:
        started = {(5, "reset", world, "an episode started") for world in (1, 2)}
        assert started <= found
        assert {m for m in found if m[3] == "an episode started"} == started
