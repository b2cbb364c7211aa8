"""Terms: functions of the configuration, resolved once and named in every error."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from torch import Tensor

from simstate.base.checks import all_of, check_called_as, check_range, instance_of
from simstate.base.errors import (
    InvalidInputError,
    ShapeError,
    SimStateError,
    listed,
    unknown_name,
)
from simstate.base.places import Place, remember_place, written_at
from simstate.entity import SceneEntities
from simstate.env.entity_cfg import SceneEntityCfg, without_resolving
from simstate.env.env_cfg import TermCfg
from simstate.env.host_view import is_either, view_of
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env

Function = TypeVar("Function", bound=Callable[..., Any])
ColumnNames = Callable[..., list[str]]


_ARRAYS = (
    "It is marked with @either, so it computes with NumPy arrays here: use operations "
    "that arrays and tensors have in common, and functions of env.xp."
)


class Term:
    """A function with its parameters, or an instance of a class term.

    A class term is created once with `(cfg, env)`, where the entities in `cfg.params`
    are resolved, and called like a function. Its `reset(env_ids)` is called for worlds
    that are reset. It keeps its state in `env.memory(…)`. If it is marked with
    `either`, its `env` is the view of the environment.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        cfg: TermCfg,
        shipped: ModuleType,
        env: Env,
        leading: int = 1,
    ) -> None:
        self.name = self.path = name
        """Name; the path of an observation has its group in front."""
        self.kind = kind
        self.place: Place | None = getattr(cfg, "place", None)
        self.label = f"{kind} term {name!r}"
        self.scope = f"{kind}/{name}"
        """Prefix of the names of its memory."""
        self.instance: object | None = None
        """Instance of a class term."""
        self._env = env
        self.view: Any = env
        """First argument of the function."""
        self._ledger = worlds_of(env.sim).ledger
        try:
            self._resolve(cfg, shipped, leading)
        except Exception as error:
            self.annotate(error)
            raise

    def _resolve(self, cfg: TermCfg, shipped: ModuleType, leading: int) -> None:
        """Find the function and its parameters; create the object of a class term."""
        env = self._env
        self.function = function = term_function(
            self.kind, self.name, cfg.func, shipped
        )
        is_class = isinstance(function, type)
        self.is_either = leading == 1 and is_either(without_resolving(function))
        """True if its first argument is the view, through which it writes nothing."""
        self.view = view_of(env) if self.is_either else env
        call = _call_of(self.label, function) if is_class else function
        called_with = ("self", "env", "env_ids")[not is_class : 1 + leading]
        params = _resolved(self.label, call, cfg.params, env.scene, called_with)
        if self.view is not env:
            params = {name: self.view.of(value) for name, value in params.items()}
        self.params = params
        if is_class:
            with self._ledger.naming(self.scope):
                made = function(dataclasses.replace(cfg, params=params), self.view)
            self.instance = self.function = made
        bare = without_resolving(self.function)
        self.bound: Callable[..., Any] = functools.partial(bare, self.view, **params)
        """The call of a step, with everything resolved and checked."""

    def __call__(self, *more: Any) -> Any:
        """Call the function with the environment, (env_ids) and the parameters."""
        ledger = self._ledger
        outer, ledger.scope = ledger.scope, self.scope
        try:
            return self.bound(*more)
        except Exception as error:
            self.annotate(error)
            raise
        finally:
            ledger.scope = outer

    def annotate(self, error: Exception) -> None:
        """Add the term, and the line that it was written in, to an error."""
        annotate(error, self.label, self.place)
        if self.view is not self._env and not isinstance(error, SimStateError):
            _add_note(error, _ARRAYS)

    def reset(self, env_ids: Tensor) -> None:
        """Reset a class term in worlds that start an episode."""
        instance: Any = self.instance
        if instance is not None:
            with self._ledger.naming(self.scope):
                instance.reset(env_ids)

    def column_names(self, count: int) -> list[str]:
        """Return a readable name for each column that the function returns."""
        named: ColumnNames | None = getattr(self.function, "column_names", None)
        if named is not None:
            return [f"{self.name}/{name}" for name in named(self._env, **self.params)]
        if count == 1:
            return [self.name]
        return [f"{self.name}/{i}" for i in range(count)]

    def error(self, text: str, **fields: Any) -> InvalidInputError:
        """Return the error "The … term … {text}.", a ShapeError if it has a `shape`."""
        kind = ShapeError if "shape" in fields else InvalidInputError
        end = "" if text.endswith("?") else "."
        error = kind(f"The {self.label} {text}{end}", name=self.path, **fields)
        remember_place(error, self.place)
        return error

    def not_finite_error(self, value: float, world: int) -> InvalidInputError:
        """Return the error of a term that returned a value which is not finite."""
        cause = (
            "The state of the world is finite (a diverged one keeps its last finite "
            "state), so the term itself divides by zero, takes the root of a negative "
            "number or the like"
        )
        data = self._env.sim.data
        for field in ("qpos", "qvel", "act"):
            if not getattr(data, field)[world].isfinite().all():
                cause = f"An event or a term has written a {field} that is not finite"
        return self.error(f"returned {value} in world {world}. {cause}", worlds=[world])


_Part = TypeVar("_Part")


class _Makes(Protocol):
    """The configuration of an action or a command."""

    def make(self, name: str, env: Env) -> object:
        """Create the described part in an environment."""
        ...


def made(kind: str, name: str, cfg: _Makes, env: Env, of: type[_Part]) -> _Part:
    """Return an action or command, whose memory belongs to it.

    Errors know the line that its configuration was written in.
    """
    place = getattr(cfg, "place", None)
    ledger = worlds_of(env.sim).ledger
    label = f"{kind} term {name!r}"
    with ledger.naming(f"{kind}/{name}"), written_at(place), _labelled(label):
        part = instance_of(f"make of {type(cfg).__name__}", cfg.make(name, env), of)
        all_of(f"names of the {label}", getattr(part, "names", None), str)
    return part


def annotate(error: Exception, label: str, place: Place | None) -> None:
    """Add to an error the term that raised it, and the line it was written in."""
    remember_place(error, place)
    if not (isinstance(error, SimStateError) and label in str(error)):
        _add_note(error, f"It was raised in the {label}.")


def _add_note(error: Exception, note: str) -> None:
    """Add a note to an error, unless it has it."""
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


@contextmanager
def _labelled(label: str) -> Generator[None]:
    """Add the term to errors that do not name it."""
    try:
        yield
    except SimStateError as error:
        if label not in str(error):
            error.args = (f"In the {label}: {error}",)
        raise


def columns(named: ColumnNames) -> Callable[[Function], Function]:
    """Declare the names of an observation's columns: `named(env, **params)`."""

    def mark(function: Function) -> Function:
        is_class = isinstance(cast("object", function), type)
        bare = staticmethod(named) if is_class else named
        function.column_names = bare  # pyright: ignore[reportFunctionMemberAccess]
        return function

    return mark


def columns_of(kind: str, parts: tuple[str, ...] = ("",)) -> ColumnNames:
    """Name columns after the chosen elements: `joint`, or `site` with .x, .y, .z."""

    def named(env: Env, asset_cfg: SceneEntityCfg, **params: object) -> list[str]:
        del env, params
        return [name + part for name in asset_cfg.names_of(kind) for part in parts]

    return named


XYZ = (".x", ".y", ".z")


def fixed_columns(*names: str) -> ColumnNames:
    """Give columns constant names."""

    def named(env: Env, **params: object) -> list[str]:
        del env, params
        return list(names)

    return named


def term_function(
    kind: str, name: str, func: object, shipped: ModuleType
) -> Callable[..., Any]:
    """Return the function itself, or the shipped one of that name."""
    if callable(func):
        return func
    known: list[str] = getattr(shipped, "__all__", []) or [
        key
        for key, value in vars(shipped).items()
        if inspect.isfunction(value) and value.__module__ == shipped.__name__
        if not key.startswith("_")
    ]
    if not isinstance(func, str) or func not in known:
        raise unknown_name(f"function of the {kind} term {name!r}:", str(func), known)
    return getattr(shipped, func)


def _call_of(label: str, made: type) -> Callable[..., Any]:
    """Return the `__call__` of a class term, which also has a `reset`."""
    bases = [base for base in made.__mro__ if "__call__" in vars(base)]
    calls = [vars(base)["__call__"] for base in bases]
    if not calls:
        raise InvalidInputError(
            f"The {label} is a class whose objects cannot be called: give "
            f"{made.__name__} a method __call__(self, env, …).",
            name="__call__",
        )
    reset = getattr(made, "reset", None)
    if not callable(reset):
        raise InvalidInputError(
            f"The {label} is a class without reset: give {made.__name__} a method "
            "reset(self, env_ids), which is called for worlds that start an episode. "
            "Memory of env.memory is reset without it, so it may do nothing.",
            name="reset",
        )
    check_called_as(f"The {label}", made, "cfg", "env", name=made.__name__)
    is_method = inspect.isfunction(inspect.getattr_static(made, "reset"))
    called_with = ("self", "env_ids")[not is_method :]
    check_called_as(f"reset of the {label}", reset, *called_with, name="reset")
    return calls[0]


def _resolved(
    label: str,
    function: Callable[..., Any],
    params: dict[str, Any],
    scene: SceneEntities,
    called_with: Sequence[str],
) -> dict[str, Any]:
    """Return the parameters by name, defaults included, with resolved entities.

    `called_with` are the arguments that precede them.
    """
    signature, leading = inspect.signature(function), len(called_with)
    takes = [
        name
        for k, (name, p) in enumerate(signature.parameters.items())
        if p.kind == p.KEYWORD_ONLY or (k >= leading and p.kind < p.VAR_POSITIONAL)
    ]
    open_ended = [n for n, p in signature.parameters.items() if p.kind == p.VAR_KEYWORD]
    for name in params:
        if name not in takes and not open_ended:
            raise unknown_name(f"parameter of the {label}:", name, takes)
    try:
        bound = signature.bind(*[None] * leading, **params)
    except TypeError as error:
        raise InvalidInputError(
            f"The {label} does not fit its function: {error}. It is called "
            f"with {', '.join((*called_with, *params))}; the function takes "
            f"{listed(signature.parameters)}.",
            name="params",
        ) from error
    bound.apply_defaults()
    given = {name: bound.arguments[name] for name in takes}
    for name in open_ended:
        given |= bound.arguments[name]
    for name, parameter in signature.parameters.items():
        kinds = re.findall(r"\w+", str(parameter.annotation))
        is_entity = isinstance(parameter.default, SceneEntityCfg) or (
            "SceneEntityCfg" in kinds and "str" not in kinds
        )
        if is_entity and isinstance(given.get(name), str):
            raise InvalidInputError(
                f"The {label} has {name}={given[name]!r}, a text: it must be "
                f"SceneEntityCfg({given[name]!r}).",
                name=name,
            )
    if str(getattr(function, "__module__", "")).startswith("simstate."):
        _check_ranges(label, given)
    with _labelled(label):
        return {
            name: value.resolve(scene) if isinstance(value, SceneEntityCfg) else value
            for name, value in given.items()
        }


def _check_ranges(label: str, params: dict[str, Any]) -> None:
    """Raise unless parameters "…_range" are ranges, or dictionaries of ranges.

    Exchanged ends would otherwise go unnoticed. The parameters of a normal
    distribution, (mean, standard deviation), are checked when it is drawn.
    """
    if params.get("distribution") == "gaussian":
        return
    for name, value in params.items():
        if not name.endswith("_range"):
            continue
        if not isinstance(value, Mapping):
            check_range(label, name, value)
            continue
        spans = cast("Mapping[object, object]", value)
        for key, span in spans.items():
            check_range(label, f"{name}[{key!r}]", span)
