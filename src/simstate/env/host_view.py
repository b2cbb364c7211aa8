"""Views: an environment as terms read it, as arrays or as tensors.

On the host, a term that is marked with `either` gets `env.host`, which has NumPy arrays
under the names of `env`. On a device it gets `env` itself. Its formula is written once,
in operations that arrays and tensors have in common:
`+ - * / ** %`, comparisons, `& | ~`, `abs(x)`, `.sum(-1)`, `.mean(-1)`, `.any(-1)`,
`.all(-1)`, `.clip(low, high)`, `.reshape(…)`, indexing, and functions of `env.xp`: exp,
sqrt, sin, cos, arccos, where, minimum, maximum, stack, concatenate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import number
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Index
from simstate.entity import Entity
from simstate.env.entity_cfg import SceneEntityCfg
from simstate.world.declared import Readings
from simstate.world.declared_arrays import as_arrays, field_arrays
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env
    from simstate.simulation import Simulation

Marked = TypeVar("Marked", bound="Callable[..., Any]")
Part = TypeVar("Part")


def either(term: Marked) -> Marked:
    """Mark a term whose formula works on NumPy arrays as on tensors.

    On the host it then gets `env.host` instead of `env`, which is several times faster
    for few worlds. It may be a function, a class term, an action or a command.
    Subclasses of a marked class are not marked.
    """
    term.either = term  # pyright: ignore[reportFunctionMemberAccess]
    return term


def is_either(term: object) -> bool:
    """Return True if a term itself is marked, rather than one it wraps or extends."""
    return getattr(term, "either", None) is term


def view_of(env: Any) -> Any:
    """Return the first argument of terms that are marked with `either`."""
    return env._view


class HostView:
    """An environment on the host as NumPy arrays; `env.host`.

    `scene[name].data`, `sim.data`, `sim.contacts`, `sim.rays`, `commands`, `action` and
    the rest have the names of `env`. Arrays are read-only, except those of `memory`.
    """

    xp: Any = np

    def __init__(self, env: Any) -> None:
        self._env: Env = env
        self.num_envs = env.num_envs
        self.step_dt = env.step_dt
        self.max_episode_length = env.max_episode_length
        self.terrain = env.terrain
        self.scene: Mapping[str, Entity] = _viewed(env.scene, _entity)
        """The entities by name, whose `data` and `dynamics` are arrays."""
        self.sim = _HostSimulation(env.sim, self.scene)
        """The simulation's fields and sensors."""
        self._memory: dict[tuple[str, str], Any] = {}

    def __setattr__(self, name: str, value: object) -> None:
        if "_memory" in self.__dict__:
            raise InvalidInputError(
                f"env.{name} = … in a term would be in no snapshot and would not be "
                f"reset with its world. Use {name} = env.memory({name!r}, shape), "
                "which returns the same array at every call.",
                name=name,
            )
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        return self.of(getattr(self._env, name))

    @cached_property
    def commands(self) -> Mapping[str, Any]:
        """The commands by name."""
        return self._env.commands.views

    @cached_property
    def actions(self) -> Mapping[str, Any]:
        """The action terms by name."""
        return self._env.actions

    @cached_property
    def action(self) -> Any:
        """The last action as given; (num_envs, action_dim)."""
        return self._env.action.numpy()

    @cached_property
    def previous_action(self) -> Any:
        """The one before; (num_envs, action_dim)."""
        return self._env.previous_action.numpy()

    @cached_property
    def episode_length_buf(self) -> Any:
        """Environment steps since the last reset; int64, (num_envs,)."""
        return self._env.episode_length_buf.numpy()

    @cached_property
    def terminated(self) -> Any:
        """Worlds whose episode was terminated in this step; bool, (num_envs,)."""
        return self._env.terminated.numpy()

    @cached_property
    def truncated(self) -> Any:
        """Worlds whose episode was truncated in this step; bool, (num_envs,)."""
        return self._env.truncated.numpy()

    def memory(self, name: str, *args: Any, **options: Any) -> Any:
        """Return a term's memory of each world, as `env.memory`; writable."""
        key = (worlds_of(self._env.sim).ledger.scope, name)
        found = self._memory.get(key)
        if found is None or args or options:
            found = self._memory[key] = self._env.memory(name, *args, **options).numpy()
        return found

    def phase(self, period_s: float) -> Any:
        """Return the elapsed fraction of a period, in [0, 1), as `env.phase`."""
        return phase(self, period_s)

    def of(self, value: Any) -> Any:
        """Return the host's form of a tensor, an entity, …; others unchanged."""
        if isinstance(value, Tensor):
            return value.detach().numpy()
        if isinstance(value, Entity):
            return self.scene[value.name]
        if isinstance(value, Readings):
            return as_arrays(value)
        if isinstance(value, SceneEntityCfg):
            return value.on_host()
        return self if value is self._env else value

    def mirror(self, part: Part, **other: Any) -> Part:
        """Return an action or a command that computes with arrays.

        It has the same methods and shares the memory; `other` replaces attributes.
        """
        copy = object.__new__(type(part))
        mirrored = {name: self.of(value) for name, value in vars(part).items()}
        vars(copy).update(mirrored, **other)
        return copy


class _ArrayCall:
    """A method whose result is read as an array."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _array(self._method(*args, **options))


class CommandArrays:
    """A command whose tensors, and results of methods, are read as arrays."""

    def __init__(self, command: object) -> None:
        self._command = command

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._command, name)
        return _ArrayCall(value) if isinstance(value, MethodType) else _array(value)


class ByName(dict[str, Any]):
    """Views of objects by name; an unknown name raises the error of the objects."""

    def __init__(self, objects: Mapping[str, Any], views: Mapping[str, Any]) -> None:
        super().__init__(views)
        self._objects = objects

    def __missing__(self, name: str) -> Any:
        return self._objects[name]


class _HostSimulation:
    """A simulation whose fields and sensors are arrays; the rest is unchanged."""

    def __init__(self, sim: Simulation, scene: Mapping[str, Entity]) -> None:
        self._sim = sim
        self.scene = scene
        self.data = field_arrays(worlds_of(sim))
        self.contacts = _viewed(sim.contacts, as_arrays)
        self.rays = _viewed(sim.rays, as_arrays)
        self.dynamics = as_arrays(sim.dynamics)

    def __getattr__(self, name: str) -> Any:
        return _array(getattr(self._sim, name))


def phase(view: Any, period_s: float) -> Any:
    """Return the elapsed fraction of a period, in [0, 1); float64, (num_envs,).

    Arrays and tensors are both float64, so that comparisons have the same result.
    """
    period = period_s
    if type(period) is not float or not 0.0 < period < math.inf:
        period = number("period_s", period_s, more_than=0, unit="s")
    steps = view.xp.asarray(view.episode_length_buf, dtype=view.xp.float64)
    return (steps * (view.step_dt / period)) % 1.0


def chosen(values: Any, ids: Index) -> Any:
    """Return some columns of (num_envs, columns, …), in C order.

    NumPy's `values[:, ids]` is in Fortran order if ids are not a slice. A sum over its
    columns would then add in an order that depends on the number of rows.
    """
    if isinstance(ids, slice) or isinstance(values, Tensor):
        return values[:, ids]
    return values.take(ids, 1)


def height_above_ground(env: Env, entity: Entity) -> Tensor:
    """Height of the root link's origin above the terrain, or above z = 0 [m].

    Shape (num_envs,).
    """
    position: Any = entity.data.root_link_pos_w
    if env.terrain is None:
        return position[:, 2]
    if isinstance(position, Tensor):
        return position[:, 2] - env.terrain.terrain.height_at(position)
    ground: Any = env.terrain.terrain.height_at(torch.tensor(position))
    return position[:, 2] - ground.numpy()


def _array(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, Tensor) else value


def _viewed(objects: Mapping[str, Any], view: Callable[[Any], Any]) -> ByName:
    return ByName(objects, {name: view(each) for name, each in objects.items()})


def _entity(entity: Entity) -> Entity:
    copy = object.__new__(Entity)
    vars(copy).update(vars(entity))
    copy.data = as_arrays(entity.data)
    copy.dynamics = as_arrays(entity.dynamics)
    return copy
