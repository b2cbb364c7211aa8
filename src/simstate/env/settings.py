"""Settings: every number, name and switch of a configuration, by its path.

In the configuration `env`, `env.rewards.track.weight` is the field `weight` of the
entry "track" of the dictionary `rewards`. Command lines, configuration files and sweeps
use these paths; `simstate.env.setting_changes` creates changed copies.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ForwardRef, Literal, Union, cast, get_args, get_origin

from simstate.base.attribute_docs import attribute_docs
from simstate.base.python_file import file_name
from simstate.env.entity_cfg import SceneEntityCfg
from simstate.env.env_cfg import TermCfg

_PLAIN = (bool, int, float, str, Path, types.NoneType)


@dataclass(frozen=True)
class Setting:
    """One setting of a configuration."""

    path: str
    """Path, such as "env.rewards.track.weight"."""
    value: Any
    """Current value."""
    hint: Any
    """Type annotation."""
    help: str = ""
    """Description."""
    is_default: bool = False
    """True if it has the default of its class or function."""


def settings_of(cfg: object, root: str) -> dict[str, Setting]:
    """Return the settings of a configuration by path, which starts with `root`."""
    found = _walk(cfg, type(cfg), root, "")
    return {setting.path: setting for setting in found}


def described_settings(cfg: object, root: str) -> dict[str, Any]:
    """Return the settings of a configuration by path, as `described` values."""
    found = settings_of(cfg, root).items()
    return {path: described(setting.value) for path, setting in found}


def described(value: object) -> Any:
    """Return a value as numbers, strings, lists and dictionaries, for a file."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple | list):
        return [described(item) for item in cast("Sequence[object]", value)]
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {str(key): described(item) for key, item in items}
    if callable(value):
        return function_name(value)
    return value


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a function: "module:name", or "file.py:name" in a task file.

    The name of a partial is that of its function.
    """
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    module = getattr(function, "__module__", "") or ""
    name = getattr(function, "__qualname__", repr(function))
    return f"{file_name(module) or module}:{name}"


def _walk(value: object, hint: Any, path: str, text: str) -> Iterator[Setting]:
    if isinstance(value, TermCfg):
        yield from _term(value, path)
    elif isinstance(value, SceneEntityCfg):
        unset = [f.name for f in fields(value) if not getattr(value, f.name)]
        yield from _fields(value, path, skipped=unset)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from _fields(value, path, skipped=())
    elif isinstance(value, Mapping):
        of_item = (*get_args(_member(hint, Mapping)), Any, Any)[1]
        for name, item in cast("Mapping[object, object]", value).items():
            yield from _walk(item, of_item, f"{path}.{name}", text)
    elif _is_list_of_parts(value):
        for k, item in enumerate(cast("Sequence[object]", value)):
            yield from _walk(item, Any, f"{path}.{k}", text)
    elif _is_plain(value):
        plain = _hint_of(value) if hint is Any else _plain_hint(hint)
        if plain is not None:
            yield Setting(path, value, plain, text)


def _fields(value: Any, path: str, skipped: Sequence[str]) -> Iterator[Setting]:
    """Yield the settings of a dataclass, field by field."""
    owner = cast("type[Any]", type(value))
    hints, docs = _hints(owner), _docs(owner)
    for field in fields(value):
        if field.init and field.name not in skipped:
            part = getattr(value, field.name)
            hint, text = hints.get(field.name, Any), docs.get(field.name, "")
            found = _walk(part, hint, f"{path}.{field.name}", text)
            is_plain = _is_plain(part) and _is_plain(field.default)
            yield from _marked(found, is_plain and part == field.default)


def _term(term: TermCfg, path: str) -> Iterator[Setting]:
    """Yield the settings of a term: its function and all parameters of it."""
    func = term.func if isinstance(term.func, str) else function_name(term.func)
    yield Setting(f"{path}.func", func, str, "The term's function.")
    yield from _fields(term, path, skipped=("func", "params"))
    for name, (value, hint) in parameters(term).items():
        text = f"Parameter of {func.rpartition(':')[2]}."
        found = _walk(value, hint, f"{path}.params.{name}", text)
        yield from _marked(found, name not in term.params)


def _marked(found: Iterator[Setting], is_default: bool) -> Iterator[Setting]:
    """Mark settings that have their default."""
    for setting in found:
        yield replace(setting, is_default=True) if is_default else setting


def parameters(term: TermCfg) -> dict[str, tuple[Any, Any]]:
    """Return the parameters of a term's function, with values and annotations."""
    found = {name: (value, Any) for name, value in term.params.items()}
    func: Any = term.func
    if isinstance(func, type):
        func = getattr(func, "__call__", None)  # noqa: B004
    if not callable(func):
        return found
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):
        return found
    scope = getattr(inspect.unwrap(func), "__globals__", {})
    for name, parameter in signature.parameters.items():
        given = term.params.get(name, parameter.default)
        if isinstance(given, SceneEntityCfg) and name not in term.params:
            continue  # the default entity
        if given is not parameter.empty and parameter.kind != parameter.VAR_KEYWORD:
            found[name] = (given, _evaluated(parameter.annotation, scope))
    return found


def _evaluated(annotation: Any, scope: dict[str, Any]) -> Any:
    """Return an annotation, which may be a string; Any if it is unknown."""
    if annotation is inspect.Parameter.empty:
        return Any
    try:
        while isinstance(annotation, str):  # an alias may be one, too
            annotation = eval(annotation, scope)
        return _without_names(annotation, scope)
    except Exception:  # such as a name that is imported only for type checkers
        return Any


def _without_names(annotation: Any, scope: dict[str, Any]) -> Any:
    """Evaluate members of a union that are names, such as aliases."""
    if not is_union(annotation):
        return annotation
    members = [
        _evaluated(arg.__forward_arg__, scope) if isinstance(arg, ForwardRef) else arg
        for arg in get_args(annotation)
    ]
    return Union[tuple(members)]  # noqa: UP007


def _hints(owner: type) -> dict[str, Any]:
    """Return the annotations of a class and its parents, evaluated."""
    hints: dict[str, Any] = {}
    for base in reversed(owner.__mro__):
        scope = vars(sys.modules.get(base.__module__, types))
        for name, annotation in vars(base).get("__annotations__", {}).items():
            hints[name] = _evaluated(annotation, scope)
    return hints


def _docs(owner: type) -> dict[str, str]:
    """Return the docstrings of a class's fields, parents included, as one line each."""
    docs: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if dataclasses.is_dataclass(base):
            docs |= {k: " ".join(t.split()) for k, t in attribute_docs(base).items()}
    return docs


def _is_list_of_parts(value: object) -> bool:
    items = cast("Sequence[Any]", value) if isinstance(value, tuple | list) else ()
    return bool(items) and all(dataclasses.is_dataclass(item) for item in items)


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_plain(item) for item in cast("Sequence[object]", value))
    return isinstance(value, _PLAIN)


def is_union(hint: Any) -> bool:
    """Return True if an annotation is a union."""
    return get_origin(hint) in (Union, types.UnionType)


def _member(hint: Any, kind: type) -> Any:
    """Return the member of a union that is a subclass of `kind`, or None."""
    for member in get_args(hint) if is_union(hint) else (hint,):
        origin = get_origin(member) or member
        if isinstance(origin, type) and issubclass(origin, kind):
            return member
    return None


def _plain_hint(hint: Any) -> Any:
    """Return the part of an annotation that a text can express; None: nothing."""
    origin, args = get_origin(hint), get_args(hint)
    if is_union(hint):
        members = [plain for arg in args if (plain := _plain_hint(arg)) is not None]
        has_values = any(member is not types.NoneType for member in members)
        return Union[tuple(members)] if has_values else None  # noqa: UP007
    if origin is Literal:
        return hint
    if isinstance(origin, type) and issubclass(origin, tuple | list | Sequence):
        parts = [arg if arg is ... else _plain_hint(arg) for arg in args]
        if not parts or None in parts:
            return None
        return tuple[tuple(parts) if origin is tuple else (parts[0], ...)]
    return hint if isinstance(hint, type) and issubclass(hint, _PLAIN) else None


def _hint_of(value: object) -> Any:
    """Return an annotation for a value without one; None if it is unknown."""
    if isinstance(value, tuple | list):
        parts = [_hint_of(item) for item in cast("Sequence[object]", value)]
        return tuple[tuple(parts)] if parts and None not in parts else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None if value is None else type(value)
    return float
