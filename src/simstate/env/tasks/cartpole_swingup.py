"""Swing a hanging pole up and hold it there, by pushing its cart along the rail.

The action is the motor's force as a fraction of 20 N. The pole initially hangs, and the
reward is its height. Only the time limit ends the episode.
"""

from __future__ import annotations

import math

from simstate.env import (
    EnvCfg,
    EventTermCfg,
    JointEffortActionCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
    TrainCfg,
    events,
    observations,
    rewards,
    terminations,
)
from simstate.scene import EntityCfg, InitialStateCfg, SceneCfg

CART = SceneEntityCfg("robot", joint_names="slider")
POLE = SceneEntityCfg("robot", joint_names="pole")
TRAINED = "64 of 64 up for good after at most 2.4 s"
CORE_SECONDS = 144


def env_cfg() -> EnvCfg:
    """Return the task."""
    hanging = InitialStateCfg(joint_pos={"pole": math.pi})
    robot = EntityCfg(model="cartpole", init_state=hanging)
    return EnvCfg(
        scene=SceneCfg(entities={"robot": robot}, ground=True, timestep=0.005),
        decimation=4,
        episode_length_s=10.0,
        observations={
            "policy": ObservationGroupCfg(
                {
                    "cart": ObservationTermCfg(
                        observations.joint_pos_rel, params={"asset_cfg": CART}
                    ),
                    "pole": ObservationTermCfg(
                        observations.joint_pos_cos_sin, params={"asset_cfg": POLE}
                    ),
                    "joint_vel": ObservationTermCfg(
                        observations.joint_vel_rel, scale=(1.0, 0.2)
                    ),
                }
            )
        },
        actions={"push": JointEffortActionCfg(joint_names="slider", scale=20.0)},
        rewards={
            "upright": RewardTermCfg(
                rewards.joint_cos, params={"asset_cfg": POLE}, weight=1.0
            ),
            "centred": RewardTermCfg(
                rewards.joint_pos_deviation_l2, params={"asset_cfg": CART}, weight=-0.5
            ),
            "calm": RewardTermCfg(
                rewards.joint_vel_l2, params={"asset_cfg": POLE}, weight=-0.005
            ),
            "effort": RewardTermCfg(rewards.action_l2, weight=-0.01),
        },
        terminations={
            "time_out": TerminationTermCfg(terminations.time_out, time_out=True)
        },
        events={
            "place": EventTermCfg(
                events.reset_joints,
                params={"position_range": (-0.2, 0.2), "velocity_range": (-0.1, 0.1)},
                mode="reset",
            )
        },
    )


def train_cfg() -> TrainCfg:
    """Return the settings of its training."""
    return TrainCfg(
        num_envs=512, iterations=200, steps_per_env=32, hidden_sizes=(64, 64)
    )
