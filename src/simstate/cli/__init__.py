"""The command line: `simstate COMMAND --help` describes each command.

Parsing a command line and printing the help load neither torch nor MuJoCo: commands
import their dependencies within functions.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import tyro

from simstate.base.errors import SimStateError, suggestion
from simstate.base.mujoco_version import REPAIR, installation_fault, rejection
from simstate.base.places import place_of
from simstate.cli.answer import Answer, present
from simstate.cli.console import (
    console,
    escaped,
    plain_warnings,
    report_error,
    working,
)
from simstate.cli.options import readable

GROUPS = {
    "Look": ("view", "inspect", "quantities", "check", "contacts"),
    "Run": ("run", "bench"),
    "Record": ("replay", "plot", "export", "info", "diff", "share"),
    "Learn": ("tasks", "new-task", "train", "play", "passport", "collect", "runs"),
    "Study": ("plan", "identify", "align", "dispersions"),
    "Help": ("report",),
}
"""The commands by subject; `new-task` is `NewTaskCommand` of `new_task.py`."""
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
RENAMED = {
    "explain": "inspect MODEL NAME",
    "integrate": "run MODEL --integrator SCHEME",
    "record": "run MODEL --record FILE",
    "render": "run MODEL --film FILE, or --picture FILE",
}
"""Former commands and their replacements."""
RENAMED_OPTIONS = {
    ("contacts", "--time"): "--seconds",
    ("dispersions", "--worlds"): "--envs",
    ("new-task", "--model"): "an argument: simstate new-task FILE MODEL",
    ("plan", "--noise"): "--spread",
    ("play", "--output"): "--film",
    ("report", "--model"): "an argument: simstate report MODEL",
    ("view", "--beside"): "--compare",
}
"""Former options of commands and their replacements."""
WITH_TASK_OPTIONS = ("train", "play")
"""Commands whose options depend on the task."""
OWN_DISPLAY = ("view", "train")
"""Commands that show their progress themselves."""


def main(args: list[str] | None = None) -> int:
    """Run a command and return the exit code; print an error as a single message.

    Without a command, print the help; with --version, the versions and whether the
    native engine uses the compiled core. With --debug, errors keep their traceback.
    """
    args = sys.argv[1:] if args is None else args
    try:
        if args == ["--version"]:
            text, fault = versions()
            print(text)
            if fault is not None:
                report_error(SimStateError(fault))
            return 0 if fault is None else 1
        with plain_warnings():
            command = _parsed(args)
            shown = nullcontext() if args[0] in OWN_DISPLAY else working(args[0])
            with shown:
                found: Answer | int = command.execute()
            code = found if isinstance(found, int) else present(found, command.json)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _report_interrupt()
    except BrokenPipeError:  # the reader of the output, such as head, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if _is_interrupt(error):
            return _report_interrupt()
        if not isinstance(error, SimStateError) and (fault := installation_fault()):
            error = SimStateError(fault)  # probably the cause of the error
        is_ours = isinstance(error, SimStateError | OSError)
        place = place_of(error)
        if "--debug" in args or not (is_ours or place):
            raise
        report_error(error, place)
        return 1


def _is_interrupt(error: BaseException | None) -> bool:
    """Return True if Ctrl-C caused an error, as it does in imports of C++ code."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _report_interrupt() -> int:
    report_error(SimStateError("interrupted before the command finished."))
    return 130


def command_class(name: str) -> type[Any]:
    """Return the class of a command, which holds its options and `execute`."""
    module = import_module(f"simstate.cli.{_file(name).stem}")
    return getattr(module, _class_name(name))


def _file(name: str) -> Path:
    return Path(__file__).with_name(f"{name.replace('-', '_')}.py")


def _class_name(name: str) -> str:
    return name.title().replace("-", "") + "Command"


def _parsed(args: list[str]) -> Any:
    """Return the command of a command line; exit after the help or a usage error."""
    if not args or args[0] in ("-h", "--help"):
        print_overview()
        sys.exit(0)
    name = args[0]
    if name not in COMMANDS:
        kind = "option" if name.startswith("-") else "command"
        hint = suggestion(name, COMMANDS)
        if name in RENAMED:
            hint = f" It is now `simstate {RENAMED[name]}`."
        report_error(SimStateError(f"Unknown {kind} {name!r}.{hint}"))
        sys.exit(2)
    for arg in args[1:]:
        option = arg.partition("=")[0]
        if found := RENAMED_OPTIONS.get((name, option)):
            report_error(
                SimStateError(f"Unknown option {option!r}. It is now {found}.")
            )
            sys.exit(2)
    command = command_class(name)
    if name in WITH_TASK_OPTIONS:
        return command.parse(args[1:])
    return tyro.cli(readable(command), args=args[1:], prog=f"simstate {name}")


def print_overview() -> None:
    """Print the commands by subject, without loading their modules."""
    out = console()
    width = max(map(len, COMMANDS))
    lines = [
        "usage: simstate COMMAND [OPTIONS]",
        "",
        "The state layer for MuJoCo: simulate, inspect, record, learn and study.",
    ]
    for group, names in GROUPS.items():
        lines += ["", f"[bold]{group}[/]"]
        for name in names:
            summary = escaped(docstring(name).partition("\n")[0])
            lines.append(f"  [cyan]{name:<{width}}[/]  {summary}")
        (example,) = re.findall(r"Example: (.*)", docstring(names[0]))
        lines.append(f"  [dim]{'':<{width}}  $ {escaped(example)}[/]")
    lines += [
        "",
        "`simstate COMMAND --help` lists the options of a command,",
        "`simstate --version` the versions and the path of the native engine.",
    ]
    out.print("\n".join(lines), highlight=False, soft_wrap=True)


def docstring(name: str) -> str:
    """Return the docstring of a command's class, read from its file."""
    text = _file(name).read_text(encoding="utf-8")
    (found,) = re.findall(
        rf'^class {_class_name(name)}\b[^\n]*:\n    """(.*?)"""', text, re.M | re.S
    )
    return found


def versions() -> tuple[str, str | None]:
    """Return the versions in one line, and why this MuJoCo is rejected, or None."""
    from simstate.base.mujoco_version import installed_versions

    found = installed_versions()
    fault = installation_fault()
    try:
        import mujoco

        from simstate.base.compiled_core import description

        name = mujoco.__version__
        fault = fault or rejection(mujoco.mj_version(), name)
        path = description()
    except (ImportError, AttributeError) as error:
        if _is_interrupt(error):
            raise
        name = found.get("mujoco-core", found.get("mujoco", "is missing"))
        path = f"MuJoCo cannot be imported ({error})"
        fault = fault or f"{path}. Install the tested version: {REPAIR}."
    if fault is not None:
        path = "rejected"
    shown = (found.get(package, "is missing") for package in ("simstate", "torch"))
    simstate, torch = shown
    return f"simstate {simstate}, MuJoCo {name}, torch {torch}; {path}", fault
