"""Models for the tests of the compiled core: shipped, Gymnasium's, and odd ones."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import mujoco
import numpy as np
from tests.conftest import SMALL

from simstate.scene import models
from simstate.step.schemes.tolerances import ABSOLUTE, RELATIVE, block_kinds, tolerance

SHIPPED = Path(models.__file__).parent
GYMNASIUM = Path(gymnasium.__file__).parent / "envs/mujoco/assets"

PATHS = {
    **{path.stem: path for path in sorted(SHIPPED.glob("*.xml"))},
    **{
        f"gymnasium-{name}": GYMNASIUM / f"{name}.xml"
        for name in ("ant", "humanoid", "walker2d_v5", "half_cheetah", "pusher_v5")
    },
}

_LIMB = """
  <worldbody>
    <light pos="0 1 3" dir="0 -.2 -1" mode="track"/>
    <geom name="floor" type="plane" size="4 4 .1" pos="0 0 -.9"/>
    <body name="a" pos=".1 0 .2" quat=".9 .1 .2 .3">
      <joint name="a1" type="hinge" axis="0 1 .3" range="-.4 .5" limited="true"/>
      <joint name="a2" type="slide" axis="1 .2 0" range="-.1 .1" limited="true"/>
      <geom name="ga" type="capsule" size=".04" fromto="0 0 0 .3 0 .1" mass=".7"/>
      <camera name="eye" pos=".1 0 .2" mode="targetbody" target="c"/>
      <body name="b" pos=".3 .02 .1">
        <joint name="b1" type="ball" range="0 .6" limited="true" damping=".02"/>
        <geom name="gb" type="box" size=".1 .03 .05" pos=".1 0 0" mass=".4"/>
        <site name="sb" pos=".2 0 0" quat=".7 .1 .5 .2" size=".2"/>
        <body name="c" pos=".2 0 0">
          <joint name="c1" axis="0 0 1" damping=".05" armature=".02"/>
          <joint name="c2" axis="1 0 .2" armature=".03"/>
          <joint name="c3" axis="0 1 0" armature=".02"/>
          <joint name="c4" axis="0 1 1" armature=".01"/>
          <joint name="c5" axis="1 1 1" armature=".015"/>
          <geom name="gc" type="sphere" size=".05" pos=".1 .03 0" mass=".3"/>
          <site name="sc" pos=".12 0 .01"/>
        </body>
      </body>
    </body>
    <body name="loose" pos=".4 .1 .5">
      <freejoint/>
      <inertial pos=".01 -.03 .02" quat=".8 .1 .5 .1" mass=".6"
                diaginertia=".003 .004 .005"/>
      <geom name="gl" type="ellipsoid" size=".07 .05 .06"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="five">
      <joint joint="c1" coef="1.1"/><joint joint="c2" coef="-.7"/>
      <joint joint="c3" coef=".3"/><joint joint="c4" coef=".9"/>
      <joint joint="c5" coef="-1.3"/><joint joint="a1" coef=".6"/>
    </fixed>
    <spatial name="cord" stiffness="5" damping=".2" range="0 .6" limited="true">
      <site site="sb"/><site site="sc"/>
    </spatial>
  </tendon>
  <actuator>
    <general tendon="five" gear="1.7" dyntype="filter" dynprm=".07" gainprm="1.3"
             actlimited="true" actrange="-.3 .4"/>
    <motor joint="b1" gear="0 1.2 .4 0 0 0"/>
    <motor site="sc" refsite="sb" gear=".3 0 .2 .1 0 .5"/>
    <position joint="c2" kp="2" gear="1.4"/>
  </actuator>
"""

_SENSORS = """
    <accelerometer site="sc"/><velocimeter site="sc"/><gyro site="sb"/>
    <force site="sc"/><torque site="sb"/><magnetometer site="sc"/>
    <rangefinder site="sb"/><camprojection site="sc" camera="eye"/>
    <jointpos joint="c1"/><jointvel joint="c2"/><tendonpos tendon="five"/>
    <tendonvel tendon="five"/><tendonvel tendon="cord"/>
    <actuatorpos actuator="0a"/><actuatorvel actuator="0a"/>
    <actuatorfrc actuator="0a"/><jointactuatorfrc joint="c2"/>
    <ballquat joint="b1"/><ballangvel joint="b1"/>
    <framepos objtype="camera" objname="eye" reftype="body" refname="loose"/>
    <framequat objtype="geom" objname="gc"/><framexaxis objtype="xbody" objname="c"/>
    <framelinvel objtype="site" objname="sc" reftype="site" refname="sb"/>
    <frameangvel objtype="body" objname="loose"/>
    <framelinacc objtype="site" objname="sc"/><frameangacc objtype="body" objname="b"/>
    <subtreecom body="a"/><subtreelinvel body="a"/><subtreeangmom body="b"/>
    <insidesite objtype="geom" objname="gc" site="sb"/>
    <distance geom1="gc" geom2="gl" cutoff="2"/>
    <normal geom1="gc" geom2="floor" cutoff="2"/>
    <e_potential/><clock/><touch site="sb"/>
"""
_LATE_SENSORS = """
    <jointlimitpos joint="a1"/><jointlimitvel joint="a2"/><jointlimitfrc joint="a1"/>
    <tendonlimitpos tendon="cord"/><tendonlimitvel tendon="cord"/><e_kinetic/>
    <contact geom1="gc" num="2" data="found force dist"/>
"""


def _limb(sensors: str = "", option: str = "", actuator: str = "") -> str:
    body = _LIMB.replace("<general ", f'<general name="0a" {actuator} ', 1)
    return (
        f"<mujoco>{option}{body}<sensor>{sensors}</sensor></mujoco>"
        if sensors
        else f"<mujoco>{option}{body}</mujoco>"
    )


XML = {
    "small": SMALL,
    "limb": _limb(),
    "sensors": _limb(_SENSORS),
    "late sensors": _limb(_SENSORS + _LATE_SENSORS),
    "only contacts": _limb("<touch site='sb'/><accelerometer site='sc'/>"),
    "energy": _limb(_SENSORS, "<option><flag energy='enable'/></option>"),
    "no actuation": _limb(_SENSORS, "<option><flag actuation='disable'/></option>"),
    "no sensors": _limb(_SENSORS, "<option><flag sensor='disable'/></option>"),
    "delays": _limb(
        "<jointpos joint='c1' nsample='5' interval='.004' delay='.006'/>"
        "<accelerometer site='sc' nsample='4' delay='.004'/>" + _SENSORS,
        actuator="nsample='4' delay='.005'",
    ),
    "rk4": _limb(_SENSORS, "<option integrator='RK4'/>"),
    "implicit": _limb(_SENSORS, "<option integrator='implicit' cone='elliptic'/>"),
    "implicitfast": _limb(_SENSORS, "<option integrator='implicitfast' wind='1 2 0'/>"),
    "empty": "<mujoco/>",
}

NAMES = (*PATHS, *XML)


def load(name: str) -> mujoco.MjModel:
    """The model of that name; bad worlds are not reset, as in the engine."""
    if name in XML:
        model = mujoco.MjModel.from_xml_string(XML[name])
    else:
        model = mujoco.MjModel.from_xml_path(str(PATHS[name]))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET.value
    return model


def random_states(model: mujoco.MjModel, num_worlds: int, seed: int) -> np.ndarray:
    """Rows of the state, all different, near the start; (num_worlds, nstate)."""
    rng = np.random.default_rng(seed)
    spec = mujoco.mjtState.mjSTATE_INTEGRATION.value
    rows = np.zeros((num_worlds, mujoco.mj_stateSize(model, spec)))
    for row in rows:
        data = mujoco.MjData(model)
        data.time = rng.uniform(0, 2)
        data.qvel[:] = 0.5 * rng.standard_normal(model.nv)
        mujoco.mj_integratePos(
            model, data.qpos, 0.3 * rng.standard_normal(model.nv), 1.0
        )
        data.act[:] = rng.uniform(-0.2, 0.3, model.na)
        data.qacc_warmstart[:] = rng.standard_normal(model.nv)
        data.ctrl[:] = rng.uniform(-0.5, 0.5, model.nu)
        data.qfrc_applied[:] = 0.1 * rng.standard_normal(model.nv)
        data.xfrc_applied[1:] = 0.1 * rng.standard_normal((model.nbody - 1, 6))
        data.mocap_pos[:] += 0.1 * rng.standard_normal((model.nmocap, 3))
        mujoco.mj_getState(model, data, row, spec)
    return rows


def tolerances(scheme, model, frames=()):
    """The absolute and relative tolerances of an adaptive scheme, by block and dof."""
    sizes = {
        "qpos": model.nv,
        "qvel": model.nv,
        "act": model.na,
        "mass": model.nbody,
        **dict.fromkeys(frames, 6),
    }
    defaults = (ABSOLUTE, dict.fromkeys(ABSOLUTE, RELATIVE))
    return [
        {
            block: [tolerance(given, k, known) for k in block_kinds(model, block, n)]
            for block, n in sizes.items()
        }
        for given, known in zip((scheme.atol, scheme.rtol), defaults, strict=True)
    ]
