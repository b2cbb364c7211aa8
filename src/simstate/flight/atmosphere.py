"""The state of the air by altitude: US Standard Atmosphere 1976, or an exponential.

Sources: U.S. Standard Atmosphere, 1976 (NOAA-S/T 76-1562): its layers to 86 km, table 8
for the molecular weight from 80 km on, table I for pressure and density above 86 km.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

import torch
from torch import Tensor

from simstate.base.checks import one_of
from simstate.flight.flight_table import AtmosphereForm, FlightTable, as_list
from simstate.math.elementwise import power
from simstate.step.forces.force_parameters import Numbers, Parameters

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost

AltitudeKind: TypeAlias = Literal["geometric", "geopotential"]

EARTH_RADIUS = 6356766.0
"""Earth radius of the standard, for geopotential altitudes [m]."""
GRAVITY = 9.80665
"""Gravity of the standard [m/s²]."""
GAS_CONSTANT = 8314.32
"""Gas constant R* of the standard [J/(kmol·K)]."""
MOLAR_MASS = 28.9644
"""Molar mass M₀ of air below 80 km [kg/kmol]."""
HEAT_RATIO = 1.4
"""Ratio of specific heats γ of air."""
HYDROSTATIC = GRAVITY * MOLAR_MASS / GAS_CONSTANT
"""g₀ M₀ / R* [K/m]."""

LAYERS = torch.tensor(
    [
        [0.0, 288.15, -6.5e-3],
        [11e3, 216.65, 0.0],
        [20e3, 216.65, 1.0e-3],
        [32e3, 228.65, 2.8e-3],
        [47e3, 270.65, 0.0],
        [51e3, 270.65, -2.8e-3],
        [71e3, 214.65, -2.0e-3],
    ],
    dtype=torch.float64,
)
"""Geopotential altitude of the base [m], temperature there [K], gradient [K/m]."""

MASS_RATIO = torch.tensor(
    [1.0, 0.999996, 0.999989, 0.999971, 0.999941, 0.999909, 0.999870, 0.999829,
     0.999786, 0.999741, 0.999694, 0.999641, 0.999579],
    dtype=torch.float64,
)  # fmt: skip
"""M/M₀ from 80 to 86 km geometric altitude, every 500 m."""

UPPER = torch.tensor(
    [
        [90e3, 1.8359e-1, 3.416e-6], [95e3, 7.5966e-2, 1.393e-6],
        [100e3, 3.2011e-2, 5.604e-7], [105e3, 1.4477e-2, 2.325e-7],
        [110e3, 7.1042e-3, 9.708e-8], [115e3, 4.0096e-3, 4.289e-8],
        [120e3, 2.5382e-3, 2.222e-8], [125e3, 1.7354e-3, 1.291e-8],
        [130e3, 1.2505e-3, 8.152e-9], [140e3, 7.2028e-4, 3.831e-9],
        [150e3, 4.5422e-4, 2.076e-9], [160e3, 3.0395e-4, 1.233e-9],
        [170e3, 2.121e-4, 7.815e-10], [180e3, 1.5271e-4, 5.194e-10],
        [200e3, 8.4736e-5, 2.541e-10], [230e3, 3.9276e-5, 1.029e-10],
        [250e3, 2.4767e-5, 6.073e-11], [300e3, 8.7704e-6, 1.916e-11],
        [350e3, 3.4498e-6, 7.014e-12], [400e3, 1.4518e-6, 2.803e-12],
        [450e3, 6.4468e-7, 1.184e-12], [500e3, 3.0236e-7, 5.215e-13],
        [550e3, 1.5137e-7, 2.384e-13], [600e3, 8.213e-8, 1.137e-13],
        [650e3, 4.8865e-8, 5.712e-14], [700e3, 3.1908e-8, 3.07e-14],
        [750e3, 2.2599e-8, 1.788e-14], [800e3, 1.7036e-8, 1.136e-14],
        [900e3, 1.0873e-8, 5.759e-15], [1000e3, 7.5138e-9, 3.561e-15],
    ],
    dtype=torch.float64,
)  # fmt: skip
"""Geometric altitude [m], pressure [Pa], density [kg/m³]."""

_TOP = 86e3
"""Top of the layers, geometric altitude [m]."""


@dataclass(frozen=True)
class AirState:
    """The state of the air at points; each of one shape."""

    temperature: Tensor
    """Temperature [K]."""
    pressure: Tensor
    """Pressure [Pa]."""
    density: Tensor
    """Density [kg/m³]."""

    @property
    def speed_of_sound(self) -> Tensor:
        """Speed of sound √(γ p / ρ) [m/s]; not meaningful above 86 km."""
        return (HEAT_RATIO * self.pressure / self.density).sqrt()

    @property
    def viscosity(self) -> Tensor:
        """Sutherland's dynamic viscosity [Pa·s]."""
        return 1.458e-6 * power(self.temperature, 1.5) / (self.temperature + 110.4)


class Atmosphere(Protocol):
    """The state of the air as a function of altitude [m].

    One that has a method `attach(sim)` is attached to the simulation that uses it.
    """

    def at(self, altitude: Tensor) -> AirState:
        """Return the state of the air at altitudes [m]; (..., num_envs)."""
        ...


class StandardAtmosphere:
    """US Standard Atmosphere 1976, from sea level to 1000 km.

    Below 86 km by the standard's layers. Above, the temperature is the standard's
    formula, pressure and density are exponentials through the values of its table
    (within 2 % of it between them), and beyond 1000 km the last exponential is used.

    Args:
        altitude: the kind of altitude passed to `at`: "geometric", above sea level, or
            "geopotential", in which the standard defines its layers (11 km geopotential
            are 11.019 km geometric).
        temperature_offset: added to the temperature at the same pressure, for a hot or
            cold day [K]; a number or (num_envs,).
        density_factor: a factor of the density; a number or (num_envs,).
    """

    def __init__(
        self,
        altitude: AltitudeKind = "geometric",
        temperature_offset: Numbers = 0.0,
        density_factor: Numbers = 1.0,
    ) -> None:
        one_of("kind of altitude", altitude, get_args(AltitudeKind))
        self.altitude: AltitudeKind = altitude
        self.parameters = Parameters("StandardAtmosphere")
        self.parameters.declare("temperature_offset", temperature_offset, unit="K")
        self.parameters.declare("density_factor", density_factor, at_least=0)
        self._pressures = _base_pressures()
        top = _low(torch.tensor(_TOP, dtype=torch.float64), self._pressures)
        first = torch.stack([torch.full_like(top[0], _TOP), *top[1:]])
        self._upper = torch.cat([first[None], UPPER])
        self._upper[:, 1:] = self._upper[:, 1:].log()

    def attach(self, sim: SteppingHost) -> None:
        """Give every world its row of the parameters."""
        self.parameters.attach(sim)
        self._pressures = self._pressures.to(sim.device)
        self._upper = self._upper.to(sim.device)

    @property
    def layers(self) -> Tensor:
        """Base [m], temperature [K], gradient [K/m] and pressure [Pa]; (7, 4)."""
        return torch.cat([LAYERS, self._pressures.cpu()[:, None]], dim=1)

    @property
    def above(self) -> Tensor:
        """Above 86 km: altitude [m] and logarithm of the density [kg/m³]; (n, 2)."""
        return self._upper.cpu()[:, [0, 2]]

    def compiled(self) -> AtmosphereForm | None:
        """Return it for the core; a subclass may compute something else."""
        given, table = self.parameters, FlightTable()
        if type(self).at is not StandardAtmosphere.at:
            return None
        layers, upper = self.layers, self._upper.cpu()
        table.add(float(self.altitude == "geopotential"), len(layers), len(upper))
        table.add(HYDROSTATIC, MOLAR_MASS / GAS_CONSTANT)
        for part in (layers, upper, MASS_RATIO):
            table.add(*as_list(part))
        numbers = [given["temperature_offset"], given["density_factor"], 0.0, 0.0]
        return AtmosphereForm(numbers, table)

    def at(self, altitude: Tensor | float) -> AirState:
        """Return the state of the air at altitudes [m], float64; (..., num_envs)."""
        height = torch.as_tensor(altitude, dtype=torch.float64)
        if self.altitude == "geopotential":
            height = geometric_altitude(height)
        found = _low(height.clamp(max=_TOP), self._pressures)
        is_high = height > _TOP
        if is_high.is_cuda or bool(is_high.any()):  # on a GPU, any() would synchronise
            high = _high(height.clamp(min=_TOP), self._upper)
            found = (
                torch.where(is_high, above, below)
                for above, below in zip(high, found, strict=True)
            )
        temperature, pressure, density = found
        warmer = temperature + self.parameters["temperature_offset"]
        density = density * self.parameters["density_factor"] * temperature / warmer
        return AirState(warmer, pressure, density)


class ExponentialAtmosphere:
    """Isothermal air: ρ = density · exp(−(altitude − base) / scale_height).

    Args:
        density: at the base [kg/m³]; a number or (num_envs,), as all arguments.
        scale_height: the scale height [m].
        base: altitude at which the density is given [m].
        temperature: the constant temperature [K].
    """

    def __init__(
        self,
        density: Numbers = 1.225,
        scale_height: Numbers = 8500.0,
        base: Numbers = 0.0,
        temperature: Numbers = 288.15,
    ) -> None:
        self.parameters = Parameters("ExponentialAtmosphere")
        declare = self.parameters.declare
        declare("density", density, unit="kg/m³", at_least=0)
        declare("scale_height", scale_height, unit="m", more_than=0)
        declare("base", base, unit="m")
        declare("temperature", temperature, unit="K", more_than=0)

    def attach(self, sim: SteppingHost) -> None:
        """Give every world its row of the parameters."""
        self.parameters.attach(sim)

    def compiled(self) -> AtmosphereForm | None:
        """Return it for the core; a subclass may compute something else."""
        if type(self).at is not ExponentialAtmosphere.at:
            return None
        names = ("density", "scale_height", "base", "temperature")
        return AtmosphereForm([self.parameters[name] for name in names])

    def at(self, altitude: Tensor | float) -> AirState:
        """Return the state of the air at altitudes [m], float64; (..., num_envs)."""
        given = self.parameters
        height = torch.as_tensor(altitude, dtype=torch.float64) - given["base"]
        above = height / given["scale_height"]
        density = given["density"] * torch.exp(-above)
        temperature = given["temperature"].expand_as(density)
        pressure = density * (GAS_CONSTANT / MOLAR_MASS) * temperature
        return AirState(temperature, pressure, density)


def geopotential_altitude(geometric: Tensor) -> Tensor:
    """Return the geopotential altitude [m] of a geometric one [m]."""
    return EARTH_RADIUS * geometric / (EARTH_RADIUS + geometric)


def geometric_altitude(geopotential: Tensor) -> Tensor:
    """Return the geometric altitude [m] of a geopotential one [m]."""
    return EARTH_RADIUS * geopotential / (EARTH_RADIUS - geopotential)


def _base_pressures() -> Tensor:
    """Return the pressures at the bases of the layers [Pa]; (7,)."""
    pressures = [101325.0]
    layers = [[float(x) for x in layer] for layer in LAYERS]
    for (low, warmth, gradient), (high, _, _) in itertools.pairwise(layers):
        if gradient:
            ratio = warmth / (warmth + gradient * (high - low))
            factor = ratio ** (HYDROSTATIC / gradient)
        else:
            factor = math.exp(-HYDROSTATIC * (high - low) / warmth)
        pressures.append(pressures[-1] * factor)
    return torch.tensor(pressures, dtype=torch.float64)


def _low(geometric: Tensor, pressures: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return temperature, pressure and density up to 86 km geometric altitude [m]."""
    height = geopotential_altitude(geometric)
    layers = LAYERS.to(height.device)
    layer = _interval(height, layers[1:, 0])
    base, warmth, gradient = layers[layer].unbind(-1)
    above = height - base
    molecular = warmth + gradient * above  # the molecular-scale temperature
    # ln(1 + x) / x → 1 for the isothermal layers.
    relative = gradient * above / warmth
    is_flat = relative == 0
    divisor = torch.where(is_flat, 1.0, relative)
    shape = torch.where(is_flat, 1.0, torch.log1p(relative) / divisor)
    pressure = pressures[layer] * torch.exp(-HYDROSTATIC * above / warmth * shape)
    density = pressure * MOLAR_MASS / (GAS_CONSTANT * molecular)
    return molecular * _mass_ratio(geometric), pressure, density


def _mass_ratio(geometric: Tensor) -> Tensor:
    """Return M/M₀ up to 86 km."""
    table = MASS_RATIO.to(geometric.device)
    place = ((geometric - 80e3) / 500.0).clamp(0.0, 12.0)
    left = place.floor().clamp(max=11.0).nan_to_num()  # an index, also of NaN
    index = left.long()
    return torch.lerp(table[index], table[index + 1], place - left)


def _high(geometric: Tensor, table: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return temperature, pressure and density above 86 km geometric altitude [m]."""
    right = _interval(geometric, table[:, 0])
    index = right.clamp(1, len(table) - 1) - 1
    low, high = table[index], table[index + 1]
    share = (geometric - low[..., 0]) / (high[..., 0] - low[..., 0])
    logs = torch.lerp(low[..., 1:], high[..., 1:], share[..., None])
    pressure, density = logs.exp().unbind(-1)
    return _high_temperature(geometric / 1e3), pressure, density


def _high_temperature(z: Tensor) -> Tensor:
    """Return the kinetic temperature [K] above 86 km; z: geometric altitude [km]."""
    ellipse = 263.1905 - 76.3232 * (1 - ((z - 91.0) / 19.9429) ** 2).clamp(min=0).sqrt()
    radius = EARTH_RADIUS / 1e3
    lifted = (z - 120.0) * (radius + 120.0) / (radius + z)
    exosphere = 1000.0 - 640.0 * torch.exp(-0.01875 * lifted)
    lower = torch.where(z < 91.0, 186.8673, ellipse)
    upper = torch.where(z < 120.0, 240.0 + 12.0 * (z - 110.0), exosphere)
    return torch.where(z < 110.0, lower, upper)


def _interval(x: Tensor, points: Tensor) -> Tensor:
    """Return the number of the ascending points that are ≤ x."""
    return torch.bucketize(x.contiguous(), points.contiguous(), right=True)
