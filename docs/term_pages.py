"""The page of every shipped term, action, command and task, from the code itself."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import simstate.env
from simstate.base.attribute_docs import attribute_docs
from simstate.base.contract import joined
from simstate.env import (
    curricula,
    events,
    observations,
    rewards,
    tasks,
    terminations,
)
from simstate.env.contracts import checked

KINDS: dict[str, ModuleType] = {
    "Observations": observations,
    "Rewards": rewards,
    "Terminations": terminations,
    "Events": events,
    "Curricula": curricula,
}
LEADING = ("env", "env_ids")
HEADERS = ("term", "parameters", "what it is")


def terms(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """The terms that a module has: its public functions of an environment."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and name in getattr(module, "__all__", _own(module))
        and next(iter(inspect.signature(value).parameters), "") == "env"
    }


def _own(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
        and not name.startswith("_")
    ]


def configurations(suffix: str) -> dict[str, type]:
    """The public classes of simstate.env whose names end so."""
    return {
        name: getattr(simstate.env, name)
        for name in simstate.env.__all__
        if name.endswith(suffix)
    }


def terms_page() -> str:
    """The whole page."""
    parts = [
        "# Terms\n\nEvery term that ships, with its parameters. `make docs` writes "
        "this page from the code. `params={…}` of a term's configuration gives them; "
        "each is an option of `simstate train`, too.\n"
    ]
    for kind, module in KINDS.items():
        rows = [_term_row(name, term) for name, term in terms(module).items()]
        name = module.__name__.rpartition(".")[2]
        table = _table(rows)
        if module is observations:
            each = zip(rows, terms(module).values(), strict=True)
            told = [(*row, _contract(term)) for row, term in each]
            table = _table(told, (*HEADERS, "unit; axes; point"))
        parts.append(f"## {kind}\n\n`simstate.env.{name}`\n\n{table}")
    for kind, suffix in (("Actions", "ActionCfg"), ("Commands", "CommandCfg")):
        for name, owner in configurations(suffix).items():
            heading = f"## {kind}\n\n" if owner is _first(suffix) else ""
            parts.append(f"{heading}### {name}\n\n{_about(owner)}\n\n{_fields(owner)}")
    return "\n".join([*parts, _tasks()])


def _tasks() -> str:
    """The tasks that ship, and whether they were trained."""
    found = [tasks.find(name) for name in tasks.NAMES]
    rows = [
        (
            f"`{task.name}`",
            task.description,
            task.trained,
            f"{task.core_seconds or '–'}",
        )
        for task in found
    ]
    table = _table(rows, ("task", "what it is about", "trained policy", "core-seconds"))
    return f"## Tasks\n\n`simstate train NAME`\n\n{table}"


def _first(suffix: str) -> type:
    return next(iter(configurations(suffix).values()))


def _term_row(name: str, term: Callable[..., Any]) -> tuple[str, str, str]:
    parameters = inspect.signature(term).parameters
    said = [_parameter(p) for p in parameters.values() if p.name not in LEADING]
    return f"`{name}`", ", ".join(said) or "–", _about(term)


def _contract(term: Callable[..., Any]) -> str:
    """What a term declares of its numbers."""
    told = term.contract.told
    if callable(told):
        return _about(told).rstrip(".").lower()
    each = checked(term.__name__, told, len(told) if isinstance(told, list) else 1)
    return "; ".join(
        joined(texts) for texts in zip(*(one[:3] for one in each), strict=True)
    )


def _parameter(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return f"`{parameter.name}`"
    default = parameter.default
    shown = "the robot" if dataclasses.is_dataclass(default) else f"{default!r}"
    return f"`{parameter.name}` = {shown}"


def _about(what: object) -> str:
    text = inspect.cleandoc(getattr(what, "__doc__", None) or "")
    return " ".join(text.split()).replace("|", "\\|")


def _fields(owner: type) -> str:
    docs: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if dataclasses.is_dataclass(base):
            docs |= attribute_docs(base)
    rows = []
    for field in dataclasses.fields(owner):
        value = field.default
        if field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        default = "needed" if value is dataclasses.MISSING else f"`{value!r}`"
        about = " ".join(docs.get(field.name, "").split())
        rows.append((f"`{field.name}`", default, about))
    return _table(rows, ("field", "default", "what it is"))


def _table(rows: Sequence[tuple[str, ...]], headers: tuple[str, ...] = HEADERS) -> str:
    rule = ("---",) * len(headers)
    lines = [f"| {' | '.join(row)} |" for row in (headers, rule, *rows)]
    return "\n".join(lines) + "\n"
