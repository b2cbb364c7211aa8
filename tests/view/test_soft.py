"""Skins and flexible bodies are drawn where MuJoCo's own scene has them."""

from __future__ import annotations

from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import soft_parts
from tests.view.scenes import host
from tests.view.test_shapes import Scene

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.view.one_world import OneWorld
from simstate.view.soft import SoftThings, soft_of

MODEL = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="upper" pos="0.1 0.2 1" quat="0.9 0.1 0.3 0.2">
      <joint name="shoulder" axis="0 1 0.2"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.4"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.2 0.02 0" size="0.02" mass="0.2"/>
      </body>
    </body>
    <flexcomp name="cloth" type="grid" count="4 3 1" spacing="0.1 0.1 0.1"
      pos="0 0 1.5" dim="2" radius="0.01" mass="0.3" rgba="0.9 0.1 0.1 1">
      <edge equality="true"/>
    </flexcomp>
    <flexcomp name="soft" type="grid" count="3 3 3" spacing="0.1 0.1 0.1"
      pos="1 0.2 1" dim="3" radius="0.01" mass="1" rgba="0.1 0.2 0.9 1">
      <edge equality="true"/>
    </flexcomp>
    <flexcomp name="rope" type="grid" count="5 1 1" spacing="0.1 0.1 0.1"
      pos="2 0.1 1" dim="1" radius="0.015" mass="0.2">
      <edge equality="true"/>
    </flexcomp>
  </worldbody>
  <deformable>
    <skin name="sleeve" inflate="0.01" rgba="0.2 0.8 0.3 1"
      vertex="0 0.05 0  0 -0.05 0  0.2 0 0.05  0.4 0.04 0  0.45 -0.05 0.01"
      face="0 1 2  0 2 3  2 1 4  2 4 3">
      <bone body="upper" bindpos="0.02 0.01 0" bindquat="0.8 0.2 0.1 0.4"
        vertid="0 1 2" vertweight="1 1 0.6"/>
      <bone body="lower" bindpos="0.3 0 0.02" bindquat="0.9 0 0.3 0.1"
        vertid="2 3 4" vertweight="0.4 1 1"/>
    </skin>
  </deformable>
</mujoco>
"""


@pytest.fixture(scope="module")
def sim() -> Simulation:
    """Two worlds that are bent and fall unlike each other."""
    entity = EntityCfg(model=MODEL)
    scene = SceneCfg(entities={"it": entity}, ground=None, timestep=None)
    sim = Simulation(scene, 2)
    generator = torch.Generator().manual_seed(2)
    draw = torch.randn(sim.data.qvel.shape, generator=generator, dtype=sim.dtype)
    sim.data.qvel[:] = draw
    sim.step(20)
    return sim


def scene_of_mujoco(sim: Simulation, world: int) -> mujoco.MjvScene:
    data = mujoco.MjData(sim.model)
    data.qpos[:] = host(sim.data.qpos[world])
    mujoco.mj_forward(sim.model, data)
    scene = mujoco.MjvScene(sim.model, 1000)
    option = mujoco.MjvOption()
    option.flags[mujoco.mjtVisFlag.mjVIS_FLEXSKIN.value] = 0
    option.flags[mujoco.mjtVisFlag.mjVIS_FLEXFACE.value] = 1
    mujoco.mjv_updateScene(
        sim.model, data, option, mujoco.MjvPerturb(), mujoco.MjvCamera(),
        mujoco.mjtCatBit.mjCAT_ALL.value, scene,
    )  # fmt: skip
    return scene


@pytest.mark.parametrize("world", [0, 1])
def test_corners_are_those_of_mujocos_scene(sim: Simulation, world: int) -> None:
    seen = OneWorld(sim, sim.rays, world, 1.0)
    theirs = scene_of_mujoco(sim, world)
    skin, cloth, soft, rope = soft_of(sim.model)
    skinned = np.array(theirs.skinvert).reshape(-1, 3)
    np.testing.assert_allclose(skin.corners(seen), skinned, atol=2e-6)
    places = np.array(theirs.flexvert).reshape(-1, 3)
    np.testing.assert_allclose(cloth.corners(seen), places[:12], atol=2e-6)
    np.testing.assert_allclose(soft.corners(seen), places[12:39], atol=2e-6)
    assert len(cloth.faces) == 12
    assert len(soft.faces) == 48  # six sides of four squares each
    prisms = rope.corners(seen).reshape(-1, 2, 3, 3)
    np.testing.assert_allclose(prisms[:, 0].mean(1), places[39:43], atol=2e-6)
    np.testing.assert_allclose(prisms[:, 1].mean(1), places[40:44], atol=2e-6)
    far = np.linalg.norm(prisms[:, 0] - places[39:43, None], axis=-1)
    np.testing.assert_allclose(far, 0.015, atol=1e-6)


def test_the_shell_of_a_solid_is_seen_from_outside(sim: Simulation) -> None:
    seen = OneWorld(sim, sim.rays, 0, 1.0)
    for soft in soft_of(sim.model)[2:]:
        corners = soft.corners(seen)
        a, b, c = (corners[soft.faces[:, i]] for i in range(3))
        volume = float((np.cross(a, b) * c).sum() / 6.0)
        if soft.name.endswith("soft"):
            assert volume == pytest.approx(0.2**3, rel=0.2)
        else:  # an open prism: its sides look away from its middle
            middles = corners.reshape(-1, 6, 3).mean(1).repeat(6, axis=0)
            outward = (np.cross(b - a, c - a) * ((a + b + c) / 3 - middles)).sum(1)
            assert (outward > 0.0).all()


def test_they_are_drawn_in_the_viewer_and_in_pictures(sim: Simulation) -> None:
    with sim.view(port=0, playing=False) as viewer:
        drawn = soft_parts(viewer)
        assert len(drawn) == 8
        for row, soft, handle in drawn:
            seen = OneWorld(sim, sim.rays, row, 1.0)
            wanted = soft.corners(seen) + viewer.picture.offsets[row]
            np.testing.assert_allclose(handle.vertices, wanted, atol=1e-5)
        middle = np.array(viewer.picture.middle)
    np.testing.assert_allclose(middle, [1.2, 0.15, 1.2], atol=0.35)


def test_soft_bodies_of_the_visible_groups_are_drawn_until_they_are_removed(
    sim: Simulation,
) -> None:
    page, clicked = Scene(), []
    server = SimpleNamespace(scene=page)
    shown = soft_of(sim.model)
    assert not len(SoftThings(server, sim.model, [1, 2], [1, 0], print))
    things = SoftThings(
        server, sim.model, [0], [1, 0], lambda *told: clicked.append(told)
    )
    assert len(things) == len(page.nodes) == 2 * len(shown)
    seen = [OneWorld(sim, sim.rays, world, 1.0) for world in (1, 0)]
    offsets = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    things.update(seen, offsets)
    soft, node = shown[0], page.nodes["sleeve 0"]
    corners = soft.corners(seen[0]) + offsets[0]
    np.testing.assert_allclose(node.vertices, corners, atol=1e-5)
    node.click(None)
    ((text, place),) = clicked
    assert text == f"**{soft.name}**, world 1: {len(corners)} vertices"
    np.testing.assert_allclose(place, corners.mean(0), atol=1e-5)
    before = node.vertices
    things.update(seen, offsets * np.nan)  # a world that has diverged
    assert node.vertices is before
    for one in page.nodes.values():
        one.remove = lambda one=one: setattr(one, "visible", False)
    things.remove()
    assert len(things) == 0
    assert not any(one.visible for one in page.nodes.values())


def test_every_renderer_draws_them_in_every_world(
    sim: Simulation, renderer: str
) -> None:
    for worlds in ([1], [1, 0]):
        _check_colours(
            sim.render(worlds, width=480, height=320, camera="side", renderer=renderer)
        )


def _check_colours(picture: np.ndarray) -> None:
    picture = picture.astype(int)
    red, green, blue = (picture[..., k] for k in range(3))
    assert ((red > 2 * green) & (red > 2 * blue)).sum() > 30  # the cloth
    assert ((blue > 2 * red) & (blue > 2 * green)).sum() > 30  # the solid
    assert ((green > 2 * red) & (green > 1.5 * blue)).sum() > 5  # the sleeve
