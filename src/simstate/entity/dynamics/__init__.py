"""Jacobians, mass matrices, momenta and energies: of an entity, and of the scene."""

from simstate.entity.dynamics.dynamics import Dynamics, SceneDynamics

__all__ = ["Dynamics", "SceneDynamics"]
