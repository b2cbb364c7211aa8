"""Thrusters that are on or off: commands as pulses of a least length."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from simstate.base.checks import check_finite, instance_of, number, one_of
from simstate.base.errors import InvalidInputError

Below: TypeAlias = Literal["off", "least"]
"""Treatment of a pulse below the minimum: none, or the shortest pulse."""


def pulses(
    duty: Tensor,
    period: float,
    timestep: float,
    min_on_time: float = 0.0,
    below: Below = "off",
) -> Tensor:
    """Throttles for each time step of a control period; (steps, num_envs, thrusters).

    A thruster is fully on from the period's start for duty · period seconds. The time
    step in which it ends gets the fraction that is left, so the impulse is exact. Write
    row k to `ctrl` before step k:

        for throttle in pulses(duty, period, sim.timestep, min_on_time=0.02):
            entity.write_ctrl_to_sim(throttle, jets)
            sim.step()

    Args:
        duty: the share of the period that each is on, 0 to 1; (num_envs, thrusters).
        period: of the controller, a whole number of time steps [s].
        timestep: of the simulation [s].
        min_on_time: the shortest pulse that the valve makes [s]; times the thrust it is
            the least impulse.
        below: what becomes of shorter ones: "off", or the "least" pulse for those of at
            least half its length.
    """
    one_of("pulse that is too short", below, get_args(Below))
    number("period", period, more_than=0, unit="s")
    number("timestep", timestep, more_than=0, unit="s")
    steps = round(period / timestep)
    if steps < 1 or not math.isclose(steps * timestep, period, rel_tol=1e-9):
        raise InvalidInputError(
            f"period must be a whole number of time steps, got {period:g} s and "
            f"{timestep:g} s.",
            name="period",
        )
    number("min_on_time", min_on_time, at_least=0, at_most=period, unit="s")
    check_finite(instance_of("duty", duty, Tensor), "duty", after="")
    on = duty.double().clamp(0.0, 1.0) * period
    short = on < min_on_time * (1 - 1e-12)
    if below == "least":
        least = torch.where(on >= 0.5 * min_on_time, min_on_time, 0.0)
        on = torch.where(short, least, on)
    else:
        on = torch.where(short, 0.0, on)
    starts = torch.arange(steps, device=duty.device, dtype=torch.float64) * timestep
    share = (on[None] - starts[:, None, None]) / timestep
    return share.clamp(0.0, 1.0).to(duty.dtype)
