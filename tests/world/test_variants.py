"""Worlds with objects of their own: each is plain MuJoCo's of a model compiled so."""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import engine_of
from tests.raised import raises

from simstate import (
    CameraCfg,
    EntityCfg,
    InvalidInputError,
    ModelError,
    SceneCfg,
    Simulation,
)

THING = """<mujoco><option timestep="0.004"/><asset>
  <mesh name="wedge" vertex="0 0 0  .3 0 0  0 .2 0  0 0 .25"/>
  <mesh name="brick" vertex="-.1 -.2 0  .1 -.2 0  .1 .2 0  -.1 .2 0
                             -.1 -.2 .1  .1 -.2 .1  .1 .2 .1  -.1 .2 .1"/>
  <mesh name="slab" vertex="-.4 -.3 0  .4 -.3 0  .4 .3 0  -.4 .3 0
                            -.4 -.3 .08  .4 -.3 .08  .4 .3 .08  -.4 .3 .08"/></asset>
  <worldbody><body name="thing" pos=".1 .05 1.6" quat=".9 .1 .2 .3"><freejoint/>
    <geom name="thing" type="mesh" mesh="{mesh}" pos=".02 .01 0" quat=".8 .2 .4 .4"
          density="{density}" rgba="{rgba}"/>
    <geom name="knob" size=".03" pos="0 .1 .1" mass=".1"/></body>
    <body name="ball" pos=".7 .1 1.4"><freejoint/>
      <geom name="ball" size="{radius}" pos=".01 0 0" mass="1"/></body></worldbody>
  </mujoco>"""
LAND = """<mujoco><asset>
  <hfield name="flat" nrow="4" ncol="4" size="2 2 .5 .1"
          elevation="0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"/>
  <hfield name="hill" nrow="4" ncol="4" size="2 2 .8 .1"
          elevation="0 0 0 0 0 1 1 0 0 1 1 0 0 0 0 0"/></asset>
  <worldbody><geom name="land" type="hfield" hfield="{land}"/></worldbody></mujoco>"""
CHOICES = (
    {"mesh": "brick", "density": 500, "rgba": "1 0 0 1", "radius": 0.1, "land": "flat"},
    {"mesh": "wedge", "density": 900, "rgba": "0 1 0 1", "radius": 0.2, "land": "hill"},
    {"mesh": "slab", "density": 300, "rgba": "0 0 1 1", "radius": 0.15, "land": "flat"},
)


def scene(choice):
    entities = {
        "thing": EntityCfg(model=THING.format(**choice), com_varies=True),
        "land": EntityCfg(model=LAND.format(**choice)),
    }
    eye = CameraCfg(pos=(1.5, -2.0, 2.2), look_at=(0, 0, 0.6), width=48, height=36)
    return SceneCfg(entities=entities, cameras={"eye": eye}, timestep=None)


def varied(engine):
    sim = Simulation(scene(CHOICES[0]), 4, engine=engine)
    sim.write_variant(scene(CHOICES[2]), [3])
    sim.write_variant(Simulation(scene(CHOICES[1])).model, [0, 2])
    return sim


KINDS = (1, 0, 1, 2)
"""Which choice each world has."""


def test_each_world_moves_as_its_own_model(engine):
    """On native as plain MuJoCo; on warp as MuJoCo Warp with that model compiled."""
    sim = varied(engine)
    sim.step(150)
    for world, kind in enumerate(KINDS):
        own = Simulation(scene(CHOICES[kind]), 1, engine=engine)
        if engine == "native":
            data = mujoco.MjData(own.model)
            contacts = 0
            for _ in range(150):
                mujoco.mj_step(own.model, data)
                contacts += data.ncon
            assert contacts
            np.testing.assert_allclose(sim.data.qpos[world], data.qpos, atol=1e-9)
        else:
            own.step(150)
            got, want = sim.data.qpos[world], own.data.qpos[0]
            torch.testing.assert_close(got, want, rtol=0, atol=2e-3)
        for name in ("geom_rbound", "body_subtreemass", "geom_aabb"):
            got = engine_of(sim).parameter(name)[world].double().numpy()
            want = np.asarray(getattr(own.model, name)).reshape(got.shape)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=name)


def test_each_world_shows_its_own(engine):
    sim = varied(engine)
    seen = sim.cameras["eye"]
    for world, kind in enumerate(KINDS):
        own = Simulation(scene(CHOICES[kind]), 1).cameras["eye"]
        same = seen.segmentation[world] == own.segmentation[0]
        assert same.double().mean() > 0.98
        off = (seen.rgb[world].float() - own.rgb[0].float()).abs()[same]
        assert off.mean() < 1.0
    assert not torch.equal(seen.segmentation[0], seen.segmentation[1])


def test_snapshots_have_it(engine):
    sim = varied(engine)
    other = Simulation(scene(CHOICES[0]), 4, engine=engine)
    other.restore(sim.snapshot())
    sim.step(30)
    other.step(30)
    assert torch.equal(sim.state, other.state)


def test_a_choice_by_hand_brings_its_bounds(engine):
    sim = Simulation(scene(CHOICES[0]), 2, engine=engine)
    geom = sim.model.geom("thing/thing").id
    sim.expand("geom_dataid")[1, geom] = sim.model.mesh("thing/slab").id
    sim.forward()
    own = Simulation(scene(CHOICES[2])).model
    radius = sim.expand("geom_rbound")[:, geom].tolist()
    assert radius == pytest.approx(
        [sim.model.geom_rbound[geom], own.geom_rbound[geom]], rel=1e-5
    )


@pytest.mark.parametrize("name", ["hfield_data", "mesh_vert"])
def test_what_all_share_says_the_remedy(engine, name):
    sim = Simulation(scene(CHOICES[0]), 2, engine=engine)
    with raises(InvalidInputError, name=name):
        sim.expand(name)


def test_another_structure_is_refused(engine):
    sim = Simulation(scene(CHOICES[0]), 2, engine=engine)
    before = sim.snapshot()
    more = EntityCfg(model="cube")
    other = dataclasses.replace(
        scene(CHOICES[1]), entities={**scene(CHOICES[1]).entities, "cube": more}
    )
    with raises(ModelError, name="B_colind"):
        sim.write_variant(other, [1])
    assert sim.snapshot().slots.keys() == before.slots.keys()


def test_a_variant_with_an_asset_of_its_own_says_the_remedy():
    own = THING.replace('vertex="0 0 0  .3', 'vertex="0 .2 .1  0 0 0  .3')
    cfgs = [
        SceneCfg(
            entities={"it": EntityCfg(model=xml.format(**CHOICES[1]), com_varies=True)},
            timestep=None,
        )
        for xml in (THING, own)
    ]
    with raises(ModelError, name="mesh_bvhadr") as caught:
        Simulation(cfgs[0], 2).write_variant(cfgs[1])
    assert "<asset>" in str(caught.value)
    assert "com_varies" not in str(caught.value)


def test_a_variant_without_its_shortcut_says_so():
    cubes = [
        SceneCfg(entities={"it": EntityCfg(model="cube", com_varies=varies)})
        for varies in (True, False)
    ]
    with raises(ModelError, name="M_colind"):
        Simulation(cubes[0], 2).write_variant(cubes[1])
