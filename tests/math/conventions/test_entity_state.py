"""Entities read and written in any convention, on both engines."""

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import columns_of
from tests.raised import raises

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation
from simstate.base.errors import ConventionError, InvalidInputError
from simstate.math import conventions as c

pytestmark = pytest.mark.fast

START = InitialStateCfg(
    pos=(1.0, 2.0, 3.0),
    rot=(0.5, 0.1, -0.7, 0.5),
    lin_vel=(1.0, -2.0, 0.5),
    ang_vel=(0.3, 0.8, -1.1),
)


@pytest.fixture
def sim(engine):
    glider = EntityCfg(model="glider", init_state=START)
    return Simulation(SceneCfg(entities={"glider": glider}), 3, engine=engine)


def tolerance(sim):
    return 1e-12 if sim.dtype == torch.float64 else 3e-6


def test_qvel_is_the_mixed_preset(sim):
    """The flat state in MUJOCO_QVEL is qpos and qvel themselves."""
    flat = sim.scene["glider"].state_in(c.MUJOCO_QVEL).vector
    raw = torch.cat([sim.data.qpos, sim.data.qvel], dim=-1)
    sign = torch.sign(raw[:, 3:4])
    raw[:, 3:7] *= sign
    assert torch.allclose(flat, raw, rtol=0, atol=tolerance(sim))


@pytest.mark.parametrize("name", ["MUJOCO", "MUJOCO_QVEL"])
@pytest.mark.parametrize("model", ["glider", "mocap_target"])
def test_a_state_stays_when_the_worlds_move_on(name, model):
    start = InitialStateCfg(pos=START.pos, rot=START.rot)
    scene = SceneCfg(entities={"it": EntityCfg(model=model, init_state=start)})
    sim = Simulation(scene, 2)
    state = sim.scene["it"].state_in(c.PRESETS[name])
    before = state.vector.clone()
    pose = sim.scene["it"].data.root_link_pose_w + 0.3
    sim.scene["it"].write_root_link_pose_to_sim(pose)
    sim.step()
    assert torch.equal(state.vector, before)
    later = sim.scene["it"].state_in(c.PRESETS[name])
    after = later.vector.clone()
    assert not torch.equal(after, before)
    later.position[:] = later.linear_velocity[:] = 7.0  # it is the caller's own
    assert torch.equal(sim.scene["it"].state_in(c.PRESETS[name]).vector, after)


def test_velocity_of_the_com_is_mujocos(sim):
    """mj_objectVelocity about the inertial frame is the oracle."""
    model, data = sim.model, mujoco.MjData(sim.model)
    data.qpos[:] = sim.data.qpos[0].double().numpy()
    data.qvel[:] = sim.data.qvel[0].double().numpy()
    mujoco.mj_forward(model, data)
    vel = np.zeros(6)
    kind, body = mujoco.mjtObj.mjOBJ_BODY.value, 1
    mujoco.mj_objectVelocity(model, data, kind, body, vel, 0)
    entity = sim.scene["glider"]
    atol = 10 * tolerance(sim)
    for preset, place in ((c.ISAACLAB_2, data.xpos[1]), (c.PYBULLET, data.xipos[1])):
        state = entity.state_in(preset)
        assert np.allclose(state.linear_velocity[0], vel[3:], atol=atol)
        assert np.allclose(state.angular_velocity[0], vel[:3], atol=atol)
        assert np.allclose(state.position[0], place, atol=atol)


@pytest.mark.parametrize("name", c.PRESETS)
def test_write_what_was_read(sim, name):
    entity = sim.scene["glider"]
    before = sim.state.clone()
    state = entity.state_in(c.PRESETS[name])
    entity.write_state_in(c.PRESETS[name], state)
    assert torch.allclose(sim.state, before, atol=tolerance(sim)) or torch.allclose(
        _positive(sim), before, atol=tolerance(sim)
    )


@pytest.mark.parametrize("name", c.PRESETS)
def test_write_what_was_read_as_a_flat_vector(sim, name):
    entity = sim.scene["glider"]
    state = entity.state_in(c.PRESETS[name])
    entity.write_state_in(c.PRESETS[name], state.vector)
    assert c.difference(entity.state_in(c.PRESETS[name]), state).attitude.max() < 2e-3


def _positive(sim):
    """The state with the quaternion of the other sign."""
    state = sim.state.clone()
    first = columns_of(sim)["qpos"].start + 3
    state[:, first : first + 4] *= -1
    return state


@pytest.mark.parametrize("name", ["MUJOCO", "MUJOCO_QVEL", "PX4"])
def test_what_was_read_does_not_follow_the_worlds(sim, name):
    state = sim.scene["glider"].state_in(c.PRESETS[name])
    before = state.vector.clone()
    sim.step(5)
    assert torch.equal(state.vector, before)


def test_some_worlds(sim):
    entity = sim.scene["glider"]
    state = entity.state_in(c.ROS)
    moved = c.RigidBodyState(
        c.ROS, state.position[:1] + 1.0, state.attitude[:1],
        state.linear_velocity[:1], state.angular_velocity[:1],
    )  # fmt: skip
    entity.write_state_in(c.ROS, moved, env_ids=[1])
    gap = c.difference(entity.state_in(c.ROS), state)
    want = torch.tensor([0, 3**0.5, 0], dtype=sim.dtype)
    assert torch.allclose(gap.position, want, atol=tolerance(sim))


def test_no_world_at_all(sim):
    """As a reset has it at most steps: nothing is written, and nothing is wrong."""
    entity = sim.scene["glider"]
    before = sim.state.clone()
    none = entity.state_in(c.PTERA)[:0]
    assert none.vector.shape == (0, c.PTERA.size)
    entity.write_state_in(c.PTERA, none, env_ids=[])
    assert torch.equal(sim.state, before)


def test_another_com_in_some_worlds(sim):
    """Where worlds have their own centre of mass, each is moved by its own."""
    sim.expand("body_ipos")[1, 1] = torch.tensor([0.0, 0.0, 0.5], dtype=sim.dtype)
    sim.set_const()
    entity = sim.scene["glider"]
    state = entity.state_in(c.PYBULLET)
    assert torch.allclose(
        state.position, entity.data.root_com_pos_w, atol=tolerance(sim)
    )
    before = sim.data.qvel.clone()
    entity.write_state_in(c.PYBULLET, state[1:], env_ids=[1, 2])
    assert torch.allclose(sim.data.qvel, before, atol=10 * tolerance(sim))


def test_refused_and_nothing_written(sim):
    entity = sim.scene["glider"]
    before = sim.state.clone()
    state = entity.state_in(c.ROS)
    with raises(ConventionError, name="ROS"):
        entity.write_state_in(c.PX4, state)
    for off in (0.1, -0.1):
        wrong = state.with_com(state.com + off)
        with raises(InvalidInputError, name="com"):
            entity.write_state_in(c.ROS, wrong)
    with raises(InvalidInputError, name="convention"):
        entity.write_state_in("ROS", state)
    assert torch.equal(sim.state, before)


def test_a_model_built_in_ned(sim):
    """Its own axes are said once: a NED model's state is PX4's without a turn."""
    built = c.Convention(name="built in NED", world="NED", body="FRD")
    entity = sim.scene["glider"]
    px4 = entity.state_in(c.PX4, model=built)
    raw = entity.state_in(c.MUJOCO_QVEL)
    assert torch.allclose(px4.vector, raw.vector, rtol=0, atol=tolerance(sim))
    entity.write_state_in(c.PX4, px4, model=built)
    assert torch.allclose(entity.state_in(c.MUJOCO_QVEL).vector, raw.vector,
                          atol=10 * tolerance(sim))  # fmt: skip


HINGED = """
<mujoco><worldbody><body name="base" pos="0.4 -0.3 0.8" quat="0.8 0.2 -0.4 0.4">
  <joint name="hinge" axis="0.3 1 0.2" pos="0.1 0.2 -0.1"/>
  <geom type="box" size="0.2 0.1 0.05" pos="0.05 0.02 -0.03" mass="1.5"/>
</body></worldbody></mujoco>
"""


def test_a_root_without_a_free_joint_is_read_as_mujoco_moves_it():
    scene = SceneCfg(entities={"arm": EntityCfg(model=HINGED)}, ground=False)
    sim = Simulation(scene, 2)
    sim.data.qpos[:, 0] = torch.tensor([0.3, -0.7])
    sim.data.qvel[:, 0] = torch.tensor([1.1, 0.6])
    state = sim.scene["arm"].state_in(c.ISAACLAB_2)
    kept = state.vector.clone()
    for world in range(2):
        data = mujoco.MjData(sim.model)
        data.qpos[:], data.qvel[:] = sim.data.qpos[world], sim.data.qvel[world]
        mujoco.mj_forward(sim.model, data)
        vel = np.zeros(6)
        mujoco.mj_objectVelocity(sim.model, data, mujoco.mjtObj.mjOBJ_BODY, 1, vel, 0)
        np.testing.assert_allclose(state.position[world], data.xpos[1], atol=1e-12)
        np.testing.assert_allclose(state.linear_velocity[world], vel[3:], atol=1e-12)
        np.testing.assert_allclose(state.angular_velocity[world], vel[:3], atol=1e-12)
        np.testing.assert_allclose(state.com[world], sim.model.body_ipos[1])
    sim.step(3)
    assert torch.equal(state.vector, kept)


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("sign", [-1, 1])
def test_another_centre_of_mass_is_refused(axis, sign):
    glider = EntityCfg(model="glider", init_state=START)
    sim = Simulation(SceneCfg(entities={"glider": glider}), 2)
    entity = sim.scene["glider"]
    state = entity.state_in(c.ISAACLAB_2)
    entity.write_state_in(c.ISAACLAB_2, state)
    moved = state.com.clone()
    moved[1, axis] += sign * 1e-4
    with raises(InvalidInputError, name="com"):
        entity.write_state_in(c.ISAACLAB_2, state.with_com(moved))
