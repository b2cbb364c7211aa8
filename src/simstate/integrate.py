"""Integrators, force models and processes: the public names of `simstate.step`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simstate import step

if TYPE_CHECKING:
    from simstate.step import *  # noqa: F403
    from simstate.step import __all__ as __all__
else:
    __all__ = step.__all__

    def __getattr__(name: str) -> object:
        if name in __all__:  # on demand: some of the modules load Warp
            return getattr(step, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
