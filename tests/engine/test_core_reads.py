"""Quantities in one C pass against the declared ones, and MuJoCo's velocities."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.conftest import SMALL
from tests.engine.core_models import load, random_states
from tests.inside import engine_of, reader_of

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.engine import core
from simstate.engine.core import reads
from simstate.entity.frame_quantities import (
    BODY_COM,
    BODY_LINK,
    GEOM,
    ROOT_COM,
    ROOT_LINK,
    SITE,
    Picks,
    local_quat,
)

pytestmark = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)

NUM = 5
STATE = mujoco.mjtState.mjSTATE_INTEGRATION.value
FRAMES = {
    "root_link": ROOT_LINK,
    "root_com": ROOT_COM,
    "body_link": BODY_LINK,
    "body_com": BODY_COM,
    "geom": GEOM,
    "site": SITE,
}


def ids(pick, size):
    """A frame's pick as ids."""
    return np.arange(size)[pick].reshape(-1)


class Entity:
    """The arrays and ids of an entity, as reads take them."""

    def __init__(self, sim, name):
        self.data, model = reader_of(sim.scene[name].data), sim.model
        engine = engine_of(sim)
        self.model = model
        self.numpy = lambda field: engine.field(field).numpy()
        self.parameter = lambda field: engine.parameter(field).numpy()
        self.motion = reads.BodyMotion(self.numpy("subtree_com"), self.numpy("cvel"))
        self.xquat = self.numpy("xquat")

    def reads(self, prefix):
        """The quantities of a frame by their names."""
        frame = FRAMES[prefix]
        picks = self.data.picks(frame)
        pos = self.numpy(frame.pos_field)
        elements = ids(picks.elements, pos.shape[1])
        bodies = ids(picks.bodies, self.model.nbody)
        roots = ids(picks.roots, self.model.nbody)
        local = self.local_quat(frame) if frame.local_quat else None
        own = () if local is None else elements
        found = {
            "pos_w": reads.take(pos, elements),
            "quat_w": reads.quat_w(self.xquat, bodies, local, own),
            "pose_w": reads.pose_w(pos, elements, self.xquat, bodies, local),
            "vel_w": reads.vel_w(pos, elements, self.motion, bodies, roots),
            "ang_vel_w": reads.take(self.motion.cvel, bodies, 0, 3),
        }
        if frame.subject == "root":
            body, root = int(bodies[0]), int(roots[0])
            found["lin_vel_b"] = reads.lin_vel_b(
                pos, body, self.motion, root, self.xquat, body
            )
            found["ang_vel_b"] = reads.ang_vel_b(body, self.motion, self.xquat, body)
        return {f"{prefix}_{name}": read for name, read in found.items()}

    def local_quat(self, frame):
        """How all elements of a frame's kind are turned in their bodies."""
        bodies = {
            "geom": self.model.geom_bodyid,
            "site": self.model.site_bodyid,
        }.get(frame.subject, np.arange(self.model.nbody))
        bodies = torch.as_tensor(bodies, dtype=torch.int64)
        picks = Picks(torch.arange(len(bodies)), bodies, 0)
        return local_quat(self.data, frame, picks).contiguous().numpy()

    def rest(self):
        """Gravity's direction and joints."""
        index = self.data.index
        gravity = self.data.gravity_direction().numpy()
        root = index.root_body_id
        found = {"projected_gravity_b": reads.direction_b(gravity, self.xquat, root)}
        if len(index.qpos_adr):
            found["joint_pos"] = reads.take(self.numpy("qpos"), index.qpos_adr)
            found["joint_vel"] = reads.take(self.numpy("qvel"), index.dof_adr)
        return found


def two_entities():
    """The small model next to a quadruped: several trees, none of them the first."""
    scene = SceneCfg(
        entities={"small": EntityCfg(model=SMALL), "dog": EntityCfg(model="quadruped")},
        gravity=(1.0, -2.0, -9.0),
        timestep=0.004,
    )
    sim = Simulation(scene, NUM)
    sim.expand("opt.gravity")[:, 0] = torch.linspace(-3, 3, NUM, dtype=torch.float64)
    sim.expand("geom_quat")[1] = torch.tensor([0.5, 0.5, -0.5, 0.5]).double()
    sim.write_state(torch.tensor(random_states(sim.model, NUM, 21)))
    sim.step(2)
    return sim


@pytest.fixture(scope="module")
def sim():
    """One whose quantities are computed by their formulas, not by the core."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMSTATE_CORE", "0")
        yield two_entities()


def values_of(read):
    """What the core computes of a quantity; (NUM, count, width)."""
    values = np.full((NUM, read.count, read.width), np.nan)
    read.writer(NUM)(values)
    return values


@pytest.mark.parametrize("name", ["small", "dog"])
def test_reads_are_the_declared_quantities(sim, name):
    entity = Entity(sim, name)
    data = entity.data
    wanted = {q: data.read(q).clone() for q in data.quantities}
    together = {}
    for prefix in FRAMES:
        together |= entity.reads(prefix)
    together |= entity.rest()
    assert len(together) == 37
    for quantity, read in together.items():
        values = values_of(read)
        want = wanted[quantity].numpy().reshape(values.shape)
        np.testing.assert_allclose(
            values, want, rtol=1e-14, atol=1e-14, err_msg=quantity
        )


def test_velocities_are_mujocos():
    model = load("sensors")
    rows = random_states(model, NUM, 4)
    worlds = core.CoreBatch(model, NUM, 1)
    worlds.state[:] = rows
    for field in ("xpos", "xipos", "xquat", "subtree_com", "cvel"):
        worlds.bind(field)
    worlds.forward()
    motion = reads.BodyMotion(worlds.bind("subtree_com"), worlds.bind("cvel"))
    bodies = np.array([4, 2, 3, 1])
    roots = model.body_rootid[bodies]
    link, com = (
        values_of(reads.vel_w(worlds.bind(field), bodies, motion, bodies, roots))
        for field in ("xpos", "xipos")
    )
    kinds = ((link, mujoco.mjtObj.mjOBJ_XBODY), (com, mujoco.mjtObj.mjOBJ_BODY))
    for world in range(NUM):
        data = mujoco.MjData(model)
        mujoco.mj_setState(model, data, rows[world], STATE)
        mujoco.mj_forward(model, data)
        for values, kind in kinds:
            for k, body in enumerate(bodies):
                want = np.zeros(6)
                mujoco.mj_objectVelocity(model, data, kind, body, want, 0)
                got = values[world, k]
                np.testing.assert_allclose(got[:3], want[3:], atol=1e-13)
                np.testing.assert_allclose(got[3:], want[:3], atol=1e-13)


def test_sources_are_read_at_each_call():
    worlds = core.CoreBatch(load("small"), NUM, 1)
    read = reads.take(worlds.bind("qpos"), [3, 0])
    first = values_of(read)
    write = read.writer(NUM)
    worlds.bind("qpos")[:] += 1.0
    memory = np.zeros((NUM, 2))
    write(memory)
    np.testing.assert_array_equal(memory, first[..., 0] + 1.0)
    with pytest.raises(ValueError, match="out must be an array of 10 float64"):
        write(memory[:-1])
