"""Speculative contacts, since MuJoCo 4: those that a body will make within a step."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.mujoco_versions import IS_4
from tests.raised import raises

from simstate import ContactCfg, EntityCfg, ModelError, SceneCfg, Simulation

pytestmark = pytest.mark.skipif(not IS_4, reason="contacts are speculative since 4")

BALLS = """
<mujoco><option timestep=".01"><flag speculative="{flag}"/></option><worldbody>
  <geom name="floor" type="plane" size="0 0 .1"/>
  <body name="a" pos="0 0 .4"><freejoint/><geom size=".05" mass=".7" pos=".01 0 0"/>
  </body>
  <body name="b" pos="1 0 .5"><freejoint/>
    <geom type="box" size=".1 .06 .05" mass="1.2" pos="0 .01 .02"/></body>
</worldbody></mujoco>
"""


def worlds(flag="enable", engine="native"):
    """Bodies thrown at the floor fast, in no two worlds alike."""
    scene = SceneCfg(
        entities={"balls": EntityCfg(model=BALLS.format(flag=flag))},
        contacts={"touch": ContactCfg(of=["balls/a", "balls/b"])},
        ground=False,
    )
    sim = Simulation(scene, num_envs=3, engine=engine)
    sim.data.qvel[:, 2] = -torch.tensor([3.0, 8.0, 14.0]).to(sim.dtype)
    sim.data.qvel[:, 8] = -torch.tensor([12.0, 2.0, 6.0]).to(sim.dtype)
    return sim


def test_steps_are_plain_mujocos():
    sim, without = worlds(), worlds("disable")
    start = sim.state.clone()
    sim.step(40)
    without.step(40)
    assert not torch.equal(sim.state, without.state)
    everything = mujoco.mjtState.mjSTATE_INTEGRATION
    for world in range(3):
        data = mujoco.MjData(sim.model)
        mujoco.mj_setState(sim.model, data, start[world].numpy(), everything)
        mujoco.mj_step(sim.model, data, nstep=40)
        assert np.array_equal(sim.data.qpos[world].numpy(), data.qpos)


def test_contact_sensors_have_mujocos_forces():
    sim = worlds()
    everything = mujoco.mjtState.mjSTATE_INTEGRATION
    pushed = 0
    for _ in range(25):
        start = sim.state.clone()
        sim.step()
        force = sim.contacts["touch"].force_w.numpy()
        for world in range(3):
            data = mujoco.MjData(sim.model)
            mujoco.mj_setState(sim.model, data, start[world].numpy(), everything)
            mujoco.mj_forward(sim.model, data)
            want = np.zeros((2, 3))
            for k, contact in enumerate(data.contact):
                local = np.zeros(6)
                mujoco.mj_contactForce(sim.model, data, k, local)
                body = sim.model.geom_bodyid[contact.geom[1]]
                want[body - 1] += contact.frame.reshape(3, 3).T @ local[:3]
                pushed += np.linalg.norm(local) > 0 and contact.dist > 0
            got = force[world].reshape(2, -1, 3).sum(1)
            np.testing.assert_allclose(got, want, atol=1e-9)
    assert pushed > 2  # before the bodies touch


def test_restored_they_go_on_with_the_same_bits():
    sim = worlds()
    sim.step(4)
    kept = sim.snapshot()
    sim.step(30)
    after = sim.state.clone()
    other = worlds()
    other.restore(kept)
    other.step(30)
    assert torch.equal(other.state, after)


def test_on_warp_they_are_rejected():
    with raises(ModelError, name="warp"):
        worlds(engine="warp")
