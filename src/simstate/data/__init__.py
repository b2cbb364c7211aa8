"""Data sets, logs, replays of recordings, and work on a Ray cluster."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simstate.data import datasets, logs, ray, replay

__all__ = ["datasets", "logs", "ray", "replay"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # loaded on first use
        return import_module(f"simstate.data.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
