"""How entities start: keyframes, placement and default classes that get in the way."""

import mujoco
import pytest
import torch
from tests.inside import compute_defaults_always
from tests.raised import raises

from simstate import (
    EntityCfg,
    InitialStateCfg,
    ModelError,
    PositionActuatorCfg,
    SceneCfg,
    Simulation,
)

pytestmark = pytest.mark.fast

GYM_STYLE = """
<mujoco>
  <default><motor ctrllimited="true" ctrlrange="-.4 .4" gear="100"/></default>
  <worldbody><body name="a"><joint name="h" axis="0 1 0"/><geom size=".1" mass="1"/>
  </body></worldbody>
  <actuator><motor joint="h"/></actuator>
</mujoco>
"""

SERVO = """
<mujoco>
  <worldbody><body name="a"><joint name="h" axis="0 1 0"/><geom size=".1" mass="1"/>
  </body></worldbody>
  <actuator><position joint="h" kp="10" timeconst=".1"/></actuator>
  <keyframe>
    <key name="stated" qpos="1" act="0.3" ctrl="0"/>
    <key name="bare" qpos="1"/>
  </keyframe>
</mujoco>
"""

THREE = """
<mujoco>
  <worldbody>
    <body name="a" pos="0 0 1"><freejoint/><geom size=".1"/></body>
    <body name="b" pos="1 0 1"><freejoint/><geom size=".1"/></body>
    <body name="m" pos="2 0 1" mocap="true"/>
  </worldbody>
  <keyframe>
    <key name="k" qpos="0 0 1 1 0 0 0 1 0 1 1 0 0 0" qvel="0 0 0 0 0 0 1 2 3 4 5 6"
         mpos="2 0 1"/>
    <key name="qpos alone" qpos="0 0 1 1 0 0 0 1 0 1 1 0 0 0"/>
    <key name="mpos alone" mpos="2 0 1"/>
  </keyframe>
</mujoco>
"""


def alone(model, **cfg):
    return Simulation(SceneCfg(entities={"r": EntityCfg(model=model, **cfg)}))


def test_configured_actuators_take_nothing_from_a_default_class():
    servo = PositionActuatorCfg(joints="h", stiffness=10.0, effort_limit=50.0)
    sim = alone(GYM_STYLE, keep_model_actuators=False, actuators=(servo,))
    robot = sim.scene["r"]
    robot.set_joint_position_target([[0.7]])  # beyond the class's control range
    sim.forward()
    assert robot.data.qfrc_actuator.item() == pytest.approx(7.0)


@pytest.mark.parametrize(
    ("key", "ctrl", "act"), [("stated", 0.0, 0.3), ("bare", 1.0, 1.0)]
)
def test_a_keyframes_controls_count_even_if_zero(key, ctrl, act):
    sim = alone(SERVO, init_state=InitialStateCfg(keyframe=key))
    assert sim.data.ctrl.item() == ctrl
    assert sim.data.act.item() == act


def test_a_compiled_model_starts_as_mujoco_resets_it():
    model = mujoco.MjModel.from_xml_string(
        SERVO.replace('name="h"', 'name="h" ref="0.5"').replace("1.0", "1")
    )
    sim = Simulation(model)
    data = mujoco.MjData(model)
    assert (
        sim.data.qpos[0].tolist() == data.qpos.tolist() == [pytest.approx(0.00872665)]
    )
    assert sim.data.ctrl[0].tolist() == data.ctrl.tolist() == [0.0]


@pytest.mark.parametrize("keyframe", [None, "k", "qpos alone", "mpos alone"])
def test_placing_the_root_takes_free_and_mocap_bodies_along(keyframe):
    """Half a turn about z and 5 m along x: the others end up on the other side."""
    state = InitialStateCfg(keyframe=keyframe, pos=(5, 0, 1), rot=(0, 0, 0, 1))
    sim = alone(THREE, init_state=state)
    places = sim.scene["r"].data.body_link_pos_w[0]
    expected = torch.tensor([[5.0, 0, 1], [4, 0, 1], [3, 0, 1]], dtype=torch.float64)
    assert torch.allclose(places, expected, atol=1e-12)


def test_a_keyframes_velocities_turn_with_the_placement():
    state = InitialStateCfg(keyframe="k", pos=(5, 0, 1), rot=(0, 0, 0, 1))
    velocity = alone(THREE, init_state=state).scene["r"].data.body_link_vel_w[0, 1]
    expected = torch.tensor([-1.0, -2, 3, -4, -5, 6], dtype=torch.float64)
    assert torch.allclose(velocity, expected, atol=1e-12)


def test_a_number_for_all_joints_leaves_ball_joints_alone():
    state = InitialStateCfg(joint_pos={".*": 0.0})
    robot = alone("humanoid", init_state=state).scene["r"]
    assert torch.equal(robot.data.joint_pos, torch.zeros_like(robot.data.joint_pos))
    assert robot.data.ball_joint_quat[0, :, 0].tolist() == [1.0, 1.0]


@pytest.mark.filterwarnings("ignore:There is nothing to simulate")
def test_userdata_of_an_entity_survives():
    xml = '<mujoco><size nuserdata="3"/><worldbody/></mujoco>'
    assert alone(xml).data.userdata.shape == (1, 3)


def test_sleep_is_refused_because_it_is_not_in_the_state():
    """The error has the flags that remain."""
    energy = mujoco.mjtEnableBit.mjENBL_ENERGY.value
    flags = mujoco.mjtEnableBit.mjENBL_SLEEP.value | energy
    entities = {"c": EntityCfg(model="cube")}
    with raises(ModelError, name="sleep") as caught:
        Simulation(SceneCfg(entities=entities, options={"enableflags": flags}))
    remedy = f"SceneCfg(options={{'enableflags': {energy}}})"
    assert remedy in str(caught.value)


def test_a_reset_is_the_same_whether_defaults_were_written_or_not(
    make_sim, engine, monkeypatch
):
    """The short way, for defaults that were not written to, leads to the same bits."""
    short, long = make_sim(engine, num_envs=3), make_sim(engine, num_envs=3)
    robot = long.scene["model"]
    for sim in (short, long):
        sim.step(5)
    # The long way is taken where a default of some world that is reset was written.
    robot.data.default_joint_pos[0] += 1.0
    long.reset([0])
    robot.data.default_joint_pos[0] -= 1.0
    robot.data.default_joint_vel[2] += 1.0
    compute_defaults_always(monkeypatch, robot)
    robot.data.default_joint_vel[2] -= 1.0
    long.reset([0, 2])
    monkeypatch.undo()
    short.reset([0, 2])
    assert torch.equal(short.state, long.state)
    assert float(short.time[0]) == 0.0
    assert float(short.time[1]) > 0.0


def test_ids_that_are_written_to_are_read_again(make_sim):
    sim = make_sim(num_envs=4)
    sim.step(3)
    ids = torch.tensor([0])
    sim.reset(ids)
    ids[0] = 2
    sim.reset(ids)
    assert (sim.time == 0).tolist() == [True, False, True, False]
