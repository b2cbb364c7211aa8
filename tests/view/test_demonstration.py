"""Worlds driven by hand in the viewer, recorded as an episode that replays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.inside import actions_of, demonstration_path, server_of
from tests.raised import raises
from tests.view.client import Client
from tests.view.scenes import host, run_until

from simstate import EntityCfg, InvalidInputError, SceneCfg, Simulation
from simstate.data.replay import replay
from simstate.env import Env, tasks
from simstate.env.task_course import TaskCourse
from simstate.record import Recording
from simstate.view import Course, start_viewer
from simstate.view.demonstration import HandDemonstration

LEASH = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body name="post" pos="0.3 0 0.5"><geom size="0.1 0.1 0.1" type="box"/></body>
    <body name="hand" mocap="true" pos="0.2 -0.3 0.6">
      <geom size="0.03" contype="0" conaffinity="0"/>
    </body>
    <body name="load" pos="0.25 -0.3 0.4" quat="0.9 0.1 0.2 0.3">
      <freejoint/><geom size="0.05" pos="0.01 0.02 0" mass="0.7"/>
    </body>
  </worldbody>
  <equality><connect body1="hand" body2="load" anchor="0.01 0 -0.1"/></equality>
</mujoco>
"""


def make() -> Simulation:
    scene = SceneCfg(
        entities={"rig": EntityCfg(model=LEASH)}, ground=False, timestep=None
    )
    sim = Simulation(scene, 3, seed=4)
    sim.data.qvel[:] = torch.randn(
        3, 6, generator=torch.Generator().manual_seed(1), dtype=sim.dtype
    )
    return sim


def test_a_client_drives_a_mocap_body_by_keys_and_downloads_the_episode(
    tmp_path: Path,
) -> None:
    sim = make()
    sim.step(5)
    with sim.view(port=0, playing=False) as viewer:
        sent: list[tuple[str, bytes]] = []
        client = Client(viewer.url)
        run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
        client.set("world", 1)
        run_until(viewer, lambda: viewer.picture.world == 1, "the world")
        client.set("start recording", True)
        run_until(viewer, lambda: viewer.demonstration.is_recording, "the start")
        run_until(viewer, lambda: float(sim.time[1]) > 0.05, "some steps")
        for key, count in (("I", 3), ("L", 2), ("O", 1)):
            for _ in range(count):
                press(client, key)
        goal = [0.2 + 0.3, -0.3 - 0.2, 0.6 - 0.1]
        run_until(
            viewer,
            lambda: np.allclose(host(sim.data.mocap_pos[1, 0]), goal, atol=1e-6),
            "the keys",
        )
        still = host(sim.data.mocap_pos[[0, 2], 0])
        np.testing.assert_allclose(still, [[0.2, -0.3, 0.6]] * 2)
        now = float(sim.time[1])
        run_until(viewer, lambda: float(sim.time[1]) > now + 0.1, "more steps")
        (handle,) = server_of(viewer).get_clients().values()
        handle.send_file_download = lambda *file: sent.append(file)
        client.set("stop and download", True)
        run_until(viewer, lambda: sent, "the download")
        assert not viewer.session.playing
        client.close()
    ((name, content),) = sent
    path = tmp_path / name
    path.write_bytes(content)
    found = replay(path)
    assert found.is_same
    with Recording(path) as recording:
        assert recording.worlds == [1]
        assert float(recording.time[0]) == 0.0  # an episode from its start
        assert recording.num_steps > 15
        hand = recording["mocap_pos"][:, 0, 0].numpy()
        np.testing.assert_allclose(hand[[0, -1]], [[0.2, -0.3, 0.6], goal], atol=1e-6)


def press(client: Client, key: str) -> None:
    """Press a key of the page, as viser reports it."""

    def found() -> str | None:
        keys = [m for m in client.messages if m["type"] == "RegisterCommandMessage"]
        return next((m["uuid"] for m in keys if m["props"]["hotkey"] == key), None)

    client.send("CommandTriggerMessage", uuid=client.receive(found))


def test_velocity_commands_are_held_until_a_reset(tmp_path: Path) -> None:
    cfg = tasks.find("Quadruped-Velocity").env_cfg()
    env = Env(cfg, 3, seed=2)
    env.reset()
    course = TaskCourse(env, None, "Quadruped-Velocity")
    hand = HandDemonstration(course)
    names = [one.name for one in hand.drives]
    assert [name.split()[-1] for name in names] == [
        "lin_vel_x", "lin_vel_y", "ang_vel_z",
    ]  # fmt: skip
    (command,) = env.commands.values()
    before = host(command.command)
    hand.start(1)
    with raises(InvalidInputError, name="start"):
        hand.start(2)
    hand.drives[0].write(1, 0.4)
    hand.nudge(2, -1, 1)
    turn = float(command.command[1, 2])
    for _ in range(600):  # longer than a command is kept otherwise
        course.advance()
        if not float(env.sim.time[1]):
            break  # it fell, which is a reset
        assert float(command.command[1, 0]) == pytest.approx(0.4)
        assert float(command.command[1, 2]) == pytest.approx(turn)
        if float(env.sim.time[1]) > 0.5:
            break
    np.testing.assert_array_equal(host(command.command[2]), before[2])
    path = tmp_path / "walk.simrec"
    path.write_bytes(hand.stop())
    with raises(InvalidInputError, name="stop"):
        hand.stop()
    assert replay(path).is_same
    with Recording(path) as recording:
        assert recording.header["task"] == "Quadruped-Velocity"
        assert "action" in recording.names


def test_drives_stay_in_their_ranges_and_return_to_the_middle() -> None:
    sim = make()
    hand = HandDemonstration(Course(sim, sim.rays))
    assert [one.name for one in hand.drives] == [
        "rig/hand x", "rig/hand y", "rig/hand z",
    ]  # fmt: skip
    for _ in range(30):
        hand.nudge(1, 1, 2)
    hand.nudge(7, 1, 2)  # a key of a drive that is not there
    np.testing.assert_allclose(host(sim.data.mocap_pos[2, 0]), [0.2, 0.7, 0.6])
    hand.centre(2)
    np.testing.assert_allclose(host(sim.data.mocap_pos[2, 0]), [0.2, -0.3, 0.6])


def test_a_viewer_that_closes_ends_the_recording() -> None:
    sim = make()
    course: Any = Course(sim, sim.rays)
    with start_viewer(course, "127.0.0.1", 0, None, None, False) as viewer:
        actions_of(viewer).start_demonstration()
        path = demonstration_path(viewer)
        assert path.exists()
    assert not path.exists()
    sim.step()  # nothing records it any more
