"""Two pendulums, unlike, and recordings of them."""

from __future__ import annotations

import pytest
import torch

from simstate import EntityCfg, SceneCfg, Simulation

ARM = """
<mujoco model="arm">
  <option timestep="0.004" integrator="implicitfast"/>
  <worldbody>
    <body name="upper" pos="0.1 0.2 1.0" quat="0.9 0.1 0.3 0.2">
      <joint name="shoulder" axis="0.1 1 0.2" damping="0.05" armature="0.01"/>
      <inertial pos="0.02 -0.01 -0.15" mass="0.7" diaginertia="0.02 0.03 0.01"/>
      <body name="lower" pos="0 0.01 -0.3">
        <joint name="elbow" axis="0 1 0.3" damping="0.04"/>
        <inertial pos="0.01 0.02 -0.1" mass="0.4" diaginertia="0.01 0.01 0.02"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="shoulder" joint="shoulder" kp="KP" kv="0.3" gear="1.5"/>
    <motor name="elbow" joint="elbow" gear="0.6"/>
  </actuator>
</mujoco>
"""
PUCK = """
<mujoco model="puck">
  <option timestep="0.004" integrator="implicitfast"/>
  <worldbody>
    <body name="puck" pos="3 1 0.5" quat="0.8 0.2 0.1 0.4">
      <freejoint name="float"/>
      <inertial pos="0.01 0.03 -0.02" mass="0.5" diaginertia="0.01 0.02 0.015"/>
    </body>
  </worldbody>
</mujoco>
"""


def scene(kp: float = 3.0) -> SceneCfg:
    arm = EntityCfg(model=ARM.replace("KP", str(kp)))
    entities = {"arm": arm, "puck": EntityCfg(model=PUCK)}
    return SceneCfg(entities=entities, ground=False, timestep=None)


def drive(sim: Simulation, steps: int, generator: torch.Generator) -> None:
    """Steps of all kinds: other worlds, other lengths, writes and resets between."""
    arm, puck = sim.scene["arm"], sim.scene["puck"]
    for k in range(steps):
        noise = torch.randn(sim.num_envs, 2, generator=generator, dtype=torch.float64)
        sim.data.ctrl[:] = noise.to(sim.dtype)
        if k % 7 == 3:
            sim.reset([sim.num_envs - 1])
        if k % 5 == 2:
            sim.data.qvel[1] += 0.3
        if k % 9 == 4:
            force = torch.full((1, 1, 3), 0.7, dtype=sim.dtype)
            puck.write_external_wrench_to_sim(force, 0 * force, env_ids=[1])
        if k % 11 == 6:
            arm.write_joint_position_to_sim(
                torch.full((2, 1), 0.2, dtype=sim.dtype), [1], [2, 0]
            )
        sim.step(1 + k % 3, [2, 0] if k % 6 == 5 else None)


@pytest.fixture
def make_sim():
    def make(num_envs: int = 4, kp: float = 3.0, **options) -> Simulation:
        return Simulation(scene(kp), num_envs, **({"seed": 5} | options))

    return make
