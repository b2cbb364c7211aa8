"""A field that is bound late is computed some worlds at a time, and alone."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import set_late_worlds

from simstate import Simulation

XML = """
<mujoco><option timestep="0.004"/><worldbody><body name="a" pos="0 0 1">
<joint name="turn" axis="0 1 0"/><geom type="capsule" size=".05" fromto="0 0 0 .4 0 0"/>
<body pos=".4 0 0"><joint name="slide" type="slide" axis="1 0 0" stiffness="30"/>
<geom size=".07" pos=".1 .2 0"/><site name="s"/></body></body></worldbody>
<sensor><accelerometer site="s"/><framelinvel objtype="site" objname="s"/></sensor>
</mujoco>
"""


@pytest.mark.parametrize("num_envs", [7, 9])
def test_a_field_that_is_bound_late_is_mujocos_in_every_world(
    monkeypatch: pytest.MonkeyPatch, num_envs: int
) -> None:
    set_late_worlds(monkeypatch, 3)
    model = mujoco.MjModel.from_xml_string(XML)
    sim = Simulation(model, num_envs=num_envs)
    numbers = torch.Generator().manual_seed(3)
    for field in (sim.data.qpos, sim.data.qvel):
        field[:] = 0.3 * torch.randn(field.shape, generator=numbers).double()
    sim.step(3)
    kept = {name: getattr(sim.data, name).clone() for name in ("qacc", "sensordata")}
    got = sim.data.geom_xpos, sim.data.cvel
    for world in range(num_envs):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = sim.data.qpos[world], sim.data.qvel[world]
        mujoco.mj_forward(model, data)
        np.testing.assert_array_equal(got[0][world], data.geom_xpos)
        np.testing.assert_array_equal(got[1][world], data.cvel)
    for name, value in kept.items():
        assert torch.equal(getattr(sim.data, name), value)
    assert len(np.unique(got[0][:, -1], axis=0)) == num_envs
