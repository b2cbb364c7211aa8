"""The compiled module, as the fronts of the core take it."""

from __future__ import annotations

from simstate.base.compiled_core import SWITCH, description, is_available, module

__all__ = ["SWITCH", "description", "field_offset", "is_available", "module"]


def field_offset(name: str) -> tuple[int, int] | None:
    """Return where mjData has a field, as the compiled module knows it."""
    return module().field_offset(name)
