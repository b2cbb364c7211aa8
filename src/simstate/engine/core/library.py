"""Access to the compiled module for the Python interface of the core."""

from __future__ import annotations

from simstate.base.compiled_core import SWITCH, description, is_available, module

__all__ = ["SWITCH", "description", "field_offset", "is_available", "module"]


def field_offset(name: str) -> tuple[int, int] | None:
    """Return the offset of a field in mjData, as the compiled module knows it."""
    return module().field_offset(name)
