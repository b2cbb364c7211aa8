"""When a number is computed: with the state itself, or at a stage derived from it."""

from __future__ import annotations

from enum import IntEnum


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
