"""Controls act on the simulation: a client presses them over a real websocket."""

from __future__ import annotations

import time
from collections.abc import Iterator

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import (
    actions_of,
    asked_label,
    handles_of,
    is_painted,
    meshes_of,
    num_waiting_messages,
    server_of,
)
from tests.view.client import Client
from tests.view.scenes import host, make_sim, run_on, run_until

from simstate import Simulation
from simstate.view.viewer import Viewer


@pytest.fixture
def sim() -> Simulation:
    return make_sim(3)


@pytest.fixture
def viewer(sim: Simulation) -> Iterator[Viewer]:
    with sim.view(port=0, playing=False) as viewer:
        yield viewer


@pytest.fixture
def client(viewer: Viewer) -> Iterator[Client]:
    client = Client(viewer.url, close_timeout=0.3)  # it does not read all that comes
    run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
    yield client
    client.close()


def test_play_step_back_and_reset(
    sim: Simulation, viewer: Viewer, client: Client
) -> None:
    start = sim.state.clone()
    run_on(viewer)
    assert torch.equal(sim.state, start)
    client.set("step", True)
    run_until(viewer, lambda: bool((sim.time == sim.timestep).all()), "the step")
    run_on(viewer)
    assert bool((sim.time == sim.timestep).all())
    stepped = sim.state.clone()
    client.set("back", True)
    run_until(viewer, lambda: bool((sim.time == 0.0).all()), "the way back")
    assert torch.equal(sim.state, start)
    client.set("step", True)
    run_until(viewer, lambda: bool((sim.time > 0.0).all()), "the second step")
    assert torch.equal(sim.state, stepped)
    client.set("play", True)
    run_until(viewer, lambda: bool((sim.time > 0.02).all()), "playing")
    client.set("play", False)
    run_until(viewer, lambda: not viewer.session.playing, "the pause")
    held = sim.state.clone()
    run_on(viewer)
    assert torch.equal(sim.state, held)
    client.set("world", 1)
    client.set("reset this world", True)
    run_until(viewer, lambda: float(sim.time[1]) == 0.0, "the reset")
    assert torch.equal(sim.state[[0, 2]], held[[0, 2]])
    client.set("reset all worlds", True)
    run_until(viewer, lambda: bool((sim.time == 0.0).all()), "the reset of all")


def test_sliders_write_the_world_shown(
    sim: Simulation, viewer: Viewer, client: Client
) -> None:
    before = host(sim.data.ctrl)
    client.set("world", 2)
    client.send(
        "GuiUpdateMessage",
        uuid=client.control("robot/wrist [N]"),
        updates={"value": 1.25},
    )
    run_until(viewer, lambda: float(sim.data.ctrl[2, 1]) == 1.25, "the slider")
    after = host(sim.data.ctrl)
    after[2, 1] = before[2, 1]
    np.testing.assert_array_equal(after, before)


def test_sliders_have_the_units_of_what_they_write(
    viewer: Viewer, client: Client
) -> None:
    client.control("run")
    labels = [m["props"].get("label") for m in client.messages if m.get("props")]
    assert "robot/shoulder [rad]" in labels  # a servo, and the hinge
    assert labels.count("robot/shoulder [rad]") == 2
    assert "robot/wrist [N]" in labels  # a motor on a slide
    assert "robot/wrist [m]" in labels


def test_a_client_that_leaves_before_its_picture_is_reported(
    sim: Simulation, viewer: Viewer
) -> None:
    gone = Client(viewer.url)
    gone.set("save picture", True)
    run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
    run_on(viewer, 20)  # the request is on its way
    gone.close()
    run_until(viewer, lambda: viewer.session.problem, "the message")
    assert "No picture was saved" in viewer.session.problem


@pytest.mark.parametrize("what", ["picture", "snapshot"])
def test_a_client_that_has_left_gets_no_file(
    sim: Simulation, viewer: Viewer, what: str
) -> None:
    gone = Client(viewer.url)
    run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
    (handle,) = server_of(viewer).get_clients().values()
    gone.close()
    run_until(viewer, lambda: viewer.num_clients == 0, "its leaving")
    viewer.session.play()
    getattr(actions_of(viewer), f"save_{what}")(handle)
    assert f"No {what} was saved" in viewer.session.problem
    assert viewer.session.playing


def test_a_quantity_is_written_through_its_writer(
    sim: Simulation, viewer: Viewer, client: Client
) -> None:
    client.set("world", 1)
    client.set("quantity", "robot.joint_vel")
    client.set("values", "0.5, -0.25")
    client.send(
        "GuiUpdateMessage", uuid=client.control("write", "Button"),
        updates={"value": True},
    )  # fmt: skip
    wanted = [0.5, -0.25]
    run_until(
        viewer,
        lambda: sim.scene["robot"].data.joint_vel[1].tolist() == wanted,
        "the write",
    )
    assert sim.scene["robot"].data.joint_vel[0].tolist() != wanted


@pytest.mark.parametrize("text", ["1 2 3", "1 __import__('os')", "nan 1", ""])
def test_what_is_no_number_is_refused(
    sim: Simulation, viewer: Viewer, client: Client, text: str
) -> None:
    start = sim.state.clone()
    client.set("quantity", "robot.joint_vel")
    client.set("values", text + " ")
    client.send(
        "GuiUpdateMessage", uuid=client.control("write", "Button"),
        updates={"value": True},
    )  # fmt: skip
    run_until(viewer, lambda: viewer.session.problem, "the refusal")
    assert torch.equal(sim.state, start)
    assert "number" in viewer.session.problem


def test_groups_of_geoms_are_shown_as_mujoco_shows_them(
    viewer: Viewer, client: Client
) -> None:
    """The first three; sites are not shown until asked for."""
    shown = mujoco.MjvOption().geomgroup
    boxes = client.boxes("012345", 12)
    assert boxes[:6] == [(str(k), bool(on)) for k, on in enumerate(shown)]
    assert boxes[6:] == [(str(k), False) for k in range(6)]


def test_what_a_number_means_is_said(
    sim: Simulation, viewer: Viewer, client: Client
) -> None:
    client.set("element", "qvel[4]")
    client.set("explain", True)
    run_until(viewer, lambda: "qvel[4]" in viewer.panel.answer.content, "the answer")
    text = viewer.panel.answer.content
    assert "rad/s" in text
    assert f"{float(sim.data.qvel[0, 4]):.6g}" in text
    viewer.show()
    assert "qvel[4]" in viewer.picture.asked.text
    client.set("world", 2)
    now = f"{float(sim.data.qvel[2, 4]):.4g} rad/s"
    run_until(viewer, lambda: now in viewer.picture.asked.text, "the label's change")
    root = host(sim.data.xanchor[2, 0]) + viewer.picture.offset
    np.testing.assert_allclose(asked_label(viewer).position, root, atol=1e-6)


def test_a_click_on_a_body_says_what_it_is(
    sim: Simulation, viewer: Viewer, client: Client
) -> None:
    arm = sim.model.body("robot/arm").id
    mesh = next(
        mesh for mesh in meshes_of(viewer) if not mesh.is_site and arm in mesh.bodies
    )
    k = next(i for i, one in enumerate(mesh.instances) if one.row == 2)
    client.send(
        "SceneNodeClickMessage", name=mesh.handle.name, instance_index=k,
        ray_origin=[0, 0, 0], ray_direction=[0, 0, 1], screen_pos=[0.5, 0.5],
        modifier=None, owner="",
    )  # fmt: skip
    run_until(viewer, lambda: "robot/arm" in viewer.panel.answer.content, "the click")
    assert viewer.picture.world == 2
    text = viewer.panel.answer.content
    com = host(sim.scene["robot"].data.body_com_pos_w[2, 1])
    assert f"{com[0]:.4g}" in text
    assert "body_com_lin_vel_w" in text
    run_until(viewer, lambda: viewer.picture.asked.text, "the label")
    place = host(sim.data.xpos[2, arm])
    assert f"robot/arm: ({place[0]:.4g}, " in viewer.picture.asked.text
    label = asked_label(viewer)
    np.testing.assert_allclose(
        label.position, place + viewer.picture.offsets[2], atol=1e-6
    )
    run_until(viewer, lambda: viewer.panel.world.value == 2, "the number's change")
    client.set("step", True)
    run_until(viewer, lambda: float(sim.time[2]) > 0.0, "the step")
    com = host(sim.scene["robot"].data.body_com_pos_w[2, 1])
    assert f"({com[0]:.4g}, {com[1]:.4g}, {com[2]:.4g})" not in text
    there = f"({com[0]:.4g}, {com[1]:.4g}, {com[2]:.4g})"
    run_until(viewer, lambda: there in viewer.panel.answer.content, "the new values")
    client.set("world", 0)
    run_until(viewer, lambda: not viewer.picture.asked.text, "the label's end")
    assert "world" in text


def test_two_clients_and_one_that_goes_away(
    sim: Simulation, viewer: Viewer, client: Client
) -> None:
    other = Client(viewer.url)
    run_until(viewer, lambda: viewer.num_clients == 2, "the second client")
    other.set("step", True)
    run_until(viewer, lambda: float(sim.time[0]) > 0.0, "its step")
    other.close()
    run_until(viewer, lambda: viewer.num_clients == 1, "its end")
    client.set("step", True)
    run_until(viewer, lambda: float(sim.time[0]) > 1.5 * sim.timestep, "the other's")


def test_what_waits_for_a_slow_client_is_bounded(
    sim: Simulation, viewer: Viewer, client: Client
) -> None:
    """The client reads nothing: of each thing only the newest state waits for it."""
    for name in ("link frames", "COM velocities", "contacts"):
        viewer.picture.show_overlay(name, True)
    waiting: list[int] = []
    for _ in range(3):
        for _ in range(60):
            sim.step()
            viewer.show()
        waiting.append(num_waiting_messages(viewer))
    assert viewer.num_clients == 1
    # Every frame sends a place for each of the meshes; things that appear add some.
    assert waiting[2] - waiting[0] < 120 * len(meshes_of(viewer)) / 2
    client.control("run")  # it reads again, and is still served


def test_plots_follow_the_world_shown(
    sim: Simulation, viewer: Viewer, client: Client
) -> None:
    client.set("source", "robot.joint_pos")
    client.set("only", "wrist")
    client.set("world", 1)
    run_until(viewer, lambda: viewer.picture.world == 1, "the other world")
    for _ in range(4):
        client.set("step", True)
    run_until(viewer, lambda: float(sim.time[1]) > 3.5 * sim.timestep, "the steps")
    run_until(viewer, lambda: viewer.panel.plots[0].curves == ["wrist"], "the plot")
    viewer.show()
    data = viewer.panel.plots[0].data
    assert data[-1, 0] == float(sim.time[1])
    assert data[-1, 1] == float(sim.scene["robot"].data.joint_pos[1, 1])


def test_a_script_is_held_while_a_client_has_paused(
    sim: Simulation, viewer: Viewer, client: Client
) -> None:
    viewer.session.play(True)
    sim.step()
    viewer.sync()
    client.set("play", False)
    client.set("step", True)  # lets it pass once
    end = time.monotonic() + 60.0
    while viewer.session.playing:
        assert time.monotonic() < end, "the pause did not come within a minute"
        sim.step()
        viewer.sync()
    held = float(sim.time[0])
    client.set("play", True)
    viewer.sync()
    assert viewer.session.playing
    assert float(sim.time[0]) == held


def test_a_click_on_an_arrow_says_its_value_at_its_tip(
    sim: Simulation, viewer: Viewer, client: Client
) -> None:
    viewer.picture.show_overlay("COM velocities", True)
    run_until(viewer, lambda: is_painted(viewer, "COM velocities"), "it")
    shafts = handles_of(viewer, "COM velocities")["shafts"]
    client.send(
        "SceneNodeClickMessage", name=shafts.name, instance_index=1,
        ray_origin=[0, 0, 0], ray_direction=[0, 0, 1], screen_pos=[0.5, 0.5],
        modifier=None, owner="",
    )  # fmt: skip
    run_until(viewer, lambda: viewer.picture.asked.text, "the label")
    text = " ".join(viewer.picture.asked.text.split())
    velocity = host(sim.scene["robot"].data.body_com_lin_vel_w[0, 1])
    assert f"robot/arm: body_com_lin_vel_w = ({velocity[0]:.4g}, " in text
    assert "m/s" in text
    com = host(sim.scene["robot"].data.body_com_pos_w[0, 1])
    tip = com + 0.3 * velocity + viewer.picture.offset
    np.testing.assert_allclose(asked_label(viewer).position, tip, atol=1e-6)
    client.set("step", True)
    run_until(viewer, lambda: not viewer.picture.asked.text, "its end")
