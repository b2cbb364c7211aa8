"""Formulas with one C text: the bits of the core are those of Warp's kernels."""

from __future__ import annotations

import re
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from simstate import Simulation, integrate
from simstate.engine import core
from simstate.integrate import QPosState

NUM = 6
HEADERS = sorted((Path(core.__file__).parent / "formulas").glob("*.h"))
MODEL = """
<mujoco><option timestep="0.05" gravity="0.3 -0.2 -4"/><worldbody>
  <body name="rod" pos="0.1 0.2 0.3"><joint axis="0 1 0.2"/>
    <inertial pos="0.1 0 0.2" mass="2" diaginertia="0.1 0.2 0.25"/>
    <body name="tip" pos="0.4 0 0"><joint type="ball"/>
      <inertial pos="0.2 0.1 0" mass="0.5" diaginertia="0.02 0.03 0.04"/>
    </body>
  </body>
  <body name="top" pos="2 1 0.5"><freejoint/>
    <inertial pos="0.02 0.03 0" quat="0.9 0.3 0.1 0.2" mass="5" diaginertia="1 2 2.5"/>
  </body>
</worldbody></mujoco>
"""


def states(model):
    rng = np.random.default_rng(8)
    qpos = np.tile(model.qpos0, (NUM, 1))
    for row in qpos:
        mujoco.mj_integratePos(model, row, rng.standard_normal(model.nv), 1.0)
    return torch.as_tensor(qpos), torch.as_tensor(3 * rng.standard_normal((NUM, 10)))


@pytest.mark.skipif(not core.is_available(), reason="the compiled core is not there")
@pytest.mark.parametrize("mode", integrate.ATTITUDE_MODES)
def test_attitudes_are_the_same_bits_in_the_core_and_in_warp(mode, monkeypatch):
    model = mujoco.MjModel.from_xml_string(MODEL)
    qpos, qvel = states(model)
    found = []
    for value in ("1", "0"):
        monkeypatch.setenv("SIMSTATE_CORE", value)
        sim = Simulation(model, NUM, integrator=integrate.RK4(mode))
        sim.data.qpos[:], sim.data.qvel[:] = qpos, qvel
        sim.step(9)
        found.append((sim.data.qpos.clone(), sim.data.qvel.clone()))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])


@pytest.mark.parametrize("mode", integrate.ATTITUDE_MODES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rows_may_have_any_stride(mode, dtype):
    model = mujoco.MjModel.from_xml_string(MODEL)
    qpos, qvel = (x.to(dtype) for x in states(model))
    made = []
    for value in (qpos.clone(), qpos.T.contiguous().T):
        state = QPosState(value, mode)
        state.configure(model)
        state.set_derivative(qvel)
        state.propagate(0.3)
        made.append(state.value)
    assert torch.equal(*made)
    want = qpos.double().numpy().copy()
    for row, speed in zip(want, qvel.double().numpy(), strict=True):
        mujoco.mj_integratePos(model, row, speed, 0.3)
    if mode != "high_order":
        close = 1e-14 if dtype == torch.float64 else 1e-5
        np.testing.assert_allclose(made[0].numpy(), want, rtol=0, atol=close)


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.stem)
def test_a_text_for_both_is_plain_c(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    assert not re.findall(r"#|\bmj\w+|\bdouble\b|\bfloat\b", text)
