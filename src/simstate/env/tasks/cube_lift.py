"""Grip a cube that lies in front of an arm, and bring it to a point in the air.

The action moves the hand along the base's axes and opens or closes the gripper. The
positions of the cube and of the point differ in every episode.
"""

from __future__ import annotations

import math

from simstate.env import (
    EnvCfg,
    EventTermCfg,
    JointPositionActionCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    PointCommandCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TaskSpaceActionCfg,
    TerminationTermCfg,
    TrainCfg,
    events,
    observations,
    rewards,
    terminations,
)
from simstate.scene import EntityCfg, InitialStateCfg, SceneCfg

JOINTS = SceneEntityCfg("robot", joint_names="joint[1-7]")
FINGERS = SceneEntityCfg("robot", joint_names="left_finger")
HAND = SceneEntityCfg("robot", site_names="tcp")
CUBE = SceneEntityCfg("cube", site_names="center")
TRAINED = "58 of 64 cubes within 5 cm from 4 s on, mean 3.4 cm"
CORE_SECONDS = 774
LOWEST_M, HIGHEST_M = 0.03, 0.15
"""Heights of the cube's centre between which the reward for lifting it grows."""


def env_cfg() -> EnvCfg:
    """Return the task."""
    arm = EntityCfg(model="arm", init_state=InitialStateCfg(keyframe="home"))
    cube = EntityCfg(
        model="cube", init_state=InitialStateCfg(pos=(0.5, 0.0, 0.025)), kind="object"
    )
    return EnvCfg(
        scene=SceneCfg(
            entities={"robot": arm, "cube": cube}, ground=True, timestep=0.005
        ),
        decimation=4,
        episode_length_s=5.0,
        commands={
            "goal": PointCommandCfg(
                asset_name="cube",
                site_name="center",
                x=(0.4, 0.6),
                y=(-0.2, 0.2),
                z=(0.15, 0.35),
                resampling_time_s=(5.0, 5.0),
            )
        },
        actions={
            "hand": TaskSpaceActionCfg(
                site_name="tcp",
                joint_names="joint[1-7]",
                translation_scale=0.05,
                rotation_scale=0.05,
            ),
            # −1 closes the gripper, +1 opens it.
            "gripper": JointPositionActionCfg(
                joint_names="left_finger", scale=0.02, offset=-0.02, clip=(0.0, 0.04)
            ),
        },
        observations={"policy": ObservationGroupCfg(_seen())},
        rewards=_rewards(),
        terminations={
            "time_out": TerminationTermCfg(terminations.time_out, time_out=True)
        },
        events={
            "bend": EventTermCfg(
                events.reset_joints,
                params={"position_range": (-0.05, 0.05), "asset_cfg": JOINTS},
                mode="reset",
            ),
            "lay": EventTermCfg(
                events.reset_root_state,
                params={
                    "pose_range": {
                        "x": (-0.08, 0.08),
                        "y": (-0.15, 0.15),
                        "yaw": (-math.pi / 4.0, math.pi / 4.0),
                    },
                    "asset_cfg": SceneEntityCfg("cube"),
                },
                mode="reset",
            ),
        },
    )


def _seen() -> dict[str, ObservationTermCfg]:
    """Return the observations of the policy."""
    goal = {"command_name": "goal"}
    return {
        "joint_pos": ObservationTermCfg(
            observations.joint_pos_rel, params={"asset_cfg": JOINTS}
        ),
        "joint_vel": ObservationTermCfg(
            observations.joint_vel_rel, params={"asset_cfg": JOINTS}, scale=0.2
        ),
        "opening": ObservationTermCfg(
            observations.joint_pos_rel, params={"asset_cfg": FINGERS}, scale=25.0
        ),
        "hand": ObservationTermCfg(observations.site_pos, params={"asset_cfg": HAND}),
        "to_cube": ObservationTermCfg(
            observations.site_offset,
            params={"asset_cfg": HAND, "target_cfg": CUBE},
            scale=5.0,
        ),
        "to_goal": ObservationTermCfg(
            observations.command_offset, params=goal, scale=5.0
        ),
        "last_action": ObservationTermCfg(observations.last_action),
    }


def _rewards() -> dict[str, RewardTermCfg]:
    """Return the rewards: reach the cube, lift it, place it, with small velocities."""
    goal = {"command_name": "goal"}
    sites = {"asset_cfg": HAND, "target_cfg": CUBE}
    heights = {"low": LOWEST_M, "high": HIGHEST_M}
    return {
        "reach": RewardTermCfg(
            rewards.sites_close, params={**sites, "std": 0.1}, weight=1.0
        ),
        "lift": RewardTermCfg(
            rewards.base_height_share,
            params={**heights, "asset_cfg": SceneEntityCfg("cube")},
            weight=5.0,
        ),
        "bring": RewardTermCfg(
            rewards.command_tracked, params={**goal, "std": 0.2}, weight=5.0
        ),
        "place": RewardTermCfg(
            rewards.command_tracked, params={**goal, "std": 0.05}, weight=5.0
        ),
        "action_rate": RewardTermCfg(rewards.action_rate_l2, weight=-0.01),
        "joint_vel": RewardTermCfg(
            rewards.joint_vel_l2, params={"asset_cfg": JOINTS}, weight=-0.002
        ),
    }


def train_cfg() -> TrainCfg:
    """Return the settings of its training."""
    return TrainCfg(num_envs=512, iterations=400, steps_per_env=24)
