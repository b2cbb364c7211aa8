"""Move the hand of a seven-joint arm to a point in front of it, and hold it there.

The action moves the position targets of the joints about the home pose. The point is
redrawn every few seconds.
"""

from __future__ import annotations

from simstate.env import (
    EnvCfg,
    EventTermCfg,
    JointPositionActionCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    PointCommandCfg,
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

JOINTS = SceneEntityCfg("robot", joint_names="joint[1-7]")
TRAINED = "64 of 64 within 2.5 cm from 1 s on, mean 1.2 cm"
CORE_SECONDS = 288


def env_cfg() -> EnvCfg:
    """Return the task."""
    arm = EntityCfg(model="arm", init_state=InitialStateCfg(keyframe="home"))
    point = {"command_name": "point"}
    return EnvCfg(
        scene=SceneCfg(entities={"robot": arm}, ground=True, timestep=0.005),
        decimation=8,
        episode_length_s=8.0,
        commands={
            "point": PointCommandCfg(
                site_name="tcp",
                x=(0.35, 0.65),
                y=(-0.3, 0.3),
                z=(0.15, 0.55),
                resampling_time_s=(4.0, 4.0),
            )
        },
        actions={"joints": JointPositionActionCfg(joint_names="joint[1-7]", scale=0.5)},
        observations={
            "policy": ObservationGroupCfg(
                {
                    "joint_pos": ObservationTermCfg(
                        observations.joint_pos_rel, params={"asset_cfg": JOINTS}
                    ),
                    "joint_vel": ObservationTermCfg(
                        observations.joint_vel_rel,
                        params={"asset_cfg": JOINTS},
                        scale=0.2,
                    ),
                    "point": ObservationTermCfg(
                        observations.generated_commands, params=point
                    ),
                    "missing": ObservationTermCfg(
                        observations.command_offset, params=point
                    ),
                    "last_action": ObservationTermCfg(observations.last_action),
                }
            )
        },
        rewards={
            "distance": RewardTermCfg(rewards.command_error, params=point, weight=-1.0),
            "reached": RewardTermCfg(
                rewards.command_tracked, params={**point, "std": 0.1}, weight=1.0
            ),
            "action_rate": RewardTermCfg(rewards.action_rate_l2, weight=-0.005),
            "joint_vel": RewardTermCfg(
                rewards.joint_vel_l2, params={"asset_cfg": JOINTS}, weight=-0.002
            ),
        },
        terminations={
            "time_out": TerminationTermCfg(terminations.time_out, time_out=True)
        },
        events={
            "place": EventTermCfg(
                events.reset_joints,
                params={"position_range": (-0.3, 0.3), "asset_cfg": JOINTS},
                mode="reset",
            )
        },
    )


def train_cfg() -> TrainCfg:
    """Return the settings of its training."""
    return TrainCfg(
        num_envs=512, iterations=200, steps_per_env=24, hidden_sizes=(64, 64)
    )
