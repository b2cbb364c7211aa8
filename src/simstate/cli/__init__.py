"""The command line: `simstate COMMAND --help` says what each one does."""

from __future__ import annotations

import sys
from typing import Annotated

import tyro

from simstate.cli.check import Check
from simstate.cli.console import report_error
from simstate.cli.explain import Explain
from simstate.cli.integrate import Integrate
from simstate.cli.play import Play
from simstate.cli.run import Run
from simstate.cli.tasks import Tasks
from simstate.cli.train import Train
from simstate.errors import SimStateError

Command = (
    Annotated[Run, tyro.conf.subcommand("run")]
    | Annotated[Check, tyro.conf.subcommand("check")]
    | Annotated[Explain, tyro.conf.subcommand("explain")]
    | Annotated[Integrate, tyro.conf.subcommand("integrate")]
    | Annotated[Tasks, tyro.conf.subcommand("tasks")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Play, tyro.conf.subcommand("play")]
)


def main(args: list[str] | None = None) -> int:
    """Run a command; an error of ours is one message, with --debug its traceback."""
    command = tyro.cli(
        Command,  # pyright: ignore[reportArgumentType]
        args=args,
        prog="simstate",
        description="The state layer for MuJoCo: simulate, check and train.",
        config=(tyro.conf.OmitArgPrefixes,),
    )
    try:
        return command.execute()
    except KeyboardInterrupt:
        report_error(SimStateError("interrupted before the command was done."))
        return 130
    except SimStateError as error:
        if command.debug:
            raise
        report_error(error)
        return 1


def entry() -> None:
    """What the installed `simstate` script calls."""
    sys.exit(main())
