"""Terms: functions of the configuration, resolved once and named in every error."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from simstate.entity import SceneEntities
from simstate.env.cfg import TermCfg
from simstate.env.entity_cfg import SceneEntityCfg
from simstate.errors import (
    InvalidInputError,
    ShapeError,
    SimStateError,
    listed,
    unknown_name,
)

if TYPE_CHECKING:
    from simstate.env.env import Env

Function = TypeVar("Function", bound=Callable[..., Any])
ColumnNames = Callable[..., list[str]]


class Term:
    """A function with its parameters; calling it calls the function."""

    def __init__(
        self,
        kind: str,
        name: str,
        cfg: TermCfg,
        shipped: ModuleType,
        scene: SceneEntities,
        leading: int = 1,
    ) -> None:
        self.name = name
        self.kind = kind
        self.function = _function(kind, name, cfg.func, shipped)
        self.label = f"{kind} term {name!r}"
        self.params = _resolved(self.label, self.function, cfg.params, scene, leading)

    def __call__(self, *leading: Any) -> Any:
        """Call the function with (env) or (env, env_ids), and the parameters."""
        try:
            return self.function(*leading, **self.params)
        except SimStateError as error:
            error.add_note(f"It was raised in the {self.label}.")
            raise

    def tensor(self, env: Env, ndim: int) -> Tensor:
        """What the function returns: a tensor of `ndim` dimensions, a row per world."""
        value = self(env)
        fits = isinstance(value, Tensor) and value.ndim == ndim
        if fits and value.shape[0] == env.num_envs:
            return value
        want = f"({env.num_envs},)" if ndim == 1 else f"({env.num_envs}, k)"
        got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ShapeError(f"The {self.label} must return shape {want}, got {got}.")

    def column_names(self, env: Env, count: int) -> list[str]:
        """A readable name for each of the numbers that the function returns."""
        named: ColumnNames | None = getattr(self.function, "column_names", None)
        if named is not None:
            return [f"{self.name}/{name}" for name in named(env, **self.params)]
        if count == 1:
            return [self.name]
        return [f"{self.name}/{i}" for i in range(count)]


def columns(named: ColumnNames) -> Callable[[Function], Function]:
    """Say how the columns of an observation are called: `named(env, **params)`."""

    def mark(function: Function) -> Function:
        function.column_names = named  # pyright: ignore[reportFunctionMemberAccess]
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


def clear_diverged(values: Tensor, diverged: Tensor) -> Tensor | None:
    """Zero what is not finite in diverged worlds; the mask of what is bad elsewhere.

    None: nothing is. Where a world diverged even its last good state may have
    accelerations that are not finite. `diverged` fits `values` by broadcasting.
    """
    if math.isfinite(float(values.sum())):  # one pass: a bad number would show
        return None
    finite = torch.isfinite(values)
    values.masked_fill_(~finite & diverged, 0.0)
    bad = ~torch.isfinite(values)
    return bad if bool(bad.any()) else None


def not_finite_error(label: str, world: int, value: float) -> InvalidInputError:
    """The error for a term whose value in a world is not a number."""
    return InvalidInputError(
        f"The {label} returned {value} in world {world}. The state of the world is "
        "finite (a diverged one keeps its last good state), so the term itself divides "
        "by zero, takes a root of a negative number or the like."
    )


def _function(
    kind: str, name: str, func: object, shipped: ModuleType
) -> Callable[..., Any]:
    """The function itself, or the shipped one of that name."""
    if callable(func):
        return func
    known = [
        key
        for key, value in vars(shipped).items()
        if inspect.isfunction(value) and value.__module__ == shipped.__name__
        if not key.startswith("_")
    ]
    if not isinstance(func, str) or func not in known:
        raise unknown_name(f"function of the {kind} term {name!r}:", str(func), known)
    return getattr(shipped, func)


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
    try:
        return {
            name: value.resolve(scene) if isinstance(value, SceneEntityCfg) else value
            for name, value in given.items()
        }
    except SimStateError as error:
        raise type(error)(f"In the {label}: {error}") from error
