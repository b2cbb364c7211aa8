"""The model's own sensors: contracts against what their numbers are."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import sensor_kinds
from tests.raised import raises

from simstate import (
    EntityCfg,
    InvalidInputError,
    SceneCfg,
    Simulation,
    UnknownNameError,
)
from simstate.entity import model_sensors
from simstate.math import quaternion

ROBOT = """
<mujoco><option timestep="0.002"/>
  <worldbody>
    <body name="post" pos="0.4 0 0"><geom name="post" size="0.1"/></body>
    <body name="trunk" pos="0.1 0 0.09"><freejoint/>
      <geom name="trunk" type="box" size="0.2 0.1 0.1" pos="0.02 0 0" mass="2"/>
      <site name="imu" pos="0.1 0.05 0.02" quat="0.8 0.2 0.1 0.4"/>
      <site name="eye" pos="0 0 0.3" zaxis="0.1 0.2 -1"/>
      <body name="arm" pos="0.2 0 0.1"><joint name="j" axis="0 1 0"/>
        <geom name="arm" type="capsule" size="0.03" fromto="0 0 0 0.2 0 0.1"
              mass="0.4"/>
      </body>
    </body>
  </worldbody>
  <sensor>
    <gyro name="gyro" site="imu"/>
    <velocimeter name="velocimeter" site="imu"/>
    <framepos name="arm_in_trunk" objtype="xbody" objname="arm" reftype="xbody"
              refname="trunk"/>
    <framelinvel name="arm_vel" objtype="body" objname="arm"/>
    <contact name="touching" body1="trunk" body2="world" num="3" reduce="maxforce"
             data="found force dist pos normal"/>
    <rangefinder name="range" site="eye" data="dist point normal"/>
    <jointpos name="angle" joint="j" cutoff="0.5"/>
    <accelerometer name="acc" site="imu"/>
  </sensor>
</mujoco>
"""


def _sim(engine: str = "native") -> Simulation:
    scene = SceneCfg(
        entities={"robot": EntityCfg(model=ROBOT)}, ground=True, timestep=None
    )
    sim = Simulation(scene, num_envs=3, engine=engine)
    rng = np.random.default_rng(1)
    like = sim.data.qvel
    sim.data.qvel[:] = torch.as_tensor(rng.normal(size=like.shape)).to(like) * 0.3
    sim.data.qpos[:, 7] = torch.tensor([0.2, -0.1, 0.4]).to(like)
    return sim


def test_every_type_of_mujoco_has_a_contract() -> None:
    types = [
        name.removeprefix("mjSENS_").lower()
        for name in mujoco.mjtSensor.__members__
    ]  # fmt: skip
    assert sorted(types) == sorted(sensor_kinds())


def test_contracts_say_what_the_numbers_are(engine: str) -> None:
    """Each is computed from quantities in the axes and at the point that it names."""
    sim = _sim(engine)
    robot = sim.scene["robot"]
    data, tol = robot.data, 1e-10 if engine == "native" else 1e-5
    imu = robot.site_names.index("imu")
    arm, trunk = (robot.body_names.index(n) for n in ("arm", "trunk"))
    quat = data.site_quat_w[:, imu]

    def close(name: str, expected: torch.Tensor) -> None:
        assert torch.allclose(robot.sensor(name), expected, atol=tol), name

    contract = robot.sensor_contract("gyro")
    assert (contract.unit, contract.axes, contract.point, contract.shape) == (
        "rad/s", "its own", "site robot/imu", (3,),
    )  # fmt: skip
    close("gyro", quaternion.rotate_inverse(quat, data.site_ang_vel_w[:, imu]))
    velocity = quaternion.rotate_inverse(quat, data.site_lin_vel_w[:, imu])
    close("velocimeter", velocity)
    contract = robot.sensor_contract("arm_in_trunk")
    assert contract.axes == "body robot/trunk"
    assert contract.point == (
        "origin of body robot/arm, seen from origin of body robot/trunk"
    )
    offset = data.body_link_pos_w[:, arm] - data.body_link_pos_w[:, trunk]
    turned = quaternion.rotate_inverse(data.body_link_quat_w[:, trunk], offset)
    close("arm_in_trunk", turned)
    contract = robot.sensor_contract("arm_vel")
    assert contract.axes == "world"
    assert contract.point.startswith("centre of mass")
    close("arm_vel", data.body_com_lin_vel_w[:, arm])
    assert robot.sensor_contract("angle").cutoff == 0.5
    assert robot.sensor_contract("acc").when == "last dynamics evaluation"
    assert robot.sensor_contract("gyro").when == "now"
    slots = {"gyro": 1, "range": 1, "touching": 3, "angle": 1}
    assert {name: robot.sensor_contract(name).slots for name in slots} == slots


SEVERAL = """
<mujoco><option timestep="0.002"/>
  <worldbody><geom name="floor" type="plane" size="1 1 .1"/>
    <body name="base" pos="0 0 .3"><freejoint/><geom name="base" size=".1"/>
      <site name="box" type="box" size=".2 .2 .2"/><site name="eye" pos=".1 0 0"/>
      <body name="arm" pos=".2 0 0"><joint name="turn" axis="0 1 0"/>
        <geom name="arm" size=".03" pos=".05 0 0"/><site name="tip" pos=".1 0 0"/>
        <body name="rod"><joint name="push" type="slide" axis="1 0 0" range="0 1"/>
          <geom name="rod" size=".02" pos=".1 .02 0"/></body></body></body>
  </worldbody>
  <tendon>
    <spatial name="rope"><site site="eye"/><site site="tip"/></spatial>
    <fixed name="twist"><joint joint="turn" coef="2"/></fixed>
    <fixed name="mixed"><joint joint="turn" coef="1"/><joint joint="push" coef="1"/>
    </fixed>
  </tendon>
  <actuator>
    <motor name="turn" joint="turn" gear="3"/><motor name="push" joint="push"/>
    <motor name="rope" tendon="rope"/><motor name="site" site="tip"/>
  </actuator>
  <sensor>{sensors}</sensor>
</mujoco>
"""


@pytest.mark.parametrize(
    ("sensor", "unit"),
    [
        ('jointpos joint="turn"', "rad"), ('jointpos joint="push"', "m"),
        ('jointvel joint="turn"', "rad/s"), ('jointvel joint="push"', "m/s"),
        ('jointactuatorfrc joint="turn"', "N·m"), ('jointlimitfrc joint="push"', "N"),
        ('tendonpos tendon="rope"', "m"), ('tendonvel tendon="twist"', "rad/s"),
        ('tendonpos tendon="mixed"', "rad or m"),
        ('actuatorpos actuator="turn"', "rad"),
        ('actuatorvel actuator="rope"', "m/s"), ('actuatorfrc actuator="turn"', "N·m"),
        ('actuatorfrc actuator="push"', "N"),
        ('actuatorfrc actuator="site"', "N·m or N"),
        ('contact geom1="base" data="found"', "1"),
        ('contact geom1="base" data="found force dist"', "N, m"),
        ('rangefinder site="eye" data="dir normal"', "1"),
        ('rangefinder site="eye"', "m"),
    ],
)  # fmt: skip
def test_units_are_those_of_what_is_measured(sensor: str, unit: str) -> None:
    assert _contract(sensor).unit == unit


@pytest.mark.parametrize(
    ("sensor", "point", "axes"),
    [
        ('subtreelinvel body="arm"',
         "centre of mass of the subtree of body robot/arm", "world"),
        ('contact subtree1="arm" geom2="floor" data="found force pos"',
         "subtree of body robot/arm against geom robot/floor",
         "force: normal, tangent and their cross product; the rest: world"),
        ('contact body1="arm" data="force torque"',
         "body robot/arm against anything",
         "force and torque: normal, tangent and their cross product"),
        ('contact body1="arm" data="force" reduce="netforce"',
         "body robot/arm against anything", "world"),
        ('contact site="box" data="found dist"',
         "inside site robot/box against anything", "–"),
        ('rangefinder site="eye" data="dist point"', "site robot/eye", "world"),
        ('distance geom1="arm" geom2="floor" cutoff="1"',
         "from geom robot/arm to geom robot/floor", "–"),
        ('insidesite site="box" objtype="site" objname="tip"',
         "site robot/tip in site robot/box", "–"),
        ('framelinvel objtype="geom" objname="rod" reftype="body" refname="arm"',
         "centre of geom robot/rod, seen from centre of mass of body robot/arm",
         "principal axes of body robot/arm"),
    ],
)  # fmt: skip
def test_points_and_axes_name_what_takes_part(
    sensor: str, point: str, axes: str
) -> None:
    contract = _contract(sensor)
    assert (contract.point, contract.axes) == (point, axes)


def test_a_late_sensor_says_so() -> None:
    late = _contract('gyro site="eye" delay="0.01" interval="0.004" nsample="8"')
    assert late.when == "now, 0.01 s late, every 0.004 s"


def _contract(sensor: str) -> model_sensors.SensorContract:
    """The contract of one sensor of the model with several of everything."""
    kind, _, attributes = sensor.partition(" ")
    sensors = f'<{kind} name="s" {attributes}/>'
    robot = EntityCfg(model=SEVERAL.format(sensors=sensors))
    scene = SceneCfg(entities={"robot": robot}, ground=False, timestep=None)
    return Simulation(scene).scene["robot"].sensor_contract("s")


def test_contacts_and_rangefinders_come_apart() -> None:
    sim = _sim()
    robot = sim.scene["robot"]
    sim.forward()
    fields = robot.sensor_fields("touching")
    assert list(fields) == ["found", "force", "dist", "pos", "normal"]
    assert tuple(fields["force"].shape) == (3, 3, 3)
    for world in range(3):
        data = mujoco.MjData(sim.model)
        spec = mujoco.mjtState.mjSTATE_INTEGRATION.value
        mujoco.mj_setState(sim.model, data, sim.state[world].numpy().copy(), spec)
        mujoco.mj_forward(sim.model, data)
        forces = []
        for k, contact in enumerate(data.contact):
            names = {sim.model.geom(g).name for g in contact.geom}
            if names == {"robot/trunk", "ground"}:
                wrench = np.zeros(6)
                mujoco.mj_contactForce(sim.model, data, k, wrench)
                forces.append((np.linalg.norm(wrench[:3]), contact.dist))
        forces.sort(reverse=True)
        assert fields["found"][world, 0] == len(forces) > 0
        got = fields["force"][world].norm(dim=-1)
        for k, (force, _) in enumerate(forces[:3]):
            assert float(got[k]) == pytest.approx(force, rel=1e-9)
        assert (fields["normal"][world, : min(3, len(forces)), 2] < -0.9).all()
    ray = robot.sensor_fields("range")
    assert tuple(ray["dist"].shape) == (3, 1)
    assert tuple(ray["point"].shape) == (3, 1, 3)
    start = robot.data.site_pos_w[:, robot.site_names.index("eye")]
    length = (ray["point"][:, 0] - start).norm(dim=-1)
    assert torch.allclose(length, ray["dist"][:, 0])


def test_wrong_names_and_kinds() -> None:
    robot = _sim().scene["robot"]
    with raises(UnknownNameError, name="giro"):
        robot.sensor_contract("giro")
    with raises(InvalidInputError, name="gyro"):
        robot.sensor_fields("gyro")
