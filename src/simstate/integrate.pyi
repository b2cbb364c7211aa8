"""Type information of `simstate.integrate`, the public name of `simstate.step`."""

from simstate.step import *
from simstate.step import __all__ as __all__
