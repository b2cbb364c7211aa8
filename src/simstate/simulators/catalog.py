"""The simulators that there are: what each needs, can and cannot do.

Nothing of them is imported here, so that this can be asked of one that is not there.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from simstate.base.errors import InvalidInputError, SimStateError, unknown_name
from simstate.simulators.capabilities import Capabilities, Feature

_HERE = "simstate.simulators"


class MissingSimulatorError(SimStateError, ImportError):
    """A simulator that is not installed; the message says what brings it."""


@dataclass(frozen=True)
class SimulatorInfo:
    """One simulator that `make` and `align` know."""

    name: str
    title: str
    """Name in reports."""
    package: str | None
    """Python package that provides it; None: no other package."""
    extra: str | None
    """The extra of simstate that brings it; None: it is not one of simstate's."""
    simulator: tuple[str, str] | None
    """Module and class of the adapter; None: `Simulation` itself."""
    mechanics: tuple[str, str]
    """Module and class of what comparisons ask."""
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
        """Raise, with how to get it, if it is not installed."""
        if not self.installed:
            source = self.package if self.extra is None else f"simstate[{self.extra}]"
            raise MissingSimulatorError(
                f"{self.title} is not installed: pip install '{source}' brings it.",
                name=self.name,
            )


def register(entry: SimulatorInfo) -> None:
    """Register a simulator of your own by name for `make`, `align` and the commands.

    Its adapter is an `AdaptedSimulator`, what comparisons ask an `AdaptedMechanics`.
    """
    known = SIMULATORS.get(entry.name, entry)
    if known != entry:
        raise InvalidInputError(
            f"There is a simulator {entry.name!r} already, {known.title}. Give yours "
            "another name.",
            name=entry.name,
        )
    SIMULATORS[entry.name] = entry


def info(name: str) -> SimulatorInfo:
    """The simulator of that name, installed or not."""
    if name not in SIMULATORS:
        raise unknown_name("simulator", name, SIMULATORS)
    return SIMULATORS[name]


_DRAKE = Capabilities(
    dtype="float64",
    batching="loop",
    lacks={
        "mocap bodies": "they are welded to the world",
        "limits of ball joints": "they are not there",
        "dry friction in joints": "it is not there",
        "armature of joints without an actuator": "it is zero: Drake has rotor "
        "inertia in actuators alone, and those on 1-DoF joints alone",
        "springs of ball joints": "they are not there",
        "gravity compensation": "gravity acts in full",
        "fluid forces": "they are not there",
        "actuators on ball joints": "they do not act",
        "actuators on tendons": "they do not act",
        "actuators on sites, bodies and cranks": "they do not act",
        "actuators other than servos and motors": "they do not act",
        "actuators with state": "they do not act",
        "higher powers of springs and dampers": "they are not there",
        "unequal force limits": "the greater one holds both ways",
        "force limits of actuators that share a joint": "they are not there",
        "tendons": "they are not there",
        "couplings other than linear": "they are not there",
        "connects and welds": "they are not there",
        "contact pairs": "they have the friction and softness of their geoms",
        "height fields": "they are not there",
        "flexible bodies": "they are bodies without elasticity",
    },
)
_MJX = Capabilities(
    dtype="float64",
    batching="vectorised",
    lacks={"flexible bodies": "a model that has some is refused"},
)
_NEWTON_COMMON: dict[Feature, str] = {
    "mocap bodies": "they are fixed to the world",
    "actuators on sites, bodies and cranks": "they do not act",
    "actuators other than servos and motors": "they do not act",
    "actuators with state": "they do not act",
    "higher powers of springs and dampers": "they are not there",
    "limits of ball joints": "they are not there",
    "linear couplings": "they are not there",
    "couplings other than linear": "they are not there",
    "connects and welds": "they are not there",
    "contact pairs": "their geoms touch as those without a pair do",
    "height fields": "they are not there",
    "flexible bodies": "they are bodies without elasticity",
}
_NEWTON = Capabilities(dtype="float32", batching="loop", lacks=_NEWTON_COMMON)
_FEATHERSTONE = Capabilities(
    dtype="float32",
    batching="loop",
    lacks={
        **_NEWTON_COMMON,
        "springs of 1-DoF joints": "they are not there",
        "springs of ball joints": "they are not there",
        "damping of free joints": "it is not there",
        "dry friction in joints": "it is not there",
        "gravity compensation": "gravity acts in full",
        "fluid forces": "they are not there",
        "force limits": "servos and motors give any force",
        "actuators on ball joints": "they do not act",
        "actuators on tendons": "they do not act",
        "tendons": "they are not there",
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
    """One of simstate's: modules and classes are named alike, the extra as a module."""
    is_ours = package is None
    return SimulatorInfo(
        name=name,
        title=title,
        package=package,
        extra=None if is_ours else module,
        simulator=None if is_ours else (f"{_HERE}.{module}", f"{prefix}Simulator"),
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
"""Every simulator by the name that `make` and `simstate align` take."""
