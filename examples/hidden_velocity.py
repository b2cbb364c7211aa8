"""A cart-pole whose policy sees positions only: a network with a memory is needed.

A task file. `full` is what a teacher sees.

    simstate train examples/hidden_velocity.py --train.network gru
"""

from __future__ import annotations

from simstate.env import (
    EnvCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    TrainCfg,
    observations,
    tasks,
)


def env_cfg() -> EnvCfg:
    """Return Cartpole-Balance with two observation groups."""
    cfg = tasks.make_cfg("Cartpole-Balance")
    position = ObservationTermCfg(observations.joint_pos_rel)
    velocity = ObservationTermCfg(observations.joint_vel_rel)
    cfg.observations = {
        "policy": ObservationGroupCfg({"joint_pos": position}),
        "full": ObservationGroupCfg({"joint_pos": position, "joint_vel": velocity}),
    }
    return cfg


def train_cfg() -> TrainCfg:
    """Return the settings of its training."""
    return TrainCfg(
        num_envs=128, iterations=60, steps_per_env=32, hidden_sizes=(32,), rnn_size=32
    )
