"""Pulse-width modulation of thrusters that are on or off."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from simstate.base.checks import has_shape, number, one_of
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Values
from simstate.math.conventions.checked_values import as_tensor

Below: TypeAlias = Literal["off", "least"]
"""Treatment of a pulse below the minimum: none, or the shortest pulse."""


def pulses(
    duty: Values,
    period: float,
    timestep: float,
    min_on_time: float = 0.0,
    below: Below = "off",
) -> Tensor:
    """Return throttles of each time step of a control period.

    The shape is (steps, num_envs, thrusters). A thruster is fully on from the period's
    start for duty · period seconds. The throttle of the time step in which it turns off
    is the remaining fraction, so the impulse is exact. Write row k to `ctrl` before
    step k:

        for throttle in pulses(duty, period, sim.timestep, min_on_time=0.02):
            entity.write_ctrl_to_sim(throttle, jets)
            sim.step()

    Args:
        duty: fraction of the period that each is on, 0 to 1; (num_envs, thrusters).
        period: period of the controller, an integer multiple of the time step [s].
        timestep: time step of the simulation [s].
        min_on_time: shortest pulse of the valve [s]; times the thrust, the minimum
            impulse.
        below: treatment of shorter pulses: "off", or "least", which extends those of at
            least half the shortest pulse to it.
    """
    one_of("pulse that is too short", below, get_args(Below))
    number("period", period, more_than=0, unit="s")
    number("timestep", timestep, more_than=0, unit="s")
    steps = round(period / timestep)
    if steps < 1 or not math.isclose(steps * timestep, period, rel_tol=1e-9):
        raise InvalidInputError(
            f"period must be an integer multiple of the time step, got {period:g} s "
            f"and {timestep:g} s.",
            name="period",
        )
    number("min_on_time", min_on_time, at_least=0, at_most=period, unit="s")
    duty = as_tensor(duty.double() if isinstance(duty, Tensor) else duty, "duty")
    has_shape("duty", duty, ("num_envs", "thrusters"))
    on = duty * period
    short = on < min_on_time * (1 - 1e-12)
    if below == "least":
        least = torch.where(on >= 0.5 * min_on_time, min_on_time, 0.0)
        on = torch.where(short, least, on)
    else:
        on = torch.where(short, 0.0, on)
    starts = torch.arange(steps, device=duty.device, dtype=torch.float64) * timestep
    share = (on[None] - starts[:, None, None]) / timestep
    return share.clamp(0.0, 1.0).to(duty.dtype)
