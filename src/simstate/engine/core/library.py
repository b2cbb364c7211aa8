"""The compiled module, as the fronts of the core take it."""

from simstate.base.compiled_core import SWITCH, description, is_available, module

__all__ = ["SWITCH", "description", "is_available", "module"]
