"""Colours, lights, floors and sky of pictures, by MuJoCo's arrays and closed forms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest

from simstate import Simulation
from simstate.view.eye import Eye
from simstate.view.floor import Floor, Shadow, floor_colour, floor_of
from simstate.view.geom_parts import part_of
from simstate.view.geometry import geoms_of_bodies, rgb
from simstate.view.grid import bounds, reduced, tiled
from simstate.view.one_world import OneWorld, model_of_world, vector_text
from simstate.view.raster import Canvas, Texels
from simstate.view.shot import (
    SUN,
    Sky,
    floors,
    has_lights,
    is_fixed,
    rgba_of,
    sky_of,
    sun_of,
    with_own_colours,
)
from simstate.view.surroundings import Surroundings, gradient
from simstate.world.worlds import worlds_of

MODEL = """
<mujoco>
  <visual><rgba haze="0.2 0.3 0.4 1"/></visual>
  <asset>
    <texture name="other" type="2d" builtin="flat" rgb1="0.1 0.9 0.5" width="4"
      height="4"/>
    <texture name="check" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 0 1"
      width="16" height="8"/>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.3 0.5 0.7"
      rgb2="0.1 0.1 0.2" width="8" height="48"/>
    <material name="check" texture="check" texrepeat="3 2" rgba="0.5 0.6 0.7 1"/>
    <material name="even" texture="check" texrepeat="3 2" texuniform="true"/>
    <material name="plain" rgba="0.2 0.4 0.6 0.8"/>
  </asset>
  <worldbody>
    <light name="low" directional="true" dir="1 0 -0.1"/>
    <light name="lamp" pos="0 0 2" dir="0 0 -1"/>
    <light name="noon" directional="true" dir="0 3 -4"/>
    <geom name="floor" type="plane" size="2 4 1" material="check"/>
    <body name="shelf" pos="0 0 1"><geom name="even" type="plane" size="2 4 1"
      material="even"/><geom name="post" size="0.1" material="plain"/></body>
    <body name="cart"><joint type="slide"/>
      <light name="torch" directional="true" dir="0 0 -1"/>
      <geom name="deck" size="0.05" rgba="0.9 0.1 0.2 1"/>
      <geom name="load" type="box" size="0.1 0.2 0.3" rgba="0.9 0.1 0.2 0.4"
        material="plain"/>
      <geom name="gone" size="0.1" rgba="1 1 1 0" group="2"/>
      <body pos="0 0 1"><geom name="rider" size="0.1"/></body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(MODEL)


def named(model: mujoco.MjModel, ids) -> list[str]:
    return [model.geom(int(k)).name for k in ids]


def test_what_cannot_move_and_its_planes(model: mujoco.MjModel) -> None:
    fixed = np.flatnonzero(is_fixed(model))
    assert named(model, fixed) == ["floor", "even", "post"]
    assert named(model, floors(model)) == ["floor", "even"]
    shown = {key: named(model, ids) for key, ids in geoms_of_bodies(model).items()}
    assert shown == {(1, 0): ["post"], (2, 0): ["deck", "load"], (3, 0): ["rider"]}


def test_colours_are_those_of_the_material_or_the_geoms_own(
    model: mujoco.MjModel,
) -> None:
    def colour(name: str) -> list[float]:
        return rgba_of(model, model.geom(name).id).tolist()

    assert colour("post") == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert colour("load") == pytest.approx([0.9, 0.1, 0.2, 0.4])
    assert colour("deck") == pytest.approx([0.9, 0.1, 0.2, 1.0])
    assert colour("rider") == [0.5, 0.5, 0.5, 1.0]
    own = np.array([1.2, -0.1, 0.5, 1.0])
    assert rgb(model, own, -1) == (255, 0, 128)
    assert rgb(model, own, model.material("plain").id) == (51, 102, 153)
    assert rgb(model, own, 0) == (128, 153, 178)
    part = part_of(with_own_colours(model), model.geom("load").id)
    assert part.opacity == pytest.approx(1 - 0.6**2)
    assert part.body == model.body("cart").id
    assert part.corners.shape == (12, 3, 3)
    np.testing.assert_allclose(part.corners.max((0, 1)), [0.1, 0.2, 0.3])
    np.testing.assert_allclose(part.colours, [[0.9 * 255, 25.5, 51]] * 12, atol=1)


def test_the_sun_is_the_first_steep_light_that_is_fixed(model: mujoco.MjModel) -> None:
    assert has_lights(model)
    np.testing.assert_allclose(sun_of(model), [0.0, 0.6, -0.8], atol=1e-6)
    assert np.linalg.norm(SUN) == pytest.approx(1.0, abs=1e-4)

    def lit(*lights: str) -> mujoco.MjModel:
        text = f"<mujoco><worldbody>{''.join(lights)}</worldbody></mujoco>"
        return mujoco.MjModel.from_xml_string(text)

    ours = '<light name="sun" directional="true" dir="0 0 -1"/>'
    assert not has_lights(lit(ours))
    assert sun_of(lit(ours)) is SUN  # of the ground that is added
    assert has_lights(lit(ours, "<light/>"))
    np.testing.assert_allclose(sun_of(lit(ours, "<light/>")), [0.0, 0.0, -1.0])
    moving = '<body><joint/><geom size="1"/><light directional="true"/></body>'
    assert sun_of(lit(moving)) is SUN
    assert sun_of(lit('<light directional="true" dir="1 0 -0.2"/>')) is SUN


def test_the_sky_is_between_haze_and_the_top_of_the_skybox(
    model: mujoco.MjModel,
) -> None:
    sky = sky_of(model)
    np.testing.assert_allclose(sky.low, [51.0, 76.5, 102.0], atol=1e-4)
    begin = model.tex_adr[2]
    faces = model.tex_data[begin : begin + 6 * 8 * 8 * 3].reshape(6, 64, 3)
    np.testing.assert_allclose(sky.high, faces[2].mean(0))
    plain = mujoco.MjModel.from_xml_string("<mujoco/>")
    np.testing.assert_array_equal(sky_of(plain).high, Sky().high)
    rays = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 0.2], [0.0, np.sqrt(3), 1.0],
                     [0.0, 1.0, -1.0]])  # fmt: skip
    share = np.array([0.0, 1.0, np.sqrt(0.5), 0.0])[:, None]
    wanted = (1 - share) * sky.low + share * sky.high
    np.testing.assert_allclose(sky.at(rays), wanted)


class Recorder:
    """A scene and a panel that keep what is added to them."""

    def __init__(self) -> None:
        self.calls: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        def call(*values: Any, **more: Any) -> None:
            key = values[0] if name.startswith("add") else name
            self.calls[key] = {"values": values, **more}

        return call


def test_lights_of_the_viewer_are_the_sun_and_the_lamps(model: mujoco.MjModel) -> None:
    scene, gui = Recorder(), Recorder()
    server: Any = SimpleNamespace(scene=scene, gui=gui)
    Surroundings(server, model, 0.5)
    lights = {name: one for name, one in scene.calls.items() if "light" in name}
    assert set(lights) == {"/light/around", "/light/sun", "/light/1",
                           "configure_default_lights"}  # fmt: skip
    sun = np.array(lights["/light/sun"]["position"])
    np.testing.assert_allclose(sun / np.linalg.norm(sun), [0.0, -0.6, 0.8], atol=1e-6)
    assert np.linalg.norm(sun) == pytest.approx(10.0)
    lamp = lights["/light/1"]
    assert lamp["position"] == (0.0, 0.0, 2.0)
    assert lamp["color"] == (178, 178, 178)  # MuJoCo's 0.7
    assert lamp["intensity"] == pytest.approx(np.pi)  # a quarter of π at a metre
    picture = scene.calls["set_background_image"]["values"][0]
    sky = sky_of(model)
    np.testing.assert_array_equal(picture, gradient(sky, False))
    np.testing.assert_allclose(picture[0, 0], sky.high, atol=1)
    np.testing.assert_allclose(picture[-1, 0], 0.86 * sky.low, atol=1)
    np.testing.assert_array_equal(picture[400:], picture[[-1] * 112])
    middle = (256 / 511 / 0.75) ** 0.8
    wanted = (1 - middle) * sky.high + middle * 0.86 * sky.low
    np.testing.assert_allclose(picture[256, 0], wanted, atol=1)
    dark = gradient(sky, True).astype(float)
    np.testing.assert_allclose(dark, 0.22 * picture, atol=1)
    assert gui.calls["configure_theme"]["dark_mode"] is False


def test_a_model_of_a_world_has_its_parameters(model: mujoco.MjModel) -> None:
    sim = Simulation(model, 3)
    sim.expand("body_mass")[2] *= 2.0
    sim.expand("opt.gravity")[2, 0] = 0.7
    sim.expand("opt.density")[2] = 1.5
    sim.expand("geom_size")[1] += 0.1
    parts = worlds_of(sim)
    for world in range(3):
        own = model_of_world(parts, world)
        assert own is not sim.model
        factor = 2.0 if world == 2 else 1.0
        np.testing.assert_allclose(own.body_mass, factor * sim.model.body_mass)
        assert own.opt.gravity.tolist() == [0.7 * (world == 2), 0.0, -9.81]
        assert own.opt.density == 1.5 * (world == 2)
        more = 0.1 * (world == 1)
        np.testing.assert_allclose(own.geom_size, sim.model.geom_size + more)


# Floors.


def test_a_texture_repeats_as_mujoco_maps_it(model: mujoco.MjModel) -> None:
    """Repeats of the plane; uniform ones of a metre, which is half of an infinite."""
    pos, rot = np.array([0.1, 0.2, 0.3]), np.eye(3)
    for name, endless, periods, start, tint in (
        ("floor", False, [3 / 4, 2 / 8], [1.5, 1.0], [0.5, 0.6, 0.7]),
        ("even", False, [6 / 4, 8 / 8], [3.0, 4.0], [1.0, 1.0, 1.0]),
        ("floor", True, [1.5, 1.0], [-0.5, -0.5], [0.5, 0.6, 0.7]),
    ):
        floor = floor_of(model, model.geom(name).id, pos, rot, endless)
        np.testing.assert_allclose(floor.periods, periods)
        np.testing.assert_allclose(floor.start, start)
        np.testing.assert_allclose(floor.tint, tint, atol=1e-6)
        assert floor.half.tolist() == ([0.0, 0.0] if endless else [2.0, 4.0])
        shapes = [level.shape for level in floor.levels]
        assert shapes == [(8, 16, 3), (4, 8, 3), (2, 4, 3), (1, 2, 3)]
        begin = model.tex_adr[1]
        image = model.tex_data[begin : begin + 8 * 16 * 3].reshape(8, 16, 3)
        np.testing.assert_array_equal(floor.levels[0], image)
        quarter = image.reshape(4, 2, 8, 2, 3).mean((1, 3))
        np.testing.assert_allclose(floor.levels[1], quarter)
    deck = floor_of(model, model.geom("deck").id, pos, rot, False)
    assert [level.tolist() for level in deck.levels] == [[[[255.0] * 3]]]
    mean = floor_colour(model, model.geom("floor").id)
    np.testing.assert_allclose(mean, np.array([0.5, 0.0, 0.5]) * 255 * [0.5, 0.6, 0.7])


def grey(half: tuple[float, float], levels: list[float]) -> Floor:
    images = [np.full((2 ** (2 - k), 2 ** (2 - k), 3), x) for k, x in enumerate(levels)]
    return Floor(
        np.array([0.5, -0.25, 0.1]), np.eye(3), np.array(half), np.ones(3), images,
        np.ones(2), np.zeros(2),
    )  # fmt: skip


def test_a_floor_ends_at_its_sides_and_fades_into_the_sky() -> None:
    eye = Eye(np.array([0.5, -0.25, 3.1]), np.array([0.5, -0.25, 0.1]), 90, 60)
    sky = np.array([10.0, 20.0, 30.0])
    floor = grey((0.6, 0.4), [200.0])
    pixels, colours, depth = floor.draw(eye, 0.5, None, 100.0, sky)
    points = eye.position + depth[:, None] * eye.rays(pixels)
    np.testing.assert_allclose(points[:, 2], 0.1, atol=1e-5)
    far = np.abs(points[:, :2] - [0.5, -0.25]).max(0)
    side = 3.0 / eye.focal
    assert (far <= [0.6, 0.4]).all()
    assert (far > np.array([0.6, 0.4]) - 1.01 * side).all()
    np.testing.assert_allclose(colours, 100.0)
    up = Eye(np.array([0.5, -0.25, 3.1]), np.array([0.5, -0.25, 9.1]), 90, 60)
    assert not len(floor.draw(up, 0.5, None, 100.0, sky)[0])
    below = Eye(np.array([0.5, -0.25, -3.1]), np.array([0.5, -0.25, 9.1]), 90, 60)
    assert not len(floor.draw(below, 0.5, None, 100.0, sky)[0])  # from below
    endless = grey((0.0, 0.0), [200.0])
    level = Eye(np.array([0.0, 0.0, 1.1]), np.array([3.0, 0.0, 1.0]), 90, 60)
    pixels, colours, depth = endless.draw(level, 1.0, None, 4.0, sky)
    share = np.exp(-np.maximum(depth - 4.0, 0.0) / 8.0)[:, None]
    assert share.min() < 0.1
    assert share.max() == 1.0
    np.testing.assert_allclose(colours, sky + (200.0 - sky) * share)


def test_far_textures_are_coarse() -> None:
    """A level is drawn where a pixel covers as many texels, rounded in logarithms."""
    floor = grey((0.0, 0.0), [0.0, 100.0, 200.0])
    eye = Eye(np.array([0.5, -0.25, 3.1]), np.array([0.5, -0.25, 0.1]), 90, 60)
    black = np.zeros(3)
    for height, wanted in ((10.0, 0.0), (30.0, 100.0), (60.0, 200.0), (999.0, 200.0)):
        high = Eye(np.array([0.5, -0.25, height + 0.1]), eye.look_at, 90, 60)
        pixels, colours, depth = floor.draw(high, 1.0, None, 1e9, black)
        (middle,) = np.flatnonzero(pixels == 30 * 90 + 45)
        texels = depth[middle] / high.focal * 4  # of a texture per metre
        assert round(min(max(np.log2(texels), 0), 2)) * 100.0 == wanted
        np.testing.assert_allclose(colours[middle], wanted)


def test_a_shadow_is_where_light_is_blocked() -> None:
    rot = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    floor = Floor(np.array([1.0, 2.0, 0.5]), rot, np.zeros(2), np.ones(3),
                  [np.full((1, 1, 3), 255.0)], np.ones(2), np.zeros(2))  # fmt: skip
    low, high = np.array([1.2, 1.9, 1.5]), np.array([1.6, 2.5, 1.5])
    a, b = np.array([high[0], low[1], 1.5]), np.array([low[0], high[1], 1.5])
    sun = np.array([0.3, -0.6, -1.0])
    beneath = np.stack([low, a, high]) - [0.0, 0.0, 3.0]
    shadow = Shadow(floor, np.stack([[low, a, high], [low, high, b], beneath]), sun)
    rng = np.random.default_rng(0)
    places = rng.uniform([0.0, 0.0], [3.0, 4.0], (500, 2))
    hit = places - sun[:2] / sun[2] * -1.0  # a metre above the floor, towards the sun
    hit = places + (1.5 - 0.5) * sun[:2] / sun[2]
    inside = np.minimum(hit - low[:2], high[:2] - hit).min(1)
    local = (np.column_stack([places, np.full(500, 0.5)]) - floor.pos) @ rot
    shade = shadow.at(local[:, :2])
    assert (inside > 0.03).sum() > 3
    np.testing.assert_allclose(shade[inside > 0.03], 1.0, atol=0.02)
    np.testing.assert_allclose(shade[inside < -0.03], 0.0, atol=0.02)
    nothing = Shadow(floor, beneath[None], sun)
    assert not nothing.at(local[:, :2]).any()
    eye = Eye(np.array([1.2, 1.5, 4.0]), np.array([1.2, 1.5, 0.5]), 90, 60)
    plain = floor.draw(eye, 1.0, None, 1e9, np.zeros(3))[1]
    shaded = floor.draw(eye, 1.0, shadow, 1e9, np.zeros(3))[1]
    assert shaded.min() == pytest.approx(0.5 * 255.0, abs=2.0)
    assert (shaded <= plain + 1e-9).all()


# Pixels.


def test_colours_of_an_image_at_points_of_a_triangle() -> None:
    image = np.arange(4 * 8 * 3, dtype=float).reshape(4, 8, 3)
    uv = np.array([[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5]] * 3,
                   [[1.25, -0.5]] * 3])  # fmt: skip
    texels = Texels([image, image + 1000.0], np.array([0, 1, 0]), uv)
    owner = np.array([0, 0, 1, 2])
    parts = np.array([[0.8, 0.15, 0.05], [0.05, 0.05, 0.9], [0.2, 0.3, 0.5], [0, 1, 0]])
    found = texels.at(owner, parts)
    np.testing.assert_array_equal(found[0], image[3, 1])  # rows go down
    np.testing.assert_array_equal(found[1], image[0, 0])
    np.testing.assert_array_equal(found[2], image[2, 4] + 1000.0)
    np.testing.assert_array_equal(found[3], image[2, 2])  # repeats beyond 0 … 1
    some = texels.some(np.array([False, True, True]))
    np.testing.assert_array_equal(some.at(owner[2:] - 1, parts[2:]), found[2:])


def test_glass_is_blended_and_hides_nothing() -> None:
    eye = Eye(np.array([0.0, -2.0, 0.0]), np.zeros(3), 40, 30)
    canvas = Canvas(eye, np.array([0.0, 0.0, 1.0]))
    facing = np.array([[[-9.0, 0.0, -9.0], [9.0, 0.0, -9.0], [0.0, 0.0, 9.0]]])
    colour = np.array([[100.0, 50.0, 200.0]])
    light = 0.35 + 0.2  # it faces the camera, and the light passes along it
    canvas.triangles(facing, colour, opacity=0.25)
    middle = 15 * 40 + 20
    assert canvas.picture()[15, 20, 3] == round(0.25 * 255)
    np.testing.assert_allclose(canvas.picture()[15, 20, :3], light * colour[0], atol=1)
    assert np.isinf(canvas.depth[middle])
    canvas.triangles(facing, 2 * colour, opacity=0.5)
    mixed = 0.5 * 0.25 * light * colour[0] + 0.5 * light * 2 * colour[0]
    np.testing.assert_allclose(canvas.colour[middle], mixed)
    assert canvas.alpha[middle] == pytest.approx(1 - 0.75 * 0.5)
    canvas.paint(np.array([middle]), np.array([[1.0, 2.0, 3.0]]), 1.0)
    before = canvas.colour[middle].copy()
    canvas.triangles(facing, colour, opacity=0.5)  # behind what was painted
    np.testing.assert_array_equal(canvas.colour[middle], before)
    lit = Canvas(eye, np.array([0.0, -0.6, 0.8]))
    lit.triangles(facing, colour)
    np.testing.assert_allclose(lit.colour[middle], (light + 0.5 * 0.6) * colour[0])
    behind = facing + np.array([0.0, -2.5, 0.0])  # across its plane
    empty = Canvas(eye, np.array([0.0, 0.0, 1.0]))
    empty.triangles(behind[:, ::-1], colour)
    assert not empty.alpha.any()


def test_pictures_are_tiled_and_reduced() -> None:
    pictures = np.arange(5 * 2 * 3 * 1).reshape(5, 2, 3, 1) + 1
    sheet = tiled(pictures)
    assert sheet.shape == (4, 9, 1)
    for k, one in enumerate(pictures):
        row, column = divmod(k, 3)
        np.testing.assert_array_equal(
            sheet[2 * row : 2 * row + 2, 3 * column : 3 * column + 3], one
        )
    assert not sheet[2:, 6:].any()
    rng = np.random.default_rng(1)
    fine = rng.integers(0, 256, (4, 6, 4), dtype=np.uint8)
    fine[:2, :2, 3] = 0
    found = reduced(fine, 2)
    assert found.shape == (2, 3, 4)
    for i in range(2):
        for j in range(3):
            block = fine[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].reshape(4, 4) * 1.0
            alpha = block[:, 3]
            mean = (block[:, :3] * alpha[:, None]).sum(0) / max(alpha.sum(), 1.0)
            wanted = np.round([*mean, alpha.mean()])
            np.testing.assert_array_equal(found[i, j], wanted)
    assert reduced(fine, 1) is fine


@pytest.mark.filterwarnings("ignore:There is nothing to simulate")
def test_bounds_are_those_of_boxes_about_what_moves(model: mujoco.MjModel) -> None:
    sim = Simulation(model)
    sim.data.qpos[0, 0] = 0.7
    low, high = bounds(OneWorld(sim, {}, 0, 1.0))
    # Of the rider, a load of 0.6 m and the invisible ball; no plane or post.
    np.testing.assert_allclose(low, [-0.1, -0.2, 0.4])
    np.testing.assert_allclose(high, [0.1, 0.2, 1.8])
    still = '<mujoco><worldbody><geom size="0.2" pos="1 2 3"/></worldbody></mujoco>'
    for text, wanted in (
        (still, ([0.8, 1.8, 2.8], [1.2, 2.2, 3.2])),
        ("<mujoco/>", ([-0.5] * 3, [0.5] * 3)),
    ):
        sim = Simulation(mujoco.MjModel.from_xml_string(text))
        found = bounds(OneWorld(sim, {}, 0, 1.0))
        np.testing.assert_allclose(found, wanted)


def test_lengths_of_arrows_and_free_places_for_labels(model: mujoco.MjModel) -> None:
    sim = Simulation(model)
    one = OneWorld(sim, {}, 0, 2.0, scale=3.0)
    weight = sim.model.body_mass[2:].sum() * 9.81
    force = np.array([1.0, -2.0, 3.0])
    np.testing.assert_allclose(one.length_of_force(force), 6.0 * force / weight)
    np.testing.assert_allclose(one.length_of_speed(force), 0.9 * force)
    np.testing.assert_allclose(one.length_of_turn(force), 0.6 * force)
    sim.expand("opt.gravity")[:] = 0.0
    again = OneWorld(sim, {}, 0, 2.0)
    assert again.weight == pytest.approx(weight)  # as on Earth without gravity
    data = mujoco.MjData(sim.model)
    mujoco.mj_kinematics(sim.model, data)
    load = sim.model.geom("load").id
    inside = data.geom_xpos[load] + [0.01, 0.03, 0.0]
    place = one.outside(inside)
    moved = place - inside
    assert moved[2] == 0.0
    steps = np.linalg.norm(moved) / (0.05 * 2.0)
    assert steps == pytest.approx(round(steps))
    assert 1 <= round(steps) <= 10
    half = np.array([0.1, 0.2, 0.3]) + 0.01 * 2.0
    assert (np.abs(place - data.geom_xpos[load]) >= half - 1e-9).any()
    before = place - 0.05 * 2.0 * moved / np.linalg.norm(moved)
    assert (np.abs(before - data.geom_xpos[load]) < half).all()
    far = np.array([9.0, 9.0, 9.0])
    np.testing.assert_array_equal(one.outside(far), far)
    assert vector_text(np.array([0.123456, -3.4, 0.0])) == "(0.1235, -3.4, 0)"
