"""Screenshots of the viewer for docs/see-it.md, by a headless Chromium.

make browser screenshots     # or python docs/screenshots.py; takes a few minutes
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.view.chromium import Chromium  # noqa: E402

from simstate import Simulation  # noqa: E402
from simstate.cli.model_scene import disturb, scene_of  # noqa: E402
from simstate.data.replay.recorded_course import RecordedCourse  # noqa: E402
from simstate.env import Env, tasks  # noqa: E402
from simstate.view import ComparedCourse, Course, start_viewer  # noqa: E402
from simstate.view.viewer import Viewer  # noqa: E402

FIGURES = Path(__file__).parent / "figures"
PATIENCE = 25.0
"""How long a page may take to be drawn [s]: about a picture a second."""


def shoot(viewer: Viewer, name: str, tab: str, *then: str) -> None:
    """Open the viewer, choose a tab, press what else is named, and take a picture."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            browser = Chromium((1280, 720))
            try:
                browser.open(viewer.url)
                time.sleep(PATIENCE)
                browser.evaluate(
                    "document.querySelectorAll('.mantine-Notification-closeButton')"
                    ".forEach(e => e.click())"
                )
                for label in (tab, *then):
                    assert browser.click(label), label
                    time.sleep(2.0)
                time.sleep(PATIENCE / 2)
                browser.screenshot(FIGURES / name)
                assert not browser.errors, browser.errors
            finally:
                browser.close()
        except BaseException as error:
            failed.append(error)
        finally:
            viewer.session.ask(viewer.close)

    thread = threading.Thread(target=work)
    thread.start()
    viewer.run(300.0)
    thread.join()
    if failed:
        raise failed[0]
    print(FIGURES / name)


def contacts() -> None:
    """One quadruped that stands, with contact forces and link frames."""
    sim = Simulation(scene_of("quadruped"))
    sim.step(round(0.6 / sim.timestep))
    with sim.view(port=0, playing=False) as viewer:
        for name in ("contacts", "link frames"):
            viewer.panel.overlays[name].value = True
            viewer.picture.show_overlay(name, True)
        shoot(viewer, "view_contacts.png", "Show")


def plots() -> None:
    """A humanoid that falls, with velocities and a plot."""
    sim = Simulation(scene_of("humanoid"))
    disturb(sim, 1.0, 0)
    with sim.view(port=0, playing=False) as viewer:
        viewer.picture.show_overlay("COM velocities", True)
        viewer.panel.plots[0].source.value = "robot.root_link_lin_vel_w"
        for _ in range(120):
            sim.step(2)
            viewer._frames = 2
            viewer.panel.plots[0].sample(0, float(sim.time[0]))
        shoot(viewer, "view_plot.png", "Plot")


def worlds() -> None:
    """Worlds of a task side by side, with the command of one."""
    env = Env(tasks.find("Quadruped-Velocity").env_cfg(), 16, seed=2)
    with env.view(port=0, playing=False) as viewer:
        for _ in range(8):
            viewer.session.step()
        viewer.picture.show_overlay("commands", True)
        viewer.picture.show_overlay("link velocities", True)
        shoot(viewer, "view_worlds.png", "Run")


def ask() -> None:
    """What a number means, asked in the page."""
    sim = Simulation(scene_of("quadruped"))
    sim.step(50)
    with sim.view(port=0, playing=False) as viewer:
        viewer.panel._actions.explain("qvel[3:6]")
        shoot(viewer, "view_ask.png", "Ask")


def recording() -> None:
    """A recorded task at a moment, with its timeline and a plot of all of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.simrec"
        env = Env(tasks.find("Quadruped-Velocity").env_cfg(), 4, seed=3)
        noise = torch.Generator().manual_seed(1)
        with env.record(
            path, quantities=["robot.joint_pos"], task="Quadruped-Velocity"
        ):
            for _ in range(150):
                shape = env.num_envs, env.action_dim
                env.step(2.0 * torch.randn(*shape, generator=noise))
        with RecordedCourse.open(path) as course:
            with start_viewer(course, "127.0.0.1", 0, None, 4, False) as viewer:
                viewer.picture.show_overlay("contacts", True)
                viewer.picture.look_at(1)
                viewer.panel._actions.go_to(97)
                shoot(viewer, "view_recording.png", "Run")
            with start_viewer(course, "127.0.0.1", 0, None, 1, False) as viewer:
                viewer.panel.plots[0].source.value = "recorded robot.joint_pos"
                viewer.panel.plots[0].part.value = "FL"
                shoot(viewer, "view_recorded_plot.png", "Plot")


def compared() -> None:
    """Quadrupeds that land, and the same with a heavier trunk, coloured by how far."""
    scene = scene_of("quadruped")
    sims = [Simulation(scene, 2) for _ in range(2)]
    sims[1].expand("body_mass")[:, 1] *= torch.tensor([1.002, 1.2], dtype=sims[1].dtype)
    for sim in sims:
        disturb(sim, 6.0, 0)
    first, second = (Course(sim, sim.rays) for sim in sims)
    pair = ComparedCourse(first, second, "heavier")
    for _ in range(160):
        pair.advance()
    with start_viewer(pair, "127.0.0.1", 0, None, 2, False) as viewer:
        viewer.picture.show_overlay("difference", True)
        viewer.panel._actions.tell_differences()
        shoot(viewer, "view_compared.png", "Compare")


ALL: dict[str, Callable[[], None]] = {
    "contacts": contacts, "plots": plots, "worlds": worlds, "ask": ask,
    "recording": recording, "compared": compared,
}  # fmt: skip

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        ALL[name]()
