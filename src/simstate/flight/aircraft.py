"""An aircraft: mass, inertia, start and parts, as a MuJoCo model in NED and FRD."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import mujoco
from torch import Tensor

from simstate.conventions import PTERA, Convention, RigidBodyState
from simstate.conventions.points import check_inertia, check_mass
from simstate.conventions.rotations import passive_from_angles
from simstate.conventions.values import as_single, check_rotation
from simstate.errors import InvalidInputError, ModelError, unknown_name
from simstate.ids import Values

EARTH = Convention(name="EARTH", world="NED", body="FRD")
"""The axes in which flight models are built: MuJoCo's world is Earth axes E (north,
east, down), and bodies are forward, right, down."""

AIRFRAME = "airframe"
"""The name of an aircraft's own body."""

SECTIONS = (
    "actuator", "asset", "contact", "default", "equality", "sensor", "tendon", "visual",
)  # fmt: skip
"""What `AircraftCfg.sections` may hold."""

_ZERO = (0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class AircraftCfg:
    """One aircraft: its body, how it starts, and what is attached to it.

    E is Earth axes (north, east, down) about the Earth origin Eo, B the aircraft's
    body axes (forward, right, down), Cg its centre of mass.
    """

    mass: float
    """Mass of the airframe without further parts [kg]."""
    inertia: Values
    """Inertia of the airframe about its Cg, body axes [kg·m²]; (3, 3)."""
    com: Values = _ZERO
    """The Cg from the body's origin, body axes [m]; (3,)."""
    position_E_Eo: Values = _ZERO
    """Where the Cg starts, Earth axes [m]; (3,)."""
    angles_E_to_BP1_izyx: Values | None = None
    """Roll, pitch and yaw at the start [deg]; (3,). Or give R_pas_E_to_BP1."""
    R_pas_E_to_BP1: Values | None = None
    """The attitude at the start: r_B = R @ r_E; (3, 3)."""
    velocity_E__E: Values = _ZERO
    """Velocity of the Cg at the start, Earth axes [m/s]; (3,)."""
    omegas_BP1__E: Values = _ZERO
    """Angular velocity at the start, body axes [deg/s]; (3,)."""
    parts: str = ""
    """MJCF inside the airframe's body: geoms, sites, and bodies with joints."""
    sections: Mapping[str, str] = field(default_factory=dict[str, str])
    """MJCF inside further sections of the model, such as {"actuator": "<motor …/>"}."""
    assets: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Files that the MJCF refers to, by name."""

    def spec(self) -> mujoco.MjSpec:
        """The aircraft's own model."""
        xml = self.xml()
        try:
            return mujoco.MjSpec.from_string(xml, assets=dict(self.assets))
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise ModelError(
                f"The aircraft's parts or sections are not valid MJCF: {reason}"
            ) from error

    def xml(self) -> str:
        """The aircraft's own model as MJCF."""
        mass = float(check_mass(as_single(self.mass, "mass")))
        inertia = check_inertia(as_single(self.inertia, "inertia", 3, 3))
        for name in self.sections:
            if name not in SECTIONS:
                raise unknown_name("section of an aircraft", name, SECTIONS)
        return aircraft_xml(
            AIRFRAME, mass, inertia, as_single(self.com, "com", 3), self.parts,
            self.sections,
        )  # fmt: skip

    def start(self) -> RigidBodyState:
        """The state at the start, in Ptera's convention; no batch dimension."""
        if self.R_pas_E_to_BP1 is not None and self.angles_E_to_BP1_izyx is not None:
            raise InvalidInputError(
                "The attitude is given twice: by R_pas_E_to_BP1 and by "
                "angles_E_to_BP1_izyx. Give one."
            )
        if self.R_pas_E_to_BP1 is not None:
            rot = as_single(self.R_pas_E_to_BP1, "R_pas_E_to_BP1", 3, 3)
            check_rotation(rot, "R_pas_E_to_BP1")
        else:
            given = self.angles_E_to_BP1_izyx
            angles = _ZERO if given is None else given
            rot = passive_from_angles(
                as_single(angles, "angles_E_to_BP1_izyx", 3), "izyx"
            )
        position, velocity, rates, com = (
            as_single(values, name, 3)
            for name, values in (
                ("position_E_Eo", self.position_E_Eo),
                ("velocity_E__E", self.velocity_E__E),
                ("omegas_BP1__E", self.omegas_BP1__E),
                ("com", self.com),
            )
        )
        return RigidBodyState(PTERA, position, rot, velocity, rates, com)


def aircraft_xml(
    name: str,
    mass: float,
    inertia: Tensor,
    com: Tensor,
    parts: str = "",
    sections: Mapping[str, str] | None = None,
) -> str:
    """MJCF of a free body with this mass, inertia about its COM and parts."""
    more = "\n".join(
        f"  <{section}>{text}</{section}>" for section, text in (sections or {}).items()
    )
    return f"""<mujoco model="{name}">
{more}
  <worldbody>
    <body name="{name}">
      <freejoint name="root" align="false"/>
      {inertial_xml(mass, inertia, com)}
      {parts}
    </body>
  </worldbody>
</mujoco>"""


def inertial_xml(mass: float, inertia: Tensor, com: Tensor) -> str:
    """The inertial element of a body, to the last digit."""
    entries = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    moments = numbers(tuple(inertia[i, j] for i, j in entries))
    return f'<inertial pos="{numbers(com)}" mass="{mass!r}" fullinertia="{moments}"/>'


def numbers(values: Tensor | tuple[Tensor, ...]) -> str:
    """Numbers as MJCF has them, to the last digit."""
    return " ".join(repr(float(value)) for value in values)
