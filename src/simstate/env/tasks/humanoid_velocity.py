"""Walk on two legs at a commanded velocity; the arms hang and swing.

Position servos drive the legs, the waist and the elbows. The reward follows a clock by
which the feet alternate, unless the command is zero.
"""

from __future__ import annotations

from simstate.env import (
    EnvCfg,
    JointPositionActionCfg,
    RewardTermCfg,
    SceneEntityCfg,
    SymmetryCfg,
    TerminationTermCfg,
    TrainCfg,
    VelocityCommandCfg,
    rewards,
    terminations,
)
from simstate.env.tasks.legged_terms import disturbed, observed
from simstate.scene import ContactCfg, EntityCfg, InitialStateCfg, SceneCfg

HINGES = SceneEntityCfg("robot", joint_names=(".*hip.*", ".*knee", ".*ankle.*"))
CALM = SceneEntityCfg(
    "robot", joint_names=("waist_.*", ".*_hip_yaw", ".*_hip_roll", ".*_elbow")
)
"""Joints that walking hardly needs."""
FEET = SceneEntityCfg(
    "robot", body_names=("left_foot", "right_foot"), preserve_order=True
)
TRAINED = "0 of 64 fell in 20 s (0 of 256 others), 0.049 m/s off forward"
CORE_SECONDS = 181
PERIOD_S = 0.8
"""Time of one stride: a step of each foot."""
STANDING_M = 0.87
"""Height of the pelvis when it stands."""


def env_cfg() -> EnvCfg:
    """Return the task."""
    robot = EntityCfg(model="humanoid", init_state=InitialStateCfg(keyframe="stand"))
    feet = ContactCfg(of=("robot/left_foot", "robot/right_foot"), against="ground")
    return EnvCfg(
        scene=SceneCfg(
            entities={"robot": robot},
            contacts={"feet": feet},
            ground=True,
            timestep=0.01,  # implicit servos are stable at it, and 0.005 costs twice
        ),
        decimation=2,
        episode_length_s=20.0,
        commands={
            "velocity": VelocityCommandCfg(
                resampling_time_s=(5.0, 10.0),
                lin_vel_x=(0.0, 0.8),
                ang_vel_z=(-0.4, 0.4),
                standing_share=0.1,
            )
        },
        actions={
            "joints": JointPositionActionCfg(
                scale={".*": 0.25, "waist_.*": 0.1, ".*_elbow": 0.1}
            )
        },
        observations=observed(PERIOD_S),
        rewards=_rewards(),
        terminations={
            "time_out": TerminationTermCfg(terminations.time_out, time_out=True),
            "tipped": TerminationTermCfg(
                terminations.bad_orientation, params={"limit_angle": 0.8}
            ),
            "low": TerminationTermCfg(
                terminations.base_height_below, params={"height": 0.6}
            ),
        },
        events=disturbed(0.05, 0.2, HINGES),
        symmetry=SymmetryCfg(phase_shift=0.5),  # the feet take turns
    )


def _rewards() -> dict[str, RewardTermCfg]:
    """Return the rewards: track the command, alternate feet, stay upright, calmly."""
    velocity = {"command_name": "velocity"}
    return {
        "track_lin_vel": RewardTermCfg(
            rewards.track_lin_vel, params={**velocity, "std": 0.3}, weight=2.0
        ),
        "track_ang_vel": RewardTermCfg(
            rewards.track_ang_vel, params={**velocity, "std": 0.4}, weight=1.0
        ),
        "gait": RewardTermCfg(
            rewards.contact_gait,
            params={
                **velocity,
                "sensor_name": "feet",
                "offsets": (0.0, 0.5),
                "period_s": PERIOD_S,
                "stance": 0.55,
            },
            weight=1.0,
        ),
        "alive": RewardTermCfg(rewards.is_alive, weight=0.5),
        "upright": RewardTermCfg(rewards.flat_orientation_l2, weight=-2.0),
        "height": RewardTermCfg(
            rewards.base_height_l2, params={"height": STANDING_M}, weight=-10.0
        ),
        "lin_vel_z": RewardTermCfg(rewards.lin_vel_z_l2, weight=-0.5),
        "ang_vel_xy": RewardTermCfg(rewards.ang_vel_xy_l2, weight=-0.05),
        "slide": RewardTermCfg(
            rewards.feet_slide,
            params={"sensor_name": "feet", "asset_cfg": FEET},
            weight=-0.2,
        ),
        "calm": RewardTermCfg(
            rewards.joint_pos_deviation_l2, params={"asset_cfg": CALM}, weight=-0.3
        ),
        "torques": RewardTermCfg(rewards.joint_torques_l2, weight=-2e-6),
        "action_rate": RewardTermCfg(rewards.action_rate_l2, weight=-0.01),
        "fallen": RewardTermCfg(rewards.is_terminated, weight=-150.0),
    }


def train_cfg() -> TrainCfg:
    """Return the settings of its training: small motions about standing, few falls."""
    return TrainCfg(
        num_envs=512,
        iterations=400,
        steps_per_env=16,
        hidden_sizes=(128, 64),
        weight_init="orthogonal",
        symmetric=True,
        num_learning_epochs=4,
        gamma=0.98,
        desired_kl=0.03,
        final_kl=0.01,
        init_noise_std=0.5,
        noise_std_type="log",
        entropy_coef=0.002,
    )
