"""`python -m simstate` is the command line."""

from simstate.cli import entry

entry()
