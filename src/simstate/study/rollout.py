"""Rollouts: steps of all worlds under controls of each time step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from simstate.engine.engine import MAX_VALUE
from simstate.simulation import Simulation
from simstate.step.rollout_stepper import RolloutStepper, rollout_stepper

Array = NDArray[Any]


def advance(sim: Simulation, controls: Tensor) -> None:
    """Advance all worlds under controls; shape (num_envs or 1, steps, nu).

    Worlds that diverge are marked.
    """
    host: Any = sim
    steps = controls.shape[1]
    stepper = _stepper(sim, controls)
    if stepper is not None:
        host._step_ahead(steps, stepper)
    elif steps and bool((controls == controls[:, :1]).all()):
        hold(sim, controls[:, 0], steps)
    else:
        for control in controls.unbind(dim=1):
            hold(sim, control, 1)


def hold(sim: Simulation, controls: Tensor, steps: int) -> None:
    """Advance all worlds under held controls; shape (num_envs or 1, nu)."""
    host: Any = sim
    sim.data.ctrl.copy_(controls)
    host._step_ahead(steps)


def record_fields(
    sim: Simulation, controls: Tensor, samples: Array, names: Iterable[str]
) -> dict[str, Array] | None:
    """Advance all worlds in one call, and return fields after some of the steps.

    Args:
        sim: the worlds; those that diverge are marked, and their samples are undefined.
        controls: controls of each time step; shape (num_envs or 1, steps, nu).
        samples: rising numbers of steps, from 1.
        names: "qpos", "qvel", "act" or "sensordata".

    Returns:
        The fields by name, shape (samples, num_envs, width); None if each step needs a
        call, and nothing was done.
    """
    stepper = _stepper(sim, controls)
    if stepper is None:
        return None
    host: Any = sim
    shape = len(samples), sim.num_envs
    found = {
        name: np.empty((*shape, getattr(host.data, name).shape[1])) for name in names
    }
    stepper.samples, stepper.fields = samples.astype(np.int32), found
    host._step_ahead(controls.shape[1], stepper)
    return found


def _stepper(sim: Simulation, controls: Tensor) -> RolloutStepper | None:
    """Return a stepper that takes all steps in one call; None: each needs its own.

    A step under controls that are huge or NaN diverges, also if their range clamps
    them.
    """
    stepper = rollout_stepper(sim)
    if stepper is None:
        return None
    stepper.controls = np.ascontiguousarray(controls.numpy(), np.float64)
    is_usable = np.abs(stepper.controls).max(initial=0.0) <= MAX_VALUE
    return stepper if is_usable else None
