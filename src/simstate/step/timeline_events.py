"""Events: zero crossings of functions of the state, and their actions.

The time of a crossing is computed in each world separately; the action runs at that
instant, between two parts of a step, for the worlds that crossed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simstate.base.checks import (
    check_called_as,
    has_shape,
    instance_of,
    number,
    one_of,
)
from simstate.base.errors import InvalidInputError
from simstate.world import Ledger
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost

Direction: TypeAlias = Literal["rising", "falling", "both"]
EventFunction: TypeAlias = Callable[[Any], Tensor]
"""`function(sim)` returns a number for each world, which crosses zero, or a bool, which
rises when it becomes True; (num_envs,)."""
Action: TypeAlias = Callable[[Any, Tensor], object]
"""`action(sim, env_ids)` at the instant of a crossing, for the worlds that crossed."""


_ROUNDING = 1e-9
"""Samples of a task are due this fraction of a period earlier: times are rounded."""


class Event:
    """A zero crossing that is searched for in every step; see `sim.add_event`."""

    def __init__(
        self,
        sim: SteppingHost,
        function: EventFunction,
        direction: Direction,
        terminal: bool,
        action: Action | None,
        name: str,
        tolerance: float,
    ) -> None:
        one_of("direction", direction, get_args(Direction))
        check_called_as("The function of an event", function, "sim", name="function")
        if action is not None:
            what = "The action of an event"
            check_called_as(what, action, "sim", "env_ids", name="action")
        number("tolerance", tolerance, more_than=0, unit="s")
        self.name = name
        self.function, self.action = function, action
        self.direction, self.terminal = direction, terminal
        self.tolerance = tolerance
        self._sim = sim
        memory = worlds_of(sim).ledger.memory
        self.count: Tensor = memory(
            f"event/{name}/count", (), torch.int64, 0, moves=True, optional=True
        ).tensor
        """Number of occurrences since the reset; (num_envs,)."""
        self.time: Tensor = memory(
            f"event/{name}/time", (), torch.float64, math.nan, moves=True,
            optional=True, unit="s",
        ).tensor  # fmt: skip
        """Time of the last occurrence [s], NaN if there is none; (num_envs,)."""
        self.side: Tensor = memory(
            f"event/{name}/side", (), torch.int64, 0, moves=True, optional=True
        ).tensor
        """The last sign of the function, 0 if unknown; (num_envs,)."""

    def values(self, ids: Tensor) -> Tensor:
        """Return the function, checked in some worlds; float64, (num_envs,)."""
        values = self.function(self._sim)
        what = f"The function of event {self.name!r}"
        has_shape(what, values, (self._sim.num_envs,))
        values = torch.as_tensor(values, device=self._sim.device)
        if values.dtype == torch.bool:  # it crosses zero where it changes
            values = 2 * values.int() - 1
        values = values.detach().to(torch.float64, copy=True)  # it may be a view
        bad = values[ids].isnan()
        if bool(bad.any()):
            world = int(ids[bad][0])
            qpos = worlds_of(self._sim).engine.field("qpos")[world]
            if bool(qpos.isfinite().all()):  # else the step reports the divergence
                raise InvalidInputError(
                    f"The function of event {self.name!r} is NaN in world {world}.",
                    name=self.name,
                    worlds=[world],
                )
        return values

    def quiet_values(self) -> NDArray[np.float64] | None:
        """Return the function if it has its last sign in all worlds, else None.

        On the host only, where NumPy's calls cost less than torch's; (num_envs,).
        """
        given: Any = self.function(self._sim)
        if not isinstance(given, Tensor) or given.shape != self.side.shape:
            return None  # `values` raises
        copied = given.detach().to("cpu", torch.float64, copy=True)  # of a view perhaps
        values: NDArray[np.float64] = copied.numpy()
        if given.dtype == torch.bool:
            values = 2 * values - 1
        return values if (values * self.side.numpy() > 0).all() else None

    def arm(self, values: Tensor, ids: Tensor) -> None:
        """Record the signs from which the next crossing is detected."""
        sign = values[ids].nan_to_num().sign().long()
        self.side[ids] = torch.where(sign != 0, sign, self.side[ids])

    @property
    def before(self) -> int:
        """The sign before a crossing: 1 falling, −1 rising, 0 either."""
        return {"rising": -1, "falling": 1}.get(self.direction, 0)

    def crossed(self, values: Tensor) -> Tensor:
        """Return the worlds that have crossed zero in the event's direction."""
        beyond = values * self.side < 0
        return beyond & (self.side == self.before) if self.before else beyond


class PeriodicTask:
    """A function that runs periodically, like a task of flight software."""

    def __init__(
        self,
        sim: SteppingHost,
        function: Action,
        period: float,
        offset: float,
        name: str,
    ) -> None:
        check_called_as("A task", function, "sim", "env_ids", name="function")
        number("period", period, more_than=0, unit="s")
        number("offset", offset, unit="s")
        self.name, self.function = name, function
        self.period, self.offset = float(period), float(offset)
        self.last: Tensor = (
            worlds_of(sim)
            .ledger.memory(
                f"task/{name}/last", (), torch.int64, -1, moves=True, optional=True
            )
            .tensor
        )
        """The index of the last sample taken, −1 if none; (num_envs,)."""
        on_host = self.last.device.type == "cpu"
        self._taken = self.last.numpy() if on_host else np.zeros(0)

    def sample(self, time: Tensor) -> Tensor:
        """Return the index of the last sample up to a time [s], −1 before the first."""
        sample = ((time.double() - self.offset) / self.period + _ROUNDING).floor()
        return sample.clamp(min=-1).long()

    def is_due(self, sample: Tensor) -> Tensor:
        """Return the worlds in which a sample has not been taken yet; (num_envs,)."""
        return (sample != self.last) & (sample >= 0)

    def quiet_steps(self, time: NDArray[np.float64], h: NDArray[np.float64]) -> int:
        """Return the number of steps of h [s] before the next sample is due.

        0 if a sample is due now; on the host only.
        """
        at = (time - self.offset) / self.period
        sample = np.floor(at + _ROUNDING)
        is_taken = (sample == self._taken) | (sample < 0)
        left = sample + (1 + _ROUNDING) - at
        if not is_taken.all():
            return 0
        return int((left * self.period / h).min())

    def until_next(self, time: Tensor) -> Tensor:
        """Return the time to the next sample [s]; (num_envs,)."""
        following = (self.sample(time) + 1).double() * self.period + self.offset
        return following - time.double()


def free_name(ledger: Ledger, kind: str, name: str | None, function: object) -> str:
    """Return a unique name for an event or a task."""
    if name is None:
        name = str(getattr(function, "__name__", type(function).__name__))
    instance_of(f"The name of this {kind}", name, str)
    wanted, count = name, 1
    probe = "count" if kind == "event" else "last"
    while f"{kind}/{name}/{probe}" in ledger:
        count += 1
        name = f"{wanted} {count}"
    return name


def check_multiple(what: str, value: float, timestep: float) -> None:
    """Raise unless a time is a multiple of the time step."""
    if abs(value / timestep - round(value / timestep)) > 1e-6:
        raise InvalidInputError(
            f"Stochastic schemes cannot divide a time step: {what} must be a multiple "
            f"of {timestep:g} s, got {value:g}.",
            name=what,
        )
