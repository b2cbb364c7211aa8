"""What the tests share: the engines, one small model with a bit of everything."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Literal

# Several processes test at once: on shared cores, a thread of torch that spins delays
# the thread that it waits for. OpenMP reads this when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import mujoco
import numpy as np
import pytest
import torch
from torch import Tensor

from simstate import Simulation

SMALL = """
<mujoco model="small">
  <compiler angle="radian"/>
  <option timestep="0.004"/>
  <worldbody>
    <geom name="ground" type="plane" size="5 5 0.1"/>
    <light name="sun" pos="0 0 3"/>
    <body name="trunk" pos="0 0 0.5">
      <freejoint name="root"/>
      <inertial pos="0.03 -0.02 0.01" quat="0.9 0.1 0.3 0.2" mass="1.5"
                diaginertia="0.02 0.03 0.04"/>
      <geom name="trunk" type="capsule" size="0.06" fromto="-0.15 0 0 0.15 0 0"/>
      <site name="imu" pos="0.05 0.02 0.03" quat="0.8 0.2 0.1 0.4"/>
      <camera name="eye" pos="0.1 0 0.1"/>
      <body name="upper" pos="0.15 0 0.05">
        <joint name="elbow" axis="0 1 0" range="-1 1.2" limited="true"
               damping="0.05"/>
        <geom name="upper" type="capsule" size="0.02" fromto="0 0 0 0.2 0 0.1"
              mass="0.3"/>
        <body name="lower" pos="0.2 0 0.1">
          <joint name="wrist" axis="0 0.6 0.8" damping="0.02" stiffness="0.1"/>
          <geom name="lower" type="sphere" size="0.03" pos="0.1 0 0" mass="0.2"/>
          <site name="tip" pos="0.12 0 0"/>
        </body>
      </body>
    </body>
    <body name="post" pos="1 0 1">
      <body name="bob">
        <joint name="ball" type="ball" damping="0.01"/>
        <geom name="bob" type="sphere" size="0.05" pos="0 0 -0.4" mass="0.5"/>
        <site name="bob" pos="0 0 -0.4"/>
      </body>
    </body>
    <body name="target" mocap="true" pos="1 0 0.6">
      <geom name="target" type="sphere" size="0.02" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="sum">
      <joint joint="elbow" coef="1"/>
      <joint joint="wrist" coef="-0.5"/>
    </fixed>
    <spatial name="cord" stiffness="3" springlength="0.2">
      <site site="imu"/>
      <site site="tip"/>
    </spatial>
  </tendon>
  <equality>
    <connect name="leash" body1="bob" body2="target" anchor="0 0 -0.4"/>
  </equality>
  <actuator>
    <general name="wrist" joint="wrist" dyntype="filter" dynprm="0.05"
             gainprm="0.6"/>
    <position name="elbow" joint="elbow" kp="4" ctrlrange="-1 1.2"
              ctrllimited="true"/>
    <motor name="push" joint="elbow" gear="0.5"/>
  </actuator>
  <sensor>
    <framepos name="tip" objtype="site" objname="tip"/>
    <accelerometer name="acc" site="imu"/>
    <gyro name="gyro" site="imu"/>
    <jointpos name="elbow" joint="elbow"/>
  </sensor>
</mujoco>
"""
"""Two trees and a mocap body: free, hinge and ball joints, tendons, an activation, a
leash, sensors of every stage (accelerations in the middle), contact with a plane."""

INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION.value

MakeSim = Callable[..., Simulation]
Rows = Callable[..., Tensor]
# A shell in the background starts its commands with Ctrl-C ignored: tests that send it,
# and their children, would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LoadRow = Callable[[mujoco.MjModel, Tensor], mujoco.MjData]


def pytest_ignore_collect(
    collection_path: Path, config: pytest.Config
) -> Literal[True] | None:
    """Skip files without a fast test under `-m fast…`: to import all takes a minute."""
    if not config.option.markexpr.startswith("fast") or collection_path.suffix != ".py":
        return None
    return None if "mark.fast" in collection_path.read_text() else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the long files: at the end, one process would wait for another."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """Leave what is loaded by now out of garbage collections, which come sooner then.

    Simulations are in reference cycles: those of tests that have ended would take
    gigabytes.
    """
    gc.collect()
    gc.freeze()
    gc.collect()  # the size of the heap after this one decides when the next is due


@pytest.fixture(params=["native", "warp"])
def engine(request: pytest.FixtureRequest) -> str:
    """Runs a test on both engines."""
    return request.param


@pytest.fixture(scope="session")
def small_model() -> mujoco.MjModel:
    """The small model, compiled; do not write to it."""
    return mujoco.MjModel.from_xml_string(SMALL)


@pytest.fixture(scope="session")
def make_sim(small_model: mujoco.MjModel) -> MakeSim:
    """Makes a simulation of the small model: make_sim(engine, num_envs, **options)."""

    def make(engine: object = "native", num_envs: int = 4, **options: object):
        return Simulation(small_model, num_envs, engine=engine, **options)

    return make


@pytest.fixture(scope="session")
def random_rows() -> Rows:
    """Makes rows of the state: random_rows(model, n, seed, height) → (n, nstate).

    Every component differs from its default and from row to row. Free bodies start
    `height` above where the model has them.
    """

    def make(
        model: mujoco.MjModel, n: int, seed: int = 0, height: float = 1.0
    ) -> Tensor:
        rng = np.random.default_rng(seed)
        rows = np.zeros((n, mujoco.mj_stateSize(model, INTEGRATION)))
        for row in rows:
            data = mujoco.MjData(model)
            data.time = rng.uniform(0, 1)
            mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 0.4)
            free = model.jnt_qposadr[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE]
            data.qpos[free + 2] = model.qpos0[free + 2] + height
            data.qvel[:] = rng.normal(size=model.nv) * 0.5
            data.act[:] = rng.normal(size=model.na) * 0.3
            data.ctrl[:] = rng.normal(size=model.nu) * 0.3
            data.qfrc_applied[:] = rng.normal(size=model.nv) * 0.1
            data.xfrc_applied[1:] = rng.normal(size=(model.nbody - 1, 6)) * 0.1
            data.mocap_pos[:] += rng.normal(size=data.mocap_pos.shape) * 0.05
            turn = rng.normal(size=data.mocap_quat.shape)
            data.mocap_quat[:] = turn / np.linalg.norm(turn, axis=-1, keepdims=True)
            data.qacc_warmstart[:] = rng.normal(size=model.nv)
            mujoco.mj_getState(model, data, row, INTEGRATION)
        return torch.from_numpy(rows)

    return make


@pytest.fixture(scope="session")
def load_row() -> LoadRow:
    """Loads a row of the state into a new MjData, for plain MuJoCo."""

    def load(model: mujoco.MjModel, row: Tensor) -> mujoco.MjData:
        data = mujoco.MjData(model)
        values = row.to(torch.float64).numpy().copy()
        mujoco.mj_setState(model, data, values, INTEGRATION)
        return data

    return load
