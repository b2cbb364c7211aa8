"""Walk over flat ground at a commanded velocity, on twelve position-driven joints."""

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

FEET = SceneEntityCfg(
    "robot",
    sensor_names=("FL_foot", "FR_foot", "RL_foot", "RR_foot"),
    preserve_order=True,
)
TRAINED = "0 to 1 of 64 fell in 20 s, 0.040 to 0.059 m/s off, by seed"
CORE_SECONDS = 86
PERIOD_S = 0.5
"""Time of one stride; a foot stands for a bit more than half of it."""


def env_cfg() -> EnvCfg:
    """Return the task."""
    return EnvCfg(
        scene=SceneCfg(
            entities={
                "robot": EntityCfg(
                    model="quadruped", init_state=InitialStateCfg(keyframe="home")
                )
            },
            contacts={"feet": ContactCfg(of="robot/.*_calf", against="ground")},
            ground=True,
            timestep=0.01,  # implicit servos are stable at it, and 0.005 costs twice
        ),
        decimation=2,
        episode_length_s=20.0,
        commands={
            "velocity": VelocityCommandCfg(
                resampling_time_s=(5.0, 10.0),
                lin_vel_x=(0.0, 1.0),
                lin_vel_y=(-0.3, 0.3),
                ang_vel_z=(-0.8, 0.8),
                standing_share=0.1,
            )
        },
        actions={"joints": JointPositionActionCfg(scale=0.3)},
        observations=observed(PERIOD_S),
        rewards=_rewards(),
        terminations={
            "time_out": TerminationTermCfg(terminations.time_out, time_out=True),
            "tipped": TerminationTermCfg(
                terminations.bad_orientation, params={"limit_angle": 1.0}
            ),
            "low": TerminationTermCfg(
                terminations.base_height_below, params={"height": 0.15}
            ),
        },
        events=disturbed(0.1, 0.3, SceneEntityCfg("robot")),
        symmetry=SymmetryCfg(phase_shift=0.5),  # diagonal pairs take turns
    )


def _rewards() -> dict[str, RewardTermCfg]:
    """Return the rewards: track the command, trot, with small efforts."""
    return {
        "track_lin_vel": RewardTermCfg(
            rewards.track_lin_vel,
            params={"command_name": "velocity", "std": 0.25},
            weight=2.0,
        ),
        "track_ang_vel": RewardTermCfg(
            rewards.track_ang_vel,
            params={"command_name": "velocity", "std": 0.4},
            weight=1.0,
        ),
        "error": RewardTermCfg(  # its slope does not vanish near the command
            rewards.command_error, params={"command_name": "velocity"}, weight=-1.0
        ),
        "gait": RewardTermCfg(
            rewards.gait,
            params={
                "asset_cfg": FEET,
                "offsets": (0.0, 0.5, 0.5, 0.0),
                "period_s": PERIOD_S,
                "stance": 0.6,
                "command_name": "velocity",
            },
            weight=0.5,
        ),
        "air_time": RewardTermCfg(
            rewards.feet_air_time,
            params={
                "sensor_name": "feet",
                "threshold": 0.1,
                "command_name": "velocity",
            },
            weight=0.25,
        ),
        "lin_vel_z": RewardTermCfg(rewards.lin_vel_z_l2, weight=-1.0),
        "ang_vel_xy": RewardTermCfg(rewards.ang_vel_xy_l2, weight=-0.05),
        "flat": RewardTermCfg(rewards.flat_orientation_l2, weight=-1.0),
        "height": RewardTermCfg(
            rewards.base_height_l2, params={"height": 0.28}, weight=-10.0
        ),
        "torques": RewardTermCfg(rewards.joint_torques_l2, weight=-1e-4),
        "action_rate": RewardTermCfg(rewards.action_rate_l2, weight=-0.01),
        "fallen": RewardTermCfg(rewards.is_terminated, weight=-300.0),
    }


def train_cfg() -> TrainCfg:
    """Return the settings of its training: small networks, frequent updates."""
    return TrainCfg(
        num_envs=256,
        iterations=500,
        steps_per_env=16,
        hidden_sizes=(128, 64),
        weight_init="orthogonal",
        symmetric=True,
        num_learning_epochs=4,
        num_mini_batches=2,
        gamma=0.95,  # 0.4 s: enough for a stride of 0.5 s
        desired_kl=0.05,
        final_kl=0.015,
        init_noise_std=0.6,
        noise_std_type="log",
        entropy_coef=0.001,
        physics_options={"solver": "PGS", "iterations": 4},
        # Falls follow changes of the command, so these are more frequent. Tilts that
        # could still be corrected also end an episode, so that policies avoid them.
        training_settings={
            "env.commands.velocity.resampling_time_s": (2.0, 6.0),
            "env.terminations.tipped.params.limit_angle": 0.5,
            "env.terminations.low.params.height": 0.2,
        },
    )
