"""CollisionCfg and max_delay_s: what MuJoCo's compiler makes of the same values."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import CollisionCfg, EntityCfg, SceneCfg, Simulation
from simstate.base.errors import InvalidInputError, ModelError, UnknownNameError

pytestmark = pytest.mark.fast

MODEL = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="slab" pos="0 0 0.3" quat="0.9 0.1 0.2 0.3">
      <freejoint/>
      <geom name="left_pad" type="box" size="0.1 0.2 0.05" pos="0.3 0.1 0"
            friction="0.7 0.02 0.003" {left}/>
      <geom name="right_pad" type="box" size="0.1 0.2 0.05" pos="-0.2 0 0.1"
            friction="0.6 0.04 0.001" {right}/>
      <geom name="hull" size="0.1" {hull}/>
      <body name="arm" pos="0.1 0 0.2">
        <joint name="swing" axis="0 1 0"/>
        <joint name="turn" axis="1 0 0"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0 0.1 0.2" {arm}/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="swing" joint="swing" gear="3" {delay}/>
    <position name="turn" joint="turn" kp="4" kv="0.3"/>
  </actuator>
</mujoco>
"""
NOTHING = {"left": "", "right": "", "hull": "", "arm": "", "delay": ""}


def model(**attributes):
    return MODEL.format(**(NOTHING | attributes))


CONTACT_FIELDS = (
    "geom_contype", "geom_conaffinity", "geom_condim", "geom_priority",
    "geom_friction", "geom_solref", "geom_solimp", "body_contype", "body_conaffinity",
)  # fmt: skip


def test_parameters_are_those_of_the_same_model_in_mjcf():
    collisions = (
        CollisionCfg(geoms=".*", contype=0, conaffinity=0),
        CollisionCfg(
            geoms=".*_pad", contype=2, conaffinity=5, condim=6, priority=3,
            friction=(1.3, 0.06), solref=(0.03, 1.4),
        ),
        CollisionCfg(geoms=["left_pad", "hull"], priority=4, solref=(-200.0, -9.0)),
    )  # fmt: skip
    pad = 'contype="2" conaffinity="5" condim="6"'
    same = model(
        left=f'{pad} priority="4" solref="-200 -9" friction="1.3 0.06 0.003"',
        right=f'{pad} priority="3" solref="0.03 1.4" friction="1.3 0.06 0.001"',
        hull='contype="0" conaffinity="0" priority="4" solref="-200 -9"',
        arm='contype="0" conaffinity="0"',
    )
    # A second attribute of the same name is an error in XML.
    same = same.replace('friction="0.7 0.02 0.003" ', "")
    same = same.replace('friction="0.6 0.04 0.001" ', "")
    expected = mujoco.MjModel.from_xml_string(same)
    robot = EntityCfg(model=model(), collisions=collisions)
    sim = Simulation(SceneCfg(entities={"robot": robot}, ground=False, timestep=None))
    for name in CONTACT_FIELDS:
        found, wanted = getattr(sim.model, name), getattr(expected, name)
        np.testing.assert_array_equal(found, wanted, err_msg=name)


def test_only_the_configured_one_of_two_entities_changes():
    deaf = EntityCfg(
        model=model(), collisions=(CollisionCfg(geoms="hull|left_pad", condim=1),)
    )
    scene = SceneCfg(
        entities={"deaf": deaf, "plain": EntityCfg(model=model())}, ground=False
    )
    compiled = Simulation(scene).model
    for name, condim in (("hull", 1), ("left_pad", 1), ("right_pad", 3)):
        assert compiled.geom(f"deaf/{name}").condim == condim
        assert compiled.geom(f"plain/{name}").condim == 3


def test_unmatched_patterns_and_invalid_values_are_errors():
    robot = EntityCfg(model=model(), collisions=(CollisionCfg(geoms="middle_pad"),))
    with raises(UnknownNameError, name="middle_pad"):
        Simulation(SceneCfg(entities={"robot": robot}))
    for name, value in {
        "contype": -1, "conaffinity": 1.5, "condim": 2, "priority": "high",
        "friction": (-0.1,), "solref": (0.02, -1.0),
    }.items():  # fmt: skip
        with raises(InvalidInputError, name=name):
            CollisionCfg(geoms=".*", **{name: value})
    with raises(InvalidInputError, name="friction"):
        CollisionCfg(geoms=".*", friction=(1, 2, 3, 4))
    with raises(InvalidInputError, name="collisions"):
        Simulation(
            SceneCfg(entities={"robot": EntityCfg(model=model(), collisions=[3])})
        )


def test_actuators_of_a_model_can_be_delayed_by_world():
    robot = EntityCfg(model=model(delay='nsample="4" delay="0.004"'), max_delay_s=0.05)
    sim = Simulation(SceneCfg(entities={"robot": robot}, ground=False), num_envs=3)
    assert sim.model.actuator_delay.tolist() == [0.004, 0.0]
    delays = np.array([[0.004, 0.0], [0.05, 0.02], [0.0, 0.042]])
    sim.write_parameter("actuator_delay", torch.as_tensor(delays))
    controls = np.array([[0.7, -0.4], [-0.3, 0.9], [1.1, 0.2]])
    sim.scene["robot"].write_ctrl_to_sim(torch.as_tensor(controls))
    sim.step(40)
    for world in range(3):
        first, second = (f'nsample="60" delay="{d}"' for d in delays[world])
        text = model(delay=first).replace('kv="0.3"', f'kv="0.3" {second}')
        plain = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(plain)
        data.ctrl[:] = controls[world]
        mujoco.mj_step(plain, data, 40)
        np.testing.assert_array_equal(sim.data.qpos[world], data.qpos)
        np.testing.assert_array_equal(sim.data.qvel[world], data.qvel)
    assert len({tuple(row) for row in sim.data.qpos.tolist()}) == 3


def test_a_longest_delay_below_the_model_s_own_is_an_error():
    robot = EntityCfg(model=model(delay='nsample="9" delay="0.01"'), max_delay_s=0.004)
    with raises(ModelError, name="max_delay_s"):
        Simulation(SceneCfg(entities={"robot": robot}))
