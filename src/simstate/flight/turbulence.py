"""Continuous turbulence by MIL-F-8785C: Dryden and von Kármán, as processes.

The air's velocity is filtered white noise; the time constants of the filters are a
length divided by the airspeed. The states are scaled so that their variance does not
depend on speed, length or intensity, all of which may change during the flight.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from simstate.base.checks import one_of
from simstate.base.errors import InvalidInputError
from simstate.math.elementwise import power
from simstate.step.forces.force_parameters import Numbers
from simstate.step.processes import Process

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost

FOOT = 0.3048
"""One foot [m]."""
KNOT = 1852.0 / 3600.0
"""One knot [m/s]."""

Severity: TypeAlias = Literal["light", "moderate", "severe"]
WIND_AT_20_FEET: dict[Severity, float] = {
    "light": 15 * KNOT,
    "moderate": 30 * KNOT,
    "severe": 45 * KNOT,
}
"""The wind 20 feet (6 m) above ground by severity [m/s]."""

_ALTITUDES = torch.tensor(
    [500, 1750, 3750, 7500, 15000, 25000, 35000, 45000, 55000, 65000, 75000, 80000],
    dtype=torch.float64,
)
"""Altitudes of the table of intensities [ft]."""
_INTENSITIES: dict[Severity, tuple[float, ...]] = {
    "light": (6.6, 6.9, 7.4, 6.7, 4.6, 2.7, 0.4, 0, 0, 0, 0, 0),
    "moderate": (8.6, 9.6, 10.6, 10.1, 8.0, 6.6, 5.0, 4.2, 2.7, 0, 0, 0),
    "severe": (15.6, 17.6, 23.0, 23.6, 22.1, 20.0, 16.0, 15.1, 12.1, 7.9, 6.2, 5.1),
}
"""Root-mean-square velocities [ft/s] that are exceeded with probability 1e-2, 1e-3 and
1e-5, by altitude."""

Conditions: TypeAlias = Callable[[], tuple[Tensor, Tensor]]
"""Airspeed [m/s] and height above ground [m] of the aircraft; (num_envs,) each."""


@dataclass(frozen=True)
class _Scales:
    """Current parameters of the filters."""

    speed: Tensor
    """Airspeed, never zero [m/s]; (num_envs,)."""
    length: Tensor
    """Lengths of the turbulence along x, y, z [m]; (num_envs, 3)."""
    sigma: Tensor
    """Intensities of the turbulence along x, y, z [m/s]; (num_envs, 3)."""
    pitch_lag: Tensor
    """The time over which the wings average roll and pitch rates [s]; (num_envs,)."""
    yaw_lag: Tensor
    """The same for the yaw rate [s]; (num_envs,)."""


class Turbulence(Process):
    """Turbulent velocity and angular velocity of the air, along body axes.

    `FreeFlight.add_turbulence` adds it around one aircraft. Below 1000 ft above ground
    lengths and intensities are those of the wind at 20 ft, above 2000 ft those of the
    severity; in between they are interpolated. It starts from still air and becomes
    stationary within a few lengths of flight.

    Args:
        severity: "light", "moderate" or "severe".
        span: wing span, over which angular velocities are averaged [m]; a number or
            (num_envs,).
        wind_at_20_feet: the wind 6 m above ground [m/s]; None: that of the severity.
        intensity_factor: a factor of all intensities.
        name: the process's name, different for each aircraft.
    """

    length: float
    """The length above 2000 ft [m]."""
    sizes: tuple[int, int]
    """The number of states of a longitudinal and of a transverse filter."""

    def __init__(
        self,
        severity: Severity,
        span: Numbers,
        *,
        wind_at_20_feet: Numbers | None = None,
        intensity_factor: Numbers = 1.0,
        name: str = "turbulence",
    ) -> None:
        one_of("severity of turbulence", severity, get_args(Severity))
        along, across = self.sizes
        widths = (along, across, across, 1, 1, 1)
        self._parts = list(itertools.accumulate(widths))
        super().__init__(name, torch.zeros(self._parts[-1]))
        self.num_sources = 4
        declare = self.parameters.declare
        declare("span", span, unit="m", more_than=0)
        wind = WIND_AT_20_FEET[severity] if wind_at_20_feet is None else wind_at_20_feet
        declare("wind_at_20_feet", wind, unit="m/s", at_least=0)
        declare("intensity_factor", intensity_factor, at_least=0)
        self._table = torch.tensor(_INTENSITIES[severity], dtype=torch.float64)
        self.conditions: Conditions | None = None

    @abstractmethod
    def longitudinal(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the filter along the flight: drift, input and output, in units T."""

    @abstractmethod
    def transverse(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the filter across the flight, likewise."""

    def attach(self, sim: SteppingHost) -> None:
        """Create the states of all worlds."""
        if self.conditions is None:
            raise InvalidInputError(
                "Turbulence needs the airspeed and the height of an aircraft: use "
                "FreeFlight.add_turbulence, or set its `conditions` to a function "
                "that returns them.",
                name="conditions",
            )
        super().attach(sim)
        self._table = self._table.to(sim.device)
        self._filters = [
            tuple(part.to(sim.device) for part in filter_)
            for filter_ in (self.longitudinal(), self.transverse(), self.transverse())
        ]

    @property
    def velocity_b(self) -> Tensor:
        """Velocity of the turbulent air, body axes [m/s]; (num_envs, 3)."""
        return self._scales().sigma * self._outputs()

    @property
    def ang_vel_b(self) -> Tensor:
        """Angular velocity of the turbulent air, body axes [rad/s]; (num_envs, 3)."""
        now, span = self._scales(), self.parameters["span"]
        roll, mean_w, mean_v = self.value[:, self._parts[2] :].unbind(-1)
        # The spectrum of p is first order, and its variance follows from its integral.
        length, sigma = now.length[:, 2], now.sigma
        reach = torch.pi * length / (4 * span)
        variance = 0.1 * torch.pi**2 / (span * length) * power(reach, 1 / 3)
        p = sigma[:, 2] * variance.sqrt() * roll
        _, v, w = self._outputs().unbind(-1)
        # In air that rotates as a rigid body, q = −∂w/∂x and r = ∂v/∂x.
        q = -sigma[:, 2] * (w - mean_w) / (now.pitch_lag * now.speed)
        r = sigma[:, 1] * (v - mean_v) / (now.yaw_lag * now.speed)
        return torch.stack([p, q, r], dim=-1)

    def rate(self, t: Tensor, sim: SteppingHost) -> Tensor:
        """Return the drift of all filters; (num_envs, width)."""
        del t, sim
        now = self._scales()
        rates = [
            state @ drift.T * (now.speed / now.length[:, k])[:, None]
            for k, (state, (drift, _, _)) in enumerate(
                zip(self._velocities(), self._filters, strict=True)
            )
        ]
        _, v, w = self._outputs().unbind(-1)
        roll, mean_w, mean_v = self.value[:, self._parts[2] :].unbind(-1)
        slow = [
            -roll / now.pitch_lag,
            (w - mean_w) / now.pitch_lag,
            (v - mean_v) / now.yaw_lag,
        ]
        return torch.cat([*rates, torch.stack(slow, dim=-1)], dim=1)

    def diffusion(self, t: Tensor, sim: SteppingHost) -> Mapping[str, Tensor]:
        """Return the effect of one source for each velocity, and of the roll rate's."""
        del t, sim
        now = self._scales()
        moved = self.value.new_zeros(self.value.shape[0], 4, self.value.shape[1])
        first = 0
        for k, (_, push, _) in enumerate(self._filters):
            root = (now.speed / now.length[:, k]).sqrt()[:, None]
            moved[:, k, first : self._parts[k]] = root * push
            first = self._parts[k]
        moved[:, 3, self._parts[2]] = (2 / now.pitch_lag).sqrt()
        return {self.name: moved}

    def _velocities(self) -> tuple[Tensor, Tensor, Tensor]:
        a, b, c = self._parts[:3]
        return self.value[:, :a], self.value[:, a:b], self.value[:, b:c]

    def _outputs(self) -> Tensor:
        """Return the velocities in units of their intensities; (num_envs, 3)."""
        filters = zip(self._velocities(), self._filters, strict=True)
        return torch.stack([state @ out for state, (_, _, out) in filters], dim=-1)

    def _scales(self) -> _Scales:
        """Return the parameters of the filters at the aircraft's speed and height."""
        assert self.conditions is not None
        speed, height = (part.double() for part in self.conditions())
        speed = speed.clamp(min=0.1)
        feet = height / FOOT
        near = feet.clamp(10.0, 1000.0)
        shape = 0.177 + 0.000823 * near
        level = near / power(shape, 1.2)
        low_length = torch.stack([level, level, near], dim=-1) * FOOT
        vertical = 0.1 * self.parameters["wind_at_20_feet"]
        level = vertical / power(shape, 0.4)
        low_sigma = torch.stack([level, level, vertical], dim=-1)
        high_sigma = (_interpolate(feet, self._table) * FOOT)[:, None].expand(-1, 3)
        share = ((feet - 1000.0) / 1000.0).clamp(0.0, 1.0)[:, None]
        length = low_length + share * (self.length - low_length)
        sigma = low_sigma + share * (high_sigma - low_sigma)
        sigma = sigma * self.parameters["intensity_factor"][:, None]
        crossing = self.parameters["span"] / (torch.pi * speed)
        return _Scales(speed, length, sigma, 4 * crossing, 3 * crossing)


class DrydenTurbulence(Turbulence):
    """Dryden's spectra, which linear filters match exactly; see `Turbulence`."""

    length = 1750 * FOOT
    sizes = (1, 2)

    def longitudinal(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the filter 1 / (1 + T s)."""
        return _tensors([[-1.0]], [2**0.5], [1.0])

    def transverse(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return (1 + √3 T s) / (1 + T s)², as two first-order filters in series."""
        output = [(3 / 2) ** 0.5, (1 - 3**0.5) / 2**0.5]
        return _tensors([[-1.0, 0.0], [1.0, -1.0]], [2**0.5, 0.0], output)


class VonKarmanTurbulence(Turbulence):
    """Von Kármán's spectra, approximated by the usual rational filters.

    The spectra have fractional powers, which no linear filter has. Up to ten times V/L
    the filters are within 5 % of them, at fifty times a fifth to a third below. See
    `Turbulence`.
    """

    length = 2500 * FOOT
    sizes = (2, 3)

    def longitudinal(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return (1 + 0.25 T s) / (1 + 1.357 T s + 0.1987 T² s²)."""
        return _canonical((1.0, 1.357, 0.1987), (1.0, 0.25), 2**0.5)

    def transverse(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the transverse filter, of second over third order in T s."""
        below = (1.0, 2.9958, 1.9754, 0.1539)
        return _canonical(below, (1.0, 2.7478, 0.3398), 1.0)


def _canonical(
    below: tuple[float, ...], above: tuple[float, ...], gain: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the filter gain · Σ above_k sᵏ / Σ below_k sᵏ, in controllable form."""
    order = len(below) - 1
    drift = [[1.0 if j == i + 1 else 0.0 for j in range(order)] for i in range(order)]
    drift[-1] = [-value / below[-1] for value in below[:-1]]
    push = [0.0] * (order - 1) + [gain / below[-1]]
    return _tensors(drift, push, [*above, *[0.0] * (order - len(above))])


def _tensors(
    drift: list[list[float]], push: list[float], output: list[float]
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        torch.tensor(drift, dtype=torch.float64),
        torch.tensor(push, dtype=torch.float64),
        torch.tensor(output, dtype=torch.float64),
    )


def _interpolate(feet: Tensor, table: Tensor) -> Tensor:
    """Return the table's values interpolated at altitudes [ft], clamped at its ends."""
    points = _ALTITUDES.to(feet.device)
    x = feet.clamp(float(points[0]), float(points[-1]))
    left = (
        torch.bucketize(x.contiguous(), points, right=True).clamp(1, len(points) - 1)
        - 1
    )
    share = (x - points[left]) / (points[left + 1] - points[left])
    return torch.lerp(table[left], table[left + 1], share)
