"""Options of the commands; each has the same name and placeholder on all commands."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_type_hints

import tyro

from simstate.base.errors import InvalidInputError

METAVARS = {
    "all": "", "attitude": "", "batch": "N", "camera": "NAME", "cameras": "NAME ...",
    "check": "", "columns": "COLUMN ...", "command": "VX VY YAW_RATE",
    "compare": "RECORDING|ENGINE|SIMULATOR", "confidence": "PROBABILITY",
    "config": "FILE", "control": "SECONDS", "cost": "FILE:FUNCTION", "debug": "",
    "device": "DEVICE", "end": "SECONDS", "engine": "", "envs": "N", "episode": "N",
    "episodes": "N", "every": "SECONDS", "export": "", "file": "FILE",
    "files": "FILE ...", "film": "FILE", "folders": "FOLDER ...", "force": "",
    "fps": "RATE", "frame": "AXES", "free": "PARAMETERS", "from": "FILE ...",
    "gravity": "", "grid": "SETTING=VALUES ...", "held_out": "FRACTION",
    "horizon": "SECONDS", "host": "ADDRESS", "image_size": "WIDTH HEIGHT",
    "in": "SIMULATOR", "integrator": "SCHEME", "iterations": "N", "json": "",
    "keep": "N", "knots": "N", "left": "FILE", "log": "FILE", "logger": "",
    "made_by": "FILE:FUNCTION", "metric": "NAME", "mjcf": "FILE", "model": "MODEL",
    "name": "NAME", "noise": "SPREAD", "open": "", "orbit": "AZIMUTH ELEVATION",
    "out": "PATH", "outputs": "COLUMN ...", "overlays": "OVERLAY ...",
    "parameters": "FILE", "paused": "", "picture": "FILE", "planner": "",
    "plot": "FILE", "point": "POINT", "policy": "POLICY", "port": "PORT",
    "profile": "", "quantities": "QUANTITY ...", "rate": "HERTZ", "ray": "ADDRESS",
    "record": "FILE", "rename": "OLD=NEW ...", "renderer": "", "replan": "N",
    "report": "FILE", "resume": "", "right": "FILE", "rows": "N", "run_dir": "FOLDER",
    "samples": "N", "save": "FILE", "save_every": "N", "search": "TEXT",
    "seconds": "SECONDS", "seed": "SEED", "seeds": "SEED ...", "sheet": "",
    "size": "WIDTH HEIGHT", "snapshot": "FILE", "snapshot_every": "SECONDS",
    "spread": "FRACTION", "start": "SECONDS", "start_from": "RUN", "states": "N",
    "subject": "SUBJECT", "success": "TERM", "supersampling": "N", "task": "TASK",
    "tasks": "TASK ...", "teacher": "RUN",
    "theirs": "MODEL", "threads": "N", "timestep": "SECONDS",
    "to": "", "token": "TOKEN", "tolerance": "VALUE", "transparent": "",
    "turn": "RATE", "unit": "UNIT", "values": "", "video_every": "N", "view": "",
    "what": "", "window": "SECONDS", "with": "SIMULATOR ...", "without": "TERM ...",
    "world": "WORLD", "worlds": "WORLD ...",
}  # fmt: skip
"""Placeholder of the value of every option and argument in the help; empty for flags,
for choices, and for options whose declaration has one."""

Model = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(
        help="An MJCF or URDF file, or the name of a model: a bundled one, or one of "
        "MuJoCo Menagerie or robot_descriptions if these are installed.",
    ),
]
Engine = Annotated[
    Literal["native", "warp"],
    tyro.conf.arg(help="CPU threads in float64, or MuJoCo Warp in float32."),
]
Device = Annotated[
    str, tyro.conf.arg(help='Device of the tensors; "cuda" needs --engine warp.')
]
Seconds = Annotated[float, tyro.conf.arg(help="Simulated time [s].")]
Seed = Annotated[int, tyro.conf.arg(help="Seed of everything random.")]
Debug = Annotated[bool, tyro.conf.arg(help="Show the traceback of an error.")]


@dataclass(kw_only=True)
class AnswerCommand:
    """A command that returns an Answer; the help lists these options last."""

    json: Annotated[
        bool, tyro.conf.arg(help="Print JSON instead of text and tables.")
    ] = False
    debug: Debug = False


def readable(kind: type[Any]) -> type[Any]:
    """Return a command's class with annotations that make its help readable.

    Values have the placeholders of `METAVARS`, flags have no negated form, "None" is
    not a value, and uninformative defaults are omitted.
    """
    hints, docs = get_type_hints(kind, include_extras=True), _docs(kind)
    plain = (tyro.conf.DisallowNone, tyro.conf.FlagCreatePairsOff)
    fields: list[Any] = []
    for one in dataclasses.fields(kind):
        hint: Any = hints[one.name]
        factory: Any = one.default_factory
        group = getattr(hint, "__origin__", hint)
        if dataclasses.is_dataclass(group):
            nested: Any = readable(cast("type[Any]", group))
            hint, factory = Annotated[nested, *hint.__metadata__], nested
        else:
            about = tyro.conf.arg(
                metavar=METAVARS.get(_option_name(one.name, hint)) or None,
                help=docs.get(one.name), help_behavior_hint=_default_text,
            )  # fmt: skip
            hint = Annotated[hint, *plain, about]
        default = dataclasses.field(
            default=one.default, default_factory=factory, kw_only=one.kw_only
        )
        fields.append((one.name, hint, default))
    found = dataclasses.make_dataclass(kind.__name__, fields, bases=(kind,))
    found.__doc__ = kind.__doc__
    named: dict[str, Any] = vars(found)["__dataclass_fields__"]
    for one in dataclasses.fields(AnswerCommand):  # inherited, but listed last
        if one.name in named:
            named[one.name] = named.pop(one.name)
    return found


def _docs(kind: type[Any]) -> dict[str, str]:
    """Return the docstrings of a class's fields, each on one line."""
    (cls,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(cls, ast.ClassDef)
    found: dict[str, str] = {}
    for before, after in itertools.pairwise(cls.body):
        match before, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
            case _:
                pass
    return found


def _option_name(field: str, hint: Any) -> str:
    """Return the name of a field's option: its own, or that of its declaration."""
    declared = (getattr(one, "name", None) for one in getattr(hint, "__metadata__", ()))
    return next((name for name in declared if name), field)


def _default_text(default: str) -> str:
    return (
        ""
        if default in ("None", "False", "True", "", "''")
        else f"(default: {default})"
    )


def check_writable(option: str, path: Path | None) -> None:
    """Raise if a file cannot be written; to be called before the work."""
    if path is None:
        return
    if path.is_dir():
        raise InvalidInputError(f"{option} {str(path)!r} is a folder: give a file.")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InvalidInputError(
            f"{option} {str(path)!r}: the folder {str(path.parent)!r} does not exist."
        )
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InvalidInputError(f"{option} {str(path)!r} is not writable.")


def check_different(outputs: Mapping[str, Path | None]) -> None:
    """Raise if two options name the same file."""
    taken: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is not None and (other := taken.setdefault(path.resolve(), option)) != (
            option
        ):
            raise InvalidInputError(
                f"{other} and {option} write the same file {str(path)!r}: name two."
            )


def check_folder(option: str, path: Path | None) -> None:
    """Raise if a folder cannot be created or written to; to be called before."""
    if path is None:
        return
    found = path.absolute()
    while not found.exists():
        found = found.parent
    if not found.is_dir():
        raise InvalidInputError(
            f"{option} {str(path)!r}: {str(found)!r} is a file, not a folder."
        )
    if not os.access(found, os.W_OK):
        raise InvalidInputError(
            f"{option} {str(path)!r}: the folder {str(found)!r} is not writable."
        )


def check_plot(option: str, path: Path | None) -> None:
    """Raise if no plot can be written to a file; to be called before the work."""
    check_writable(option, path)
    if path is not None:
        from simstate.base.samples import check_figure_file  # loads torch

        check_figure_file(path)
