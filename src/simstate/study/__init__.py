"""Analyses of a model: laws, linear models, dispersions, futures and planners."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simstate.study import dispersions, linear, oracles
    from simstate.study.future_worlds import Futures, futures

__all__ = ["Futures", "dispersions", "futures", "linear", "oracles"]

_HOMES = {"Futures": "future_worlds", "futures": "future_worlds"}
"""The modules of functions and classes; other names are packages."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _HOMES:  # loaded on first use
        return getattr(import_module(f"simstate.study.{_HOMES[name]}"), name)
    return import_module(f"simstate.study.{name}")
