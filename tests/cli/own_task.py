"""A task of a user's own: a stateful reward and a random delay, in one file."""

OWN_TASK = '''
"""Swing: a pole of one's own, with a reward that remembers."""

import torch

from simstate import EntityCfg, SceneCfg
from simstate.env import (
    ControlActionCfg, EnvCfg, EventTermCfg, ObservationGroupCfg, ObservationTermCfg,
    RewardTermCfg, TerminationTermCfg, TrainCfg, events, observations, terminations,
)


class Steadiness:
    """The mean of what was pushed, running; class terms remember in the ledger."""

    def __init__(self, cfg, env):
        self.mean = env.memory("mean", (), reset=0.25)

    def reset(self, env_ids):
        """The ledger resets it."""

    def __call__(self, env, share=0.1):
        self.mean += share * (env.action[:, 0].abs() - self.mean)
        return -self.mean.clone()


def upright(env):
    return env.scene["robot"].data.joint_pos[:, 1].cos()


def env_cfg():
    return EnvCfg(
        scene=SceneCfg(
            entities={"robot": EntityCfg(model="cartpole")}, ground=None, timestep=0.005
        ),
        decimation=4,
        episode_length_s=2.0,
        actions={"push": ControlActionCfg()},
        observations={
            "policy": ObservationGroupCfg({
                "pos": ObservationTermCfg(observations.joint_pos_rel, delay=(0, 3)),
                "vel": ObservationTermCfg(observations.joint_vel_rel, scale=0.1),
            })
        },
        rewards={
            "upright": RewardTermCfg(upright, weight=1.0),
            "steady": RewardTermCfg(Steadiness, params={"share": 0.2}, weight=0.3),
        },
        terminations={
            "time_out": TerminationTermCfg(terminations.time_out, time_out=True)
        },
        events={
            "start": EventTermCfg(
                events.reset_joints, params={"position_range": (-0.3, 0.3)},
                mode="reset",
            )
        },
    )


def train_cfg():
    return TrainCfg(num_envs=12, iterations=4, steps_per_env=8, hidden_sizes=(16,))


def longer():
    cfg = env_cfg()
    cfg.episode_length_s = 3.0
    return cfg, TrainCfg(num_envs=6, iterations=1, steps_per_env=8, hidden_sizes=(8,))
'''
