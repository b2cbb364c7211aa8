"""drive: step worlds under the controls of a planner, which plans repeatedly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from simstate.base.checks import check_called_as, number, whole_number
from simstate.study.scratch_worlds import is_env, sim_of


class Planner(Protocol):
    """Chooses controls by looking ahead."""

    hold: int
    """Time steps for which a simulation holds each control."""

    def plan(self, target: Any) -> Tensor:
        """Return controls of each world; the worlds are unchanged.

        Shape (num_envs, steps, nu) of a simulation, one for each time step, or
        (num_envs, steps, action_dim) of an environment.
        """
        ...


@dataclass(frozen=True)
class Driven:
    """Results of `drive`."""

    plans: int
    """Number of plans that were made."""
    rewards: Tensor
    """Reward of each step of an environment; (steps, num_envs), else (0, num_envs)."""


def drive(
    target: Any,
    planner: Planner,
    seconds: float,
    *,
    replan: int = 1,
    after_step: Callable[[], object] | None = None,
) -> Driven:
    """Step a simulation or an environment under the controls of a planner.

    Args:
        target: the Simulation or Env, which moves.
        planner: plans from the current state of each world.
        seconds: simulated time [s].
        replan: number of controls that are applied before the next plan.
        after_step: called without arguments after each control.
    """
    plan = getattr(planner, "plan", None)
    check_called_as("planner.plan", plan, "target", name="planner")
    if after_step is not None:
        check_called_as("after_step", after_step, name="after_step")
    number("seconds", seconds, more_than=0, unit="s")
    whole_number("replan", replan, 1)
    sim, is_task = sim_of(target), is_env(target)
    hold = 1 if is_task else planner.hold
    step_dt: float = target.step_dt if is_task else sim.timestep * hold
    controls, plans = torch.empty(0), 0
    rewards: list[Tensor] = []
    for k in range(max(1, round(seconds / step_dt))):
        at = k % replan
        if at == 0:
            controls, plans = planner.plan(target), plans + 1
        now = controls[:, min(at * hold, controls.shape[1] - 1)]
        if is_task:
            rewards.append(target.step(now.to(target.dtype))[1])
        else:
            sim.data.ctrl.copy_(now)
            sim.step(hold)
        if after_step is not None:
            after_step()
    empty = torch.empty(0, sim.num_envs)
    return Driven(plans, torch.stack(rewards) if rewards else empty)
