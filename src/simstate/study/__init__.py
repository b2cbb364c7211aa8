"""Analyses of a model: laws, linear models and dispersions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simstate.study import dispersions, linear, oracles

__all__ = ["dispersions", "linear", "oracles"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # loaded on first use
        return import_module(f"simstate.study.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
