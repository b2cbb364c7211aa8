"""Base class of the built-in force models: simulation, parameters, bodies by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from simstate.base.errors import InvalidInputError, listed
from simstate.step.forces.compiled_force import CompiledForce
from simstate.step.forces.force_parameters import Parameters

if TYPE_CHECKING:
    from simstate.step.stepping_host import SteppingHost

ForceModel = Callable[[Tensor, Any], None]
"""`model(t, sim)`: t is the time of each world [s], shape (num_envs,); sim is the
Simulation."""


class SceneForce:
    """A force model that belongs to one simulation."""

    _sim: SteppingHost | None = None
    _parameters: Parameters | None = None
    _inherits_form: ClassVar[bool] = False
    """True if subclasses inherit `compiled`, which must then allow for overrides."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls._inherits_form and "compiled" not in vars(cls):
            cls.compiled = SceneForce.compiled  # it may compute something else

    @property
    def parameters(self) -> Parameters:
        """Its values by name: one row for every world, once it is in a simulation."""
        if self._parameters is None:
            self._parameters = Parameters(type(self).__name__)
        return self._parameters

    def attach(self, sim: SteppingHost) -> None:
        """Attach the model to a simulation; raise if it already has one."""
        if self._sim is not None:
            raise InvalidInputError(
                f"This {type(self).__name__} was already added to a simulation: create "
                "one for each use.",
                name=type(self).__name__,
            )
        self.parameters.attach(sim)
        self._sim = sim

    def compiled(self, start: float, end: float) -> CompiledForce | None:
        """Return the model as the core evaluates it; None if Python evaluates it.

        See `Compilable`.
        """
        del start, end


def body_ids(sim: SteppingHost, entity: str | None) -> list[int]:
    """Return the scene ids of an entity's bodies, or of all bodies but the world."""
    if entity is None:
        return list(range(1, sim.model.nbody))
    return list(sim.scene[entity].index.bodies.ids)


def body_id(sim: SteppingHost, entity: str, body: str) -> int:
    """Return the scene id of the only body that matches a name."""
    return sim.scene[entity].index.bodies.ids[link_id(sim, entity, body)]


def link_id(sim: SteppingHost, entity: str, body: str) -> int:
    """Return the id within the entity of the only body that matches a name."""
    found, names = sim.scene[entity].find_bodies(body)
    if len(found) != 1:
        raise InvalidInputError(
            f"{body!r} matches {len(found)} bodies, {listed(names)}: name exactly one."
        )
    return int(found[0])
