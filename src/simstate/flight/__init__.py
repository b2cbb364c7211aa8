"""Free flight: aircraft in Earth axes, one or thousands, under loads of any kind."""

from simstate.flight.aircraft import AIRFRAME, EARTH, AircraftCfg
from simstate.flight.free_flight import STANDARD_GRAVITY, FreeFlight
from simstate.flight.loads import Load, LoadModel
from simstate.flight.state import FlightState

__all__ = [
    "AIRFRAME",
    "EARTH",
    "STANDARD_GRAVITY",
    "AircraftCfg",
    "FlightState",
    "FreeFlight",
    "Load",
    "LoadModel",
]
