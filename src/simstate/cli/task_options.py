"""Options of a task: every setting of its environment and training, by tyro.

`simstate train TASK --help` lists them. The settings are known once a task is loaded,
so the options are created for each task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import tyro

from simstate.base.errors import InvalidInputError
from simstate.cli.options import AnswerCommand, readable

if TYPE_CHECKING:
    from simstate.env.settings import Setting

_SECTIONS = {
    "env": "The environment.",
    "env.scene": "The scene: entities, ground, physics.",
    "env.observations": "Observations of the policy and the critic.",
    "env.actions": "Mapping of actions to controls.",
    "env.rewards": "Reward terms: per second, times their weight.",
    "env.terminations": "Conditions that end an episode.",
    "env.events": "Changes of worlds: resets, pushes, randomisation.",
    "env.commands": "Commands to the robot.",
    "env.curricula": "Changes in the course of training.",
    "train": "Training of the policy.",
}


@dataclass
class TaskCommand(AnswerCommand):
    """A command about a task, with values for some of the task's settings."""

    settings: tyro.conf.Suppress[dict[str, Any]] = field(
        default_factory=dict[str, Any], kw_only=True
    )
    """Values of the task's options, by path."""


AnyCommand = TypeVar("AnyCommand", bound=TaskCommand)


def parse_command(
    kind: type[AnyCommand],
    args: list[str],
    settings: Mapping[str, Setting],
    prog: str,
    named: Iterable[str],
) -> AnyCommand:
    """Parse a command line; the result has the settings whose values were changed.

    `named` are the arguments that determine the settings. With them the help lists the
    settings; without them it lists the command's options only.
    """
    if not settings:
        return tyro.cli(readable(kind), args=args, prog=prog)
    prog = " ".join([prog, *(name for name in named if not name.startswith("-"))])
    from simstate.env.settings import described

    known = [each for setting in settings.values() for each in _settable(setting)]
    whole = _with_options(kind, known)
    parsed: Any = tyro.cli(whole, args=args, prog=prog)
    given = {
        each.path: described(value)
        for section, members in _grouped(known).items()
        for k, each in enumerate(members)
        if (value := getattr(getattr(parsed, _name(section)), f"at_{k}")) != each.value
    }
    values: dict[str, Any] = {
        f.name: getattr(parsed, f.name) for f in dataclasses.fields(kind)
    }
    values["settings"] = given
    return kind(**values)


def _with_options(kind: type[TaskCommand], known: Iterable[Setting]) -> type[Any]:
    """Return the command's class with a group of options per section of settings."""
    groups: list[Any] = []
    for section, members in _grouped(known).items():
        group = make_dataclass(
            f"Options_{_name(section)}",
            [_option(k, each, section) for k, each in enumerate(members)],
        )
        about = tyro.conf.arg(name=section, help=_SECTIONS.get(section, ""))
        groups.append(
            (_name(section), Annotated[group, about], field(default_factory=group))
        )
    base = readable(kind)
    whole = make_dataclass(kind.__name__, groups, bases=(base,), kw_only=True)
    whole.__doc__ = kind.__doc__
    return cast("type[Any]", whole)


def _option(number: int, setting: Setting, section: str) -> tuple[str, Any, Any]:
    name = setting.path.removeprefix(f"{section}.")
    metavar = _metavar(setting.hint)
    about = tyro.conf.arg(name=name, help=setting.help, metavar=metavar)
    value = setting.value
    return (
        f"at_{number}",
        Annotated[setting.hint, about],
        field(default_factory=lambda: value),
    )


_PLACEHOLDERS: dict[Any, str] = {
    int: "N", float: "VALUE", str: "TEXT", bool: "", Path: "PATH",
}  # fmt: skip


def _metavar(hint: Any) -> str | None:
    """Return the placeholder for values of a type; None: list its choices."""
    parts = [part for part in get_args(hint) if part is not type(None)]
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        found = list(dict.fromkeys(_metavar(part) for part in parts))
        return None if None in found else "|".join(map(str, found))
    if origin is tuple:
        inner = [_metavar(part) or "VALUE" for part in parts if part is not Ellipsis]
        return f"{inner[0]} ..." if Ellipsis in parts else " ".join(inner)
    return _PLACEHOLDERS.get(hint) or None


def _settable(setting: Setting) -> list[Setting]:
    """Return the setting with its value as annotated; [] if it does not match."""
    from simstate.env.setting_changes import fit

    try:
        value = fit(setting.path, setting.value, setting.hint)
    except InvalidInputError:  # such a value cannot be typed
        return []
    return [dataclasses.replace(setting, value=value)]


def _grouped(known: Iterable[Setting]) -> dict[str, list[Setting]]:
    """Return the settings by section."""
    groups: dict[str, list[Setting]] = {}
    for each in known:
        head = ".".join(each.path.split(".")[:2])
        section = head if head in _SECTIONS else each.path.partition(".")[0]
        groups.setdefault(section, []).append(each)
    return groups


def _name(section: str) -> str:
    return f"options_of_{section.replace('.', '_')}"
