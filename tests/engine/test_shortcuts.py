"""Bodies that MuJoCo compiles "simple": a COM that moves is right, or is refused."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import EntityCfg, InitialStateCfg, InvalidInputError, SceneCfg, Simulation
from simstate.env import (
    Env,
    EnvCfg,
    EventTermCfg,
    JointEffortActionCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    SceneEntityCfg,
    events,
    moves_com,
    observations,
)

CUBE = """<mujoco><option timestep="0.004"/><worldbody>
  <body name="cube" pos="0 0 1" {simple}><freejoint/>{inertial}
    <geom type="box" size=".1 .12 .14" mass="0.7"/></body></worldbody></mujoco>"""
SLED = """<mujoco><option timestep="0.004"/><worldbody>
  <body name="sled" pos="0 2 1" {simple}>
    <joint name="x" type="slide" axis="1 0 0"/>
    <joint name="yaw" axis="0 0 1" pos="{pos}"/>
    <geom type="box" size=".1 .12 .14" mass="0.4"/></body></worldbody>
  <actuator><motor joint="yaw" gear="0.5"/></actuator></mujoco>"""
CUBE_CFG = SceneEntityCfg("cube")
REMEDY = r"com_varies=True.*simple=\"false\""


def scene(**cube):
    """Two cubes and a sled, all of which compile as simple."""
    one = EntityCfg(
        model=CUBE.format(simple="", inertial=""),
        init_state=InitialStateCfg(pos=(0.5, -1, 1), rot=(0.8, 0.2, 0.4, 0.4)),
        **cube,
    )
    other = EntityCfg(model=CUBE.format(simple="", inertial=""))
    sled = EntityCfg(model=SLED.format(simple="", pos="0 0 0"))
    return SceneCfg(
        entities={"other": other, "cube": one, "sled": sled},
        ground=False,
        timestep=None,
    )


def test_they_compile_as_simple_by_default():
    model = Simulation(scene()).model
    assert model.body_simple.tolist() == [1, 1, 1, 1]
    model = Simulation(scene(com_varies=True)).model
    assert model.body_simple.tolist() == [1, 1, 0, 1]


def test_a_com_that_varies_is_plain_mujocos(engine):
    sim = Simulation(scene(com_varies=True), 3, engine=engine)
    com = torch.tensor([[0.03, -0.02, 0.05], [-0.01, 0.04, 0.02], [0.02, 0.02, -0.03]])
    cube = sim.scene["cube"]
    sim.write_parameter("body_ipos", com[:, None], [2])
    velocity = (
        torch.tensor([[0.3, -0.2, 0.1, 1.0, -2.0, 0.5]]) * torch.arange(1, 4)[:, None]
    )
    cube.write_root_link_velocity_to_sim(velocity)
    force = torch.tensor([[[0.5, 1.0, -0.4]], [[1.5, 0.3, 0.2]], [[-0.7, 0.6, 1.0]]])
    cube.write_external_wrench_to_sim(force, torch.zeros(3, 1, 3))
    sim.forward()
    got = sim.data.qacc[:, 6:12]
    inertia = sim.model.body_inertia[2]
    for world in range(3):
        inertial = (
            '<inertial pos="{} {} {}" mass="0.7" diaginertia="{} {} {}"/>'.format(
                *com[world].tolist(), *inertia
            )
        )
        xml = CUBE.format(simple="", inertial=inertial)
        plain = mujoco.MjModel.from_xml_string(xml)
        assert plain.body_simple[1] == 0
        data = mujoco.MjData(plain)
        data.qpos[:] = sim.data.qpos[world, 7:14]
        data.qvel[:] = sim.data.qvel[world, 6:12]
        data.xfrc_applied[1, :3] = force[world, 0]
        mujoco.mj_forward(plain, data)
        np.testing.assert_allclose(
            got[world], data.qacc, rtol=0, atol=1e-9 if engine == "native" else 2e-4
        )


@pytest.mark.parametrize(
    ("parameter", "element", "value", "names"),
    [
        ("body_ipos", 2, [0.03, 0.0, 0.01], "cube/cube"),
        ("body_iquat", 2, [0.8, 0.6, 0.0, 0.0], "cube/cube"),
        ("jnt_pos", 3, [0.1, 0.2, 0.0], "sled/yaw"),
        ("jnt_axis", 2, [0.6, 0.8, 0.0], "sled/x"),
    ],
)
def test_what_a_shortcut_takes_for_fixed_is_refused(
    engine, parameter, element, value, names
):
    sim = Simulation(scene(), 3, engine=engine)
    before = sim.state.clone()
    with raises(InvalidInputError, name=parameter) as caught:
        sim.write_parameter(parameter, [[value]], [element], [1])
    assert names in str(caught.value)
    assert torch.equal(sim.expand(parameter)[0], sim.expand(parameter)[1])
    own = sim.expand(parameter)[1, element].clone()
    sim.expand(parameter)[1, element] = torch.tensor(value, dtype=sim.dtype)
    for call in (sim.step, lambda: sim.data.xipos):
        with raises(InvalidInputError, name=parameter):
            call()
    sim.expand(parameter)[1, element] = own
    assert torch.equal(sim.state, before)
    sim.step()


def test_what_is_no_shortcut_is_allowed(engine):
    sim = Simulation(scene(), 2, engine=engine)
    sim.write_parameter("jnt_pos", [[[0.1, 0.0, 0.0]]], [0], [1])  # free: not read
    sim.write_parameter("body_ipos", [[[0.0, 0.0, 0.0]]], [2], [1])
    sim.step()


def test_bodies_that_say_so_in_their_file_may_vary(engine):
    xml = CUBE.format(simple='simple="false"', inertial="")
    sim = Simulation(mujoco.MjModel.from_xml_string(xml), 2, engine=engine)
    sim.write_parameter("body_ipos", [[[0.03, 0.0, 0.01]]], [1], [1])
    sim.step()


def shift(env, env_ids, asset_cfg=CUBE_CFG):
    """A user's own event."""
    body = env.scene[asset_cfg.name].index.bodies.ids[0]
    com = [[[0.01 * (1 + k), 0.02, 0.0]] for k in range(len(env_ids))]
    env.sim.write_parameter("body_ipos", com, [body], env_ids)


class Shift:
    """The same as a class."""

    def __init__(self, cfg, env):
        pass

    def reset(self, env_ids):
        pass

    def __call__(self, env, env_ids, asset_cfg=CUBE_CFG):
        shift(env, env_ids, asset_cfg)


def task(function, **params):
    event = EventTermCfg(function, params=params, mode="reset")
    seen = ObservationTermCfg(
        observations.joint_pos_rel, params={"asset_cfg": SceneEntityCfg("sled")}
    )
    return EnvCfg(
        scene=scene(),
        decimation=2,
        episode_length_s=1.0,
        actions={"yaw": JointEffortActionCfg(asset_name="sled", joint_names="yaw")},
        observations={"policy": ObservationGroupCfg(terms={"pos": seen})},
        rewards={},
        terminations={},
        events={"com": event},
    )


@pytest.mark.parametrize("func", [events.randomize_com, "randomize_com"])
def test_an_event_that_moves_coms_compiles_what_it_needs(engine, func):
    params = {"com_range": {"x": (0.01, 0.05)}, "asset_cfg": SceneEntityCfg("cube")}
    cfg = task(func, **params)
    env = Env(cfg, 3, engine=engine)
    assert env.sim.model.body_simple.tolist() == [1, 1, 0, 1]
    ipos = env.sim.expand("body_ipos")
    assert len(set(ipos[:, 2, 0].tolist())) == 3
    assert not cfg.scene.entities["cube"].com_varies


def test_a_users_event_says_that_it_moves_coms():
    for made in (shift, Shift):
        with raises(InvalidInputError, name="body_ipos") as raised:
            Env(task(made), 3)
        assert "event term 'com'" in raised.value.__notes__[0]
        moves_com(made)
        assert Env(task(made), 3).sim.model.body_simple.tolist() == [1, 1, 0, 1]
        del made.moves_com
