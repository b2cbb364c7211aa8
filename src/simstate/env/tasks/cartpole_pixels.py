"""Keep a pole upright on a cart, seen by a camera: the policy gets only pictures.

It gets the last three pictures in grey, from which it has to infer velocities; the
critic gets positions and velocities. Otherwise the task is Cartpole-Balance.
"""

from __future__ import annotations

import dataclasses

from simstate.env import (
    EnvCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    TrainCfg,
    observations,
)
from simstate.env.tasks import cartpole_balance
from simstate.scene import CameraCfg

EYE = CameraCfg(
    pos=(0.0, -2.4, 1.35), look_at=(0.0, 0.0, 1.35), fovy=21.0, width=72, height=30
)
TRAINED = "10 of 64 fell in 10 s"
CORE_SECONDS = 115


def env_cfg() -> EnvCfg:
    """Return the task."""
    cfg = cartpole_balance.env_cfg()
    pictures = ObservationTermCfg(
        observations.camera_grey, params={"camera": "eye"}, history=3
    )
    return dataclasses.replace(
        cfg,
        scene=dataclasses.replace(cfg.scene, cameras={"eye": EYE}, ground=False),
        decimation=8,
        observations={
            "policy": ObservationGroupCfg({"eye": pictures}),
            "critic": cfg.observations["policy"],
        },
    )


def train_cfg() -> TrainCfg:
    """Return the settings of its training."""
    return TrainCfg(
        num_envs=128,
        iterations=150,
        steps_per_env=16,
        network="cnn",
        hidden_sizes=(64, 64),
        conv_channels=(16, 16),
        conv_kernels=(8, 4),
        conv_strides=(4, 2),
        num_learning_epochs=4,
        init_noise_std=0.5,
    )
