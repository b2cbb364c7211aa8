"""Keep a pole upright on a cart that a motor pushes along its rail.

The action is the motor's force as a fraction of 20 N. The pole starts nearly upright;
the episode ends when it has tipped by more than 1.2 rad.
"""

from __future__ import annotations

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
from simstate.scene import EntityCfg, SceneCfg

CART = SceneEntityCfg("robot", joint_names="slider")
POLE = SceneEntityCfg("robot", joint_names="pole")
TRAINED = "0 of 64 fell in 10 s"
CORE_SECONDS = 9


def env_cfg() -> EnvCfg:
    """Return the task."""
    return EnvCfg(
        scene=SceneCfg(
            entities={"robot": EntityCfg(model="cartpole")},
            ground=True,
            timestep=0.005,
        ),
        decimation=4,
        episode_length_s=10.0,
        observations={
            "policy": ObservationGroupCfg(
                {
                    "joint_pos": ObservationTermCfg(observations.joint_pos_rel),
                    "joint_vel": ObservationTermCfg(observations.joint_vel_rel),
                }
            )
        },
        actions={"push": JointEffortActionCfg(joint_names="slider", scale=20.0)},
        rewards={
            "alive": RewardTermCfg(rewards.is_alive, weight=1.0),
            "fallen": RewardTermCfg(rewards.is_terminated, weight=-20.0),
            "upright": RewardTermCfg(
                rewards.joint_pos_deviation_l2, params={"asset_cfg": POLE}, weight=-1.0
            ),
            "centred": RewardTermCfg(
                rewards.joint_pos_deviation_l2, params={"asset_cfg": CART}, weight=-0.5
            ),
            "effort": RewardTermCfg(rewards.action_l2, weight=-0.01),
        },
        terminations={
            "time_out": TerminationTermCfg(terminations.time_out, time_out=True),
            "tipped": TerminationTermCfg(
                terminations.joint_pos_out_of_range,
                params={"low": -1.2, "high": 1.2, "asset_cfg": POLE},
            ),
        },
        events={
            "place_cart": EventTermCfg(
                events.reset_joints,
                params={
                    "position_range": (-0.5, 0.5),
                    "velocity_range": (-0.3, 0.3),
                    "asset_cfg": CART,
                },
                mode="reset",
            ),
            "place_pole": EventTermCfg(
                events.reset_joints,
                params={
                    "position_range": (-0.4, 0.4),
                    "velocity_range": (-0.5, 0.5),
                    "asset_cfg": POLE,
                },
                mode="reset",
            ),
        },
    )


def train_cfg() -> TrainCfg:
    """Return the settings of its training."""
    return TrainCfg(
        num_envs=256, iterations=100, steps_per_env=16, hidden_sizes=(32, 32)
    )
