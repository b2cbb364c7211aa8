"""Rollouts: MuJoCo's own steps under a sequence of controls, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simstate.engine import Stage
from simstate.step.mujoco_stepper import MujocoStepper
from simstate.step.stepping_host import forcing_of, stepper_of
from simstate.world.calls import Scope
from simstate.world.worlds import worlds_of

Array = NDArray[Any]


class RolloutStepper(MujocoStepper):
    """Advances worlds under given controls, and records fields of the state.

    The results are bit-identical to those of one call per time step. A world that
    diverges returns to the start of the rollout.
    """

    scope: Scope = "run"
    """All memory: a rollout writes controls, which a step does not."""
    controls: Array
    """Controls of each time step; shape (num_envs or 1, steps, nu)."""
    samples: Array
    """Numbers of steps after which fields are recorded; ascending int32."""
    fields: Mapping[str, Array]
    """Arrays for recorded fields; see `CoreBatch.rollout`."""

    def advance(self, n: int, rows: Tensor | None) -> int:
        """Advance worlds under the controls; return flags of `Seen`."""
        compiled = self._engine.compiled
        assert compiled is not None
        assert n == self.controls.shape[1]
        ids = None if rows is None else compiled.ids(rows.numpy())
        seen = compiled.rollout(ids, self.controls, self.samples, self.fields)
        self._engine.kept_writes += 1
        self._fresh.mark_current(Stage.ACCELERATION, rows, evaluated=False)
        return seen


def rollout_stepper(sim: Any) -> RolloutStepper | None:
    """Return a stepper for rollouts; None if each time step needs a call.

    None with force models, integrators, events or contact sensors, and without the
    compiled core.
    """
    worlds, forcing = worlds_of(sim), forcing_of(sim)
    is_plain = type(stepper_of(sim)) is MujocoStepper and not forcing.models
    if not is_plain or worlds.engine.compiled is None or worlds.engine.observers:
        return None
    found = RolloutStepper(worlds, forcing, sim.divergence)
    found.samples, found.fields = np.empty(0, np.int32), {}
    return found
