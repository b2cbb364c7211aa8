"""The command line: `simstate COMMAND --help` says what each one does."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import tyro

from simstate.cli.align import Align
from simstate.cli.bench import Bench
from simstate.cli.check import Check
from simstate.cli.console import plain_warnings, report_error
from simstate.cli.diff import Diff
from simstate.cli.dispersions import Dispersions
from simstate.cli.explain import Explain
from simstate.cli.inspect import Inspect
from simstate.cli.integrate import Integrate
from simstate.cli.play import Play
from simstate.cli.quantities import Quantities
from simstate.cli.run import Run
from simstate.cli.tasks import Tasks
from simstate.cli.train import Train
from simstate.errors import SimStateError

Command = (
    Annotated[Run, tyro.conf.subcommand("run")]
    | Annotated[Inspect, tyro.conf.subcommand("inspect")]
    | Annotated[Explain, tyro.conf.subcommand("explain")]
    | Annotated[Quantities, tyro.conf.subcommand("quantities")]
    | Annotated[Check, tyro.conf.subcommand("check")]
    | Annotated[Diff, tyro.conf.subcommand("diff")]
    | Annotated[Integrate, tyro.conf.subcommand("integrate")]
    | Annotated[Dispersions, tyro.conf.subcommand("dispersions")]
    | Annotated[Align, tyro.conf.subcommand("align")]
    | Annotated[Tasks, tyro.conf.subcommand("tasks")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Play, tyro.conf.subcommand("play")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)


def main(args: list[str] | None = None) -> int:
    """Run a command; an error of ours is one message, with --debug its traceback.

    Without a command it prints the help; with --version the versions, and whether the
    native engine runs on the compiled core.
    """
    args = sys.argv[1:] if args is None else args
    if args == ["--version"]:
        print(versions())
        return 0
    command = tyro.cli(
        Command,  # pyright: ignore[reportArgumentType]
        args=args or ["--help"],
        prog="simstate",
        description="The state layer for MuJoCo: simulate, inspect, check and train. "
        "With --version: the versions, and which path the native engine takes.",
        config=(tyro.conf.OmitArgPrefixes,),
    )
    try:
        with plain_warnings():
            code = command.execute()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        report_error(SimStateError("interrupted before the command was done."))
        return 130
    except BrokenPipeError:  # whoever read the output, such as head, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (SimStateError, OSError) as error:
        if command.debug:
            raise
        report_error(error)
        return 1


def versions() -> str:
    """The versions in use, and the path of the native engine, in one line."""
    from importlib.metadata import version

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
