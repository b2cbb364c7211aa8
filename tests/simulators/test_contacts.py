"""Which geoms may touch, as MuJoCo itself has it."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pytest

from simstate.simulators.plain_model import may_touch

BLOCKS = """
<mujoco>
  <option><flag {flag}/></option>
  <worldbody>
    <geom name="floor" type="box" size="1 1 1" contype="2" conaffinity="4"/>
    <body name="a"><freejoint/>
      <geom name="a" type="sphere" size="0.5" mass="1"/>
      <geom name="a2" type="sphere" size="0.5" mass="1" contype="4" conaffinity="2"/>
      <body name="b"><joint axis="0 1 0"/>
        <geom name="b" type="sphere" size="0.5" mass="1"/>
        <body name="welded">
          <geom name="welded" type="sphere" size="0.5" mass="1"/>
        </body>
        <body name="c"><joint axis="1 0 0"/>
          <geom name="c" type="sphere" size="0.5" mass="1" contype="1" conaffinity="0"/>
        </body>
      </body>
    </body>
    <body name="d"><freejoint/>
      <geom name="d" type="sphere" size="0.5" mass="1" contype="0" conaffinity="1"/>
    </body>
    <body name="e"><joint type="slide"/>
      <geom name="e" type="sphere" size="0.5" mass="1" contype="0" conaffinity="0"/>
      <geom name="e2" type="sphere" size="0.5" mass="1" contype="6" conaffinity="6"/>
    </body>
    <body name="f"><freejoint/><geom name="f" type="sphere" size="0.5" mass="1"/></body>
  </worldbody>
  <contact><exclude body1="f" body2="a"/><pair geom1="e" geom2="d"/>
    <pair geom1="f" geom2="a"/></contact>
</mujoco>
"""
"""Everything is inside everything else: what does not touch is filtered."""


@pytest.mark.parametrize(
    "flag", ['filterparent="enable"', 'filterparent="disable"', 'contact="disable"']
)
def test_those_pairs_touch_that_touch_in_mujoco(flag):
    model = mujoco.MjModel.from_xml_string(BLOCKS.format(flag=flag))
    data = mujoco.MjData(model)
    data.qpos[:] += np.random.default_rng(1).normal(size=model.nq) * 1e-2
    mujoco.mj_forward(model, data)
    touching = {tuple(sorted(map(int, contact.geom))) for contact in data.contact}
    for one, two in itertools.combinations(range(model.ngeom), 2):
        names = model.geom(one).name, model.geom(two).name
        assert may_touch(model, one, two) == ((one, two) in touching), names
    assert len(touching) > 5 or flag.startswith("contact")
