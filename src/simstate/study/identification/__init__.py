"""Identification: estimate model parameters from logs, and find undetermined ones.

fit = identify(scene, read_log("run.mcap"), "robot joints: damping, armature; delay")
print(fit)  # estimates with intervals, the held-out error, what is not determined
"""

from simstate.study.identification.fit import Estimate, Fit, Misfit
from simstate.study.identification.fitted_parameters import FittedParameters
from simstate.study.identification.free_parameters import FreeParameter, parse_free
from simstate.study.identification.procedure import identify

__all__ = [
    "Estimate",
    "Fit",
    "FittedParameters",
    "FreeParameter",
    "Misfit",
    "identify",
    "parse_free",
]
