"""A small environment whose terms a test chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from simstate import EntityCfg, InitialStateCfg, SceneCfg
from simstate.env import (
    Env,
    EnvCfg,
    JointPositionActionCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
    events,
    observations,
    rewards,
    terminations,
)
from simstate.env.env_cfg import EventTermCfg

MakeCfg = Callable[..., EnvCfg]
MakeEnv = Callable[..., Env]

ROBOT = """
<mujoco model="hopper">
  <compiler angle="radian"/>
  <option timestep="0.005" integrator="implicitfast"/>
  <worldbody>
    <body name="trunk" pos="0 0 0.6">
      <freejoint name="root"/>
      <inertial pos="0.02 -0.01 0.03" quat="0.9 0.1 0.3 0.2" mass="2"
                diaginertia="0.02 0.03 0.04"/>
      <geom name="trunk" type="box" size="0.1 0.08 0.05" contype="0" conaffinity="1"/>
      <body name="thigh" pos="0 0 -0.05">
        <joint name="hip" axis="0 1 0" range="-1 1" damping="0.2" armature="0.01"/>
        <geom name="thigh" type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2"
              mass="0.4" contype="0" conaffinity="0"/>
        <body name="shin" pos="0 0 -0.2">
          <joint name="knee" axis="0 1 0" range="-0.2 1.5" damping="0.1"
                 armature="0.01"/>
          <geom name="shin" type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2"
                mass="0.2" contype="0" conaffinity="0"/>
          <geom name="foot" type="sphere" size="0.03" pos="0 0 -0.22" mass="0.1"
                contype="0" conaffinity="1" priority="1" friction="0.8"/>
          <site name="foot" pos="0 0 -0.22" size="0.04"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="hip" joint="hip" kp="20" kv="1"/>
    <position name="knee" joint="knee" kp="15" kv="0.5"/>
  </actuator>
  <sensor>
    <touch name="foot" site="foot"/>
    <gyro name="gyro" site="foot"/>
  </sensor>
</mujoco>
"""
"""A trunk on one leg of two joints, its foot at z = 0.13 − 0.03 above the ground."""


@pytest.fixture
def make_cfg() -> MakeCfg:
    """Makes a configuration of the hopper: make_cfg(rewards={…}, …)."""

    def make(**parts: Any) -> EnvCfg:
        start = InitialStateCfg(joint_pos={"knee": 0.3})
        robot = EntityCfg(model=ROBOT, init_state=start)
        defaults: dict[str, Any] = {
            "scene": SceneCfg(entities={"robot": robot}),
            "decimation": 4,
            "episode_length_s": 2.0,
            "actions": {"joints": JointPositionActionCfg(scale=0.5)},
            "observations": {
                "policy": ObservationGroupCfg(
                    {
                        "joint_pos": ObservationTermCfg(observations.joint_pos_rel),
                        "base_lin_vel": ObservationTermCfg(observations.base_lin_vel),
                        "last_action": ObservationTermCfg(observations.last_action),
                    }
                )
            },
            "rewards": {"alive": RewardTermCfg(rewards.is_alive, weight=1.0)},
            "terminations": {
                "time_out": TerminationTermCfg(terminations.time_out, time_out=True)
            },
            "events": {
                "joints": EventTermCfg(
                    events.reset_joints,
                    params={"position_range": (-0.2, 0.2)},
                    mode="reset",
                )
            },
        }
        return EnvCfg(**(defaults | parts))

    return make


@pytest.fixture
def make_env(make_cfg: MakeCfg) -> MakeEnv:
    """Makes an environment: make_env(num_envs=…, engine=…, seed=…, rewards={…}, …)."""

    def make(
        num_envs: int = 4,
        engine: Any = "native",
        seed: int = 0,
        auto_reset: bool = True,
        **parts: Any,
    ) -> Env:
        return Env(
            make_cfg(**parts),
            num_envs,
            engine=engine,
            seed=seed,
            auto_reset=auto_reset,
        )

    return make


@pytest.fixture
def observed() -> Callable[..., dict[str, ObservationGroupCfg]]:
    """Makes a policy group of one term: observed(func, noise=…, params={…})."""

    def make(func: Any, **options: Any) -> dict[str, ObservationGroupCfg]:
        term = ObservationTermCfg(func, **options)
        return {"policy": ObservationGroupCfg({"term": term})}

    return make


@pytest.fixture
def given() -> Callable[..., Tensor]:
    """Random actions: given(env, steps, seed) → (steps, num_envs, action_dim)."""

    def make(env: Env, steps: int, seed: int = 1, scale: float = 1.0) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        shape = (steps, env.num_envs, env.action_dim)
        return torch.randn(shape, generator=generator) * scale

    return make
