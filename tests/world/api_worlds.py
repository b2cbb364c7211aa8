"""The worlds of the API machine: a scene with a bit of everything."""

from __future__ import annotations

import mujoco
from tests.world.plain import PlainWorlds

from simstate import ContactCfg, EntityCfg, OwnPattern, RayCastCfg, SceneCfg, Simulation

MODEL = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="trunk" pos=".1 -.2 .35" quat=".9 .1 -.3 .2">
      <freejoint name="root"/>
      <geom type="box" size=".1 .15 .05" mass="2.1" pos=".02 .01 -.01"/>
      <site name="tip" pos=".1 .05 .02"/>
      <body name="upper" pos=".12 0 0" quat=".8 .6 0 0">
        <joint name="shoulder" axis="0 1 0" damping=".2" range="-2 2"/>
        <geom type="capsule" fromto="0 0 0 .2 .02 0" size=".03" mass=".4"/>
        <body name="lower" pos=".2 .02 0">
          <joint name="elbow" type="ball" damping=".1"/>
          <geom type="capsule" fromto="0 0 0 .1 .1 0" size=".02" mass=".3"/>
        </body>
      </body>
    </body>
    <body name="block" pos=".6 .1 .1"><freejoint/>
      <geom type="box" size=".07 .05 .04" mass=".5" pos="0 .01 0"/></body>
    <body name="mark" mocap="true" pos="1 1 1">
      <geom size=".02" mass=".1" pos=".01 0 .02" contype="0" conaffinity="0"/></body>
  </worldbody>
  <actuator>
    <position name="servo" joint="shoulder" kp="4" gear="2"/>
    <general name="slow" joint="shoulder" dyntype="filter" dynprm=".1" gainprm="2"/>
  </actuator>
  <sensor><framelinvel objtype="site" objname="tip"/><gyro site="tip"/></sensor>
</mujoco>
"""
DIRECTIONS = ((0, 0.1, -1), (1, 0.2, 0), (0.3, -1, -0.5))
"""Directions of the rays, in the axes of their body."""
START = (0.02, -0.01, 0.1)
"""Start of the rays, in the axes of their body [m]."""
SCENE = SceneCfg(
    timestep=None,
    ground=None,
    entities={"model": EntityCfg(model=MODEL)},
    contacts={"limbs": ContactCfg(of="model/(block|upper|lower)", history=2)},
    rays={
        "scan": RayCastCfg(
            body="model/upper",
            pos=START,
            pattern=OwnPattern(directions=list(DIRECTIONS)),
            exclude="model/(upper|lower)",
        )
    },
)
NUM_ENVS = 3
FIELDS = ("qpos", "qvel", "ctrl", "act", "xfrc_applied", "qfrc_applied", "mocap_pos")
"""Raw fields that are written."""
MEMORY = (1.5, -2.0)
"""Values of the user's memory after a reset."""


def make(engine: str, freshness: str, with_sensors: bool) -> Simulation:
    """Return three worlds with a user's memory, "fuzz"."""
    scene = SCENE if with_sensors else mujoco.MjModel.from_xml_string(MODEL)
    sim = Simulation(scene, NUM_ENVS, engine=engine, freshness=freshness)
    sim.memory("fuzz", (2,), reset=list(MEMORY))
    return sim


def plain_of(sim: Simulation) -> PlainWorlds:
    """Return the same worlds in plain MuJoCo, as they are after construction."""
    plain = PlainWorlds(sim.model, NUM_ENVS)
    plain.watch(
        [
            sim.model.body(name).id
            for sensor in sim.contacts.values()
            for name in sensor.element_names
        ]
    )
    return plain
