"""Dispersions: what thousands of worlds with scattered parameters do (Monte Carlo)."""

from simstate.dispersions.bounds import (
    mean_bounds,
    proportion_bounds,
    quantile_bounds,
)
from simstate.dispersions.distributions import (
    Distribution,
    choice,
    log_normal,
    normal,
    uniform,
)
from simstate.dispersions.outcome import Outcome, Row
from simstate.dispersions.study import Study, load_study

__all__ = [
    "Distribution",
    "Outcome",
    "Row",
    "Study",
    "choice",
    "load_study",
    "log_normal",
    "mean_bounds",
    "normal",
    "proportion_bounds",
    "quantile_bounds",
    "uniform",
]
