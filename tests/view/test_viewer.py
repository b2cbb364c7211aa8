"""Divergence, drag, scripts and tasks, as the viewer shows them."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch
from PIL import Image
from tests.inside import (
    actions_of,
    draw_now,
    let_draw,
    meshes_of,
    server_of,
    status_of,
)
from tests.raised import raises
from tests.view.client import Client
from tests.view.scenes import host, make_sim, run_until, slow_down

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.errors import InvalidInputError
from simstate.cli import main
from simstate.env import Env, tasks
from simstate.state import Snapshot
from simstate.view.course import Course
from simstate.view.mouse_drag import DAMPING, STIFFNESS, MouseDrag, Pull, on_body
from simstate.view.one_world import OneWorld
from simstate.view.session import Session
from simstate.view.shapes import Arrow, Label, Point
from simstate.view.viewer import Viewer

WILD = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body pos="0.1 0.2 0.5">
      <joint name="calm" axis="0 0 1"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.4"/>
      <body pos="0.3 0 0">
        <joint name="wild" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.2"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="m" joint="wild" gear="2"/></actuator>
</mujoco>
"""


def test_a_world_that_diverged_is_shown_at_its_last_good_step() -> None:
    scene = SceneCfg(
        entities={"arm": EntityCfg(model=WILD)}, ground=None, timestep=None
    )
    sim = Simulation(scene, 3)
    with sim.view(port=0, playing=False) as viewer:
        viewer.session.step()
        good = sim.state.clone()
        sim.data.qvel[1, 1] = 1e12
        viewer.session.play(True)
        run_until(viewer, lambda: viewer.session.problem, "the divergence")
        assert not viewer.session.playing
        assert list(viewer.picture.marks.elements) == [1]
        viewer.picture.look_at(1)
        seen = viewer.picture.seen()
        ball, label = viewer.picture.marks.shapes(seen)
        assert isinstance(ball, Point)
        assert isinstance(label, Label)  # it is seen through what the ball is within
        assert "arm/wild" in label.text
        np.testing.assert_array_equal(label.pos, ball.pos)
        data = mujoco.MjData(sim.model)
        data.qpos[:] = host(good[1, 1:3])
        mujoco.mj_kinematics(sim.model, data)
        np.testing.assert_allclose(
            ball.pos, data.xanchor[sim.model.joint("arm/wild").id], atol=1e-9
        )
        assert "arm/wild" in ball.text
        assert "diverged" in status_of(viewer)
        viewer.picture.look_at(2)
        assert viewer.picture.marks.shapes(viewer.picture.seen()) == []
        viewer.session.ask(lambda: actions_of(viewer).reset(True))
        run_until(viewer, lambda: not viewer.picture.marks.elements, "the reset")


def test_a_pull_is_a_force_at_the_point_that_was_taken() -> None:
    sim = make_sim()
    arm, point = sim.model.body("robot/arm").id, np.array([0.1, 0.02, -0.03])
    seen = OneWorld(sim, sim.rays, 1, 0.5)
    own = sim.data.xfrc_applied[1, arm].clone()
    goal = np.array([0.4, -0.2, 0.9])
    drag = MouseDrag(sim)
    pull = Pull(1, arm, point, goal)
    drag.set(pull)
    drag.apply(seen)
    wrench = host(sim.data.xfrc_applied[1, arm] - own)

    data = mujoco.MjData(sim.model)
    data.qpos[:], data.qvel[:] = host(sim.data.qpos[1]), host(sim.data.qvel[1])
    mujoco.mj_forward(sim.model, data)
    place = data.xpos[arm] + data.xmat[arm].reshape(3, 3) @ point
    jacobian = np.zeros((3, sim.model.nv))
    mujoco.mj_jac(sim.model, data, jacobian, None, place, arm)
    mass = sim.model.body_subtreemass[arm]
    force = mass * (STIFFNESS * (goal - place) - DAMPING * jacobian @ data.qvel)
    generalized = np.zeros(sim.model.nv)
    mujoco.mj_applyFT(
        sim.model, data, wrench[:3], wrench[3:], data.xipos[arm], arm, generalized
    )
    np.testing.assert_allclose(generalized, jacobian.T @ force, atol=1e-9)
    (arrow,) = drag.shapes(seen)
    assert isinstance(arrow, Arrow)
    np.testing.assert_allclose(arrow.start, place, atol=1e-9)
    np.testing.assert_allclose(arrow.start + arrow.vector, goal, atol=1e-9)
    drag.apply(seen)  # not on top of itself
    np.testing.assert_allclose(host(sim.data.xfrc_applied[1, arm] - own), wrench)
    drag.set(None)
    assert torch.equal(sim.data.xfrc_applied[1, arm], own)


def drag_of(client: Client, viewer: Viewer, sim: Simulation) -> Callable[..., None]:
    """A call by which a client drags the trunk of world 2 by a height [m]."""
    trunk = sim.model.body("robot/trunk").id
    mesh = next(m for m in meshes_of(viewer) if not m.is_site and trunk in m.bodies)
    k = next(i for i, one in enumerate(mesh.instances) if one.row == 2)
    place = host(sim.data.xpos[2, trunk]) + viewer.picture.offsets[2]

    def drag(phase: str, height: float) -> None:
        client.send(
            "SceneNodeDragMessage", name=mesh.handle.name, phase=phase,
            instance_index=k, start_position=place.tolist(),
            start_screen_pos=[0.5, 0.5],
            end_position=[*place[:2].tolist(), float(place[2]) + height],
            end_screen_pos=[0.5, 0.4], button="left", modifier="cmd/ctrl", owner="",
        )  # fmt: skip

    return drag


def test_a_drag_of_a_client_moves_the_body() -> None:
    sim = make_sim()
    with sim.view(port=0, playing=False) as viewer:
        client = Client(viewer.url)
        run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
        trunk = sim.model.body("robot/trunk").id
        drag = drag_of(client, viewer, sim)
        drag("start", 0.0)
        drag("update", 1.0)
        run_until(
            viewer,
            lambda: (
                viewer.drag.pull is not None
                and viewer.drag.pull.goal[2] > host(sim.data.xpos[2, trunk])[2] + 0.5
            ),
            "the pull",
        )
        before = host(sim.data.xpos[:, trunk, 2])
        for _ in range(30):
            viewer.session.step()
        after = host(sim.data.xpos[:, trunk, 2])
        assert after[2] - before[2] > 0.1
        assert after[0] - before[0] < 0.1
        drag("end", 1.0)
        run_until(viewer, lambda: viewer.drag.pull is None, "letting go")
        client.close()


def test_what_a_client_drags_is_let_go_when_it_goes_away() -> None:
    sim = make_sim()
    own = sim.data.xfrc_applied.clone()
    with sim.view(port=0, playing=False) as viewer:
        client, other = Client(viewer.url), Client(viewer.url)
        run_until(viewer, lambda: viewer.num_clients == 2, "both connections")
        drag_of(client, viewer, sim)("start", 1.0)
        run_until(viewer, lambda: viewer.drag.pull is not None, "the pull")
        viewer.session.step()
        assert not torch.equal(sim.data.xfrc_applied, own)
        drag_of(other, viewer, sim)("end", 1.0)  # which drags nothing
        other.set("step", True)
        time = float(sim.time[0])
        run_until(viewer, lambda: float(sim.time[0]) > time, "the other's step")
        assert viewer.drag.pull is not None
        client.close()
        run_until(viewer, lambda: viewer.drag.pull is None, "letting go")
        assert torch.equal(sim.data.xfrc_applied, own)
        other.close()


def test_a_drag_to_nowhere_pulls_nothing() -> None:
    sim = make_sim()
    with sim.view(port=0, playing=False) as viewer:
        client = Client(viewer.url)
        run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
        drag = drag_of(client, viewer, sim)
        drag("start", float("nan"))
        drag("update", float("inf"))
        client.set("step", True)
        run_until(viewer, lambda: float(sim.time[0]) > 0, "the step")
        assert viewer.drag.pull is None
        assert bool(torch.isfinite(sim.state).all())
        client.close()


def test_a_point_that_a_late_page_takes_is_on_the_body() -> None:
    sim = make_sim()
    hand = sim.model.body("robot/hand").id
    seen = OneWorld(sim, {}, 1, 0.5)
    inside = np.array([0.02, 0.01, -0.02])
    np.testing.assert_array_equal(on_body(seen, hand, inside), inside)
    taken = on_body(seen, hand, np.array([0.3, -0.4, 1.2]))
    # A ball of 3 cm, whose centre is 1 cm from the body's origin.
    np.testing.assert_allclose(taken, 0.04 * np.array([3.0, -4.0, 12.0]) / 13.0)


def test_sliders_of_an_actuator_with_several_inputs() -> None:
    """Each input has its own range and unit."""
    text = WILD.replace(
        '<motor name="m" joint="wild" gear="2"/>',
        '<pid name="p" joint="calm" kp="30" kv="2" input="pos vel ff"/>'
        '<position name="q" joint="wild" kp="3" ctrlrange="-0.4 0.7"/>',
    )
    sim = Simulation(SceneCfg(entities={"robot": EntityCfg(model=text)}), 2)
    sliders = Course(sim, {}).inputs()
    assert [one.unit for one in sliders] == ["rad", "rad/s", "N·m", "rad"]
    assert [(one.low, one.high) for one in sliders[:3]] == [(-1.0, 1.0)] * 3
    assert (sliders[3].low, sliders[3].high) == (-0.4, 0.7)
    assert "velocity that the servo goes to" in sliders[1].about
    sliders[3].write(1, 0.25)
    assert sim.data.ctrl[:, 3].tolist() == [0.0, 0.25]
    assert sliders[3].read(1) == 0.25


def test_a_task_shows_its_commands_rewards_and_observations() -> None:
    env = Env(tasks.find("Quadruped-Velocity").env_cfg(), 3, seed=4)
    with env.view(port=0, playing=False) as viewer:
        course = viewer.session.course
        sources = course.sources()
        start = env.snapshot()
        for _ in range(3):
            viewer.session.step()
        assert bool((env.episode_length_buf == 3).all())
        sums = sources["reward terms"].read(2)
        names = sources["reward terms"].names
        assert sums[3] == pytest.approx(float(env.rewards.episode_sum(names[3])[2]))
        (group, *_) = env.observation_names
        seen = sources[f"observations {group}"]
        np.testing.assert_array_equal(seen.read(1), host(env.observations[group][1]))
        viewer.session.back()
        assert bool((env.episode_length_buf == 2).all())
        viewer.session.back()
        viewer.session.back()
        for name, slot in env.snapshot().slots.items():
            assert torch.equal(slot, start.slots[name]), name
        (action, *_) = course.inputs()
        action.write(1, 0.5)
        assert action.read(1) == 0.5
        assert action.read(0) == 0.0


def test_the_velocity_command_is_drawn_where_it_points() -> None:
    env = Env(tasks.find("Quadruped-Velocity").env_cfg(), 2, seed=4)
    env.step(torch.zeros(2, env.action_dim))
    (command,) = env.commands.values()
    command.command[1] = torch.tensor([0.8, -0.3, 0.2])
    with env.view(port=0, playing=False) as viewer:
        viewer.picture.look_at(1)
        _, draw = viewer.session.course.overlays()["commands"]
        (arrow,) = draw(viewer.picture.seen())
    heading = float(env.scene["robot"].data.heading_w[1])
    angle = np.arctan2(arrow.vector[1], arrow.vector[0])
    assert angle == pytest.approx(heading + np.arctan2(-0.3, 0.8), abs=1e-6)
    assert np.linalg.norm(arrow.vector) == pytest.approx(0.3 * np.hypot(0.8, 0.3))


def test_what_is_shown_does_not_change_what_happens() -> None:
    alone, shown = make_sim(), make_sim()
    with shown.view(port=0, playing=True) as viewer:
        client = Client(viewer.url)
        run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
        shown.restore(make_sim().snapshot())
        for name in viewer.panel.overlays:
            viewer.picture.show_overlay(name, True)
        for _ in range(5):
            alone.step()
            shown.step()
            let_draw(viewer)
            viewer.sync()
        client.close()
    assert torch.equal(alone.state, shown.state)


@pytest.mark.parametrize("freshness", ["strict", "off"])
def test_what_is_stale_is_shown_up_to_date(freshness: str) -> None:
    sim = make_sim(2, freshness=freshness)
    robot = sim.scene["robot"]
    pose = host(sim.data.qpos[:, :7])
    pose[:, 0] += 1.5
    with sim.view(port=0, playing=False) as viewer:
        robot.write_root_link_pose_to_sim(pose)
        draw_now(viewer)
        trunk = sim.model.body("robot/trunk").id
        mesh = next(m for m in meshes_of(viewer) if trunk in m.bodies)
        drawn = mesh.handle.batched_positions - viewer.picture.offsets[mesh.rows]
    np.testing.assert_allclose(drawn[:, 0], pose[:, 0], atol=1e-5)
    assert sim.freshness == freshness


def test_a_session_remembers_as_much_as_memory_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sim = make_sim()
    from simstate.view import Course

    course = Course(sim, sim.rays)
    session = Session(course, course.advance, False)
    size = sum(x.nbytes for x in course.snapshot().slots.values())
    monkeypatch.setattr("simstate.view.session.MOST_BYTES", int(2.5 * size))
    for _ in range(4):
        session.step()
    session.back()
    session.back()
    assert float(sim.time[0]) == pytest.approx(2 * sim.timestep)
    with raises(InvalidInputError, name="back"):
        session.back()


def test_a_model_is_read_again() -> None:
    sim, again = make_sim(2), make_sim(3)
    course, other = Course(sim, sim.rays), Course(again, again.rays)
    with Viewer(
        course, port=0, playing=False, worlds=2, reload=lambda: other
    ) as viewer:
        viewer.session.step()
        client = Client(viewer.url, close_timeout=0.3)
        run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
        client.set("reload the model", True)
        run_until(viewer, lambda: viewer.session.course is other, "the other model")
        assert viewer.picture.course is other
        assert viewer.picture.seen().worlds is again
        with raises(InvalidInputError, name="back"):
            viewer.session.back()  # steps of the other model are forgotten
        viewer.session.step()
        assert float(again.time[0]) == pytest.approx(again.timestep)
        client.close()


def test_actions_write_quantities_and_stay_in_range() -> None:
    sim = make_sim()
    with sim.view(port=0, playing=False) as viewer:
        act, picture = actions_of(viewer), viewer.picture
        for world, shown in ((99, 2), (-4, 0), (1.0, 1)):
            act.look_at(world)
            assert picture.world == shown
        values = torch.arange(18.0).reshape(3, 6) / 10
        text = " ".join(str(round(x, 1)) for x in values.flatten().tolist())
        before = sim.data.xfrc_applied.clone()
        act.write_quantity("robot.body_external_wrench", text)
        bodies = [sim.model.body(f"robot/{n}").id for n in ("trunk", "arm", "hand")]
        np.testing.assert_allclose(host(sim.data.xfrc_applied[1, bodies]), host(values))
        assert torch.equal(sim.data.xfrc_applied[[0, 2]], before[[0, 2]])
        act.read_quantity("robot.body_external_wrench")
        rows = viewer.panel.values.value.splitlines()
        assert rows[1] == "0.6 0.7 0.8 0.9 1 1.1"
        for name in ("robot.body_link_pos_w", "robot.nothing"):
            with pytest.raises(InvalidInputError):
                act.write_quantity(name, "1")
        act.show_worlds(0, -1.0)
        assert (picture.count, picture.spacing) == (1, 0.0)
        act.explain("qvel[3]")
        assert "qvel[3]" in viewer.panel.answer.content
        draw_now(viewer)
        assert "qvel[3]" in picture.asked.text
        act.explain("xpos")  # a field without explanations of its elements
        draw_now(viewer)
        assert picture.asked.text == ""
        viewer.session.step()
        act.reset(False)
        assert [float(x) > 0.0 for x in sim.time] == [True, False, True]


def test_thirty_frames_a_second_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = make_sim(1)
    with sim.view(port=0, playing=False) as viewer:
        slow_down(viewer, 0.0, monkeypatch)
        clock = sys.modules["simstate.view.viewer"].time
        shown: list[float] = []
        monkeypatch.setattr(viewer, "show", lambda: shown.append(clock.now))
        begin = clock.now
        viewer.run(2.0)
        assert clock.now - begin == pytest.approx(2.0, abs=0.03)
        gaps = np.diff(shown)
        np.testing.assert_allclose(gaps, 1 / 30)
        assert len(shown) in (60, 61)


@pytest.mark.parametrize(("asks", "frames"), [(False, 6), (True, 50)])
def test_a_script_that_is_held_shows_what_clients_ask_for(
    monkeypatch: pytest.MonkeyPatch, asks: bool, frames: int
) -> None:
    """Five frames a second, and one after each request; 20 ms pass between looks."""
    sim = make_sim(1)
    with sim.view(port=0, playing=True) as viewer:
        slow_down(viewer, 0.0, monkeypatch)
        clock, session = sys.modules["simstate.view.viewer"].time, viewer.session
        shown: list[float] = []
        monkeypatch.setattr(viewer, "show", lambda: shown.append(clock.now))
        session.play(False)
        looks = iter([False] * 50 + [True])

        def lets_pass() -> bool:
            if asks:
                session.ask(lambda: None)
            return next(looks)

        monkeypatch.setattr(session, "lets_pass", lets_pass)
        begin = clock.now
        viewer.sync()
        assert clock.now - begin == pytest.approx(1.0)
        assert abs(len(shown) - frames) <= 1


def test_a_picture_of_the_page_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    sim, sent = make_sim(1), []
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, (12, 20, 3), dtype=np.uint8)
    camera = SimpleNamespace(image_height=12, image_width=20)
    asked = []
    client = SimpleNamespace(
        camera=camera, send_file_download=lambda *file: sent.append(file),
        get_render=lambda *size, timeout: asked.append(size) or pixels,
    )  # fmt: skip
    with sim.view(port=0, playing=False) as viewer:
        monkeypatch.setattr(viewer.picture, "is_seen_by", lambda _: True)
        actions_of(viewer).save_picture(client)
        run_until(viewer, lambda: sent, "the download")
        actions_of(viewer).lay_over(True)
        assert viewer.picture.over
        actions_of(viewer).start_demonstration()
        monkeypatch.setattr(viewer.picture, "is_seen_by", lambda _: False)
        actions_of(viewer).stop_demonstration(client)
        assert "No demonstration was saved" in viewer.session.problem
    assert asked == [(12, 20)]
    ((name, content),) = sent
    assert name == "picture.png"
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(content))), pixels)


def test_a_snapshot_is_downloaded(tmp_path) -> None:  # type: ignore[no-untyped-def]
    sim = make_sim()
    sim.step(3)
    with sim.view(port=0, playing=False) as viewer:
        client = Client(viewer.url, close_timeout=0.3)
        run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
        (handle,) = server_of(viewer).get_clients().values()
        sent: list[tuple[str, bytes]] = []
        handle.send_file_download = lambda *file: sent.append(file)
        client.set("save snapshot", True)
        run_until(viewer, lambda: sent, "the download")
        client.close()
    ((name, content),) = sent
    (tmp_path / name).write_bytes(content)
    other = make_sim()
    other.restore(Snapshot.load(tmp_path / name))
    assert torch.equal(other.state, sim.state)


def test_the_page_in_a_notebook() -> None:
    sim = make_sim(1)
    with sim.view(port=0, playing=False) as viewer:
        assert f'src="{viewer.url}"' in viewer._repr_html_()


@pytest.mark.parametrize("what", ["arm", "Cartpole-Balance"])
def test_the_command_shows_models_and_tasks(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["view", what, "--port", "0", "--seconds", "0.2"]
    assert main(arguments) == 0
    assert "http://localhost:" in capsys.readouterr().out


def test_the_command_begins_with_a_snapshot(tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "worlds.npz"
    run = ["run", "arm", "--envs", "2", "--seconds", "0.1", "--no-check"]
    assert main([*run, "--save", str(path)]) == 0
    shown = ["view", "arm", "--snapshot", str(path), "--paused", "--port", "0"]
    assert main([*shown, "--seconds", "0.1"]) == 0
    assert main(["view", str(path)]) == 1
    assert "--snapshot" in capsys.readouterr().err


def test_worlds_are_shown_while_they_learn(tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    arguments = ["train", "Cartpole-Balance", "--envs", "8", "--iterations", "1"]
    options = ["--run-dir", str(tmp_path / "run"), "--no-export", "--logger", "none"]
    assert main([*arguments, *options, "--view", "--port", "0"]) == 0
    assert "http://localhost:" in capsys.readouterr().out


def test_overlays_are_drawn_while_torch_only_infers() -> None:
    env = Env(tasks.find("Quadruped-Velocity").env_cfg(), 3, seed=4)
    with env.view(port=0) as viewer:
        client = Client(viewer.url)
        run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
        for name in viewer.panel.overlays:
            viewer.picture.show_overlay(name, True)
        for _ in range(3):
            with torch.inference_mode():
                env.step(torch.zeros(3, env.action_dim))
                let_draw(viewer)
                viewer.sync()
            env.step(torch.zeros(3, env.action_dim))
        client.close()
    env.restore(env.snapshot())
