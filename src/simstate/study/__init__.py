"""Analyses of a model: laws, linear models, derivatives and dispersions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simstate.study import dispersions, linear, oracles
    from simstate.study.derivative_estimates import Derivatives, derivatives

__all__ = [
    "Derivatives",
    "derivatives",
    "dispersions",
    "linear",
    "oracles",
]
_MODULES = {
    "Derivatives": "derivative_estimates",
    "derivatives": "derivative_estimates",
}
"""The modules of names that are not modules themselves."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"simstate.study.{_MODULES.get(name, name)}")
    return getattr(module, name) if name in _MODULES else module
