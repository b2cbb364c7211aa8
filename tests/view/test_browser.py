"""The page in a real Chromium: it loads, shows, and acts on the simulation."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.inside import server_of, set_overlay
from tests.view.chromium import Chromium
from tests.view.scenes import host, make_sim, run_until

from simstate import Simulation
from simstate.data.replay.recorded_course import RecordedCourse
from simstate.view import ComparedCourse, start_viewer
from simstate.view.viewer import Viewer


@pytest.fixture
def sim() -> Simulation:
    return make_sim(3)


@pytest.fixture
def viewer(sim: Simulation, browser: Chromium) -> Iterator[Viewer]:
    with sim.view(port=0, playing=False) as viewer:
        browser.errors.clear()
        browser.open(viewer.url)
        try:
            patiently(viewer, lambda: viewer.num_clients == 1, "the connection")
        except AssertionError:
            pytest.skip("Chromium did not open the page within three minutes.")
        yield viewer


def patiently(viewer: Viewer, condition: Callable[[], object], what: str) -> None:
    """As run_until, for a browser that draws one picture a second."""
    for _ in range(3):
        try:
            return run_until(viewer, condition, what)
        except AssertionError:
            continue
    raise AssertionError(f"{what} did not happen within three minutes")


def meanwhile(viewer: Viewer, work: Callable[[], object], what: str) -> object:
    """What the browser does, while the viewer runs."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    patiently(viewer, lambda: found, what)
    return found[0]


def press(
    viewer: Viewer, browser: Chromium, label: str, until: Callable[[], object]
) -> None:
    """Click what has this label until it has its effect.

    A page that is being laid out may lose a click.
    """
    for _ in range(20):
        meanwhile(viewer, lambda: browser.click(label), label)
        for _ in range(100):
            if until():
                return
            viewer.run(0.1)
    raise AssertionError(f"{label} had no effect")


def test_the_page_loads_without_an_error(viewer: Viewer, browser: Chromium) -> None:
    text = "document.body.innerText.includes('reset all worlds')"
    patiently(
        viewer,
        lambda: meanwhile(viewer, lambda: browser.evaluate(text), "the page"),
        "the controls' being there",
    )
    assert browser.errors == []


@pytest.mark.browser
def test_the_buttons_of_the_page_act(
    sim: Simulation, viewer: Viewer, browser: Chromium
) -> None:
    press(viewer, browser, "❙▶", lambda: float(sim.time[0]) > 0.0)
    steps = float(sim.time[2]) / sim.timestep
    assert steps == pytest.approx(round(steps))
    press(viewer, browser, "▶", lambda: viewer.session.playing)
    patiently(viewer, lambda: float(sim.time[0]) > 0.05, "playing")
    press(viewer, browser, "❚❚", lambda: not viewer.session.playing)
    press(viewer, browser, "reset all worlds", lambda: float(sim.time.max()) == 0.0)
    assert browser.errors == []


@pytest.mark.browser
def test_a_recording_and_another_next_to_it_in_the_page(
    browser: Chromium, tmp_path: Path
) -> None:
    paths = [tmp_path / "one.simrec", tmp_path / "other.simrec"]
    for path, push in zip(paths, (0.0, 0.4), strict=True):
        recorded = make_sim(2, on_divergence="mask")
        recorded.data.qvel[:, 0] += push
        with recorded.record(path, fields=["qpos"]):
            recorded.step(4)
            recorded.step(4)
            recorded.reset([0])
            recorded.step(4)
    # A recording brings no rays: the function that makes the worlds does.
    first, second = (RecordedCourse.open(path, make_sim(2)) for path in paths)
    course = ComparedCourse(first, second, "pushed")
    with start_viewer(course, "127.0.0.1", 0, None, 1, False) as viewer:
        browser.open(viewer.url)
        patiently(viewer, lambda: viewer.num_clients == 1, "the connection")
        browser.errors.clear()  # the page before could not reach its server any more
        press(viewer, browser, "to the next mark", lambda: course.at == 2)
        press(viewer, browser, "◀❙", lambda: course.at == 1)
        for _ in range(20):  # a page that is being laid out may lose a click
            for label in ("Compare", "list differences"):
                meanwhile(viewer, lambda label=label: browser.click(label), label)
                viewer.run(2.0)
            if "pushed" in viewer.panel.answer.content:
                break
        assert "pushed" in viewer.panel.answer.content
        assert browser.errors == []


@pytest.mark.browser
def test_an_overlay_is_at_its_pixel(
    sim: Simulation, viewer: Viewer, browser: Chromium
) -> None:
    """A red ball on the hand, projected by the camera that the page says it has."""
    from PIL import Image

    from simstate.view.shapes import Point

    hand = host(sim.scene["robot"].data.body_com_pos_w[1, 2])
    ink = (255, 0, 255)
    set_overlay(viewer, "pull", lambda seen: [Point(hand, 0.06, ink, "hand")])
    viewer.picture.look_at(1)
    viewer.picture.count, viewer.picture.spacing = 3, 0.8
    viewer.picture.place_worlds()
    place = hand + viewer.picture.offset + viewer.picture.moved
    (client,) = server_of(viewer).get_clients().values()
    client.camera.position = place + np.array([0.8, -0.9, 0.7])
    client.camera.look_at = place + np.array([0.1, 0.05, -0.08])  # not in the middle
    viewer.run(20.0)
    shot = meanwhile(viewer, browser.screenshot, "the picture")
    pixels = np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    drawn = (red > 90) & (blue > 90) & (green < 0.6 * red) & (green < 0.6 * blue)
    assert drawn.sum() > 20
    rows, columns = np.nonzero(drawn)
    row, column = _project(client.camera, place)
    assert abs(rows.mean() - row) < 6.0
    assert abs(columns.mean() - column) < 6.0


def _project(camera: object, place: np.ndarray) -> tuple[float, float]:
    """Row and column of a point in a pinhole camera, x right, y down, z forward."""
    import mujoco

    turned = np.zeros(9)
    mujoco.mju_quat2Mat(turned, np.array(camera.wxyz, dtype=np.float64))
    x, y, z = turned.reshape(3, 3).T @ (place - np.array(camera.position))
    focal = camera.image_height / 2.0 / np.tan(camera.fov / 2.0)
    return (
        camera.image_height / 2.0 + focal * y / z,
        camera.image_width / 2.0 + focal * x / z,
    )
