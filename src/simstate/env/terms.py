"""Terms: functions of the configuration, resolved once and named in every error."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import check_range
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
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env

Function = TypeVar("Function", bound=Callable[..., Any])
ColumnNames = Callable[..., list[str]]


class Term:
    """A function with its parameters, or an object that a class term made once.

    A class term is made with `(cfg, env)`, where `cfg.params` has everything resolved,
    and called as a function is. Where it has a `reset(env_ids)`, that is called for
    worlds that are reset. What it remembers of each world it keeps in `env.memory(…)`.
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
        self.name = name
        self.kind = kind
        self.place: Place | None = getattr(cfg, "place", None)
        self.label = f"{kind} term {name!r}"
        self.scope = f"{kind}/{name}"
        """What the names of its memory begin with."""
        self.instance: object | None = None
        """What a class term has made."""
        with written_at(self.place):
            self._resolve(cfg, shipped, env, leading)

    def _resolve(
        self, cfg: TermCfg, shipped: ModuleType, env: Env, leading: int
    ) -> None:
        """Find the function and its parameters, and make what a class term makes."""
        self.function = term_function(self.kind, self.name, cfg.func, shipped)
        if not isinstance(self.function, type):
            self.params = _resolved(
                self.label, self.function, cfg.params, env.scene, leading
            )
            return
        call = _call_of(self.label, self.function)
        self.params = _resolved(self.label, call, cfg.params, env.scene, 1 + leading)
        with worlds_of(env.sim).ledger.naming(self.scope):
            made = self.function(dataclasses.replace(cfg, params=self.params), env)
        self.instance = self.function = made

    def __call__(self, env: Env, *more: Any) -> Any:
        """Call the function with (env) or (env, env_ids), and the parameters."""
        function = without_resolving(self.function)
        try:
            with worlds_of(env.sim).ledger.naming(self.scope):
                return function(env, *more, **self.params)
        except Exception as error:
            remember_place(error, self.place)
            if isinstance(error, SimStateError):
                error.add_note(f"It was raised in the {self.label}.")
            raise

    def reset(self, env: Env, env_ids: Tensor) -> None:
        """Tell a class term of worlds that begin an episode."""
        reset = getattr(self.instance, "reset", None)
        if reset is not None:
            with worlds_of(env.sim).ledger.naming(self.scope):
                reset(env_ids)

    def tensor(self, env: Env, ndim: int) -> Tensor:
        """What the function returns: a tensor of `ndim` dimensions, a row per world."""
        value = self(env)
        fits = isinstance(value, Tensor) and value.ndim == ndim
        if fits and value.shape[0] == env.num_envs:
            return value.detach()  # a graph would stay in what is made of it
        want = f"({env.num_envs},)" if ndim == 1 else f"({env.num_envs}, k)"
        got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        with written_at(self.place):
            raise ShapeError(
                f"The {self.label} must return shape {want}, got {got}.",
                name=self.label,
                shape=getattr(value, "shape", None),
            )

    def column_names(self, env: Env, count: int) -> list[str]:
        """A readable name for each of the numbers that the function returns."""
        named: ColumnNames | None = getattr(self.function, "column_names", None)
        if named is not None:
            return [f"{self.name}/{name}" for name in named(env, **self.params)]
        if count == 1:
            return [self.name]
        return [f"{self.name}/{i}" for i in range(count)]


_Part = TypeVar("_Part", covariant=True)


class _Makes(Protocol[_Part]):
    """The configuration of an action or a command."""

    def make(self, name: str, env: Env) -> _Part:
        """What it describes, in an environment."""
        ...


def made(kind: str, name: str, cfg: _Makes[_Part], env: Env) -> _Part:
    """An action or command, whose memory belongs to it.

    Errors know the line that its configuration was written in.
    """
    place = getattr(cfg, "place", None)
    ledger = worlds_of(env.sim).ledger
    with ledger.naming(f"{kind}/{name}"), written_at(place):
        return cfg.make(name, env)


def columns(named: ColumnNames) -> Callable[[Function], Function]:
    """Say how the columns of an observation are called: `named(env, **params)`."""

    def mark(function: Function) -> Function:
        is_class = isinstance(cast("object", function), type)
        bare = staticmethod(named) if is_class else named
        function.column_names = bare  # pyright: ignore[reportFunctionMemberAccess]
        return function

    return mark


def columns_of(kind: str, parts: tuple[str, ...] = ("",)) -> ColumnNames:
    """Columns called after the chosen elements: `joint`, or `site` with .x, .y, .z."""

    def named(env: Env, asset_cfg: SceneEntityCfg, **params: object) -> list[str]:
        del env, params
        return [name + part for name in asset_cfg.names_of(kind) for part in parts]

    return named


XYZ = (".x", ".y", ".z")


def fixed_columns(*names: str) -> ColumnNames:
    """Columns that are always called the same."""

    def named(env: Env, **params: object) -> list[str]:
        del env, params
        return list(names)

    return named


def clear_diverged(values: Tensor, diverged: Tensor) -> Tensor:
    """Zero what is not finite in diverged worlds; whether anything else is bad.

    Where a world diverged even its last good state may have accelerations that are not
    finite. `diverged` fits `values` by broadcasting.
    """
    if values.device.type == "cpu":
        with np.errstate(all="ignore"):
            total = values.numpy().sum()
        if np.isfinite(total):  # so is each of them
            return torch.zeros((), dtype=torch.bool)
    bad = ~torch.isfinite(values)
    values.masked_fill_(bad & diverged, 0.0)
    return (bad & ~diverged).any()


def not_finite_error(term: Term, values: Tensor, worlds: Tensor) -> InvalidInputError:
    """The error for a term that gave a number which is not finite; (n,) or (n, k).

    `worlds` are the numbers of the worlds.
    """
    bad = (~torch.isfinite(values)).nonzero()[0]
    value, world = float(values[tuple(bad)]), int(worlds[bad[0]])
    error = InvalidInputError(
        f"The {term.label} returned {value} in world {world}. The state of the world "
        "is finite (a diverged one keeps its last good state), so the term itself "
        "divides by zero, takes a root of a negative number or the like."
    )
    remember_place(error, term.place)
    return error


def term_function(
    kind: str, name: str, func: object, shipped: ModuleType
) -> Callable[..., Any]:
    """The function itself, or the shipped one of that name."""
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
    """The `__call__` of a class term."""
    for base in made.__mro__:
        if "__call__" in vars(base):
            return vars(base)["__call__"]
    raise InvalidInputError(
        f"The {label} is a class whose objects cannot be called: give {made.__name__} "
        "a method __call__(self, env, …)."
    )


def _resolved(
    label: str,
    function: Callable[..., Any],
    params: dict[str, Any],
    scene: SceneEntities,
    leading: int,
) -> dict[str, Any]:
    """The parameters by name, defaults included, with entities resolved to ids."""
    signature = inspect.signature(function)
    takes = list(signature.parameters)[leading:]
    open_ended = any(p.kind == p.VAR_KEYWORD for p in signature.parameters.values())
    for name in params:
        if name not in takes and not open_ended:
            raise unknown_name(f"parameter of the {label}:", name, takes)
    try:
        bound = signature.bind(*[None] * leading, **params)
    except TypeError as error:
        raise InvalidInputError(
            f"The {label} does not fit its function: {error}. It takes {listed(takes)}."
        ) from error
    bound.apply_defaults()
    given = dict(list(bound.arguments.items())[leading:])
    for name, parameter in signature.parameters.items():
        if parameter.kind == parameter.VAR_KEYWORD:
            given |= given.pop(name)
    if str(getattr(function, "__module__", "")).startswith("simstate."):
        _check_ranges(label, given)
    try:
        return {
            name: value.resolve(scene) if isinstance(value, SceneEntityCfg) else value
            for name, value in given.items()
        }
    except SimStateError as error:
        raise type(error)(f"In the {label}: {error}") from error


def _check_ranges(label: str, params: dict[str, Any]) -> None:
    """Raise unless what shipped functions take as a range is one, or one for each key.

    Ends that have changed places would otherwise be drawn from without a word. Of a
    normal distribution it is (mean, standard deviation), which is checked when drawn.
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
