"""The command line: `simstate COMMAND --help` says what each one does."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated, Any, get_args

import tyro

from simstate.cli.align import Align
from simstate.cli.bench import Bench
from simstate.cli.check import Check
from simstate.cli.collect import Collect
from simstate.cli.console import plain_warnings, report_error
from simstate.cli.contacts import Contacts
from simstate.cli.diff import Diff
from simstate.cli.dispersions import Dispersions
from simstate.cli.explain import Explain
from simstate.cli.export import Export
from simstate.cli.info import Info
from simstate.cli.inspect import Inspect
from simstate.cli.integrate import Integrate
from simstate.cli.new_task import NewTask
from simstate.cli.play import Play
from simstate.cli.plot import Plot
from simstate.cli.quantities import Quantities
from simstate.cli.record import Record
from simstate.cli.render import Render
from simstate.cli.replay import Replay
from simstate.cli.report import Report
from simstate.cli.run import Run
from simstate.cli.runs import Runs
from simstate.cli.tasks import Tasks
from simstate.cli.train import Train
from simstate.cli.view import View
from simstate.errors import SimStateError, suggestion
from simstate.places import place_of

Command = (
    Annotated[Run, tyro.conf.subcommand("run")]
    | Annotated[Inspect, tyro.conf.subcommand("inspect")]
    | Annotated[Explain, tyro.conf.subcommand("explain")]
    | Annotated[Contacts, tyro.conf.subcommand("contacts")]
    | Annotated[Quantities, tyro.conf.subcommand("quantities")]
    | Annotated[Check, tyro.conf.subcommand("check")]
    | Annotated[Diff, tyro.conf.subcommand("diff")]
    | Annotated[Integrate, tyro.conf.subcommand("integrate")]
    | Annotated[Record, tyro.conf.subcommand("record")]
    | Annotated[Info, tyro.conf.subcommand("info")]
    | Annotated[Plot, tyro.conf.subcommand("plot")]
    | Annotated[Export, tyro.conf.subcommand("export")]
    | Annotated[Collect, tyro.conf.subcommand("collect")]
    | Annotated[Replay, tyro.conf.subcommand("replay")]
    | Annotated[Dispersions, tyro.conf.subcommand("dispersions")]
    | Annotated[Align, tyro.conf.subcommand("align")]
    | Annotated[Tasks, tyro.conf.subcommand("tasks")]
    | Annotated[NewTask, tyro.conf.subcommand("new-task")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Play, tyro.conf.subcommand("play")]
    | Annotated[Runs, tyro.conf.subcommand("runs")]
    | Annotated[View, tyro.conf.subcommand("view")]
    | Annotated[Render, tyro.conf.subcommand("render")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
    | Annotated[Report, tyro.conf.subcommand("report")]
)
WITH_TASK_OPTIONS = {"train": Train, "play": Play}
"""Commands whose options depend on the task."""


def main(args: list[str] | None = None) -> int:
    """Run a command; an error is one message, with --debug its traceback.

    Without a command it prints the help; with --version the versions, and whether the
    native engine runs on the compiled core.
    """
    args = sys.argv[1:] if args is None else args
    if args == ["--version"]:
        print(versions())
        return 0
    try:
        with plain_warnings():
            code = _parsed(args).execute()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        report_error(SimStateError("interrupted before the command was done."))
        return 130
    except BrokenPipeError:  # whoever read the output, such as head, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        is_ours = isinstance(error, SimStateError | OSError)
        place = place_of(error)
        if "--debug" in args or not (is_ours or place):
            raise
        report_error(error, place)
        return 1


def _parsed(args: list[str]) -> Any:
    """The command that a command line asks for."""
    if args and not args[0].startswith("-"):
        known = [get_args(member)[1].name for member in get_args(Command)]
        if args[0] not in known:
            report_error(
                SimStateError(
                    f"Unknown command {args[0]!r}.{suggestion(args[0], known)}"
                )
            )
            sys.exit(2)
        if args[0] in WITH_TASK_OPTIONS:
            return WITH_TASK_OPTIONS[args[0]].parse(args[1:])
    return tyro.cli(
        Command,  # pyright: ignore[reportArgumentType]
        args=args or ["--help"],
        prog="simstate",
        description="The state layer for MuJoCo: simulate, inspect, check and train. "
        "With --version: the versions, and which path the native engine takes.",
        config=(tyro.conf.OmitArgPrefixes,),
    )


def versions() -> str:
    """The versions in use, and the path of the native engine, in one line."""
    from simstate.engine.core import description

    own = ", ".join(
        f"{name} {version(package)}"
        for name, package in (
            ("simstate", "simstate"),
            ("MuJoCo", "mujoco"),
            ("torch", "torch"),
        )
    )
    return f"{own}; {description()}"


def entry() -> None:
    """What the installed `simstate` script calls."""
    sys.exit(main())
