"""Registry of simulators: their packages, adapters and capabilities.

No simulator is imported here, so entries are available without its package.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from simstate.base.errors import InvalidInputError, SimStateError, unknown_name
from simstate.simulators.capabilities import Capabilities, Feature

_HERE = "simstate.simulators"


class MissingSimulatorError(SimStateError, ImportError):
    """A simulator that is not installed; the message names the package to install."""


@dataclass(frozen=True)
class SimulatorInfo:
    """Entry of a simulator that `make` and `align` accept."""

    name: str
    title: str
    """Name in reports."""
    package: str | None
    """Python package that provides it; None: no other package."""
    extra: str | None
    """Extra of simstate that installs it; None: a built-in engine or user-defined."""
    simulator: tuple[str, str] | None
    """Module and class of the adapter; None: `Simulation` itself."""
    mechanics: tuple[str, str]
    """Module and class of its `Mechanics`, for comparisons."""
    capabilities: Capabilities

    @property
    def installed(self) -> bool:
        """True if it can be imported; this does not import it."""
        if self.package is None:
            return True
        top = self.package.split(".")[0]
        if importlib.util.find_spec(top) is None:
            return False
        return importlib.util.find_spec(self.package) is not None

    def require(self) -> None:
        """Raise MissingSimulatorError unless it is installed."""
        if not self.installed:
            source = self.package if self.extra is None else f"simstate[{self.extra}]"
            raise MissingSimulatorError(
                f"{self.title} is not installed. Run: pip install '{source}'.",
                name=self.name,
            )


def register(entry: SimulatorInfo) -> None:
    """Register a user-defined simulator by name for `make`, `align` and the commands.

    Its `simulator` is a subclass of `AdaptedSimulator`, its `mechanics` one of
    `AdaptedMechanics`.
    """
    known = SIMULATORS.get(entry.name, entry)
    if known != entry:
        raise InvalidInputError(
            f"The simulator {entry.name!r} exists already ({known.title}): choose "
            "another name.",
            name=entry.name,
        )
    SIMULATORS[entry.name] = entry


def info(name: str) -> SimulatorInfo:
    """Return the entry of a simulator, installed or not."""
    if name not in SIMULATORS:
        raise unknown_name("simulator", name, SIMULATORS)
    return SIMULATORS[name]


_DRAKE = Capabilities(
    dtype="float64",
    batching="loop",
    lacks={
        "mocap bodies": "welded to the world",
        "limits of ball joints": "left out",
        "dry friction in joints": "left out",
        "armature of joints without an actuator": "zero: in Drake only "
        "actuators have rotor inertia, and only 1-DoF joints have actuators",
        "springs of ball joints": "left out",
        "gravity compensation": "gravity is not reduced",
        "fluid forces": "left out",
        "actuators on ball joints": "left out",
        "actuators on tendons": "left out",
        "actuators on sites, bodies and cranks": "left out",
        "actuators other than servos and motors": "left out",
        "actuators with state": "left out",
        "higher powers of springs and dampers": "left out",
        "unequal force limits": "the larger one applies in both directions",
        "force limits of actuators that share a joint": "left out",
        "tendons": "left out",
        "couplings other than linear": "left out",
        "connects and welds": "left out",
        "contact pairs": "friction and softness are those of the geoms",
        "height fields": "left out",
        "flexible bodies": "bodies without elasticity",
    },
)
_MJX = Capabilities(
    dtype="float64",
    batching="vectorised",
    lacks={"flexible bodies": "models with flexible bodies are rejected"},
)
_NEWTON_COMMON: dict[Feature, str] = {
    "mocap bodies": "fixed to the world",
    "actuators on sites, bodies and cranks": "left out",
    "actuators other than servos and motors": "left out",
    "actuators with state": "left out",
    "higher powers of springs and dampers": "left out",
    "limits of ball joints": "left out",
    "linear couplings": "left out",
    "couplings other than linear": "left out",
    "connects and welds": "left out",
    "contact pairs": "their geoms collide like any others",
    "height fields": "left out",
    "flexible bodies": "bodies without elasticity",
}
_NEWTON = Capabilities(dtype="float32", batching="loop", lacks=_NEWTON_COMMON)
_FEATHERSTONE = Capabilities(
    dtype="float32",
    batching="loop",
    lacks={
        **_NEWTON_COMMON,
        "springs of 1-DoF joints": "left out",
        "springs of ball joints": "left out",
        "damping of free joints": "left out",
        "dry friction in joints": "left out",
        "gravity compensation": "gravity is not reduced",
        "fluid forces": "left out",
        "force limits": "forces of servos and motors are unlimited",
        "actuators on ball joints": "left out",
        "actuators on tendons": "left out",
        "tendons": "left out",
    },
)


def _entry(
    name: str,
    title: str,
    package: str | None,
    module: str,
    prefix: str,
    capabilities: Capabilities,
) -> SimulatorInfo:
    """Return a built-in entry; names of modules and classes follow one pattern."""
    is_engine = package is None
    return SimulatorInfo(
        name=name,
        title=title,
        package=package,
        extra=None if is_engine else module,
        simulator=None if is_engine else (f"{_HERE}.{module}", f"{prefix}Simulator"),
        mechanics=(f"{_HERE}.{module}_mechanics", f"{prefix}Mechanics"),
        capabilities=capabilities,
    )


_THREADS = Capabilities(dtype="float64", batching="threads")
_WARP = Capabilities(dtype="float32", batching="vectorised")

SIMULATORS: dict[str, SimulatorInfo] = {
    entry.name: entry
    for entry in (
        _entry("native", "simstate, native", None, "simulation", "Native", _THREADS),
        _entry("warp", "simstate, warp", None, "simulation", "Warp", _WARP),
        _entry("drake", "Drake", "pydrake", "drake", "Drake", _DRAKE),
        _entry("mjx", "MJX", "mujoco.mjx", "mjx", "Mjx", _MJX),
        _entry(
            "newton", "Newton (MuJoCo solver)", "newton", "newton", "Newton", _NEWTON
        ),
        _entry(
            "newton-featherstone", "Newton (Featherstone)", "newton", "newton",
            "NewtonFeatherstone", _FEATHERSTONE,
        ),
    )
}  # fmt: skip
"""All simulators, by the name that `make` and `simstate align` take."""
