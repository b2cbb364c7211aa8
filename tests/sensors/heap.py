"""A heap of things on a slope: a walker that also touches itself, and two rocks."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate import (
    ContactCfg,
    EntityCfg,
    InitialStateCfg,
    NativeCfg,
    SceneCfg,
    Simulation,
)

WALKER = """
<mujoco>
  <option timestep="0.003" cone="elliptic" impratio="3"/>
  <default><geom friction="0.7 0.02 0.003" condim="6"/></default>
  <worldbody>
    <body name="trunk" pos="0.1 0.2 0.42">
      <freejoint/>
      <geom name="trunk" type="box" size="0.2 0.1 0.05" pos="0.02 0 0.01" mass="3"/>
      <body name="left" pos="0.15 0.1 -0.05">
        <joint name="left" axis="0 1 0.2" damping="2" stiffness="60"/>
        <geom name="left_shin" type="capsule" size="0.02" fromto="0 0 0 0.02 0.03 -0.2"
              mass="0.4"/>
        <body name="flap" pos="-0.05 0.028 0.05">
          <joint type="slide" axis="0 1 0" stiffness="300" springref="-0.02"
                 damping="3"/>
          <geom name="flap" type="sphere" size="0.03" mass="0.1"/>
        </body>
        <body name="left_foot" pos="0.02 0.03 -0.25">
          <joint name="left_ankle" axis="0.1 1 0" damping="1" stiffness="20"/>
          <geom name="left_foot" type="box" size="0.05 0.03 0.015" mass="0.3"/>
        </body>
      </body>
      <body name="right" pos="-0.12 -0.1 -0.05">
        <joint name="right" axis="0 1 -0.1" damping="2" stiffness="60"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0 -0.02 -0.2" mass="0.5"/>
        <body name="right_foot" pos="0 -0.02 -0.24">
          <joint name="right_ankle" axis="0 1 0.1" damping="1" stiffness="20"/>
          <geom name="right_foot" type="sphere" size="0.03" mass="0.25"/>
          <geom name="right_heel" type="sphere" size="0.025" pos="-0.05 0 0"
                mass="0.2"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

ROCK = """
<mujoco><worldbody><body name="rock"><freejoint/>
  <geom name="rock" type="ellipsoid" size="0.09 0.07 0.06" mass="1.3" condim="4"/>
</body></worldbody></mujoco>
"""

SLOPE = """
<mujoco><worldbody>
  <geom name="slope" type="plane" size="4 4 0.1" zaxis="0.12 -0.07 1" friction="0.8"/>
  <geom name="step" type="box" size="0.3 0.3 0.04" pos="-0.4 -0.2 0.02"/>
</worldbody></mujoco>
"""

CONTACTS = {
    "feet": ContactCfg(of="walker/.*_foot", strongest=3, history=3),
    "feet_on_ground": ContactCfg(of="walker/.*_foot", against="ground", strongest=2),
    "whole": ContactCfg(of=["walker/trunk", "one/rock"], kind="subtree", strongest=2),
    "geoms": ContactCfg(
        of="walker/right_.*", kind="geom", against=["two/rock", "ground"]
    ),
    "rocks": ContactCfg(
        of="(one|two)/rock", against=["walker/.*", "two/rock", "one/rock"], strongest=4
    ),
}  # fmt: skip


def heap(
    num_envs: int,
    engine: str | NativeCfg = "native",
    contacts: Mapping[str, ContactCfg] = CONTACTS,
    timestep: float | None = None,
    **options: object,
) -> Simulation:
    """A simulation of it."""
    place = InitialStateCfg
    return Simulation(
        SceneCfg(
            entities={
                "one": EntityCfg(model=ROCK, init_state=place(pos=(0.12, 0.2, 0.6))),
                "walker": EntityCfg(model=WALKER),
                "slope": EntityCfg(model=SLOPE),
                "two": EntityCfg(model=ROCK, init_state=place(pos=(-0.1, -0.05, 0.2))),
            },
            contacts=dict(contacts),
            ground=False,
            timestep=timestep,
        ),
        num_envs=num_envs,
        engine=engine,
        **options,  # pyright: ignore[reportArgumentType]
    )


def stir(sim: Simulation, seed: int) -> None:
    """Give every world another velocity."""
    rng = np.random.default_rng(seed)
    noise = torch.as_tensor(rng.normal(size=sim.data.qvel.shape) * 0.4)
    sim.data.qvel[:] += noise.to(sim.data.qvel)


def mujoco_at(sim: Simulation, world: int) -> mujoco.MjData:
    """Plain MuJoCo, evaluated at a world's present state."""
    data = mujoco.MjData(sim.model)
    spec = mujoco.mjtState.mjSTATE_INTEGRATION.value
    row: Tensor = sim.state[world].cpu().to(torch.float64)
    mujoco.mj_setState(sim.model, data, row.numpy().copy(), spec)
    mujoco.mj_forward(sim.model, data)
    return data
