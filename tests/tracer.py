"""Exceptions at chosen lines of simstate's code, also while one is being handled.

The trace function is written in C (`tracer.c`), because Python removes a trace function
that has raised. It is compiled once per test session, by the compiler that built
Python; tests that need it are skipped where there is none.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from tests.inside import is_bracket_compiled

import simstate

SIMSTATE = f"{Path(simstate.__file__).parent}/"
_SOURCE = Path(__file__).with_suffix(".c")


@dataclass(frozen=True)
class Traced:
    """The course of a traced call."""

    count: int
    """Number of lines of the folder that were run."""
    places: tuple[str, ...]
    """File and line of each exception that was raised."""
    error: BaseException | None
    """The exception that left the call; None: it returned."""


def traced(
    call: Callable[[], object],
    *lines: int,
    error: type[BaseException] = KeyboardInterrupt,
    folder: str = SIMSTATE,
) -> Traced:
    """Make a call that is interrupted whenever it reaches one of these lines.

    Args:
        call: called without arguments, in this thread.
        lines: counted from 0 over all lines of `folder` that are run, including those
            that run after an earlier exception.
        error: raised at these lines. One that leaves the call is returned; other
            exceptions are raised.
        folder: beginning of the paths of the files whose lines count.
    """
    if lines and folder == SIMSTATE and not is_bracket_compiled():
        pytest.skip(
            "without the compiled bracket, an exception that a tracer sets may "
            "interrupt a rollback (simstate.world.calls)"
        )
    tracer, outer, left = compiled(), sys.gettrace(), None
    tracer.start(folder, dict.fromkeys(lines, error), False, 0, 0)
    try:
        call()
    except error as raised:
        left = raised
    finally:
        count, places = tracer.stop()
        sys.settrace(outer)
    names = tuple(f"{file.removeprefix(folder)}:{line}" for file, line in places)
    return Traced(count, names, left)


def lines_of(call: Callable[[], object]) -> int:
    """Return the number of simstate's lines that a call runs."""
    return traced(call).count


@cache
def build() -> Any:
    """Return the compiled module, or the reason for which there is none."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    with tempfile.TemporaryDirectory(prefix="simstate-tracer-") as folder:
        built = Path(folder) / f"tracer{suffix}"
        missing = compile_library(_SOURCE, built)
        if missing is not None:
            return missing
        loader = ExtensionFileLoader("tracer", str(built))
        spec = spec_from_file_location("tracer", built, loader=loader)
        assert spec is not None
        module = module_from_spec(spec)
        loader.exec_module(module)
    return module


def compile_library(source: Path, built: Path) -> str | None:
    """Compile a C file to a shared library; return the reason if it cannot be."""
    link = sysconfig.get_config_var("LDSHARED")
    if not link:
        return "Python does not state how to link an extension (LDSHARED)"
    include = sysconfig.get_path("include")
    command = [*shlex.split(link), "-std=c11", "-O1", "-fPIC", f"-I{include}",
               str(source), "-o", str(built)]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except OSError as missing:
        return f"there is no compiler ({missing})"
    except subprocess.CalledProcessError as failed:
        return f"the compiler failed: {failed.stderr.strip()[-300:]}"
    return None


def compiled() -> Any:
    """Return the compiled module; skip the test where it cannot be built."""
    built = build()
    if isinstance(built, str):
        pytest.skip(f"tests/tracer.c cannot be compiled: {built}.")
    return built
