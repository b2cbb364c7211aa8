"""FlightState: the state of an aircraft and of the air around it at one instant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.flight.air import Air
from simstate.flight.atmosphere import AirState
from simstate.flight.controls import Controls
from simstate.math.conventions.rotations import R_to_quat_wxyz, angles_from_passive
from simstate.math.conventions.wind_angles import Definition, wind_angles
from simstate.math.vector import apply, norm

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class FlightState:
    """An aircraft in all worlds at one instant; the first dimension is num_envs.

    E is Earth axes and the Earth frame, Eo its origin, BP1 the aircraft's own body
    axes; these names are Ptera Software's, with angles in degrees. In addition there
    are plain names (`ang_vel_b`, `alpha`, …), with angles in radians. A recorded state
    has the instants as its first dimension: (num_states, num_envs, …).
    """

    position_E_Eo: Tensor
    """Position of the Cg, Earth axes, from the Earth origin [m]; (…, 3)."""
    R_pas_E_to_BP1: Tensor
    """Attitude: r_B = R @ r_E; (…, 3, 3)."""
    velocity_E__E: Tensor
    """Velocity of the Cg, Earth axes [m/s]; (…, 3)."""
    omegas_BP1__E: Tensor
    """Angular velocity, body axes [deg/s]; (…, 3)."""
    time: Tensor
    """Simulation time [s]; (…)."""
    wind_e: Tensor
    """Velocity of the air at the Cg, gusts included, Earth axes [m/s]; (…, 3)."""
    gust_ang_vel_b: Tensor
    """Angular velocity of the air at the Cg, body axes [rad/s]; (…, 3)."""
    controls: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    """Positions of the controls by name, in their units; (…)."""
    control_rates: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    """Rates of the controls with a lag [unit/s]; (…)."""
    air: Air | AirSample | None = field(default=None, repr=False, compare=False)
    """The air that it flies in, or a sample of it."""

    @property
    def R_pas_BP1_to_E(self) -> Tensor:
        """Attitude the other way, MuJoCo's xmat: r_E = R @ r_B; (…, 3, 3)."""
        return self.R_pas_E_to_BP1.mT

    # Names of the earlier free-flight document, for one aircraft.

    @property
    def position_E_E(self) -> Tensor:
        """Position of the Cg, the earlier name of position_E_Eo [m]; (…, 3)."""
        return self.position_E_Eo

    @property
    def omegas_B__E(self) -> Tensor:
        """Angular velocity, body axes, the earlier omegas_BP1__E [deg/s]; (…, 3)."""
        return self.omegas_BP1__E

    @property
    def R_pas_B_to_E(self) -> Tensor:
        """MuJoCo's xmat, the earlier name of R_pas_BP1_to_E; (…, 3, 3)."""
        return self.R_pas_BP1_to_E

    @property
    def quat_act_E_to_BP1_wxyz(self) -> Tensor:
        """The turn from Earth to body axes, MuJoCo's qpos[3:7], w ≥ 0; (…, 4)."""
        return R_to_quat_wxyz(self.R_pas_BP1_to_E)

    @property
    def omegas_E__E(self) -> Tensor:
        """Angular velocity, Earth axes [deg/s]; (…, 3)."""
        return apply(self.R_pas_BP1_to_E, self.omegas_BP1__E)

    @property
    def velocity_BP1__E(self) -> Tensor:
        """Velocity of the Cg, body axes [m/s]; (…, 3)."""
        return apply(self.R_pas_E_to_BP1, self.velocity_E__E)

    @property
    def angles_E_to_BP1_izyx(self) -> Tensor:
        """Roll, pitch and yaw, each in (−180, 180] [deg]; (…, 3)."""
        return angles_from_passive(self.R_pas_E_to_BP1, "izyx")

    @property
    def roll_pitch_yaw(self) -> Tensor:
        """Roll, pitch and yaw, each in (−π, π] [rad]; (…, 3)."""
        return angles_from_passive(self.R_pas_E_to_BP1, "izyx", "rad")

    @property
    def ang_vel_b(self) -> Tensor:
        """Angular velocity, body axes [rad/s]; (…, 3)."""
        return torch.deg2rad(self.omegas_BP1__E)

    @cached_property
    def air_vel_b(self) -> Tensor:
        """Velocity of the Cg relative to the air, body axes [m/s]; (…, 3)."""
        return apply(self.R_pas_E_to_BP1, self.velocity_E__E - self.wind_e)

    @property
    def air_ang_vel_b(self) -> Tensor:
        """Angular velocity relative to the air, body axes [rad/s]; (…, 3)."""
        return self.ang_vel_b - self.gust_ang_vel_b

    @cached_property
    def airspeed(self) -> Tensor:
        """True airspeed [m/s]; (…)."""
        return norm(self.air_vel_b)[..., 0]

    @property
    def alpha(self) -> Tensor:
        """Angle of attack relative to the air, atan2(w, u) [rad]; (…)."""
        return wind_angles(self.air_vel_b, "stevens", "rad")[0]

    @property
    def beta(self) -> Tensor:
        """Sideslip angle relative to the air, asin(v/V) [rad]; (…)."""
        return wind_angles(self.air_vel_b, "stevens", "rad")[1]

    @property
    def altitude(self) -> Tensor:
        """Altitude of the Cg above sea level [m]; (…)."""
        return self._sample.altitude

    @property
    def air_state(self) -> AirState:
        """Temperature, pressure and density of the air at the Cg; (…) each."""
        return self._sample.state

    @property
    def density(self) -> Tensor:
        """Density of the air [kg/m³]; (…)."""
        return self.air_state.density

    @property
    def dynamic_pressure(self) -> Tensor:
        """Dynamic pressure ½ ρ V², with the airspeed V [Pa]; (…)."""
        return 0.5 * self.density * self.airspeed.square()

    @property
    def mach(self) -> Tensor:
        """Mach number of the airspeed; (…)."""
        return self.airspeed / self.air_state.speed_of_sound

    def wind_angles(self, definition: Definition = "stevens") -> tuple[Tensor, Tensor]:
        """Return angle of attack and sideslip relative to the air [deg]; (…)."""
        return wind_angles(self.air_vel_b, definition)

    def __getitem__(self, index: int | slice | Tensor) -> FlightState:
        """Return some worlds or, of a recorded state, some instants."""
        parts: dict[str, Any] = {
            f.name: _pick(getattr(self, f.name), index)
            for f in fields(FlightState)[:-1]
        }
        air = None if self.air is None else self._sample[index]
        return FlightState(**parts, air=air)

    @cached_property
    def _sample(self) -> AirSample:
        if isinstance(self.air, AirSample):
            return self.air
        if self.air is None:
            raise InvalidInputError(
                "This state has no air: use one of FreeFlight.get_state(), or create "
                "it with air=…."
            )
        place = self.position_E_Eo
        return AirSample(self.air.altitude(place), self.air.at(place))


class Taken(NamedTuple):
    """Source of a state, as copies in NumPy arrays."""

    motion: Array
    """The result of `free_bodies.describe`; (num_envs, 18)."""
    time: Array | Tensor
    wind_e: Array
    controls: Controls
    act: Array
    ctrl: Array


@dataclass(frozen=True)
class TakenState(FlightState):
    """A FlightState whose tensors are created when they are read.

    With few worlds, creating all of them costs more than a step.
    """

    @staticmethod
    def of(taken: Taken, air: Air) -> TakenState:
        """Return the state of a source."""
        state = object.__new__(TakenState)
        state.__dict__.update(_taken=taken, air=air)
        return state

    def __getattr__(self, name: str) -> Any:
        make, taken = _MAKERS.get(name), self.__dict__.get("_taken")
        if make is None or taken is None:
            if hasattr(type(self), name):
                return object.__getattribute__(self, name)  # raises what was raised
            raise AttributeError(f"A FlightState has no {name!r}.", name=name, obj=self)
        made = self.__dict__[name] = make(taken)
        return made


def _tensor(array: Array) -> Tensor:
    return torch.from_numpy(array)  # pyright: ignore[reportUnknownMemberType]


_MAKERS: dict[str, Callable[[Taken], object]] = {
    "position_E_Eo": lambda taken: _tensor(taken.motion[:, :3]),
    "R_pas_E_to_BP1": lambda taken: _tensor(taken.motion[:, 9:].reshape(-1, 3, 3)),
    "velocity_E__E": lambda taken: _tensor(taken.motion[:, 3:6]),
    "omegas_BP1__E": lambda taken: _tensor(taken.motion[:, 6:9]),
    "time": lambda taken: torch.as_tensor(taken.time),
    "wind_e": lambda taken: _tensor(taken.wind_e),
    "gust_ang_vel_b": lambda taken: torch.zeros_like(_tensor(taken.wind_e)),
    "controls": lambda taken: taken.controls.positions(
        _tensor(taken.act), _tensor(taken.ctrl)
    ),
    "control_rates": lambda taken: taken.controls.rates(
        _tensor(taken.act), _tensor(taken.ctrl)
    ),
}


@dataclass(frozen=True)
class AirSample:
    """Altitude and state of the air of some worlds."""

    altitude: Tensor
    """Altitude above sea level [m]."""
    state: AirState
    """The air there."""

    def __getitem__(self, index: int | slice | Tensor) -> AirSample:
        """Return some worlds or instants."""
        air = self.state
        parts = (air.temperature[index], air.pressure[index], air.density[index])
        return AirSample(self.altitude[index], AirState(*parts))


def _pick(
    part: Tensor | Mapping[str, Tensor], index: int | slice | Tensor
) -> Tensor | dict[str, Tensor]:
    if isinstance(part, Tensor):
        return part[index]
    return {name: value[index] for name, value in part.items()}


def record(states: list[FlightState]) -> FlightState:
    """Return states as one, with the instants as its first dimension."""
    parts: dict[str, Any] = {
        f.name: _stack([getattr(state, f.name) for state in states])
        for f in fields(FlightState)[:-1]
    }
    return FlightState(**parts, air=states[0].air)


def _stack(
    parts: list[Tensor] | list[Mapping[str, Tensor]],
) -> Tensor | dict[str, Tensor]:
    first = parts[0]
    if isinstance(first, Tensor):
        return torch.stack([part for part in parts if isinstance(part, Tensor)])
    return {
        name: torch.stack([part[name] for part in parts if isinstance(part, Mapping)])
        for name in first
    }
