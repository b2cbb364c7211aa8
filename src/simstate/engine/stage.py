"""When a number is computed: with the state itself, or at a stage derived from it."""

from __future__ import annotations

from enum import IntEnum


class Stage(IntEnum):
    """The stage of MuJoCo's forward computation that brings a field up to date."""

    STATE = 0
    """The state itself and the inputs: never behind."""
    POSITION = 1
    """Depends on qpos and mocap poses."""
    VELOCITY = 2
    """Depends on qvel as well."""
    ACCELERATION = 3
    """Depends on the whole state: forces, accelerations, sensors."""
