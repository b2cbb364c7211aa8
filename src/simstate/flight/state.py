"""FlightState: the state of an aircraft under the names of the free-flight document."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from simstate.conventions import RigidBodyState
from simstate.conventions.air import Definition, wind_angles
from simstate.conventions.rotations import R_to_quat_wxyz, angles_from_passive
from simstate.math.vector import apply


@dataclass(frozen=True)
class FlightState:
    """An aircraft in all worlds at one instant; shapes begin with (num_envs,).

    E is Earth axes and the Earth frame, Eo its origin, BP1 the aircraft's own body
    axes. A recorded one has the instants in front: (num_states, num_envs, …).
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

    @property
    def R_pas_BP1_to_E(self) -> Tensor:
        """Attitude the other way, MuJoCo's xmat: r_E = R @ r_B; (…, 3, 3)."""
        return self.R_pas_E_to_BP1.mT

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

    def wind_angles(self, definition: Definition = "stevens") -> tuple[Tensor, Tensor]:
        """Angle of attack and sideslip in still air [deg]; (…)."""
        return wind_angles(self.velocity_BP1__E, definition)

    def __getitem__(self, index: int | slice | Tensor) -> FlightState:
        """Some worlds, or, of a recorded one, some instants."""
        return FlightState(*(getattr(self, f.name)[index] for f in fields(self)))


def flight_state(state: RigidBodyState, time: Tensor) -> FlightState:
    """The names for a state in Ptera's convention."""
    return FlightState(*state.parts, time)


def record(states: list[FlightState]) -> FlightState:
    """States one after the other, instants first."""
    columns = ([getattr(s, f.name) for s in states] for f in fields(FlightState))
    return FlightState(*(torch.stack(column) for column in columns))
