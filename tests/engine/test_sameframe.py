"""Frames that MuJoCo compiled a shortcut for are where their parameters say.

Of the quadruped most bodies, geoms and sites are compiled as having the frame of their
body or of its inertia. The oracle is plain MuJoCo, with `mj_setConst` called by hand.
"""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import engine_of
from tests.raised import raises

from simstate import EntityCfg, SceneCfg, Simulation, StaleReadError
from simstate.math import quaternion

INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION.value
TURNS = torch.tensor(
    [[0.9, 0.1, -0.3, 0.2], [0.7, -0.5, 0.1, 0.4]], dtype=torch.float64
)
TURNS /= TURNS.norm(dim=1, keepdim=True)

CHANGES = {
    "body_mass": lambda own: own * torch.tensor([2.0, 0.6]).to(own),
    "body_ipos": lambda own: own + torch.tensor([[0.03, 0.01, -0.02]]).to(own),
    "body_iquat": lambda own: turned(own),
    "geom_pos": lambda own: own + torch.tensor([[0.02, -0.03, 0.05]]).to(own),
    "geom_quat": lambda own: turned(own),
    "site_pos": lambda own: own + torch.tensor([[-0.01, 0.04, 0.02]]).to(own),
    "site_quat": lambda own: turned(own),
}
READ = {
    "subtree_com": "subtree_com",
    "xipos": "xipos",
    "ximat": "ximat",
    "geom_xpos": "geom_xpos",
    "geom_xmat": "geom_xmat",
    "site_xpos": "site_xpos",
    "site_xmat": "site_xmat",
    "qacc": "qacc",
}


def turned(own):
    return quaternion.multiply(own, TURNS.to(own).expand_as(own))


def scene():
    robot = EntityCfg(model="quadruped", com_varies=True)
    return SceneCfg(entities={"robot": robot}, timestep=0.005)


@pytest.fixture(scope="module")
def sims():
    return {}


@pytest.fixture
def sim(engine, sims):
    if engine not in sims:
        sims[engine] = Simulation(scene(), 3, engine=engine)
    sim = sims[engine]
    sim.reset()
    for name in list(engine_of(sim).expanded):
        if name in CHANGES:
            sim.expand(name)[:] = engine_of(sim).model_parameter(name)
    rng = np.random.default_rng(4)
    sim.data.qpos[:, 7:] += torch.as_tensor(rng.normal(size=(3, 12)) * 0.3).to(
        sim.dtype
    )
    sim.data.qpos[:, 3:7] = torch.tensor([0.7, 0.2, -0.4, 0.5]).to(sim.dtype)
    sim.data.qpos[:, 2] = torch.tensor([1.0, 1.2, 1.4]).to(sim.dtype)
    sim.data.qvel[:] = torch.as_tensor(rng.normal(size=(3, 18))).to(sim.dtype)
    return sim


def chosen(sim, name):
    """Two elements whose frame was compiled away, if there are; neither first."""
    kind = name.partition("_")[0]
    flags = np.asarray(getattr(sim.model, f"{kind}_sameframe"))
    (same,) = np.nonzero(flags)
    same = [int(k) for k in same if k > 1]
    assert len(same) >= 2, "the model has such elements"
    return [same[-1], same[0]]


def plain(sim, world, name, elements, values):
    model = copy.copy(sim.model)
    getattr(model, name)[elements] = values.double().numpy()
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)
    row = sim.state[world].double().numpy().copy()
    mujoco.mj_setState(model, data, row, INTEGRATION)
    mujoco.mj_forward(model, data)
    return data


def assert_as_plain(sim, name, elements, world, values):
    tolerance = 1e-9 if sim.engine_name == "native" else 2e-4
    own = torch.as_tensor(getattr(sim.model, name)[elements])
    sim.forward()
    for k in range(3):
        data = plain(sim, k, name, elements, values if k == world else own)
        for ours, theirs in READ.items():
            got = getattr(sim.data, ours)[k].double().numpy()
            want = getattr(data, theirs).reshape(got.shape)
            scale = 1.0 + np.abs(want).max()
            np.testing.assert_allclose(
                got / scale, want / scale, rtol=0, atol=tolerance, err_msg=f"{ours} {k}"
            )


@pytest.mark.parametrize("how", ["expand", "write_parameter"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_frame_is_plain_mujocos(sim, name, how):
    elements = chosen(sim, name)
    own = torch.as_tensor(getattr(sim.model, name)[elements], dtype=sim.dtype)
    values = CHANGES[name](own)
    _ = sim.data.geom_xpos, sim.data.site_xpos, sim.data.subtree_com
    if how == "expand":
        sim.expand(name)[1, elements] = values
    else:
        sim.write_parameter(name, values[None], elements, [1])
    assert_as_plain(sim, name, elements, 1, values)


def test_the_quantities_follow_by_themselves(sim):
    robot = sim.scene["robot"]
    before = {
        name: robot.data.read(name).clone()
        for name in ("geom_pos_w", "geom_quat_w", "site_pos_w", "body_com_pos_w")
    }
    for name in ("geom_pos", "geom_quat", "site_pos", "body_ipos"):
        elements = chosen(sim, name)
        own = torch.as_tensor(getattr(sim.model, name)[elements], dtype=sim.dtype)
        sim.write_parameter(name, CHANGES[name](own)[None], elements, [2])
    tolerance = 1e-12 if sim.engine_name == "native" else 1e-5
    for name, raw, ids in (
        ("geom_pos_w", "geom_xpos", robot.index.geoms.ids),
        ("site_pos_w", "site_xpos", robot.index.sites.ids),
        ("body_com_pos_w", "xipos", robot.index.bodies.ids),
    ):
        now = robot.data.read(name)
        assert not torch.equal(now[2], before[name][2])
        torch.testing.assert_close(now[:2], before[name][:2], rtol=0, atol=tolerance)
        want = getattr(sim.data, raw)[:, list(ids)]
        torch.testing.assert_close(now, want, rtol=0, atol=tolerance)
    quat = robot.data.geom_quat_w
    mat = sim.data.geom_xmat[:, list(robot.index.geoms.ids)].reshape(3, -1, 3, 3)
    torch.testing.assert_close(
        quaternion.to_matrix(quat), mat, rtol=0, atol=max(tolerance, 1e-9)
    )


@pytest.mark.parametrize("name", CHANGES)
def test_strict_names_the_parameter(name):
    sim = Simulation(scene(), 3, freshness="strict")
    elements = chosen(sim, name)
    own = torch.as_tensor(getattr(sim.model, name)[elements], dtype=sim.dtype)
    sim.write_parameter(name, CHANGES[name](own)[None], elements, [1])
    with raises(StaleReadError, name="subtree_com", worlds=[1]) as caught:
        _ = sim.data.subtree_com
    assert name in str(caught.value)
    sim.forward()
    assert_as_plain(sim, name, elements, 1, CHANGES[name](own))


LEASH = """<mujoco><worldbody><body name="a" pos="0 0 1"><freejoint/>
  <geom size=".1" mass="1" pos=".01 .02 0"/></body>
  <body name="b" pos=".5 0 1"><freejoint/>
    <geom size=".1" mass="2" pos="0 .03 0"/></body>
  </worldbody><equality><connect body1="a" body2="b" anchor=".2 .1 0"/>
  <weld body1="b" body2="a"/></equality></mujoco>"""


def test_eq_data_written_by_hand_is_kept(engine):
    model = mujoco.MjModel.from_xml_string(LEASH)
    sim = Simulation(model, 3, engine=engine)
    anchor = torch.tensor([0.3, -0.1, 0.2]).to(sim.dtype)
    sim.expand("eq_data")[1, 0, 3:6] = anchor
    sim.write_parameter("body_mass", [[3.0]], [1], [1])
    sim.write_parameter("body_pos", [[[0.1, 0.2, 1.5]]], [1], [2])
    sim.step()
    data = sim.expand("eq_data")
    assert torch.equal(data[1, 0, 3:6], anchor)
    for world, pos in ((0, (0, 0, 1)), (2, (0.1, 0.2, 1.5))):
        other = copy.copy(model)
        other.body_pos[1] = pos
        mujoco.mj_setConst(other, mujoco.MjData(other))
        np.testing.assert_allclose(data[world].double(), other.eq_data, atol=1e-6)
