"""Linear models of simulations: equilibria, derivatives, modes."""

from simstate.study.linear.linear_model import LinearModel
from simstate.study.linear.linearisation import linearise
from simstate.study.linear.modes import Mode
from simstate.study.linear.trim import TrimResult, Unknown, trim

__all__ = ["LinearModel", "Mode", "TrimResult", "Unknown", "linearise", "trim"]
