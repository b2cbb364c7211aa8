"""Stages of the forward computation, events of a step, and its observer."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Protocol

from torch import Tensor

if TYPE_CHECKING:
    from simstate.engine.core import _core


class Stage(IntEnum):
    """The stage of MuJoCo's forward computation that brings a field up to date."""

    STATE = 0
    """The state itself and the inputs, which are never stale."""
    CONSTANT = 1
    """Constants of the model that mj_setConst computes from its parameters."""
    POSITION = 2
    """Depends on qpos and mocap poses."""
    VELOCITY = 3
    """Depends on qvel as well."""
    ACCELERATION = 4
    """Depends on the complete state: forces, accelerations, sensors."""


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


class StepObserver(Protocol):
    """Observer of each evaluation of the dynamics and each completed time step.

    It stores its memory in slots of the ledger that a step changes, and writes through
    aliases, so that a rolled-back step or a diverged world restores it too.
    """

    every_step: bool
    """True to receive the sensors between the n steps of one call."""

    compiled: _core.Contacts | None
    """Its counterpart in the compiled core, for steps in the core; None if unused. With
    it, the observer itself receives only the other evaluations."""

    def begin_step(self) -> None:
        """Discard the results of earlier evaluations: a call of `sim.step` starts."""
        ...

    def begin_evaluations(self) -> None:
        """Prepare for evaluations in the compiled core, within such a call."""
        ...

    def evaluated(self) -> None:
        """Read the sensors after an evaluation of the dynamics."""
        ...

    def stepped(self, passed: Tensor, env_ids: Tensor | None) -> None:
        """Record that these worlds have advanced by some time [s]; None: all.

        Args:
            passed: the time, of each world (num_envs,) or of all (1,).
            env_ids: the worlds.
        """
        ...
