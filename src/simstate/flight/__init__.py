"""Free flight: aircraft in Earth axes, one or thousands, in air that moves."""

from simstate.flight.aerodynamics import Aerodynamics
from simstate.flight.air import Air, WindField
from simstate.flight.aircraft import AIRFRAME, EARTH, AircraftCfg, ControlCfg
from simstate.flight.atmosphere import (
    AirState,
    Atmosphere,
    ExponentialAtmosphere,
    StandardAtmosphere,
)
from simstate.flight.flight_state import FlightState
from simstate.flight.free_flight import STANDARD_GRAVITY, FreeFlight
from simstate.flight.loads import Load, LoadModel
from simstate.flight.propulsion import Propeller, Rotor
from simstate.flight.steady import (
    FlightModes,
    flight_modes,
    linearise_flight,
    trim_flight,
)
from simstate.flight.table import Table
from simstate.flight.turbulence import DrydenTurbulence, VonKarmanTurbulence

__all__ = [
    "AIRFRAME",
    "EARTH",
    "STANDARD_GRAVITY",
    "Aerodynamics",
    "Air",
    "AirState",
    "AircraftCfg",
    "Atmosphere",
    "ControlCfg",
    "DrydenTurbulence",
    "ExponentialAtmosphere",
    "FlightModes",
    "FlightState",
    "FreeFlight",
    "Load",
    "LoadModel",
    "Propeller",
    "Rotor",
    "StandardAtmosphere",
    "Table",
    "VonKarmanTurbulence",
    "WindField",
    "flight_modes",
    "linearise_flight",
    "trim_flight",
]
