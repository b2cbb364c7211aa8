"""Environments: one step sequence over terms that are plain functions."""

from simstate.env import (
    actions,
    commands,
    curricula,
    events,
    observations,
    rewards,
    terminations,
)
from simstate.env.actions import (
    BodyWrenchActionCfg,
    JointEffortActionCfg,
    JointPositionActionCfg,
    JointVelocityActionCfg,
)
from simstate.env.cfg import (
    CurriculumTermCfg,
    EnvCfg,
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from simstate.env.commands import (
    AttitudeCommandCfg,
    HeadingCommandCfg,
    PointCommandCfg,
    VelocityCommandCfg,
)
from simstate.env.entity_cfg import SceneEntityCfg
from simstate.env.env import Env
from simstate.env.noise import GaussianNoise, UniformNoise
from simstate.env.scene_needs import moves_com
from simstate.env.train_cfg import TrainCfg

__all__ = [
    "AttitudeCommandCfg",
    "BodyWrenchActionCfg",
    "CurriculumTermCfg",
    "Env",
    "EnvCfg",
    "EventTermCfg",
    "GaussianNoise",
    "HeadingCommandCfg",
    "JointEffortActionCfg",
    "JointPositionActionCfg",
    "JointVelocityActionCfg",
    "ObservationGroupCfg",
    "ObservationTermCfg",
    "PointCommandCfg",
    "RewardTermCfg",
    "SceneEntityCfg",
    "TerminationTermCfg",
    "TrainCfg",
    "UniformNoise",
    "VelocityCommandCfg",
    "actions",
    "commands",
    "curricula",
    "events",
    "moves_com",
    "observations",
    "rewards",
    "terminations",
]
