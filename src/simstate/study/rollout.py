"""Rollouts: steps of all worlds under controls of each time step."""

from __future__ import annotations

from collections.abc import Sequence
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
    elif bool((controls == controls[:, :1]).all()):
        hold(sim, controls[:, 0], steps)
    else:
        for control in controls.unbind(dim=1):
            hold(sim, control, 1)


def hold(sim: Simulation, controls: Tensor, steps: int) -> None:
    """Advance all worlds under held controls; shape (num_envs or 1, nu)."""
    host: Any = sim
    sim.data.ctrl.copy_(controls)
    host._step_ahead(steps)


def sampled_fields(
    sim: Simulation, controls: Tensor, samples: Sequence[int], names: Sequence[str]
) -> dict[str, Array]:
    """Advance all worlds, and return fields after some of the steps.

    Args:
        sim: the worlds; those that diverge are marked, and their samples are undefined.
        controls: controls of each time step; shape (num_envs or 1, steps, nu).
        samples: rising numbers of steps, from 1.
        names: "qpos", "qvel", "act" or "sensordata".

    Returns:
        The fields by name; shape (samples, num_envs, width).
    """
    data: Any = sim.data
    widths = {name: getattr(data, name).shape[1] for name in names}
    shape = len(samples), sim.num_envs
    found = {name: np.empty((*shape, width)) for name, width in widths.items()}
    stepper = _stepper(sim, controls)
    if stepper is not None:
        host: Any = sim
        stepper.samples, stepper.fields = np.array(samples, np.int32), found
        host._step_ahead(controls.shape[1], stepper)
        return found
    here = 0
    for k, sample in enumerate(samples):
        advance(sim, controls[:, here:sample])
        here = sample
        for name, values in found.items():
            values[k] = getattr(data, name).cpu().numpy()
    if here < controls.shape[1]:
        advance(sim, controls[:, here:])
    return found


def _stepper(sim: Simulation, controls: Tensor) -> RolloutStepper | None:
    """Return a stepper that takes all steps in one call; None: each needs its own.

    A step under huge controls diverges, also if their range clamps them.
    """
    stepper = rollout_stepper(sim)
    if stepper is None:
        return None
    stepper.controls = controls.numpy()
    is_huge = np.abs(stepper.controls).max(initial=0.0) > MAX_VALUE
    return None if is_huge else stepper
