"""Controls of the panel do what their labels say, and take only fitting values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from tests.inside import meshes_of, server_of
from tests.view.client import Client
from tests.view.scenes import host, make_sim, run_on, run_until

from simstate import Simulation
from simstate.view.grid import offsets, shown_worlds
from simstate.view.server import is_fitting
from simstate.view.viewer import Viewer


@pytest.fixture(scope="module")
def sim() -> Simulation:
    return make_sim(5)


@pytest.fixture(scope="module")
def viewer(sim: Simulation) -> Iterator[Viewer]:
    with sim.view(port=0, playing=False) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def client(viewer: Viewer) -> Iterator[Client]:
    client = Client(viewer.url, close_timeout=0.3)  # it does not read all that comes
    run_until(viewer, lambda: viewer.num_clients == 1, "the connection")
    yield client
    client.close()


def test_worlds_and_their_spacing(viewer: Viewer, client: Client) -> None:
    picture = viewer.picture
    client.set("worlds shown", 4)
    client.set("spacing [m]", 2.5)
    run_until(viewer, lambda: picture.spacing == 2.5 and picture.count == 4, "both")
    assert picture.shown == [0, 1, 2, 3]
    sides = picture.offsets.max(axis=0) - picture.offsets.min(axis=0)
    np.testing.assert_allclose(sides, [2.5, 2.5, 0.0])
    client.set("world", 4)
    run_until(viewer, lambda: picture.world == 4, "the world")
    assert picture.shown == [1, 2, 3, 4]


def test_a_followed_body_stays_where_it_is(
    sim: Simulation, viewer: Viewer, client: Client
) -> None:
    picture = viewer.picture
    (handle,) = server_of(viewer).get_clients().values()
    before = np.array(handle.camera.position)
    client.set("follow", "robot/arm")
    run_until(viewer, lambda: np.any(picture.moved), "following")
    place = host(sim.data.xpos[picture.world, sim.model.body("robot/arm").id])
    middle = picture.middle
    np.testing.assert_allclose(picture.moved, middle - place - picture.offset)
    run_on(viewer)
    np.testing.assert_allclose(
        handle.camera.position, before + picture.moved, atol=1e-5
    )
    sim.data.qpos[picture.world, 0] += 0.4
    viewer.show()
    np.testing.assert_allclose(
        picture.moved, middle - place - picture.offset - [0.4, 0.0, 0.0], atol=1e-9
    )
    client.set("follow", "nothing")
    run_until(viewer, lambda: not np.any(picture.moved), "the end of it")


@pytest.mark.parametrize(
    ("name", "axis", "sign"), [("front", 0, 1), ("side", 1, -1), ("above", 2, 1)]
)
def test_directions_of_view(viewer: Viewer, client: Client, name, axis, sign) -> None:
    picture = viewer.picture
    position, goal = picture.camera(name)
    away = position - goal
    assert np.argmax(np.abs(away)) == axis
    assert np.sign(away[axis]) == sign
    np.testing.assert_allclose(goal, picture.middle)
    assert np.linalg.norm(away) > picture.size
    client.set("look from", name)
    (handle,) = server_of(viewer).get_clients().values()
    run_until(viewer, lambda: np.allclose(handle.camera.position, position), "the view")
    np.testing.assert_allclose(handle.camera.look_at, goal, atol=1e-5)


def test_overlays_arrows_values_and_speed(viewer: Viewer, client: Client) -> None:
    picture = viewer.picture
    name = next(iter(viewer.panel.overlays))
    client.set(name, True)
    client.set("length of arrows", 2.5)
    client.set("values of forces", False)
    client.set("slower", True)
    run_until(viewer, lambda: viewer.session.speed == 0.5, "the speed")
    assert name in picture.overlays
    assert (picture.scale, picture.values) == (2.5, False)
    client.set(name, False)
    for _ in range(3):
        client.set("faster", True)
    run_until(viewer, lambda: viewer.session.speed == 4.0, "the speed")
    assert name not in picture.overlays


def test_groups_are_shown_and_hidden(viewer: Viewer, client: Client) -> None:
    def visible(is_site: bool) -> set[bool]:
        meshes = meshes_of(viewer)
        own = [m for m in meshes if m.is_site is is_site and m.group == 0]
        return {m.handle.visible for m in own}

    client.boxes("012345", 12)
    boxes = [
        message["uuid"]
        for message in client.messages
        if "Checkbox" in message["type"] and message["props"]["label"] == "0"
    ]
    for uuid, is_site, shown in ((boxes[0], False, False), (boxes[1], True, True)):
        assert visible(is_site) == {not shown}
        client.send("GuiUpdateMessage", uuid=uuid, updates={"value": shown})
        run_until(viewer, lambda a=is_site, b=shown: visible(a) == {b}, "the group")
    assert visible(False) == {False}


def test_a_quantity_is_read_to_be_changed(
    sim: Simulation, viewer: Viewer, client: Client
) -> None:
    client.set("quantity", "robot.root_link_pose_w")
    client.send(
        "GuiUpdateMessage", uuid=client.control("read", "Button"),
        updates={"value": True},
    )  # fmt: skip
    pose = sim.scene["robot"].data.root_link_pose_w[viewer.picture.world]
    wanted = " ".join(f"{x:.6g}" for x in pose.tolist())
    run_until(viewer, lambda: viewer.panel.values.value == wanted, "the values")


@pytest.mark.parametrize(
    ("now", "value", "fits"),
    [
        (True, False, True), (True, 1, False), (True, "yes", False),
        (2, 3, True), (2, 5, True), (2, 5.1, False), (2, -1.1, False), (2, True, False),
        (2, math.nan, False), (2.0, -1.0, True), (2.0, "2", False),
        (2.0, 5.0 + 5e-6, True), (2.0, 5.0 + 7e-6, False), (2.0, -1.0 - 5e-6, True),
        ("a", "b", True), ("a", "c", False), ("a", 3, False),
        ((1.0, 2.0), [3.0, 4], True), ((1.0, 2.0), [3.0], False),
        ((1.0, 2.0), [3.0, 4, 5], False), ((1.0, 2.0), [3.0, "x"], False),
        ((1.0, 2.0), [3.0, math.inf], False), ((1.0, 2.0), 3.0, False),
        (None, 1, False),
    ],
)  # fmt: skip
def test_values_that_a_control_takes(now, value, fits) -> None:
    control = SimpleNamespace(value=now, min=-1.0, max=5.0)
    if isinstance(now, str):
        control.options = ("a", "b")
    assert is_fitting(control, value) is fits


def test_text_without_options_is_of_limited_length() -> None:
    control = SimpleNamespace(value="")
    assert is_fitting(control, "x" * 10_000)
    assert not is_fitting(control, "x" * 10_001)
    free = SimpleNamespace(value=1.0)
    assert is_fitting(free, 1e30)
    assert is_fitting(SimpleNamespace(value=1.0, min=0.0), 1e30)
    assert not is_fitting(SimpleNamespace(value=1.0, min=0.0), -1e-9)
    assert is_fitting(SimpleNamespace(value=1.0, min=0.0), 0.0)
    assert is_fitting(SimpleNamespace(value=1.0, max=3.0), 3.0)


@pytest.mark.parametrize("count", [1, 2, 5, 9, 12])
def test_worlds_lie_on_a_grid_about_the_origin(count: int) -> None:
    places = offsets(count, 1.5)
    side = math.ceil(math.sqrt(count))
    full = places[: count // side * side]
    np.testing.assert_allclose(full[:, 0].mean(), 0.0, atol=1e-12)
    low, high = places.min(axis=0), places.max(axis=0)
    np.testing.assert_allclose(low + high, 0.0, atol=1e-12)
    gaps = [np.linalg.norm(a - b) for k, a in enumerate(places) for b in places[:k]]
    assert not gaps or min(gaps) == pytest.approx(1.5)
    assert shown_worlds(7, 4, 10) == [4, 5, 6, 7]
    assert shown_worlds(9, 4, 10) == [6, 7, 8, 9]
    assert shown_worlds(0, 40, 3) == [0, 1, 2]


def test_plots_are_numbered(viewer: Viewer) -> None:
    fresh = Client(viewer.url, close_timeout=0.3)
    count = len(viewer.panel.plots)
    assert count >= 1
    fresh.control(f"plot {count}")
    labels = [m["props"].get("label") for m in fresh.messages if m.get("props")]
    fresh.close()
    folders = [text for text in labels if str(text).startswith("plot ")]
    assert folders[:count] == [f"plot {k}" for k in range(1, count + 1)]
