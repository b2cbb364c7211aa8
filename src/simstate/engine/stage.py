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


class StepObserver(Protocol):
    """Observer of each evaluation of the dynamics and each completed time step.

    What it remembers it keeps in slots of the ledger that move with a step, and writes
    through aliases: a step that is undone, or a world that diverges, takes it along.
    """

    every_step: bool
    """True to receive the sensors between the n steps of one call."""

    compiled: _core.Contacts | None
    """The same in the compiled core, for the steps that it takes; None: it is not in
    use. The observer itself then sees the other evaluations alone."""

    def begin_step(self) -> None:
        """Forget what evaluations have shown so far: a call of `sim.step` begins."""
        ...

    def begin_evaluations(self) -> None:
        """Prepare for evaluations in the compiled core, within such a call."""
        ...

    def evaluated(self) -> None:
        """Look at the sensors: the dynamics have been evaluated."""
        ...

    def stepped(self, passed: Tensor, env_ids: Tensor | None) -> None:
        """Record that these worlds have advanced by some time [s]; None: all.

        Args:
            passed: of each world, (num_envs,), or of all, (1,).
            env_ids: the worlds.
        """
        ...
