"""Environments: one step sequence over terms that are plain functions."""

from simstate.base.contract import Contract
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
    RelativeJointPositionActionCfg,
)
from simstate.env.actuator_network import ActuatorNetworkActionCfg
from simstate.env.commands import (
    AttitudeCommandCfg,
    HeadingCommandCfg,
    VelocityCommandCfg,
)
from simstate.env.contracts import contract
from simstate.env.control_action import ControlActionCfg
from simstate.env.entity_cfg import SceneEntityCfg
from simstate.env.env import Env
from simstate.env.env_cfg import (
    CurriculumTermCfg,
    EnvCfg,
    EventTermCfg,
    MetricTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SymmetryCfg,
    TerminationTermCfg,
)
from simstate.env.gait_command import GaitCommandCfg
from simstate.env.host_view import either
from simstate.env.joint_pd_action import JointPdActionCfg
from simstate.env.motion_command import MotionCommandCfg
from simstate.env.observation_noise import GaussianNoise, SensorNoise, UniformNoise
from simstate.env.pose_command import PointCommandCfg, PoseCommandCfg
from simstate.env.scene_needs import moves_com
from simstate.env.symmetry import mirrors
from simstate.env.task_space_action import TaskSpaceActionCfg
from simstate.env.term_plan import EndedEpisodes
from simstate.env.train_cfg import TrainCfg

__all__ = [
    "ActuatorNetworkActionCfg",
    "AttitudeCommandCfg",
    "BodyWrenchActionCfg",
    "Contract",
    "ControlActionCfg",
    "CurriculumTermCfg",
    "EndedEpisodes",
    "Env",
    "EnvCfg",
    "EventTermCfg",
    "GaitCommandCfg",
    "GaussianNoise",
    "HeadingCommandCfg",
    "JointEffortActionCfg",
    "JointPdActionCfg",
    "JointPositionActionCfg",
    "JointVelocityActionCfg",
    "MetricTermCfg",
    "MotionCommandCfg",
    "ObservationGroupCfg",
    "ObservationTermCfg",
    "PointCommandCfg",
    "PoseCommandCfg",
    "RelativeJointPositionActionCfg",
    "RewardTermCfg",
    "SceneEntityCfg",
    "SensorNoise",
    "SymmetryCfg",
    "TaskSpaceActionCfg",
    "TerminationTermCfg",
    "TrainCfg",
    "UniformNoise",
    "VelocityCommandCfg",
    "actions",
    "commands",
    "contract",
    "curricula",
    "either",
    "events",
    "mirrors",
    "moves_com",
    "observations",
    "rewards",
    "terminations",
]
