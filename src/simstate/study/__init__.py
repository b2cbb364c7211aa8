"""Analyses of a model: laws, derivatives, dispersions, futures, identification."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simstate.study import (
        dispersions,
        identification,
        linear,
        oracles,
        planners,
    )
    from simstate.study.derivative_estimates import Derivatives, derivatives
    from simstate.study.differentiable_rollout import (
        DifferentiableRollout,
        differentiable,
    )
    from simstate.study.future_values import Futures
    from simstate.study.future_worlds import futures
    from simstate.study.identification.procedure import identify

__all__ = [
    "Derivatives",
    "DifferentiableRollout",
    "Futures",
    "derivatives",
    "differentiable",
    "dispersions",
    "futures",
    "identification",
    "identify",
    "linear",
    "oracles",
    "planners",
]

_HOMES = {
    "Derivatives": "derivative_estimates",
    "DifferentiableRollout": "differentiable_rollout",
    "Futures": "future_values",
    "derivatives": "derivative_estimates",
    "differentiable": "differentiable_rollout",
    "futures": "future_worlds",
    "identify": "identification.procedure",
}
"""The modules of functions and classes; other names are packages."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _HOMES:  # loaded on first use
        module = import_module(f"simstate.study.{_HOMES[name]}")
        return globals().setdefault(name, getattr(module, name))
    return import_module(f"simstate.study.{name}")
