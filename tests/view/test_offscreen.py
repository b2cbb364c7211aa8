"""Pictures without a browser: what is near hides what is far, at the right pixels."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image
from tests.raised import raises
from tests.view.scenes import host, make_sim

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.cli import main
from simstate.view import Course, Orbit, start_offscreen
from simstate.view.body_overlays import Draw
from simstate.view.eye import Eye
from simstate.view.floor import Floor
from simstate.view.one_world import OneWorld
from simstate.view.raster import Canvas
from simstate.view.shapes import Point
from simstate.view.shot import Shot

INK = (255, 0, 255)
LIGHT = np.array([0.0, 0.6, 0.8])


@pytest.fixture(scope="module")
def sim() -> Simulation:
    return make_sim(3)


def an_eye() -> Eye:
    return Eye(np.array([2.0, -1.5, 1.0]), np.array([0.2, 0.1, 0.3]), 120, 80)


def test_a_point_is_where_a_pinhole_camera_sees_it() -> None:
    eye = an_eye()
    (middle,) = eye.project(eye.look_at[None])
    assert middle[:2] == pytest.approx([60.0, 40.0])
    assert middle[2] == pytest.approx(np.linalg.norm(eye.look_at - eye.position))
    (above,) = eye.project(eye.look_at[None] + [0.0, 0.0, 0.1])
    assert above[0] == pytest.approx(60.0)  # up in the world is up in the picture
    assert above[1] < 40.0
    right = eye.look_at + 0.3 * eye.rot_wc[:, 0]
    (seen,) = eye.project(right[None])
    assert seen[0] - 60.0 == pytest.approx(eye.focal * 0.3 / middle[2])


def test_the_nearest_triangle_is_seen_at_its_depth() -> None:
    eye = an_eye()
    back = eye.rot_wc[:, 2]
    right, down = eye.rot_wc[:, 0], eye.rot_wc[:, 1]

    def facing(distance: float, tilt: float) -> np.ndarray:
        """A large triangle about the view, turned to the eye."""
        middle = eye.position + distance * back
        leaning = right + tilt * back
        return np.stack(
            [middle - 3 * leaning - 3 * down, middle - 3 * leaning + 9 * down,
             middle + 9 * leaning - 3 * down]
        )  # fmt: skip

    canvas = Canvas(eye, LIGHT)
    inks = np.array([[200.0, 0.0, 0.0], [0.0, 200.0, 0.0]])
    canvas.triangles(np.stack([facing(2.0, 0.0), facing(1.5, 0.2)]), inks)
    depth = canvas.depth.reshape(80, 120)
    columns = np.arange(80 * 120) % 120
    across = (columns + 0.5 - 60.0) / eye.focal
    tilted = 1.5 / (1.0 - 0.2 * across)  # where a ray meets the leaning plane
    expected = np.minimum(2.0, tilted).reshape(80, 120)
    np.testing.assert_allclose(depth, expected, rtol=1e-9)
    is_green = canvas.picture()[..., 1] > 0
    np.testing.assert_array_equal(is_green, (tilted < 2.0).reshape(80, 120))


def test_values_of_forces_are_written_at_their_arrows(
    sim: Simulation, renderer: str
) -> None:
    camera = ([1.2, -1.4, 0.9], [0.3, -0.2, 0.3])

    def drawn(values: bool) -> np.ndarray:
        picture = sim.render(
            1, overlays=["external wrenches"], camera=camera, width=320, height=240,
            values=values, renderer=renderer,
        )  # fmt: skip
        return picture.astype(int)

    rows, columns = np.nonzero(np.abs(drawn(True) - drawn(False)).sum(2))
    robot = sim.scene["robot"]
    wrench, size = host(robot.data.body_external_wrench[1]), _size(sim)
    weight = float(sim.model.body_mass.sum()) * 9.81
    tips = host(robot.data.body_com_pos_w[1]) + wrench[:, :3] * size / weight
    torques = host(robot.data.body_com_pos_w[1]) + wrench[:, 3:] / weight
    eye = Eye(np.array(camera[0]), np.array(camera[1]), 320, 240)
    world = OneWorld(sim, sim.rays, 1, size)
    beside = [world.outside(tip) for tip in (*tips, *torques)]
    places = eye.project(np.array(beside))
    # Every label begins next to a tip, and what differs is at labels alone.
    for column, row in places[:, :2]:
        assert (np.hypot(rows - row, columns - column) < 8.0).any()
    near = np.abs(rows[:, None] - places[:, 1]) < 14.0
    along = (columns[:, None] > places[:, 0] - 4) & (
        columns[:, None] < places[:, 0] + 60
    )
    assert (near & along).any(1).all()


def _size(sim: Simulation) -> float:
    """How large the first of the worlds drawn is, as the picture takes it [m]."""
    from simstate.view.grid import bounds

    low, high = bounds(OneWorld(sim, {}, 1, 1.0))
    return float(np.linalg.norm(high - low)) / 1.8


def test_what_shows_its_inside_is_not_drawn() -> None:
    eye = an_eye()
    middle = eye.position + 1.5 * eye.rot_wc[:, 2]
    right, down = eye.rot_wc[:, 0], eye.rot_wc[:, 1]
    corners = np.stack([middle - right, middle + right, middle + down])[None]
    colours = np.array([[255.0, 0.0, 0.0]])
    canvas = Canvas(eye, LIGHT)
    canvas.triangles(corners, colours)
    canvas.triangles(corners[:, ::-1], colours)
    seen = np.isfinite(canvas.depth).sum()
    again = Canvas(eye, LIGHT)
    again.triangles(
        np.concatenate([corners, corners[:, ::-1]]), np.tile(colours, (2, 1))
    )
    assert seen == np.isfinite(again.depth).sum() > 100
    one_side = Canvas(eye, LIGHT)
    one_side.triangles(corners, colours)
    other = Canvas(eye, LIGHT)
    other.triangles(corners[:, ::-1], colours)
    counts = {int(np.isfinite(c.depth).sum()) for c in (one_side, other)}
    assert counts == {0, int(seen)}


def test_the_ground_is_where_rays_meet_it() -> None:
    eye = an_eye()
    black, white = np.zeros(3), np.full(3, 255.0)
    squares = np.array([[black, white], [white, black]])
    period = np.array([0.5, 0.8])  # of two squares, along x and y [m]
    floor = Floor(
        np.array([0.05, -0.1, -0.2]), np.eye(3), np.zeros(2), np.ones(3), [squares],
        1.0 / period, np.array([0.3, 0.1]),
    )  # fmt: skip
    pixels, colours, depth = floor.draw(eye, 1.0, None, 1e9, black)
    shown = set()
    for column, row in ((40, 70), (90, 75), (13, 66), (61, 79), (100, 60), (5, 78)):
        (k,) = np.flatnonzero(pixels == row * 120 + column)
        ray = eye.rot_wc @ [
            (column + 0.5 - 60) / eye.focal,
            (row + 0.5 - 40) / eye.focal,
            1,
        ]
        x, y, z = eye.position + depth[k] * ray
        assert z == pytest.approx(-0.2, abs=1e-5)
        u = 0.3 + (x - 0.05) / 0.5
        v = 0.1 - (y + 0.1) / 0.8  # rows of an image go down
        wanted = squares[int(v % 1 * 2), int(u % 1 * 2)]
        np.testing.assert_allclose(colours[k], wanted)
        shown.add(wanted[0])
    assert shown == {0.0, 255.0}


class Marked(Course):
    """A course with a ball on the hand."""

    def overlays(self) -> dict[str, tuple[str, Draw]]:
        def draw(seen):  # type: ignore[no-untyped-def]
            hand = seen.quantity("robot", "body_com_pos_w")[2]
            return [Point(hand, 0.06, INK, "hand")]

        return {"hand": ("a ball", draw)}


def test_an_overlay_is_at_its_pixel(sim: Simulation, renderer: str) -> None:
    course = Marked(sim, sim.rays)
    camera = ((1.5, -1.2, 0.9), (0.3, -0.3, 0.2))
    drawing = start_offscreen(
        course, [1], overlays=["hand"], size=(200, 150), camera=camera,
        renderer=renderer,
    )  # fmt: skip
    picture = drawing.picture().astype(int)
    drawn = (picture[..., 0] > 100) & (picture[..., 2] > 100) & (picture[..., 1] < 30)
    rows, columns = np.nonzero(drawn)
    assert len(rows) > 15
    hand = host(sim.scene["robot"].data.body_com_pos_w[1, 2])
    eye = Eye(*(np.array(x) for x in camera), 200, 150)
    (place,) = eye.project(hand[None])
    assert columns.mean() + 0.5 == pytest.approx(place[0], abs=1.0)
    assert rows.mean() + 0.5 == pytest.approx(place[1], abs=1.0)


def test_a_world_shows_its_own_state(sim: Simulation, renderer: str) -> None:
    size: dict[str, Any] = {"width": 120, "height": 90, "renderer": renderer}
    pictures = [sim.render(world, **size) for world in (0, 2)]
    assert pictures[0].shape == (90, 120, 3)
    assert not np.array_equal(*pictures)
    together = sim.render([2, 0], **size)
    assert not any(np.array_equal(together, one) for one in pictures)
    with_contacts = sim.render(0, overlays=["joints", "inertia"], **size)
    assert not np.array_equal(with_contacts, pictures[0])


def test_the_camera_follows_with_a_time_constant() -> None:
    """Of 0.4 s; a camera that turns does so also where it does not follow."""
    text = """
    <mujoco><option gravity="0 0 0" timestep="0.01"/><worldbody><body pos="0.1 0 0.5">
    <freejoint/><geom type="box" size="0.1 0.2 0.3"/></body>
    <geom pos="0.5 0.5 0" size="0.2" contype="0" conaffinity="0"/></worldbody></mujoco>
    """
    sim = Simulation(mujoco.MjModel.from_xml_string(text))
    sim.data.qvel[0, :3] = sim.data.qvel.new_tensor([1.0, -0.5, 0.2])
    course = Course(sim, {})
    orbit = Orbit(azimuth=30.0, elevation=-20.0, distance=2.5, turn=40.0)
    options: dict[str, Any] = {"size": (64, 48), "renderer": "software"}
    still = start_offscreen(course, [0], camera=orbit, follow=False, **options)
    moving = start_offscreen(course, [0], camera=orbit, **options)
    start, now = np.array([0.1, 0.0, 0.5]), 0.0
    goal = start.copy()
    for steps in (0, 30, 7):
        for _ in range(steps):
            sim.step()
        now += 0.01 * steps
        middle = host(sim.data.qpos[0, :3])
        goal += (1 - np.exp(-0.01 * steps / 0.4)) * (middle - goal)
        for drawing, target in ((still, start), (moving, goal)):
            away = 2.5 * orbit.direction(now)
            camera = (target + away, target)
            wanted = start_offscreen(course, [0], camera=camera, **options).picture()
            apart = np.abs(drawing.picture().astype(int) - wanted)
            assert (apart > 2).mean() < 0.002, (steps, drawing is moving)


def test_a_trail_is_the_way_of_the_centre_of_mass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """
    <mujoco><option gravity="0 0 0" timestep="0.1"/><worldbody>
    <geom size="0.01" mass="99"/>
    <body pos="-0.5 0 0.5"><freejoint/><geom size="0.02" mass="3"/></body>
    <body pos="-0.5 0 0.9"><freejoint/><geom size="0.02" mass="1"/></body>
    </worldbody></mujoco>"""
    sim = Simulation(mujoco.MjModel.from_xml_string(text), 2)
    sim.data.qvel[:, [0, 6]] = sim.data.qvel.new_tensor([[1.0, 1.0], [1.0, 5.0]])
    shots: list[Shot] = []
    blank = np.zeros((48, 64, 4), np.uint8)
    drawer = SimpleNamespace(draw=lambda shot: shots.append(shot) or blank)
    monkeypatch.setattr("simstate.view.offscreen.renderer_for", lambda *_: drawer)
    course = Course(sim, {})
    drawing = start_offscreen(course, [1, 0], overlays=["trail"], size=(64, 48))
    for _ in range(3):
        drawing.picture()
        sim.step(10)
    assert shots[0].worlds[0].shapes == []
    for placed, speed in zip(shots[2].worlds, (2.0, 1.0), strict=True):
        (path,) = placed.shapes
        wanted = [[speed * k - 0.5, 0.0, 0.6] for k in range(3)]
        np.testing.assert_allclose(path.points, wanted, atol=1e-9)


def test_drawing_changes_nothing(sim: Simulation) -> None:
    before = sim.state.clone()
    sim.render(1, overlays=["contacts", "rays", "tendons"], width=40, height=30)
    assert bool((sim.state == before).all())


def test_what_does_not_exist_is_named(sim: Simulation) -> None:
    with raises(UnknownNameError, name="contcts"):
        sim.render(overlays=["contcts"])
    with raises(UnknownNameError, name="cornr"):
        sim.render(camera="cornr")
    with raises(InvalidInputError, name="worlds"):
        sim.render(3)
    with raises(InvalidInputError, name="size"):
        sim.render(width=0)


@pytest.mark.parametrize(
    ("size", "samples", "fits"),
    [((8, 8), 1, True), ((7, 9), 1, False), ((9, 7), 1, False), ((8192, 8), 1, True),
     ((8, 8193), 1, False), ((2730, 8), 9, True), ((2731, 8), 9, False)],
)  # fmt: skip
def test_sides_of_pictures_are_limited(sim, size, samples, fits) -> None:
    course = Course(sim, sim.rays)
    options: dict[str, Any] = {"size": size, "supersampling": samples}
    if fits:
        start_offscreen(course, [0], **options)
        with raises(InvalidInputError, name="supersampling"):
            start_offscreen(course, [0], size=size, supersampling=2)
    else:
        with raises(InvalidInputError, name="size"):
            start_offscreen(course, [0], **options)


def test_the_command_writes_pictures_and_films(tmp_path: Path) -> None:
    options = ["--seconds", "0.1", "--size", "64", "48", "--no-check"]
    picture, film = tmp_path / "a.png", tmp_path / "b.gif"
    assert main(["run", "arm", "--picture", str(picture), "--envs", "1", *options]) == 0
    assert Image.open(picture).size == (64, 48)
    shown = ["--envs", "2", "--noise", "2", "--overlays", "joints", "link frames"]
    assert main(["run", "arm", "--film", str(film), *options, *shown]) == 0
    with Image.open(film) as frames:
        assert frames.n_frames == 3  # 0.1 s at 25 pictures a second, the last begun
        assert frames.size == (64, 48)
    assert main(["run", "arm", "--film", str(tmp_path / "c.txt"), *options]) == 1


@pytest.mark.parametrize("what", ["arm", "Cartpole-Balance"])
@pytest.mark.parametrize("count", ["0", "-2"])
def test_no_worlds_are_refused(
    what: str, count: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    render = ["run", what, "--picture", str(tmp_path / "a.png"), "--seconds", "0.1"]
    view = ["view", what, "--port", "0", "--seconds", "0.1"]
    for command in (render, view):
        assert main([*command, "--envs", count]) == 1
        said = capsys.readouterr().err
        assert f"--envs must be an integer ≥ 1, got {count}" in said


TEXTURED = """
<mujoco>
  <asset>
    <texture name="four" type="2d" builtin="checker" rgb1="0.9 0.1 0.1"
      rgb2="0.1 0.2 0.9" width="8" height="8"/>
    <material name="four" texture="four" texuniform="false"/>
    <mesh name="sheet" vertex="0 0 0  1 0 0  1 1 0  0 1 0  0 0 -0.2"
      texcoord="0 0  1 0  1 1  0 1  0 0"
      face="0 1 2  0 2 3  0 4 1  1 4 2  2 4 3  3 4 0" inertia="shell"/>
  </asset>
  <worldbody>
    <body name="it" pos="0.3 -0.2 0.5" quat="0.95 0.1 0.05 0.25">
      <freejoint/>
      <geom type="mesh" mesh="sheet" material="four" mass="1"/>
    </body>
  </worldbody>
</mujoco>
"""


def test_a_texture_is_where_its_coordinates_say(renderer: str) -> None:
    """Points of the sheet are projected, and compared with MuJoCo's own texture."""
    scene = SceneCfg(
        entities={"a": EntityCfg(model=TEXTURED)}, ground=None, timestep=None
    )
    sim = Simulation(scene)
    model = sim.model
    (geom,) = np.flatnonzero(model.geom_dataid >= 0)
    camera = ((0.5, -0.6, 2.6), (0.8, 0.3, 0.5))
    picture = sim.render(width=320, height=240, camera=camera, renderer=renderer)
    eye = Eye(*(np.array(x) for x in camera), 320, 240)
    corners = model.mesh_vert[:4].astype(float)
    uv = model.mesh_texcoord[:4].astype(float)
    across, up = corners[1] - corners[0], corners[3] - corners[0]
    assert np.allclose(uv[2] - uv[0], (uv[1] - uv[0]) + (uv[3] - uv[0]))
    texture = int(model.mat_texid[model.geom_matid[geom]].max())
    begin = int(model.tex_adr[texture])
    image = model.tex_data[begin : begin + 8 * 8 * 3].reshape(8, 8, 3)
    data = mujoco.MjData(model)
    data.qpos[:] = sim.data.qpos[0].numpy()
    mujoco.mj_kinematics(model, data)
    turn = data.geom_xmat[geom].reshape(3, 3)
    seen = set()
    for a in (0.12, 0.37, 0.62, 0.88):
        for b in (0.15, 0.3, 0.7, 0.9):
            place = turn @ (corners[0] + a * across + b * up) + data.geom_xpos[geom]
            column, row, _ = eye.project(place[None])[0]
            u, v = uv[0] + a * (uv[1] - uv[0]) + b * (uv[3] - uv[0])
            wanted = image[int(v * 8) % 8, int(u * 8) % 8].astype(float)
            drawn = picture[int(row), int(column)].astype(float)
            alike = drawn @ wanted / np.linalg.norm(drawn) / np.linalg.norm(wanted)
            assert alike > 0.98, (a, b)
            seen.add(tuple(wanted))
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("module", "error"),
    [
        ("simstate.view.offscreen", ModuleNotFoundError),
        ("PIL", InvalidInputError),
    ],
)
def test_only_a_library_that_is_not_installed_is_reported_as_an_extra(
    sim, monkeypatch, module, error
):
    """A missing module of simstate's own is a defect: installing cannot mend it."""
    monkeypatch.delitem(sys.modules, "simstate.view.offscreen", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(error) as raised:
        start_offscreen(Course(sim, sim.rays), [0])
    assert type(raised.value) is error
