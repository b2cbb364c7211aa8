"""Shapes of overlays as triangles, nodes of a page and geoms of MuJoCo's scene."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from simstate.view.gl_shapes import add_shapes, add_surface
from simstate.view.paint import Painting
from simstate.view.shape_meshes import shape_triangles
from simstate.view.shapes import (
    BLUE,
    GREEN,
    MOST_LABELS,
    RED,
    TEAL,
    Arrow,
    Axes,
    Box,
    Label,
    Path,
    Point,
    labels_of,
    of_kind,
    place_of,
    shifted,
)

SIZE = 1.5
START, VECTOR = np.array([0.3, -0.2, 0.7]), np.array([0.4, 0.9, -0.5])
POS, HALF = np.array([-0.4, 0.6, 0.1]), np.array([0.2, 0.5, 0.3])
QUAT = np.array([0.8, 0.1, -0.5, 0.3])
TURN = Rotation.from_quat(QUAT[[1, 2, 3, 0]]).as_matrix()
WAY = np.array([[0.0, 0.0, 0.0], [1.0, 0.2, 0.0], [1.0, 0.2, 0.0], [0.5, 0.5, 2.0]])
OFFSET = np.array([10.0, -20.0, 5.0])
ARROW, POINT = Arrow(START, VECTOR, TEAL, "arrow"), Point(POS, 0.25, RED, "ball")
AXES, BOX = Axes(POS, QUAT, 0.4, "axes"), Box(POS, QUAT, HALF, BLUE, "box")
PATH, LABEL = Path(WAY, GREEN, "path"), Label(POS, 2.0, "label")


def volume(corners: np.ndarray) -> float:
    """The volume within triangles that are counter-clockwise from outside."""
    a, b, c = np.moveaxis(corners - corners.mean((0, 1)), 1, 0)
    return float((np.cross(a, b) * c).sum() / 6.0)


def along(corners: np.ndarray, start: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Distances of corners from a line: along it, and from it."""
    unit = vector / np.linalg.norm(vector)
    away = corners.reshape(-1, 3) - start
    far = away @ unit
    return np.stack([far, np.linalg.norm(away - far[:, None] * unit, axis=1)], axis=1)


def test_an_arrow_is_a_shaft_and_a_head_that_ends_at_its_tip() -> None:
    length = np.linalg.norm(VECTOR)
    (shaft, ink), (head, other) = shape_triangles([ARROW], SIZE)
    assert ink.shape == (len(shaft), 3)
    assert (ink == TEAL).all()
    assert (other == TEAL).all()
    far, wide = along(shaft, START, VECTOR).T
    neck = length - 0.06 * SIZE  # shorter than 0.4 of the arrow
    assert (far.min(), far.max()) == pytest.approx((0.0, neck))
    assert wide.max() == pytest.approx(0.006 * SIZE)
    far, wide = along(head, START, VECTOR).T
    assert (far.min(), far.max()) == pytest.approx((neck, length))
    assert wide[far > length - 1e-9].max() == pytest.approx(0.0, abs=1e-12)
    assert wide.max() == pytest.approx(0.06 * SIZE / 2.5)
    # Cones with eight sides, seen from outside; the shaft's end is within the head.
    share = 8 * np.sin(np.pi / 4) / 2
    assert volume(head) == pytest.approx(share * wide.max() ** 2 * 0.06 * SIZE / 3)
    short = Arrow(START, 0.01 * VECTOR, TEAL, "")
    (_, _), (head, _) = shape_triangles([short], SIZE)
    far, _ = along(head, START, VECTOR).T
    assert far.max() - far.min() == pytest.approx(0.4 * 0.01 * length)
    assert list(shape_triangles([Arrow(START, 0 * VECTOR, TEAL, "")], SIZE)) == []


def test_a_ball_is_round_and_closed() -> None:
    ((corners, ink),) = shape_triangles([POINT], SIZE)
    np.testing.assert_allclose(np.linalg.norm(corners - POS, axis=2), 0.25)
    assert volume(corners) == pytest.approx(4 / 3 * np.pi * 0.25**3, rel=0.12)
    assert (ink == RED).all()


def test_axes_edges_and_paths_are_where_they_are() -> None:
    pieces = list(shape_triangles([AXES], SIZE))
    for k, (corners, ink) in enumerate(pieces):
        far, wide = along(corners, POS, TURN[:, k]).T
        assert (far.min(), far.max()) == pytest.approx((0.0, 0.4), abs=1e-12)
        assert wide.max() == pytest.approx(0.006 * SIZE)
        assert (ink == (RED, GREEN, BLUE)[k]).all()
    edges = list(shape_triangles([BOX], SIZE))
    assert len(edges) == 12
    total = np.zeros(3)
    for corners, _ in edges:
        local = (corners.reshape(-1, 3) - POS) @ TURN
        span = local.max(0) - local.min(0)
        axis = int(span.argmax())
        total[axis] += span[axis]
        others = [k for k in range(3) if k != axis]
        middle = (local.max(0) + local.min(0))[others] / 2
        np.testing.assert_allclose(np.abs(middle), HALF[others], atol=1e-3)
        assert span[others].max() == pytest.approx(0.006 * SIZE, rel=0.1)
    np.testing.assert_allclose(total, 8 * HALF)
    pieces = list(shape_triangles([PATH], SIZE))
    assert len(pieces) == 2  # not of the point that occurs twice
    for (corners, _), (start, end) in zip(pieces, ((0, 1), (2, 3)), strict=True):
        far, wide = along(corners, WAY[start], WAY[end] - WAY[start]).T
        length = np.linalg.norm(WAY[end] - WAY[start])
        assert (far.min(), far.max()) == pytest.approx((0.0, length), abs=1e-9)
        assert wide.max() == pytest.approx(0.003 * SIZE)


def test_shapes_have_a_place_and_are_shifted() -> None:
    for shape, place in (
        (ARROW, START + VECTOR), (POINT, POS), (AXES, POS), (BOX, POS), (LABEL, POS),
        (PATH, WAY[-1]),
    ):  # fmt: skip
        np.testing.assert_allclose(place_of(shape), place)
        np.testing.assert_allclose(place_of(shifted(shape, OFFSET)), place + OFFSET)
    moved = shifted(PATH, OFFSET)
    assert isinstance(moved, Path)
    np.testing.assert_allclose(moved.points, WAY + OFFSET)
    bad = Arrow(START, np.array([0.0, np.nan, 1.0]), RED, "")
    assert of_kind([bad, ARROW, POINT], Arrow) == [ARROW]
    labels = [Label(POS, float(k % 19), f"{k}") for k in range(19)]
    found = [int(one.text) for one in labels_of(labels)]
    assert found == list(range(19 - MOST_LABELS, 19))
    assert labels_of(labels[:MOST_LABELS]) == labels[:MOST_LABELS]


# In MuJoCo's scene.


@pytest.fixture
def scene() -> mujoco.MjvScene:
    return mujoco.MjvScene(mujoco.MjModel.from_xml_string("<mujoco/>"), 40)


def geoms(scene: mujoco.MjvScene) -> list[Any]:
    return [scene.geoms[k] for k in range(scene.ngeom)]


def test_geoms_of_the_scene_are_where_the_shapes_are(scene: mujoco.MjvScene) -> None:
    add_shapes(scene, [PATH, LABEL, BOX, AXES, POINT, ARROW], OFFSET, SIZE)
    kinds = mujoco.mjtGeom
    arrow, ball, *rest = geoms(scene)
    assert arrow.type == kinds.mjGEOM_ARROW
    np.testing.assert_allclose(arrow.pos, START + OFFSET, atol=1e-6)
    unit = VECTOR / np.linalg.norm(VECTOR)
    np.testing.assert_allclose(arrow.mat[:, 2], unit, atol=1e-6)
    # MuJoCo draws an arrow to half of its length.
    assert arrow.size[2] == pytest.approx(2 * np.linalg.norm(VECTOR))
    assert arrow.size[0] == pytest.approx(0.008 * SIZE)
    np.testing.assert_allclose(arrow.rgba, [*(np.array(TEAL) / 255), 1.0])
    assert ball.type == kinds.mjGEOM_SPHERE
    np.testing.assert_allclose(ball.size, 0.25)
    np.testing.assert_allclose(ball.pos, POS + OFFSET, atol=1e-6)
    for k, one in enumerate(rest[:3]):
        assert one.type == kinds.mjGEOM_CYLINDER
        middle = POS + OFFSET + 0.2 * TURN[:, k]
        np.testing.assert_allclose(one.pos, middle, atol=1e-6)
        np.testing.assert_allclose(one.mat[:, 2], TURN[:, k], atol=1e-6)
        assert one.size[2] == pytest.approx(0.2)
        assert one.size[0] == pytest.approx(0.6 * 0.008 * SIZE)
        np.testing.assert_allclose(one.rgba[:3] * 255, (RED, GREEN, BLUE)[k])
    box, first, last = rest[3:]
    assert box.type == kinds.mjGEOM_BOX
    np.testing.assert_allclose(box.size, HALF)
    np.testing.assert_allclose(box.mat, TURN, atol=1e-6)
    assert box.rgba[3] == pytest.approx(0.35)
    for one, (start, end) in ((first, (0, 1)), (last, (2, 3))):
        assert one.type == kinds.mjGEOM_CAPSULE
        middle = (WAY[start] + WAY[end]) / 2 + OFFSET
        np.testing.assert_allclose(one.pos, middle, atol=1e-6)
        length = np.linalg.norm(WAY[end] - WAY[start])
        assert one.size[2] == pytest.approx(length / 2)
    for one in geoms(scene):
        assert one.category == mujoco.mjtCatBit.mjCAT_DECOR
        assert 0.0 < one.emission < 1.0


def test_a_full_scene_keeps_one_place(scene: mujoco.MjvScene) -> None:
    add_shapes(scene, [POINT] * 100, OFFSET, SIZE)
    assert scene.ngeom == 39


def test_surfaces_are_triangles_with_their_corners(scene: mujoco.MjvScene) -> None:
    corners = np.stack([WAY[[0, 1, 3]], 0.01 * WAY[[3, 0, 1]] + 0.5])
    flat = np.stack([POS, POS, START])
    add_surface(scene, np.concatenate([corners, flat[None], flat[None] * np.nan]), RED)
    assert scene.ngeom == 2
    unit = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    for one, wanted in zip(geoms(scene), corners, strict=True):
        assert one.type == mujoco.mjtGeom.mjGEOM_TRIANGLE
        found = unit * one.size @ np.array(one.mat).reshape(3, 3).T + one.pos
        np.testing.assert_allclose(found, wanted, atol=1e-6)
        assert one.category == mujoco.mjtCatBit.mjCAT_DYNAMIC
        assert one.emission == 0.0


# In a page.


class Scene:
    """Keeps the nodes that are added to a page, by the ends of their names."""

    def __init__(self) -> None:
        self.nodes: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        def add(node: str, *values: Any, **more: Any) -> Any:
            handle = SimpleNamespace(node=node, values=values, visible=True, **more)
            handle.on_click = lambda call: setattr(handle, "click", call)
            if name == "add_label":
                handle.text = values[0]
            self.nodes[node.rpartition("/")[2]] = handle
            return handle

        return add


def placed(node: Any, k: int) -> np.ndarray:
    """Corners of an instance of a mesh."""
    w, x, y, z = node.batched_wxyzs[k]
    turned = Rotation.from_quat([x, y, z, w])
    scaled = node.values[0] * node.batched_scales[k]
    return turned.apply(scaled) + node.batched_positions[k]


def test_nodes_of_a_page_are_where_the_shapes_are() -> None:
    page, clicked = Scene(), []
    server: Any = SimpleNamespace(scene=page)
    painting = Painting(server, "/it", SIZE, lambda *x: clicked.append(x))
    other = Arrow(POS, np.array([0.0, 0.0, -0.1]), RED, "other")
    painting.draw([ARROW, other, POINT, AXES, BOX, PATH, LABEL])
    for k, one in enumerate((ARROW, other)):
        length = np.linalg.norm(one.vector)
        head = min(0.06 * SIZE, 0.4 * length)
        shaft = along(placed(page.nodes["shafts"], k), one.start, one.vector)
        assert shaft[:, 0].min() == pytest.approx(0.0, abs=1e-6)
        assert shaft[:, 0].max() == pytest.approx(length - head)
        assert shaft[:, 1].max() == pytest.approx(0.007 * SIZE, rel=1e-5)
        tip = along(placed(page.nodes["heads"], k), one.start, one.vector)
        assert tip[:, 0].min() == pytest.approx(length - head)
        assert tip[:, 0].max() == pytest.approx(length)
        assert tip[:, 1].max() == pytest.approx(head / 2.5, rel=1e-5)
    ball = placed(page.nodes["points"], 0)
    np.testing.assert_allclose(np.linalg.norm(ball - POS, axis=1), 0.25, rtol=1e-5)
    local = np.abs((placed(page.nodes["boxes"], 0) - POS) @ TURN)
    np.testing.assert_allclose(local, np.tile(HALF, (len(local), 1)), atol=1e-6)
    assert page.nodes["boxes"].opacity == 0.5
    assert page.nodes["points"].opacity is None
    turned, places, lengths = page.nodes["axes"].values
    np.testing.assert_allclose(turned, [QUAT], rtol=1e-6)
    np.testing.assert_allclose(places, [POS], rtol=1e-6)
    np.testing.assert_allclose(lengths, [0.4], rtol=1e-6)
    points, colours = page.nodes["paths"].values
    np.testing.assert_allclose(points[:, 0], WAY[:-1])
    np.testing.assert_allclose(points[:, 1], WAY[1:])
    assert colours.tolist() == [[list(GREEN)] * 2] * 3
    page.nodes["heads"].click(SimpleNamespace(instance_index=1))
    page.nodes["heads"].click(SimpleNamespace(instance_index=2))
    page.nodes["heads"].click(SimpleNamespace(instance_index=None))
    ((text, place),) = clicked
    assert text == "other"
    np.testing.assert_allclose(place, POS + other.vector)


def test_what_is_no_longer_drawn_is_hidden() -> None:
    page = Scene()
    server: Any = SimpleNamespace(scene=page)
    painting = Painting(server, "/it", SIZE, lambda *_: None)
    painting.draw([ARROW, POINT, AXES, PATH, LABEL, Label(START, 1.0, "two")])
    assert page.nodes["label 1"].text == "two"
    moved = [shifted(one, OFFSET) for one in (POINT, AXES, PATH, LABEL)]
    painting.draw(moved)
    shown = {name for name, node in page.nodes.items() if node.visible}
    assert shown == {"points", "axes", "paths", "label 0"}
    np.testing.assert_allclose(page.nodes["points"].batched_positions, [POS + OFFSET])
    np.testing.assert_allclose(page.nodes["axes"].batched_positions, [POS + OFFSET])
    np.testing.assert_allclose(page.nodes["paths"].points[:, 0], WAY[:-1] + OFFSET)
    np.testing.assert_allclose(page.nodes["label 0"].position, POS + OFFSET)
    painting.draw([LABEL, POINT], values=False)
    shown = {name for name, node in page.nodes.items() if node.visible}
    assert shown == {"points"}
    painting.clear()
    assert not any(node.visible for node in page.nodes.values())
