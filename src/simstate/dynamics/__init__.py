"""Jacobians, mass matrices, momenta and energies: of an entity, and of the scene."""

from simstate.dynamics.dynamics import Dynamics
from simstate.dynamics.scene import SceneDynamics

__all__ = ["Dynamics", "SceneDynamics"]
