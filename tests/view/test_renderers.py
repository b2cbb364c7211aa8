"""Renderers: MuJoCo's pictures, one layout for both, machines without OpenGL."""

from __future__ import annotations

import io
import math
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
import trimesh
from tests.inside import (
    forget_renderers,
    meshes_of,
    opengl_backend,
    opengl_candidates,
    remove_opengl,
    size_of,
)
from tests.raised import raises
from tests.view.scenes import host, make_sim

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.cli import main
from simstate.view import Course, Orbit, opengl, start_offscreen
from simstate.view.body_overlays import Draw
from simstate.view.eye import Eye
from simstate.view.grid import offsets
from simstate.view.shapes import Point
from simstate.view.shot import SUN, Sky

LIT = """
<mujoco>
  <visual><headlight ambient="0.3 0.3 0.3" diffuse="0.5 0.5 0.5" specular="0 0 0"/>
    <rgba haze="0.2 0.3 0.4 1"/></visual>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1="0.3 0.5 0.7" rgb2="0.1 0.1 0.2"
      width="64" height="384"/>
    <texture name="tiles" type="2d" builtin="checker" rgb1="0.2 0.4 0.3"
      rgb2="0.5 0.3 0.2" width="64" height="64"/>
    <material name="tiles" texture="tiles" texrepeat="3 2" texuniform="true"
      reflectance="0.2"/>
    <material name="gone" rgba="1 0 0 0"/>
    <material name="glass" rgba="0.2 0.9 0.3 0.5"/>
  </asset>
  <worldbody>
    <light directional="true" dir="0.3 0.4 -1" castshadow="false"/>
    <geom name="floor" type="plane" size="0 0 0.1" material="tiles"/>
    <camera name="tilted" pos="1.1 -0.9 1.2" xyaxes="0.6 0.75 0.1 -0.3 0.1 0.9"
      fovy="52"/>
    <body name="one" pos="0.2 -0.1 0.5" quat="0.9 0.2 0.1 0.3">
      <freejoint/>
      <geom type="box" size="0.2 0.1 0.15" pos="0.05 0.02 0.01" rgba="0.8 0.3 0.2 1"/>
      <geom type="sphere" size="0.6" material="gone" mass="0.1"/>
      <geom type="capsule" size="0.05 0.2" pos="0 0.2 0.1" material="glass" mass="0.1"/>
    </body>
    <body name="two" pos="-0.3 0.4 0.4">
      <freejoint/>
      <geom type="ellipsoid" size="0.2 0.15 0.1" rgba="0.3 0.5 0.9 1" mass="0.3"/>
    </body>
  </worldbody>
</mujoco>
"""
CAMERA = ((1.4, -1.6, 1.3), (0.1, 0.1, 0.35))
SIZE: dict[str, Any] = {"width": 240, "height": 180}
_REFERENCE = """
import sys, mujoco, numpy as np
xml, state, colours, eye, out = sys.argv[1:]
model = mujoco.MjModel.from_xml_path(xml)
model.geom_rgba[:] = np.load(colours)
model.vis.global_.fovy = np.degrees(0.75)
data = mujoco.MjData(model)
mujoco.mj_setState(model, data, np.load(state), mujoco.mjtState.mjSTATE_INTEGRATION)
mujoco.mj_forward(model, data)
camera = mujoco.MjvCamera()
camera.lookat[:] = np.load(eye)[:3]
camera.distance, camera.azimuth, camera.elevation = np.load(eye)[3:]
with mujoco.Renderer(model, 180, 240) as renderer:
    renderer.update_scene(data, camera)
    np.save(out, renderer.render())
"""


def lit_sim(num_envs: int = 1) -> Simulation:
    sim = Simulation(mujoco.MjModel.from_xml_string(LIT), num_envs)
    generator = torch.Generator().manual_seed(5)
    turn = torch.rand(num_envs, 4, generator=generator, dtype=sim.dtype)
    sim.data.qpos[:, 3:7] += turn
    sim.data.qpos[:, 3:7] /= sim.data.qpos[:, 3:7].norm(dim=1, keepdim=True)
    return sim


def needs_opengl() -> opengl.Context:
    context = opengl.context()
    if context is None:
        pytest.skip(f"no OpenGL library works here ({opengl.REMEDY})")
    return context


def test_a_picture_is_the_one_that_mujoco_draws(tmp_path: Path) -> None:
    """Lights, textures, reflection, sky, glass and a world's own colours."""
    context = needs_opengl()
    sim = lit_sim(3)
    own = sim.expand("geom_rgba")
    sim.data.qpos[2, :3] += torch.tensor([0.1, 0.2, 0.1])
    colours = sim.model.geom_rgba.copy()
    colours[4] = [0.9, 0.8, 0.1, 1.0]
    own[2] = torch.as_tensor(colours)
    drawn = sim.render(2, camera=CAMERA, renderer="opengl", **SIZE).astype(int)
    position, look_at = (np.array(x) for x in CAMERA)
    forward = look_at - position
    distance = float(np.linalg.norm(forward))
    azimuth = math.degrees(math.atan2(forward[1], forward[0]))
    elevation = math.degrees(math.asin(forward[2] / distance))
    (tmp_path / "model.xml").write_text(LIT)
    np.save(tmp_path / "state.npy", host(sim.state[2]))
    np.save(tmp_path / "colours.npy", colours)
    np.save(tmp_path / "eye.npy", [*look_at, distance, azimuth, elevation])
    files = ["model.xml", "state.npy", "colours.npy", "eye.npy", "out.npy"]
    subprocess.run(
        [sys.executable, "-c", _REFERENCE, *(str(tmp_path / name) for name in files)],
        env={**os.environ, "MUJOCO_GL": context.name}, check=True, timeout=120,
    )  # fmt: skip
    wanted = np.load(tmp_path / "out.npy").astype(int)
    differs = np.abs(drawn - wanted).max(2)
    assert (differs > 6).mean() < 0.01
    assert differs.mean() < 1.0


def test_what_is_invisible_is_not_drawn_and_glass_shows_what_is_behind(
    renderer: str,
) -> None:
    """One pixel of a ball behind a wall that is absent, there, half there or gone."""
    back = '<geom type="sphere" size="0.3" pos="0.1 0.6 0.2" rgba="0.9 0.2 0.1 1"/>'

    def middle(front: str) -> np.ndarray:
        model = f"""
        <mujoco><asset><material name="m" rgba="0.1 0.3 0.9 {front or 0}"/></asset>
        <worldbody><light directional="true" dir="0 1 -0.4" castshadow="false"/>
          <body><freejoint/>{back}</body>
          <geom type="box" size="0.5 0.02 0.5" pos="0.1 0 0.2" {'material="m"'}
            mass="1"/></worldbody></mujoco>"""
        if not front:
            model = model.replace('size="0.5 0.02 0.5"', 'size="1e-4 1e-4 1e-4"')
        scene = SceneCfg(
            entities={"a": EntityCfg(model=model)}, ground=False, timestep=None
        )
        camera = ([0.1, -2.0, 0.25], [0.1, 0.6, 0.2])
        picture = Simulation(scene).render(camera=camera, renderer=renderer, **SIZE)
        return picture[88:92, 118:122].reshape(-1, 3).astype(float).mean(0)

    absent, there, half = middle(""), middle("1"), middle("0.5")
    np.testing.assert_allclose(middle("0"), absent, atol=2)
    assert np.abs(absent - there).max() > 80
    # MuJoCo draws glass twice, front to back and back to front.
    np.testing.assert_allclose(half, 0.25 * absent + 0.75 * there, atol=12)


def test_a_geoms_own_colour_comes_before_that_of_its_material(renderer: str) -> None:
    """As MuJoCo draws it, also if only one of the worlds has it; grey is none."""
    model = """
    <mujoco><asset><material name="blue" rgba="0.1 0.2 0.9 1"/></asset><worldbody>
      <body><freejoint/><geom name="left" size="0.2" material="blue" pos="-0.3 0 0"/>
      <geom name="right" size="0.2" material="blue" pos="0.3 0 0"
        rgba="0.9 0.2 0.1 1"/></body></worldbody></mujoco>"""
    entities = {"a": EntityCfg(model=model)}
    sim = Simulation(SceneCfg(entities=entities, ground=False, timestep=None), 2)
    left = sim.model.geom("a/left").id
    sim.expand("geom_rgba")[1, left] = torch.tensor([0.1, 0.9, 0.2, 1.0])
    camera = ([0.0, -2.0, 0.0], [0.0, 0.0, 0.0])
    for world, inks in ((0, (2, 0)), (1, (1, 0))):
        picture = sim.render(world, camera=camera, renderer=renderer, **SIZE)
        eye = Eye(*(np.array(x) for x in camera), 240, 180)
        for x, ink in zip((-0.3, 0.3), inks, strict=True):
            column, row, _ = eye.project(np.array([[x, -0.2, 0.0]]))[0]
            assert picture[int(row), int(column)].argmax() == ink
    with sim.view(port=0, worlds=2, playing=False) as viewer:
        found = {
            (one.row, colour)
            for mesh in meshes_of(viewer)
            if not mesh.is_site
            for one in mesh.instances
            for colour in colours_of(mesh)
        }
    assert {(0, 2), (0, 0), (1, 1), (1, 0)} == found


def colours_of(mesh: Any) -> set[int]:
    """The brightest channels of a mesh in the viewer, by its glTF."""
    tree: Any = trimesh.load(io.BytesIO(mesh.handle.glb_data), file_type="glb")
    (part,) = tree.geometry.values()
    return set(part.visual.vertex_attributes["color"][:, :3].argmax(1).tolist())


def test_a_picture_does_not_depend_on_the_ones_before_it() -> None:
    """Of other sizes, worlds, extents and by other renderers."""
    needs_opengl()
    model = """
    <mujoco><worldbody><geom type="plane" size="0 0 1"/>
    <body pos="0 0 0.3"><freejoint/><geom size="0.2"/></body>
    <body pos="1 0 0.3"><freejoint/><geom size="0.2" rgba="1 0 0 1"/></body>
    </worldbody></mujoco>"""

    def made() -> Simulation:
        return Simulation(mujoco.MjModel.from_xml_string(model), 2)

    used = made()
    for worlds, apart, size, renderer in (
        ([0], 1.0, (64, 48), "opengl"), ([0], 1.0, (64, 48), "software"),
        ([0], 1.0, (64, 48), "opengl"), ([0], 1.0, (48, 64), "opengl"),
        ([0, 1], 1.0, (48, 64), "opengl"), ([0], 1.0, (48, 64), "opengl"),
        ([0], 9.0, (48, 64), "opengl"), ([1], 1.0, (48, 64), "software"),
        ([0], 1.0, (48, 64), "software"),
    ):  # fmt: skip
        fresh = made()
        for sim in (used, fresh):
            sim.data.qpos[:, 7] = apart
        options: dict[str, Any] = {"width": size[0], "height": size[1]}
        found, wanted = (
            sim.render(worlds, renderer=renderer, **options) for sim in (used, fresh)
        )
        np.testing.assert_array_equal(found, wanted)


def test_colours_that_change_between_two_pictures_are_drawn(renderer: str) -> None:
    model = """
    <mujoco><worldbody><body><freejoint/><geom size="0.3"/></body></worldbody></mujoco>
    """
    sim = Simulation(mujoco.MjModel.from_xml_string(model), 2)
    colours = sim.expand("geom_rgba")
    options: dict[str, Any] = {"camera": ((0, -2, 0), (0, 0, 0)), **SIZE}
    for world, ink in ((0, 0), (0, 1), (0, 1), (1, 2), (0, 0)):
        colours[:, 0] = torch.eye(4)[ink] * 0.8 + torch.eye(4)[3]
        colours[1 - world, 0, ink] = 0.0
        picture = sim.render(world, renderer=renderer, **options)
        assert picture[90, 120].argmax() == ink
        assert picture[90, 120].max() > 2 * np.median(picture[90, 120])


def test_worlds_on_one_ground_share_what_is_fixed(renderer: str) -> None:
    """A height field and a pane of glass are drawn once, a ball in each world."""
    heights = " ".join(["0.1"] * 12)
    model = f"""
    <mujoco><asset><hfield name="h" nrow="3" ncol="4" size="2 2 0.1 0.1"
      elevation="{heights}"/></asset><worldbody><geom type="hfield" hfield="h"/>
      <body name="ball" pos="0 0 1"><freejoint/>
        <geom size="0.2" rgba="0.1 0.9 0.2 1"/></body>
      <body name="pane" pos="0 -1 1"><geom type="box" size="0.1 0.01 0.1"
        rgba="0.9 0.1 0.1 0.5"/></body></worldbody></mujoco>"""
    sim = Simulation(mujoco.MjModel.from_xml_string(model), 2)
    sim.data.qpos[:, 0] = sim.data.qpos.new_tensor([-0.6, 0.6])
    camera = ([0.0, -4.0, 1.0], [0.0, 0.0, 1.0])
    eye = Eye(*(np.array(x) for x in camera), 240, 180)
    options: dict[str, Any] = {"camera": camera, "renderer": renderer, **SIZE}
    both = sim.render([0, 1], transparent=True, **options)
    alone = sim.render(0, transparent=True, **options)

    def pixel(picture: np.ndarray, x: float, y: float) -> np.ndarray:
        column, row, _ = eye.project(np.array([[x, y, 1.0]]))[0]
        return picture[int(row), int(column)]

    for x in (-0.6, 0.6):
        assert pixel(both, x, -0.2)[:3].argmax() == 1
        assert pixel(both, x, -0.2)[3] == 255
    assert pixel(alone, 0.6, -0.2)[3] == 0
    pane = [pixel(picture, 0.05, -1.0)[3] for picture in (both, alone)]
    assert pane[0] == pytest.approx(int(pane[1]), abs=3)


def test_the_opacity_of_a_ball_is_its_area(renderer: str) -> None:
    model = """
    <mujoco><worldbody><body><freejoint/>
      <geom type="sphere" size="0.4" pos="0.1 0.2 0.9" rgba="0.2 0.6 0.1 1"/>
    </body><geom type="plane" size="0 0 1"/></worldbody></mujoco>"""
    scene = SceneCfg(
        entities={"a": EntityCfg(model=model)}, ground=False, timestep=None
    )
    sim = Simulation(scene)
    camera = ([0.1, -2.8, 0.9], [0.1, 0.2, 0.9])
    options: dict[str, Any] = {"camera": camera, "renderer": renderer, **SIZE}
    picture = sim.render(transparent=True, supersampling=4, **options)
    assert picture.shape == (180, 240, 4)
    focal = 90.0 / math.tan(0.375)
    radius = focal * math.tan(math.asin(0.4 / 3.0))
    area = picture[..., 3].sum() / 255.0
    assert area == pytest.approx(math.pi * radius**2, rel=0.03)
    assert picture[90, 120, 1] > 2 * picture[90, 120, 2]  # its colour is not darkened
    edge = picture[(picture[..., 3] > 40) & (picture[..., 3] < 200)]
    assert len(edge) > 20
    assert (edge[:, 1] > 1.5 * edge[:, 2]).all()
    assert sim.render(**options).shape == (180, 240, 3)


@pytest.mark.parametrize("transparent", [False, True])
def test_glass_in_front_of_nothing_keeps_its_opacity(
    renderer: str, transparent: bool
) -> None:
    model = """
    <mujoco><worldbody><body><freejoint/>
      <geom type="box" size="0.4 0.1 0.3" pos="0.1 0.2 0.9" rgba="0.2 0.6 0.1 0.3"/>
    </body></worldbody></mujoco>"""
    scene = SceneCfg(
        entities={"a": EntityCfg(model=model)}, ground=False, timestep=None
    )
    camera = ([0.1, -2.8, 0.9], [0.1, 0.2, 0.9])
    picture = Simulation(scene).render(
        camera=camera, renderer=renderer, transparent=transparent, **SIZE
    )
    if transparent:
        assert picture[90, 120, 3] == pytest.approx((1 - 0.7**2) * 255, abs=4)
        assert picture[10, 10, 3] == 0
    else:  # the sky behind it, at 0.7² of its brightness
        solid = 255 * np.array([0.2, 0.6, 0.1])
        beside = picture[90, 20].astype(float)
        assert (picture[90, 120] < 0.49 * beside + 0.51 * 1.2 * solid + 6).all()
        assert (picture[90, 120] > 0.49 * beside - 6).all()


class Balls(Course):
    """A course with a ball on the hand, of another colour in each world."""

    INKS = ((255, 0, 255), (0, 255, 255), (255, 255, 0))

    def overlays(self) -> dict[str, tuple[str, Draw]]:
        def draw(seen):  # type: ignore[no-untyped-def]
            hand = seen.quantity("robot", "body_com_pos_w")[2]
            return [Point(hand, 0.06, self.INKS[seen.world], "hand")]

        return {"hand": ("a ball", draw)}


def test_worlds_are_side_by_side_at_the_same_pixels_by_any_renderer(
    renderer: str,
) -> None:
    sim = make_sim(3)
    course = Balls(sim, sim.rays)
    camera = ((2.9, -2.4, 2.6), (0.2, -0.1, 0.1))
    drawing = start_offscreen(
        course, [2, 0, 1], overlays=["hand"], size=(400, 300), camera=camera,
        renderer=renderer,
    )  # fmt: skip
    picture = drawing.picture().astype(int)
    hands = host(sim.scene["robot"].data.body_com_pos_w[:, 2])
    eye = Eye(*(np.array(x) for x in camera), 400, 300)
    spacing = 1.6 * size_of(drawing)
    for row, world in enumerate([2, 0, 1]):
        (place,) = eye.project((hands[world] + offsets(3, spacing)[row])[None])
        has = np.array(Balls.INKS[world]) > 0
        shown = (picture[..., has] > 110).all(2) & (picture[..., ~has] < 60).all(2)
        rows, columns = np.nonzero(shown)
        assert len(rows) > 15
        assert columns.mean() + 0.5 == pytest.approx(place[0], abs=1.5)
        assert rows.mean() + 0.5 == pytest.approx(place[1], abs=1.5)


def test_a_sheet_has_the_pictures_of_the_worlds(renderer: str) -> None:
    sim = make_sim(3)
    options: dict[str, Any] = {"width": 96, "height": 64, "renderer": renderer}
    sheet = sim.render([2, 0, 1], sheet=True, **options)
    assert sheet.shape == (128, 192, 3)
    for k, world in enumerate([2, 0, 1]):
        top, left = 64 * (k // 2), 96 * (k % 2)
        tile = sheet[top + 20 : top + 64, left : left + 96]  # below its number
        alone = sim.render(world, sheet=True, **options)[20:]
        np.testing.assert_array_equal(tile, alone)
    assert not sheet[64:, 96:].any()


def test_a_camera_of_the_model_is_where_mujoco_has_it(renderer: str) -> None:
    sim = lit_sim()
    data = mujoco.MjData(sim.model)
    mujoco.mj_setState(
        sim.model, data, host(sim.state[0]), mujoco.mjtState.mjSTATE_INTEGRATION
    )
    mujoco.mj_forward(sim.model, data)
    two = data.body("two").xipos
    camera = sim.model.camera("tilted")
    axes = data.cam_xmat[camera.id].reshape(3, 3)
    right, up, back = axes.T @ (two - data.cam_xpos[camera.id])
    focal = 90.0 / math.tan(math.radians(52.0) / 2.0)
    column, row = 120 - focal * right / back, 90 + focal * up / back
    picture = sim.render(camera="tilted", renderer=renderer, **SIZE).astype(int)
    blue = (picture[..., 2] > 1.6 * picture[..., 1]) & (picture[..., 2] > 60)
    rows, columns = np.nonzero(blue)
    assert len(rows) > 60
    assert columns.mean() == pytest.approx(column, abs=4)
    assert rows.mean() == pytest.approx(row, abs=4)
    with raises(UnknownNameError, name="tiltd"):
        sim.render(camera="tiltd")


def test_an_orbit_is_mujocos_free_camera() -> None:
    sim = lit_sim()
    orbit = Orbit(azimuth=70.0, elevation=-35.0, distance=2.3)
    scene, option = mujoco.MjvScene(sim.model, 100), mujoco.MjvOption()
    data = mujoco.MjData(sim.model)
    mujoco.mj_forward(sim.model, data)
    free = mujoco.MjvCamera()
    free.lookat[:] = [0.3, -0.2, 0.5]
    free.azimuth, free.elevation, free.distance = 70.0, -35.0, 2.3
    mujoco.mjv_updateScene(sim.model, data, option, None, free, 7, scene)
    found = np.array([0.3, -0.2, 0.5]) + 2.3 * orbit.direction(0.0)
    both = [np.array(camera.pos) for camera in scene.camera]
    np.testing.assert_allclose(found, np.mean(both, axis=0), atol=1e-5)
    later = Orbit(azimuth=40.0, elevation=-35.0, turn=15.0).direction(2.0)
    np.testing.assert_allclose(later, orbit.direction(0.0))


def test_what_is_above_the_floor_casts_a_shadow_on_it(renderer: str) -> None:
    def floor(height: float) -> np.ndarray:
        model = f"""
        <mujoco><worldbody>
          <light directional="true" dir="0 0.75 -1"/>
          <geom type="plane" size="0 0 1" rgba="0.7 0.7 0.7 1"/>
          <body pos="0.2 -0.3 {height}"><freejoint/>
            <geom type="box" size="0.3 0.3 0.05"/></body>
        </worldbody></mujoco>"""
        scene = SceneCfg(
            entities={"a": EntityCfg(model=model)}, ground=False, timestep=None
        )
        camera = ((0.2, 0.3, 6.0), (0.2, 0.3001, 0.0))
        return Simulation(scene).render(camera=camera, renderer=renderer, **SIZE)

    eye = Eye(np.array([0.2, 0.3, 6.0]), np.array([0.2, 0.3001, 0.0]), 240, 180)
    shade = np.array([[0.2, -0.3 + 0.75 * 0.8, 0.0]])  # where light comes through it
    lit = np.array([[0.2, -0.3 - 0.75 * 0.8, 0.0]])
    picture = floor(0.8).astype(float)
    values = []
    for place in (shade, lit):
        column, row, _ = eye.project(place)[0]
        values.append(picture[int(row) - 2 : int(row) + 3, int(column)].mean())
    assert values[0] < 0.85 * values[1]


def test_without_opengl_pictures_are_drawn_and_the_package_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sim = make_sim(2)
    remove_opengl(monkeypatch)
    forget_renderers()
    with pytest.warns(RuntimeWarning, match="libosmesa6"):
        assert sim.render(1, width=40, height=30).any()
    forget_renderers()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.render(0, width=40, height=30)  # it was said once
    with raises(InvalidInputError, name="renderer"):
        sim.render(renderer="opengl")
    with raises(UnknownNameError, name="sofware"):
        sim.render(renderer="sofware")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "probe", ["import os; os.abort()", "import time; time.sleep(60)", "raise OSError"]
)
def test_a_library_that_aborts_or_hangs_is_not_used(
    probe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert opengl_backend(monkeypatch, probe, ["osmesa", "egl"]) is None


def test_the_environment_names_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opengl.platform, "system", lambda: "Linux")
    for value, found in (("disable", []), ("egl", ["egl"]), ("OSMesa", ["osmesa"])):
        monkeypatch.setenv("MUJOCO_GL", value)
        assert opengl_candidates() == found


@pytest.mark.parametrize(
    ("system", "given", "found"),
    [
        ("Darwin", {}, ["cgl"]), ("Windows", {}, ["glfw"]),
        ("Linux", {}, ["egl", "osmesa"]), ("Linux", {"MUJOCO_GL": "glfw"}, []),
        ("Linux", {"DISPLAY": ":1"}, ["egl", "osmesa", "glfw"]),
        ("Linux", {"WAYLAND_DISPLAY": "w", "MUJOCO_GL": "glx"}, ["glfw"]),
        ("Linux", {"PYOPENGL_PLATFORM": "osmesa", "DISPLAY": ":1"},
         ["osmesa", "glfw"]),
        ("Darwin", {"MUJOCO_GL": "Off"}, []),
    ],
)  # fmt: skip
def test_libraries_are_tried_by_system_and_display(
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    given: dict[str, str],
    found: list[str],
) -> None:
    for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(opengl.platform, "system", lambda: system)
    monkeypatch.setattr("ctypes.util.find_library", lambda name: f"lib{name}.so")
    monkeypatch.delitem(sys.modules, "OpenGL.platform", raising=False)
    assert opengl_candidates() == found


def test_a_scene_without_lights_is_lit_by_a_sun_and_the_camera() -> None:
    """Ambient light, light along the view and the sun, by Lambert's law."""
    needs_opengl()
    model = """
    <mujoco><asset><material name="dull" rgba="0.4 0.4 0.4 1" specular="0"/></asset>
    <worldbody><body><freejoint/><geom type="box" size="0.3 0.3 0.3" material="dull"/>
    </body></worldbody></mujoco>"""
    entities = {"a": EntityCfg(model=model)}
    sim = Simulation(SceneCfg(entities=entities, ground=False, timestep=None))
    for normal in ([0.0, -1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]):
        camera = (2.0 * np.array(normal), np.zeros(3))
        picture = sim.render(camera=camera, renderer="opengl", **SIZE)
        lit = 0.3 + 0.3 + 0.6 * max(0.0, -float(np.array(normal) @ SUN))
        np.testing.assert_allclose(picture[90, 120], 255 * 0.4 * lit, atol=4)


def test_a_floor_fades_with_the_size_of_the_scene() -> None:
    """In software: from eight radii on into the sky's lower colour."""
    model = """
    <mujoco><worldbody><geom type="plane" size="0 0 1" rgba="1 0.2 0 1"/>
    <body pos="0 0 0.1"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""
    entities = {"a": EntityCfg(model=model)}
    sim = Simulation(SceneCfg(entities=entities, ground=False, timestep=None))
    camera = ([0.0, -1.0, 0.6], [0.0, 3.0, 0.4])
    picture = sim.render(camera=camera, renderer="software", **SIZE).astype(float)
    eye = Eye(*(np.array(x) for x in camera), 240, 180)
    for column in (3, 40, 230):
        for row in (85, 95, 110, 178):
            (ray,) = eye.rays(np.array([240 * row + column]))
            depth = -0.6 / ray[2]
            far = max(depth - 8 * 0.1 * math.sqrt(3), 0.0) / (16 * 0.1 * math.sqrt(3))
            lit = (0.55 + 0.45 * 0.9165) * np.array([255.0, 51.0, 0.0])
            wanted = Sky().low + (lit - Sky().low) * math.exp(-far)
            np.testing.assert_allclose(picture[row, column], wanted, atol=1.5)
    assert picture[60, 3] @ [1, 0, 0] < 240  # the sky


@pytest.mark.parametrize("size", ["0 0 1", "3 2 1"])
@pytest.mark.parametrize("worlds", [[0], [0, 1]])
@pytest.mark.parametrize("light", ["", '<light directional="true" dir="0 0.3 -1"/>'])
def test_squares_of_a_floor_are_the_same_in_both_renderers(
    size: str, worlds: list[int], light: str
) -> None:
    """Their period and phase, also of floors that are made infinite."""
    needs_opengl()
    model = f"""
    <mujoco><asset><texture name="t" type="2d" builtin="checker" rgb1="1 0 0"
    rgb2="0 0 1" width="32" height="32"/><material name="m" texture="t"
    texrepeat="3 2" texuniform="true" specular="0" reflectance="0"/></asset>
    <worldbody>{light}<geom type="plane" size="{size}" pos="0.1 0.2 0" material="m"/>
    <body pos="0 0 9"><freejoint/><geom size="0.4"/></body></worldbody></mujoco>"""
    entities = {"a": EntityCfg(model=model)}
    scene = SceneCfg(entities=entities, ground=False, timestep=None)
    sim = Simulation(scene, 2)
    camera = ([0.3, -1.5, 1.8], [0.3, 0.4, 0.0])
    blue = []
    for renderer in ("software", "opengl"):
        picture = sim.render(
            worlds, camera=camera, renderer=renderer, width=120, height=90
        ).astype(int)
        blue.append(picture[30:, :, 2] > picture[30:, :, 0])
    assert 0.3 < blue[0].mean() < 0.7
    assert (blue[0] == blue[1]).mean() > 0.96


def test_threads_draw_one_after_another(renderer: str) -> None:
    sims = [make_sim(2), lit_sim()]
    wanted = [sim.render(renderer=renderer, **SIZE) for sim in sims]
    differ: list[int] = []

    def draw(k: int) -> None:
        for _ in range(3):
            found = sims[k].render(renderer=renderer, **SIZE)
            differ.append(int((found != wanted[k]).sum()))

    threads = [threading.Thread(target=draw, args=(k,)) for k in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert differ == [0] * 6


def test_a_forked_process_draws_without_opengl() -> None:
    needs_opengl()
    script = """
import os, sys, warnings
from simstate import EntityCfg, SceneCfg, Simulation
warnings.simplefilter("ignore")
sim = Simulation(SceneCfg(entities={"robot": EntityCfg(model="arm")}))
sim.render(width=40, height=30, renderer="opengl")
child = os.fork()
if not child:
    os._exit(0 if sim.render(width=40, height=30).any() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_drawing_ends_in_silence() -> None:
    """No message at the end of a process, whatever is collected first."""
    needs_opengl()
    script = """
import gc
from simstate import EntityCfg, SceneCfg, Simulation
for _ in range(3):
    sim = Simulation(SceneCfg(entities={"robot": EntityCfg(model="arm")}))
    sim.render(width=40, height=30, renderer="opengl")
    del sim
    gc.collect()
sim = Simulation(SceneCfg(entities={"robot": EntityCfg(model="arm")}))
sim.render(width=40, height=30, renderer="opengl")
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], check=True, timeout=120,
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("", "")


def test_the_options_of_the_command(tmp_path: Path) -> None:
    from PIL import Image

    out = str(tmp_path / "a.png")
    command = ["run", "arm", "--picture", out, "--seconds", "0.1", "--size", "64", "48",
               "--envs", "1", "--no-check"]  # fmt: skip
    looks = ["--renderer", "software", "--orbit", "30", "-20", "--turn", "90"]
    assert main([*command, *looks, "--transparent", "--supersampling", "4"]) == 0
    assert Image.open(out).mode == "RGBA"
    assert main([*command, *looks, "--sheet", "--envs", "5"]) == 0
    assert Image.open(out).size == (3 * 64, 2 * 48)
    film = str(tmp_path / "a.gif")
    assert main([*command[:2], "--film", film, *command[4:], "--transparent"]) == 1
    assert not Path(film).exists()
