"""An aircraft: mass, inertia, initial state and parts, as a model in NED and FRD."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import mujoco
import torch
from torch import Tensor

from simstate.base.checks import instance_of, number
from simstate.base.errors import InvalidInputError, ModelError, ShapeError, unknown_name
from simstate.base.ids import Values
from simstate.math.conventions import PTERA, Convention, RigidBodyState, convert
from simstate.math.conventions.checked_values import as_single, check_rotation
from simstate.math.conventions.points import check_inertia, check_mass
from simstate.math.conventions.presets import MUJOCO
from simstate.math.conventions.rotations import passive_from_angles
from simstate.scene import EntityCfg, InitialStateCfg

EARTH = Convention(name="EARTH", world="NED", body="FRD")
"""The axes of flight models: MuJoCo's world is Earth axes E (north, east, down), and
body axes are forward, right, down."""

AIRFRAME = "airframe"
"""The name of an aircraft's own body."""

SECTIONS = (
    "actuator", "asset", "contact", "default", "equality", "sensor", "tendon", "visual",
)  # fmt: skip
"""Allowed entries of `AircraftCfg.sections`."""

_ZERO = (0.0, 0.0, 0.0)


CONTROLS_SITE = "controls"
"""The site that controls are attached to; they apply no force to it."""


@dataclass(frozen=True, kw_only=True)
class ControlCfg:
    """A control of an aircraft: a surface, a throttle, a rotor's speed.

    It is an actuator of the model that applies no force: its input is part of the state
    (`ctrl`), and load models read its position.
    """

    range: tuple[float, float] | None = None
    """Minimum and maximum position, in the control's unit; None: unlimited."""
    time_constant: float = 0.0
    """Time constant of the first-order lag from command to position [s]; 0: none."""

    def xml(self, name: str) -> str:
        """Return the actuator as MJCF."""
        parts = [f'name="{name}" site="{CONTROLS_SITE}" gear="0 0 0 0 0 0" gainprm="0"']
        if self.range is not None:
            low, high = (float(as_single(x, f"range of {name}")) for x in self.range)
            if not low < high:
                raise InvalidInputError(
                    f"The range of control {name!r} must ascend, got {self.range}.",
                    name=name,
                )
            parts.append(f'ctrllimited="true" ctrlrange="{low!r} {high!r}"')
        what = f"time_constant of control {name!r}"
        lag = float(as_single(self.time_constant, what))
        number(what, lag, at_least=0, unit="s")
        if lag:
            parts.append(f'dyntype="filter" dynprm="{lag!r}"')
        return f"<general {' '.join(parts)}/>"


@dataclass(frozen=True, kw_only=True)
class AircraftCfg:
    """One aircraft: its body, its initial state and its parts.

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
    """Initial position of the Cg, Earth axes [m]; (3,)."""
    angles_E_to_BP1_izyx: Values | None = None
    """Initial roll, pitch and yaw [deg]; (3,). Alternatively R_pas_E_to_BP1."""
    R_pas_E_to_BP1: Values | None = None
    """Initial attitude: r_B = R @ r_E; (3, 3)."""
    velocity_E__E: Values = _ZERO
    """Initial velocity of the Cg, Earth axes [m/s]; (3,)."""
    omegas_BP1__E: Values | None = None
    """Initial angular velocity, body axes [deg/s]; (3,). Alternatively ang_vel_b."""
    roll_pitch_yaw: Values | None = None
    """Initial roll, pitch and yaw [rad]; (3,)."""
    ang_vel_b: Values | None = None
    """Initial angular velocity, body axes [rad/s]; (3,)."""
    controls: Mapping[str, ControlCfg] = field(default_factory=dict[str, ControlCfg])
    """Controls by name, such as {"elevator": ControlCfg(range=(-0.4, 0.4))}."""
    parts: str = ""
    """MJCF inside the airframe's body: geoms, sites, and bodies with joints."""
    sections: Mapping[str, str] = field(default_factory=dict[str, str])
    """MJCF inside further sections of the model, such as {"actuator": "<motor …/>"}."""
    assets: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Files that the MJCF refers to, by name."""

    def spec(self) -> mujoco.MjSpec:
        """Return the aircraft's own model."""
        xml = self.xml()
        try:
            return mujoco.MjSpec.from_string(xml, assets=dict(self.assets))
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise ModelError(
                f"The aircraft's parts or sections are not valid MJCF: {reason}"
            ) from error

    def xml(self) -> str:
        """Return the aircraft's own model as MJCF."""
        mass = float(check_mass(as_single(self.mass, "mass")))
        inertia = check_inertia(as_single(self.inertia, "inertia", 3, 3))
        for name in self.sections:
            if name not in SECTIONS:
                raise unknown_name("section of an aircraft", name, SECTIONS)
        parts, sections = self.parts, dict(self.sections)
        instance_of("controls", self.controls, Mapping)
        for name, control in self.controls.items():
            hint = " Pass ControlCfg(range=…, time_constant=…)."
            instance_of(f"controls[{name!r}]", control, ControlCfg, hint)
        if self.controls:
            parts += f'<site name="{CONTROLS_SITE}"/>'
            actuators = "".join(c.xml(name) for name, c in self.controls.items())
            sections["actuator"] = sections.get("actuator", "") + actuators
        com = as_single(self.com, "com", 3)
        return aircraft_xml(AIRFRAME, mass, inertia, com, parts, sections)

    def start(self) -> RigidBodyState:
        """Return the initial state in Ptera's convention, without batch dimension."""
        rates = only_one(
            "angular velocity",
            omegas_BP1__E=self.omegas_BP1__E,
            ang_vel_b=None
            if self.ang_vel_b is None
            else _degrees(self.ang_vel_b, "ang_vel_b"),
        )
        position, velocity, rates, com = (
            as_single(values, name, 3)
            for name, values in (
                ("position_E_Eo", self.position_E_Eo),
                ("velocity_E__E", self.velocity_E__E),
                ("omegas_BP1__E", _ZERO if rates is None else rates),
                ("com", self.com),
            )
        )
        return RigidBodyState(PTERA, position, self._attitude(), velocity, rates, com)

    def _attitude(self) -> Tensor:
        """Return the initial R_pas_E_to_BP1 from any of the attitudes; (3, 3)."""
        given = self.roll_pitch_yaw
        angles = only_one(
            "attitude",
            R_pas_E_to_BP1=self.R_pas_E_to_BP1,
            angles_E_to_BP1_izyx=self.angles_E_to_BP1_izyx,
            roll_pitch_yaw=None if given is None else _degrees(given, "roll_pitch_yaw"),
        )
        if self.R_pas_E_to_BP1 is not None:
            rot = as_single(self.R_pas_E_to_BP1, "R_pas_E_to_BP1", 3, 3)
            return check_rotation(rot, "R_pas_E_to_BP1")
        angles = as_single(
            _ZERO if angles is None else angles, "angles_E_to_BP1_izyx", 3
        )
        return passive_from_angles(angles, "izyx")


def _degrees(radians: Values, name: str) -> Tensor:
    return torch.rad2deg(as_single(radians, name, 3))


def only_one(what: str, **given: Values | None) -> Values | None:
    """Return the value given under one of several names; raise if there are two."""
    names = [name for name, values in given.items() if values is not None]
    if len(names) > 1:
        raise InvalidInputError(
            f"The {what} is given twice: by {' and by '.join(names)}. Give one.",
            name=names[1],
        )
    return given[names[0]] if names else None


def aircraft_xml(
    name: str,
    mass: float,
    inertia: Tensor,
    com: Tensor,
    parts: str = "",
    sections: Mapping[str, str] | None = None,
) -> str:
    """Return MJCF of a free body with a mass, an inertia about its COM and parts."""
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
    """Return the inertial element of a body in full precision."""
    entries = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    moments = numbers(tuple(inertia[i, j] for i, j in entries))
    return f'<inertial pos="{numbers(com)}" mass="{mass!r}" fullinertia="{moments}"/>'


def numbers(values: Tensor | tuple[Tensor, ...]) -> str:
    """Return values as MJCF text in full precision."""
    return " ".join(repr(float(value)) for value in values)


def aircraft_entity(cfg: AircraftCfg) -> EntityCfg:
    """Return the aircraft's model and initial state as an entity of a scene."""
    if not isinstance(cfg, AircraftCfg):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError(
            f"An aircraft must be an AircraftCfg, got {type(cfg).__name__}: use "
            "AircraftCfg(mass=…, inertia=…)."
        )
    try:
        start, spec = convert(cfg.start(), _OWN), cfg.spec()
    except ShapeError as error:
        raise error.with_message(
            f"{error} What differs from world to world is written once it flies: the "
            'start by set_state(…), masses by sim.expand("body_mass").'
        ) from None
    pos, rot, lin_vel, ang_vel = (
        [float(number) for number in part] for part in start.parts
    )
    state = InitialStateCfg(pos=pos, rot=rot, lin_vel=lin_vel, ang_vel=ang_vel)
    return EntityCfg(model=spec, init_state=state)


_OWN = replace(MUJOCO, name="the model", world=EARTH.world, body=EARTH.body)


def fleet_of(
    mass: float | None,
    inertia: Values | None,
    fleet: Mapping[str, AircraftCfg] | None,
    aircraft: dict[str, Any],
) -> Mapping[str, AircraftCfg]:
    """Return the aircraft by name, from a fleet or from the arguments of one."""
    if fleet is not None:
        instance_of("fleet", fleet, Mapping)
    if (mass is None) != (inertia is None) or (mass is None) == (not fleet):
        raise InvalidInputError(
            "Give the mass and the inertia of one aircraft, or a fleet of several: "
            "FreeFlight(fleet={'lead': AircraftCfg(mass=…, inertia=…), …})."
        )
    if mass is None or inertia is None:
        if aircraft:
            raise InvalidInputError(
                f"With a fleet, pass {min(aircraft)!r} to the AircraftCfg instead."
            )
        return fleet or {}
    known = tuple(AircraftCfg.__dataclass_fields__)
    for name in aircraft:
        if name not in known:
            raise unknown_name("argument of FreeFlight", name, known)
    return {"aircraft": AircraftCfg(mass=mass, inertia=inertia, **aircraft)}
