"""Dispersions: Monte Carlo studies of worlds with random parameters."""

from simstate.study.dispersions.bounds import (
    mean_bounds,
    proportion_bounds,
    quantile_bounds,
)
from simstate.study.dispersions.distributions import (
    Distribution,
    choice,
    log_normal,
    normal,
    uniform,
)
from simstate.study.dispersions.outcome import Outcome, Row
from simstate.study.dispersions.study import Study, load_study

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
