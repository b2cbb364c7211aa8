"""Cameras: projections and rays are inverse, orbits have MuJoCo's angles."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from tests.raised import raises

import simstate
from simstate import EntityCfg, SceneCfg, SimStateError, Simulation
from simstate.view.explain_view import body_text, element_text
from simstate.view.eye import Eye, Orbit, check_camera, fitting_distance, model_eye
from simstate.view.one_world import OneWorld

EYES = {
    "level": Eye(np.array([2.0, -1.5, 1.0]), np.array([0.2, 0.1, 0.3]), 120, 80),
    "tilted": Eye(
        np.array([0.5, 2.0, -0.7]), np.array([1.0, 0.3, 0.2]), 50, 90, 1.1,
        (0.3, 0.1, 0.9),
    ),
    "down": Eye(np.array([0.4, 0.2, 3.0]), np.array([0.4, 0.2, 1.0]), 64, 48),
    "up": Eye(np.array([0.4, 0.2, -3.0]), np.array([0.4, 0.2, 1.0]), 64, 48),
}  # fmt: skip


@pytest.mark.parametrize("eye", EYES.values(), ids=EYES.keys())
def test_a_point_on_the_ray_of_a_pixel_is_drawn_there(eye: Eye) -> None:
    pixels = np.array([0, 7, eye.width - 1, eye.width, eye.width * eye.height - 1])
    rows, columns = np.divmod(pixels, eye.width)
    depth = np.array([0.5, 1.0, 2.0, 3.0, 4.0])
    points = eye.position + depth[:, None] * eye.rays(pixels)
    want = np.stack([columns + 0.5, rows + 0.5, depth], axis=1)
    np.testing.assert_allclose(eye.project(points), want, rtol=1e-4, atol=1e-4)
    assert eye.rays().shape == (eye.width * eye.height, 3)
    rot = eye.rot_wc
    np.testing.assert_allclose(rot.T @ rot, np.eye(3), atol=1e-12)
    assert np.linalg.det(rot) == pytest.approx(1.0)
    middle = eye.project(eye.look_at[None])[0]
    away = np.linalg.norm(eye.look_at - eye.position)
    np.testing.assert_allclose(middle, [eye.width / 2, eye.height / 2, away])


def test_up_is_up_and_the_field_of_view_is_the_height() -> None:
    eye = EYES["tilted"]
    above = eye.look_at + 0.01 * np.array(eye.up)
    assert eye.project(above[None])[0, 1] < eye.height / 2
    rays = eye.rays(np.array([25, eye.width * (eye.height - 1) + 25]))
    top, bottom = (ray / np.linalg.norm(ray) for ray in rays)
    inner = (eye.height - 1) / eye.height  # pixels have their rays in the middle
    angle = np.arccos(top @ bottom)
    assert np.tan(angle / 2) == pytest.approx(inner * np.tan(eye.fovy / 2), rel=1e-3)


@pytest.mark.parametrize("azimuth", [0.0, 90.0, 200.0])
@pytest.mark.parametrize("elevation", [-80.0, -25.0, 10.0])
def test_an_orbit_is_mujocos_free_camera(azimuth: float, elevation: float) -> None:
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation, camera.distance = azimuth + 12.0, elevation, 2.5
    camera.lookat[:] = (0.3, -0.2, 0.1)
    scene = mujoco.MjvScene(model, 10)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    option, every = mujoco.MjvOption(), mujoco.mjtCatBit.mjCAT_ALL.value
    mujoco.mjv_updateScene(model, data, option, None, camera, every, scene)
    both = [np.array(one.pos) for one in scene.camera]
    direction = Orbit(azimuth, elevation, 2.5, turn=3.0).direction(4.0)
    want = np.array([0.3, -0.2, 0.1]) + 2.5 * direction
    np.testing.assert_allclose(np.mean(both, axis=0), want, atol=1e-5)


def test_the_fitting_distance_shows_all_corners_and_hardly_more() -> None:
    rng = np.random.default_rng(2)
    corners = rng.normal(size=(30, 3)) * [0.5, 1.5, 0.3]
    goal, direction = np.array([0.1, -0.2, 0.3]), np.array([1.0, 2.0, 0.7])
    direction /= np.linalg.norm(direction)
    for size in ((300, 100), (100, 300)):
        away = fitting_distance(corners, goal, direction, size)
        for share, fits in ((1.0, True), (0.92, False)):
            eye = Eye(goal + share * away * direction, goal, *size)
            seen = eye.project(corners)
            inside = (seen[:, :2] >= 0).all() and (seen[:, :2] <= size).all()
            assert bool(inside and (seen[:, 2] > 0).all()) is fits
    assert fitting_distance(goal[None], goal, direction, (100, 100)) == 1e-3


CAMERAS = """
<mujoco><worldbody>
  <camera name="wide" fovy="50" pos="1 2 3" xyaxes="0 1 0 -0.6 0 0.8"/>
  <body name="one" pos="0 0 1"><freejoint name="free"/><geom size="0.1"/>
    <body name="two" pos="0 0 0.3"><joint name="ball" type="ball"/>
      <geom size="0.1"/>
      <body name="three" pos="0 0 0.3"><joint name="hinge" axis="0 1 0"/>
        <joint name="slide" type="slide"/><geom size="0.1"/></body>
    </body>
  </body>
</worldbody></mujoco>
"""


@pytest.fixture(scope="module")
def sim() -> Simulation:
    scene = SceneCfg(entities={"it": EntityCfg(model=CAMERAS)}, ground=False)
    made = Simulation(scene, 2)
    made.data.qvel[:] = 0.1 * (1 + made.data.qvel.new_tensor(range(22)).reshape(2, 11))
    return made


def test_a_camera_of_the_model_looks_along_its_own_axes(sim: Simulation) -> None:
    data = mujoco.MjData(sim.model)
    mujoco.mj_forward(sim.model, data)
    pos, mat = data.cam_xpos[0], data.cam_xmat[0].reshape(3, 3)
    eye = model_eye(sim.model, "it/wide", pos, mat, (90, 60))
    assert eye.fovy == pytest.approx(np.radians(50.0))
    np.testing.assert_allclose(eye.rot_wc, mat * [1, -1, -1], atol=1e-12)
    assert (eye.width, eye.height) == (90, 60)


@pytest.mark.parametrize(
    "camera",
    [
        "nowhere", Orbit(elevation=91.0), Orbit(elevation=-91.0), Orbit(distance=0.0),
        Orbit(azimuth=float("nan")), Orbit(turn=float("inf")), ((0, 0, 1), (0, 0)),
        ((0, 0, 1), (0, 0, 1)), ((0, 0, float("nan")), (0, 0, 1)),
    ],
    ids=range(9),
)  # fmt: skip
def test_cameras_that_are_none_are_named(sim: Simulation, camera) -> None:
    with pytest.raises(SimStateError):
        check_camera(sim.model, camera)


def test_cameras_of_all_kinds(sim: Simulation) -> None:
    for camera in (
        "front", "it/wide", Orbit(elevation=90.0), Orbit(distance=0.1),
        ((0, 0, 1), (0, 0, 2)),
    ):  # fmt: skip
        check_camera(sim.model, camera)


def test_a_body_is_described_with_the_elements_of_its_joints(sim: Simulation) -> None:
    explanation, seen = simstate.explain(sim.model), OneWorld(sim, {}, 1, 1.0)
    wanted = {"one": (range(7), range(6)), "two": (range(7, 11), range(6, 9)),
              "three": (range(11, 13), range(9, 11))}  # fmt: skip
    for name, (positions, velocities) in wanted.items():
        body = sim.model.body(f"it/{name}").id
        lines = body_text(seen, explanation, body).splitlines()
        found = [line.split(" = ")[0] for line in lines if line.startswith("- ")]
        both = {"qpos": positions, "qvel": velocities}
        names = [[f"- {field}[{i}]" for i in ids] for field, ids in both.items()]
        if name == "three":  # two joints, each with both
            names = [[names[0][0], names[1][0]], [names[0][1], names[1][1]]]
        assert found == [*names[0], *names[1]]
        assert f"it/{name}**, world 1" in lines[0]
        values = [float(line.split(" = ")[1].split()[0]) for line in lines
                  if line.startswith("- qvel")]  # fmt: skip
        want = [float(sim.data.qvel[1, i]) for i in velocities]
        np.testing.assert_allclose(values, want, rtol=1e-3)
    assert "fixed in the world" in body_text(seen, explanation, 0)


def test_a_field_is_described_and_few_elements_at_a_time(sim: Simulation) -> None:
    explanation, seen = simstate.explain(sim.model), OneWorld(sim, {}, 1, 1.0)
    text = element_text(seen, explanation, "qvel[9]")
    assert f"**qvel[9]** = {float(sim.data.qvel[1, 9]):.6g} rad/s" in text
    assert element_text(seen, explanation, "data.xpos").startswith("**xpos**: m")
    assert len(element_text(seen, explanation, "qvel").split("\n\n")) == 11
    with raises(SimStateError, name="qpos"):
        element_text(seen, explanation, "qpos")
    with raises(SimStateError, name="qpo"):
        element_text(seen, explanation, "qpo[1]")
