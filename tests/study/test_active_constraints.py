"""Sets of active constraints: the same in alike worlds, others where one switches."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import engine_of

from simstate import Simulation
from simstate.study.active_constraints import constraint_signatures

MODEL = """
<mujoco><option timestep="0.002" {option}/><worldbody>
  <geom type="plane" size="9 9 1"/>
  <body name="ball" pos="0 0 1"><joint name="x" type="slide" axis="1 0 0" limited="true"
    range="-2 2"/>
    <joint name="z" type="slide" axis="0 0 1"/><geom size="0.1"/></body>
  <body name="arm" pos="3 0 1"><joint name="arm" axis="0 1 0" limited="true"
    range="-60 60" frictionloss="0.1"/><geom size="0.1" pos="0.3 0 0"/></body>
  <body name="eye" pos="6 0 1"><joint name="eye" type="ball"/><geom size="0.1"/></body>
</worldbody>
<actuator><motor name="m" joint="arm" forcelimited="true" forcerange="-1 2"/>
  <motor name="free" joint="arm"/><orientation joint="eye" kp="2"/>
</actuator></mujoco>
"""
CASES = {
    "in the air": {}, "on the floor": {"z": -0.91}, "at its upper limit": {"arm": 1.1},
    "at its lower limit": {"arm": -1.1}, "pushed": {"m": 3.0}, "pulled": {"m": -1.5},
    "pushed at its limit": {"m": 3.0, "arm": 1.1}, "sliding up": {"rate": -2.0},
    "at the rail's end": {"x": 2.05},
}  # fmt: skip


@pytest.mark.parametrize("has_core", [True, False])
@pytest.mark.parametrize("option", ["", 'solver="PGS"'])
def test_worlds_have_one_signature_for_each_set(
    monkeypatch: pytest.MonkeyPatch, has_core: bool, option: str
) -> None:
    """Of each case there are three worlds, a little apart."""
    model = mujoco.MjModel.from_xml_string(MODEL.format(option=option))
    sim = Simulation(model, 3 * len(CASES))
    rng = np.random.default_rng(0)
    for case, values in enumerate(CASES.values()):
        for world in range(3 * case, 3 * case + 3):
            near = 1e-3 * rng.uniform(size=5)
            sim.data.qpos[world, 0] = values.get("x", 0.0) + near[0]
            sim.data.qpos[world, 1] = values.get("z", 0.0) + near[1]
            sim.data.qpos[world, 2] = values.get("arm", 0.2) + near[2]
            sim.data.qvel[world, 2] = values.get("rate", 0.0)
            sim.data.ctrl[world, 0] = values.get("m", 0.0) + near[3]
            sim.data.ctrl[world, 1] = -sim.data.ctrl[world, 0]  # is not limited
    if not has_core:
        monkeypatch.setattr(engine_of(sim), "compiled", None)
    found = constraint_signatures(sim)
    assert (found.shape, found.dtype) == ((len(sim.time),), torch.int64)
    cases = found.reshape(-1, 3)
    assert (cases == cases[:, :1]).all()
    assert len(set(cases[:, 0].tolist())) == len(CASES)
    # A parameter of one world: its floor is out of reach.
    sim.expand("geom_size")[3, 1] = 0.05
    changed = constraint_signatures(sim)
    assert changed[3] == found[0]
    assert torch.equal(changed[4:], found[4:])
