"""Linear models of simulations: equilibria, derivatives, modes."""

from simstate.linear.derivatives import linearise
from simstate.linear.model import LinearModel
from simstate.linear.modes import Mode
from simstate.linear.trim import TrimResult, Unknown, trim

__all__ = ["LinearModel", "Mode", "TrimResult", "Unknown", "linearise", "trim"]
