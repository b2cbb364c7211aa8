"""Type information of `simstate.integrate`, the public name of `simstate.step`."""

from simstate.step import *  # noqa: F403
from simstate.step import __all__ as __all__
