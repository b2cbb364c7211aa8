"""Changed copies of a configuration: other values by path, or terms left out."""

from __future__ import annotations

import dataclasses
import importlib
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

from simstate.base.errors import InvalidInputError, TaskError, unknown_name
from simstate.env.env_cfg import TermCfg
from simstate.env.settings import (
    Setting,
    function_name,
    is_union,
    parameters,
    settings_of,
)

Cfg = TypeVar("Cfg")


def with_settings(cfg: Cfg, root: str, values: Mapping[str, Any]) -> Cfg:
    """Return a copy with other values by path; those of other roots are left out.

    Values have the form of command lines and files: a list for a tuple, a name for a
    function. Raise for an unknown path or a value of a wrong type.
    """
    wanted = {path: v for path, v in values.items() if _root(path) == root}
    if not wanted:
        return cfg
    known = settings_of(cfg, root)
    for path in wanted:
        if path not in known:
            raise unknown_name("setting", path, known)
    fitted = {path: fit(path, v, known[path].hint) for path, v in wanted.items()}
    return _changed(cfg, root, known, fitted)


def without(cfg: Cfg, root: str, paths: Sequence[str]) -> Cfg:
    """Return a copy that lacks the terms of these paths, such as "env.events.push"."""
    for path in paths:
        if _root(path) == root:
            terms = _terms(cfg, root)
            if path not in terms:
                raise unknown_name("term to leave out", path, terms)
            cfg = _without(cfg, root, path)
    return cfg


def fit(path: str, value: Any, hint: Any) -> Any:
    """Return the value converted to the annotation; raise if it does not fit."""
    for member in get_args(hint) if is_union(hint) else (hint,):
        try:
            return _fit(value, member)
        except (TypeError, ValueError):
            continue
    raise InvalidInputError(f"{path} must be {_hint_text(hint)}, got {value!r}.")


def _fit(value: Any, hint: Any) -> Any:
    """Return the value as one plain type, tuple, list, literal or mapping of such."""
    origin, args = get_origin(hint), get_args(hint)
    if is_union(hint):
        return fit("", value, hint)
    if hint is Any:
        return value
    if hint is types.NoneType:
        if value is None or value == "None":
            return None
        raise TypeError
    if origin is Literal:
        if value in args:
            return value
        raise ValueError
    if origin is tuple or hint is tuple:
        return _fit_tuple(value, args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise TypeError
        items = cast("Mapping[str, Any]", value).items()
        return {key: fit("", item, args[1]) for key, item in items}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _fit_tuple(value, (args[0], ...))
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if hint is Path and isinstance(value, str | Path):
        return Path(value)
    if isinstance(hint, type) and type(value) is hint:
        return value
    raise TypeError


def _fit_tuple(value: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list):
        raise TypeError
    items = cast("Sequence[Any]", value)
    if not args:
        return tuple(items)
    kinds = args[:1] * len(items) if args[-1] is ... else args
    if len(kinds) != len(items):
        raise ValueError
    return tuple(fit("", item, kind) for item, kind in zip(items, kinds, strict=True))


def _hint_text(hint: Any) -> str:
    if is_union(hint):
        return " or ".join(_hint_text(member) for member in get_args(hint))
    if hint is types.NoneType:
        return "None"
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    return hint.__name__ if type(hint) is type else str(hint).replace("typing.", "")


def _changed(
    value: Any, path: str, known: Mapping[str, Setting], wanted: Mapping[str, Any]
) -> Any:
    """Return the value at a path with the wanted values below it, or itself."""
    if path in wanted:
        return wanted[path]
    if not any(key.startswith(f"{path}.") for key in wanted):
        return value

    def new(name: object, part: Any) -> Any:
        return _changed(part, f"{path}.{name}", known, wanted)

    if isinstance(value, TermCfg):
        return _changed_term(value, path, known, wanted)
    if dataclasses.is_dataclass(value):
        return _replaced(value, {f: new(f, getattr(value, f)) for f in _names(value)})
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {name: new(name, part) for name, part in items}
    return tuple(new(k, part) for k, part in enumerate(value))


def _changed_term(
    term: TermCfg, path: str, known: Mapping[str, Setting], wanted: Mapping[str, Any]
) -> TermCfg:
    params = dict(term.params)
    for name, (part, _) in parameters(term).items():
        at = f"{path}.params.{name}"
        new = _changed(part, at, known, wanted)
        if at in wanted or new is not part:
            params[name] = new
    changes: dict[str, Any] = {
        name: _changed(getattr(term, name), f"{path}.{name}", known, wanted)
        for name in _names(term)
        if name not in ("func", "params")
    }
    asked = wanted.get(f"{path}.func", known[f"{path}.func"].value)
    changes["func"] = _function(path, term, asked)
    return _replaced(term, {**changes, "params": params})


def _function(path: str, term: TermCfg, name: str) -> Any:
    """Return a function by name: the term's, "module:function", or a shipped one."""
    func: Any = term.func
    if name == (func if isinstance(func, str) else function_name(func)):
        return func
    module, colon, attribute = name.rpartition(":")
    if not colon:
        return name
    try:
        if module.endswith(".py"):  # the file that the task is written in
            return getattr(sys.modules[func.__module__], attribute)
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, KeyError) as error:
        raise TaskError(
            f"{path}.func: there is no function {name!r}.", name=name
        ) from error


def _names(value: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(value) if field.init]


def _replaced(value: Any, changes: dict[str, Any]) -> Any:
    """Return a copy with other fields, which keeps other attributes."""
    new = dataclasses.replace(value, **changes)
    names = {field.name for field in dataclasses.fields(value)}
    for name, kept in cast("dict[str, Any]", vars(value)).items():
        if name not in names:
            object.__setattr__(new, name, kept)
    return new


def _terms(cfg: Any, root: str) -> list[str]:
    """Return the paths of all dataclasses in dictionaries, such as terms."""
    found: list[str] = []
    if isinstance(cfg, Mapping):
        for name, part in cast("Mapping[str, Any]", cfg).items():
            if dataclasses.is_dataclass(part):
                found += [f"{root}.{name}", *_terms(part, f"{root}.{name}")]
    elif dataclasses.is_dataclass(cfg):
        for name in _names(cfg):
            found += _terms(getattr(cfg, name), f"{root}.{name}")
    return found


def _without(value: Any, path: str, removed: str) -> Any:
    """Return the value at a path without one of the parts below it."""
    if not removed.startswith(f"{path}."):
        return value
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {
            name: _without(part, f"{path}.{name}", removed)
            for name, part in items
            if f"{path}.{name}" != removed
        }
    changes = {
        name: _without(getattr(value, name), f"{path}.{name}", removed)
        for name in _names(value)
    }
    return _replaced(value, changes)


def _root(path: str) -> str:
    return path.partition(".")[0]
