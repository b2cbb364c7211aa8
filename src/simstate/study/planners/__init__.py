"""Planners: controls that lower a cost, found by running futures of the worlds.

A planner has one method, `plan(sim or env) -> controls`, which does not change the
worlds. The cost is a function of the simulation, or minus the reward of a task.
"""

from simstate.study.planners.cem import CEM
from simstate.study.planners.drive import Driven, Planner, drive
from simstate.study.planners.ilqr import iLQR
from simstate.study.planners.mppi import MPPI
from simstate.study.planners.predictive_sampling import PredictiveSampling
from simstate.study.planners.sampling_planner import SamplingPlanner

__all__ = [
    "CEM",
    "MPPI",
    "Driven",
    "Planner",
    "PredictiveSampling",
    "SamplingPlanner",
    "drive",
    "iLQR",
]
