"""Walk over rough ground, slopes and stairs at a commanded velocity.

Quadruped-Velocity on tiles of rising difficulty: the policy gets the heights around it,
worlds that walk far go up a level, and the trunk must not touch the ground.
"""

from __future__ import annotations

import dataclasses

from simstate.env import (
    CurriculumTermCfg,
    EnvCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
    TrainCfg,
    UniformNoise,
    curricula,
    observations,
    rewards,
    terminations,
)
from simstate.env.tasks import quadruped_velocity
from simstate.scene import ContactCfg
from simstate.scene.terrain import TerrainCfg

FEET = SceneEntityCfg("robot", body_names=".*_calf")
TERRAIN = TerrainCfg(
    kinds=("flat", "rough", "slope_up", "slope_down", "waves", "stairs_up"),
    columns=6,
    levels=5,
    difficulty=(0.0, 0.5),
    size=6.0,
)
TRAINED = "1 of 64 fell in 20 s (21 of 256 others), 0.059 m/s off forward"
CORE_SECONDS = 257
SCAN = {"size": (1.2, 0.8), "spacing": 0.2}


def env_cfg() -> EnvCfg:
    """Return the task."""
    cfg = quadruped_velocity.env_cfg()
    trunk = ContactCfg(of="robot/trunk", against="ground")
    cfg.scene = dataclasses.replace(
        cfg.scene,
        ground=None,
        terrain=TERRAIN,
        contacts={**cfg.scene.contacts, "trunk": trunk},
    )
    for name, group in cfg.observations.items():
        noise = UniformNoise(-0.03, 0.03) if name == "policy" else None
        group.terms["scan"] = ObservationTermCfg(
            observations.terrain_scan, params=dict(SCAN), noise=noise, scale=2.0
        )
    cfg.rewards |= {
        # Slopes and stairs need vertical velocities and tilts.
        "lin_vel_z": RewardTermCfg(rewards.lin_vel_z_l2, weight=-0.5),
        "flat": RewardTermCfg(rewards.flat_orientation_l2, weight=-0.2),
        "height": RewardTermCfg(
            rewards.base_height_l2, params={"height": 0.28}, weight=-5.0
        ),
        "slide": RewardTermCfg(
            rewards.feet_slide,
            params={"sensor_name": "feet", "asset_cfg": FEET},
            weight=-0.05,
        ),
        "fallen": RewardTermCfg(rewards.is_terminated, weight=-150.0),
    }
    cfg.terminations["low"] = TerminationTermCfg(
        terminations.undesired_contact, params={"sensor_name": "trunk"}
    )
    cfg.terminations["away"] = TerminationTermCfg(
        terminations.terrain_out_of_bounds, time_out=True
    )
    cfg.curricula["levels"] = CurriculumTermCfg(curricula.terrain_levels)
    return cfg


def train_cfg() -> TrainCfg:
    """Return the settings of its training: as on flat ground, for longer."""
    return TrainCfg(
        num_envs=512,
        iterations=500,
        steps_per_env=16,
        hidden_sizes=(128, 128),
        weight_init="orthogonal",
        symmetric=True,
        num_learning_epochs=4,
        gamma=0.97,
        desired_kl=0.03,
        final_kl=0.01,
        init_noise_std=0.6,
        noise_std_type="log",
        entropy_coef=0.001,
    )
