"""Springs and flexes that yield, since MuJoCo 4: their deformation is state."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.mujoco_versions import IS_4
from tests.raised import raises

from simstate import EntityCfg, InitialStateCfg, ModelError, SceneCfg, Simulation
from simstate.data.replay import replay
from simstate.integrate import RK4
from simstate.state import Snapshot

pytestmark = pytest.mark.skipif(not IS_4, reason="springs yield since MuJoCo 4")

YIELDING = """
<mujoco><option timestep=".004" {option}/><worldbody>
  <site name="above" pos="0 0 1"/>
  <body name="slider" pos=".1 0 0">
    <joint name="slide" type="slide" axis="1 0 0" stiffness="20" springref=".1"
      springyield=".05" damping=".5"/>
    <geom size=".1" mass="1.3" pos=".02 0 0" contype="0" conaffinity="0"/>
    <site name="tip"/>
    <body name="arm" pos="0 .2 0">
      <joint name="hinge" axis="0 1 1" stiffness="15" springyield="6" damping=".3"/>
      <geom size=".08" mass=".7" pos=".1 0 0" contype="0" conaffinity="0"/></body>
  </body>
  <body name="top" pos="0 2 0">
    <joint name="ball" type="ball" stiffness="3" springyield="5" damping=".2"/>
    <geom size=".1" mass="1" pos="0 .1 .2" contype="0" conaffinity="0"/></body>
</worldbody>
<tendon><spatial name="rope" stiffness="30" springlength=".05 .1" springyield=".03">
  <site site="above"/><site site="tip"/></spatial></tendon>
<keyframe><key name="bent" qpos=".2 -.3 .98 .15 .12 -.05"
  plastic=".12 -.13 .9 .3 .2 .1 .06 .11"/></keyframe></mujoco>
"""
FLEX = """
<mujoco><option timestep=".002"/><worldbody>
  <body name="b"><flexcomp name="tet" type="direct" dim="3" mass="1"
    point="0 0 0  1 0 0  0 1 0  0 0 1" element="0 1 2 3">
    <contact contype="0" conaffinity="0" selfcollide="none"/>
    <elasticity young="500" poisson=".25" damping=".05" yield=".01"/>
    <pin id="0 1 2"/></flexcomp></body></worldbody></mujoco>
"""
OPTIONS = ["", 'integrator="RK4"', 'integrator="implicitfast"']


def worlds(model, engine="native", num_envs=3, **options):
    """A simulation with no two worlds alike."""
    sim = Simulation(model, num_envs, engine=engine, **options)
    rng = np.random.default_rng(5)
    sim.data.qvel[:] = torch.as_tensor(rng.normal(size=sim.data.qvel.shape)) * 2
    return sim


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", ["springs", "flex"])
def test_as_plain_mujoco(kind, option):
    text = YIELDING.format(option=option) if kind == "springs" else FLEX
    model = mujoco.MjModel.from_xml_string(text)
    sim = worlds(model)
    assert sim.data.plastic.shape == (3, model.nplastic)
    assert model.nplastic > 3
    start = sim.state.clone()
    sim.step(120)
    everything = mujoco.mjtState.mjSTATE_INTEGRATION
    for world in range(3):
        data = mujoco.MjData(model)
        mujoco.mj_setState(model, data, start[world].numpy(), everything)
        mujoco.mj_step(model, data, nstep=120)
        assert np.array_equal(sim.data.plastic[world].numpy(), data.plastic)
        assert np.array_equal(sim.data.qpos[world].numpy(), data.qpos)
        assert not np.array_equal(data.plastic, mujoco.MjData(model).plastic)


def test_saved_restored_and_reset(tmp_path):
    model = mujoco.MjModel.from_xml_string(YIELDING.format(option=""))
    sim = worlds(model)
    first = sim.data.plastic.clone()
    sim.step(60)
    path = tmp_path / "bent.npz"
    sim.snapshot().save(path)
    bent = sim.data.plastic.clone()
    sim.step(60)
    after = sim.state.clone()
    assert not torch.equal(sim.data.plastic, bent)
    other = worlds(model)
    other.restore(Snapshot.load(path))
    assert torch.equal(other.data.plastic, bent)
    other.step(60)
    assert torch.equal(other.state, after)
    other.reset(env_ids=[1])
    assert torch.equal(other.data.plastic[1], first[1])
    assert torch.equal(other.data.plastic[[0, 2]], sim.data.plastic[[0, 2]])


def test_a_write_changes_the_forces():
    model = mujoco.MjModel.from_xml_string(YIELDING.format(option=""))
    sim = worlds(model)
    before = sim.data.qfrc_passive.clone()
    sim.data.plastic[1, 0] += 0.3
    gap = sim.data.qfrc_passive - before
    assert gap[1, 0] == pytest.approx(20 * 0.3)
    assert not gap[[0, 2]].any()


def test_recorded_and_replayed(tmp_path):
    model = mujoco.MjModel.from_xml_string(YIELDING.format(option=""))
    sim, path = worlds(model), tmp_path / "run.simrec"
    sim.step(20)
    with sim.record(path, fields=["plastic", "qpos"], snapshot_every=0.1):
        for k in range(40):
            if k == 25:
                sim.data.plastic[2, 1] -= 0.2
            sim.step(2)
    found = replay(path)
    assert found.is_same, found
    assert "plastic" in found.columns
    assert found.snapshots > 2


@pytest.mark.parametrize("others", [0, 2])
def test_a_keyframe_states_it(others):
    text = YIELDING.format(option="")
    bent = EntityCfg(model=text, init_state=InitialStateCfg(keyframe="bent"))
    entities = {f"straight{k}": EntityCfg(model=text) for k in range(others)}
    sim = Simulation(SceneCfg(entities={**entities, "it": bent}), num_envs=2)
    model, plastic = sim.model, sim.data.plastic[1]
    for name in (*entities, "it"):
        slide = model.jnt_plasticadr[model.joint(f"{name}/slide").id]
        ball = model.jnt_plasticadr[model.joint(f"{name}/ball").id]
        rope = model.tendon_plasticadr[model.tendon(f"{name}/rope").id]
        own = [float(plastic[slide]), *plastic[ball : ball + 4].tolist()]
        own += plastic[rope : rope + 2].tolist()
        quat = np.array([0.9, 0.3, 0.2, 0.1]) / np.sqrt(0.95)
        stated = [0.12, *quat, 0.06, 0.11]
        reset = [0.1, 1, 0, 0, 0, 0.05, 0.1]
        assert own == pytest.approx(stated if name == "it" else reset), name


def test_integrators_of_ours_do_not_advance_it():
    model = mujoco.MjModel.from_xml_string(YIELDING.format(option=""))
    with raises(ModelError, name="integrator"):
        Simulation(model, 2, integrator=RK4())


def test_on_warp_it_is_the_same_to_rounding():
    model = mujoco.MjModel.from_xml_string(YIELDING.format(option=""))
    sims = [worlds(model, engine) for engine in ("native", "warp")]
    for sim in sims:
        sim.step(50)
    native, warp = (sim.data.plastic.double() for sim in sims)
    assert not torch.equal(native, worlds(model).data.plastic)
    torch.testing.assert_close(warp, native, rtol=0, atol=2e-3)
    kept = sims[1].snapshot()
    sims[1].step(30)
    after = sims[1].data.plastic.clone()
    sims[1].restore(kept)
    sims[1].step(30)
    assert torch.equal(sims[1].data.plastic, after)
