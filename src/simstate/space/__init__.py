"""Space flight: gravity, ephemerides, frames, orbits, wheels, drag, sensors."""

from simstate.space.coefficients import (
    HarmonicCoefficients,
    earth_coefficients,
    read_gfc,
    zonal_coefficients,
)
from simstate.space.ephemeris import Ephemeris, moon, spice_body, sun
from simstate.space.epoch import Epoch
from simstate.space.geodesy import (
    geodetic_from_position,
    position_from_geodetic,
    rot_ned_fixed,
)
from simstate.space.harmonic_gravity import HarmonicGravity
from simstate.space.kepler import propagate_kepler
from simstate.space.orbit import (
    OrbitalElements,
    SecularRates,
    elements_from_state,
    j2_rates,
)
from simstate.space.planet_drag import PanelDrag, PlanetAir, box_panels
from simstate.space.planets import EARTH, MARS, MOON, MU_SUN, Planet
from simstate.space.pulses import pulses
from simstate.space.reference_frames import (
    ecef_from_eci,
    ecef_from_ned,
    eci_from_ecef,
    eci_from_lvlh,
    eci_from_rtn,
    lvlh_from_eci,
    ned_from_ecef,
    orbit_rate,
    rot_lvlh_eci,
    rot_rtn_eci,
    rtn_from_eci,
)
from simstate.space.rotation import EarthRotation, Rotation, UniformRotation
from simstate.space.sensors import Gyro, NoisySensor, StarTracker
from simstate.space.spacecraft_parts import (
    ControlMomentGyroCfg,
    ReactionWheelCfg,
    ThrusterCfg,
)
from simstate.space.wheels import ReactionWheels

__all__ = [
    "EARTH",
    "MARS",
    "MOON",
    "MU_SUN",
    "ControlMomentGyroCfg",
    "EarthRotation",
    "Ephemeris",
    "Epoch",
    "Gyro",
    "HarmonicCoefficients",
    "HarmonicGravity",
    "NoisySensor",
    "OrbitalElements",
    "PanelDrag",
    "Planet",
    "PlanetAir",
    "ReactionWheelCfg",
    "ReactionWheels",
    "Rotation",
    "SecularRates",
    "StarTracker",
    "ThrusterCfg",
    "UniformRotation",
    "box_panels",
    "earth_coefficients",
    "ecef_from_eci",
    "ecef_from_ned",
    "eci_from_ecef",
    "eci_from_lvlh",
    "eci_from_rtn",
    "elements_from_state",
    "geodetic_from_position",
    "j2_rates",
    "lvlh_from_eci",
    "moon",
    "ned_from_ecef",
    "orbit_rate",
    "position_from_geodetic",
    "propagate_kepler",
    "pulses",
    "read_gfc",
    "rot_lvlh_eci",
    "rot_ned_fixed",
    "rot_rtn_eci",
    "rtn_from_eci",
    "spice_body",
    "sun",
    "zonal_coefficients",
]
