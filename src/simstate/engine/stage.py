"""Stages of the forward computation, and what a step has seen."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class Stage(IntEnum):
    """The stage of MuJoCo's forward computation that brings a field up to date."""

    STATE = 0
    """The state itself and the inputs: never behind."""
    CONSTANT = 1
    """Constants of the model that follow from its parameters, as mj_setConst does."""
    POSITION = 2
    """Depends on qpos and mocap poses."""
    VELOCITY = 3
    """Depends on qvel as well."""
    ACCELERATION = 4
    """Depends on the whole state: forces, accelerations, sensors."""


class Seen(IntFlag):
    """Events in a step; passed as a plain int, 0 if nothing went wrong."""

    BAD = 1
    """A world has NaN, infinite or huge values."""
    WARNED = 2
    """MuJoCo has warned."""
    FAILED = 4
    """MuJoCo has raised an error in a world."""
    STUCK = 8
    """A world could not advance as far as it should."""
