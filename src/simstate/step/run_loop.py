"""Runs: advance worlds to a time, or to an earlier terminal event."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simstate.base.checks import check_finite
from simstate.base.errors import InvalidInputError
from simstate.base.ids import int_list
from simstate.step.forces.force_parameters import by_world, numbers
from simstate.step.stepper_stack import StepperStack
from simstate.step.stepping_host import SteppingHost
from simstate.step.timeline import Timeline
from simstate.world.worlds import worlds_of


@dataclass(frozen=True)
class RunResult:
    """The end of a run; tensors have the shape (num_envs,)."""

    time: Tensor
    """The time that each world has reached [s]."""
    ended: Tensor
    """Mask of the worlds stopped by a terminal event; bool."""
    happened: dict[str, Tensor]
    """Number of occurrences of each event in the run, by its name."""


def run_until(
    sim: SteppingHost, steppers: StepperStack, goal: Tensor, rows: Tensor
) -> RunResult:
    """Advance worlds to a goal [s], or to an earlier terminal event."""
    _check_ahead(sim, goal, rows)
    is_free = "opt.timestep" not in worlds_of(sim).engine.expanded
    if is_free and steppers.top is not steppers.timeline:
        _run_steps(sim, goal, rows)
    ended = torch.zeros_like(sim.diverged)
    if not len(_going(sim, goal, ended, rows)):
        return RunResult(sim.time.double().clone(), ended, {})
    return _run_timeline(sim, steppers.get_timeline(), goal, rows)


def times_of(sim: SteppingHost, what: str, times: float | Tensor) -> Tensor:
    """Return a finite time for each world [s], float64; (num_envs,)."""
    values = by_world(sim, what, numbers(times, what))
    check_finite(values, what, after="")
    return values


def _run_steps(sim: SteppingHost, goal: Tensor, rows: Tensor) -> None:
    """Take all complete time steps before a goal [s]."""
    none = torch.zeros_like(sim.diverged)
    while len(going := _going(sim, goal, none, rows)):
        left = float((goal - sim.time.double())[going].min())
        n = min(int(left / sim.timestep + 1e-9), 1000)
        if n < 1:
            return
        sim.step(n, going)


def _run_timeline(
    sim: SteppingHost, timeline: Timeline, goal: Tensor, rows: Tensor
) -> RunResult:
    """Advance worlds to a goal [s], one time step at a time, cut at events.

    A complete step of all worlds needs no limit: the timeline then takes it in one call
    of the stepper if nothing happens in it.
    """
    ended = torch.zeros_like(sim.diverged)
    counts = [event.count.clone() for event in timeline.events]
    while len(going := _going(sim, goal, ended, rows)):
        left = goal - sim.time.double()
        is_all = len(going) == sim.num_envs
        if is_all and bool((left >= timeline.timesteps()).all()):
            sim.step()
        else:
            sim.step(1, going, until=goal)
        ended = ended | timeline.stopped
    happened = {
        event.name: event.count - before
        for event, before in zip(timeline.events, counts, strict=True)
    }
    return RunResult(sim.time.double().clone(), ended, happened)


def _check_ahead(sim: SteppingHost, goal: Tensor, rows: Tensor) -> None:
    """Raise if the goal of a world [s] is in its past."""
    time = sim.time.double()
    past = rows[((goal < time - _rounding(sim, goal)) & ~sim.diverged)[rows]]
    if not len(past):
        return
    world = int(past[0])
    raise InvalidInputError(
        f"sim.run(until={float(goal[world]):.9g}) is in the past of world {world}, "
        f"which is at t = {float(time[world]):.9g} s: `until` is a simulation time, "
        "not a duration. For a duration use until=sim.time + duration.",
        worlds=int_list(past),
        name="until",
    )


def _going(sim: SteppingHost, goal: Tensor, ended: Tensor, rows: Tensor) -> Tensor:
    """Return the worlds among `rows` that have not reached the goal [s]; (n,)."""
    left = goal - sim.time.double()
    return rows[((left > _rounding(sim, goal)) & ~ended & ~sim.diverged)[rows]]


def _rounding(sim: SteppingHost, goal: Tensor) -> Tensor:
    """Return the differences of times [s] that are due to rounding; (num_envs,)."""
    return 1e-9 * sim.timestep + 4 * torch.finfo(sim.time.dtype).eps * goal.abs()
