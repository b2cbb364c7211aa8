"""Models of other packages by name: MuJoCo Menagerie and robot_descriptions.

Both list the names of their models without a download, and fetch a model on first use.
They are optional.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import mujoco

from simstate.base.errors import ModelError

INSTALL = "pip install 'simstate[robots]'"
"""Command that installs both packages."""


class Library(NamedTuple):
    """A package of models."""

    package: str
    title: str
    names: Callable[[], list[str]]
    """The names of its models that MuJoCo can load."""
    fetch: Callable[[str], mujoco.MjSpec]
    """Function that returns a model by name, downloaded on first use."""


def _menagerie_names() -> list[str]:
    return list(_module("mujoco_menagerie").names())


def _fetch_menagerie(name: str) -> mujoco.MjSpec:
    """Return the robot without the scene of its file."""
    robot = _module("mujoco_menagerie").get(name)
    return robot.spec(robot.default_model)


def _description_names() -> list[str]:
    listing = _module("robot_descriptions._descriptions").DESCRIPTIONS
    return [name for name, description in listing.items() if description.has_mjcf]


def _fetch_description(name: str) -> mujoco.MjSpec:
    path = str(_module(f"robot_descriptions.{name}").MJCF_PATH)
    return mujoco.MjSpec.from_file(path)


def _module(name: str) -> Any:
    return importlib.import_module(name)


LIBRARIES = (
    Library("mujoco_menagerie", "MuJoCo Menagerie", _menagerie_names, _fetch_menagerie),
    Library(
        "robot_descriptions",
        "robot_descriptions",
        _description_names,
        _fetch_description,
    ),
)


def library_names() -> list[str]:
    """Return the names of all models of the packages that are installed."""
    return [name for library in _installed() for name in library.names()]


def library_spec(name: str) -> mujoco.MjSpec | None:
    """Return the model of that name in an installed package; None if none has one."""
    for library in _installed():
        if name not in library.names():
            continue
        try:
            # The progress of a download must not become part of a command's output.
            with contextlib.redirect_stdout(sys.stderr):
                return library.fetch(name)
        except Exception as error:  # of git, the network or the package
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ModelError(
                f"{name!r} is a model of {library.title}, which failed to load it: "
                f"{reason}. It is downloaded on first use, which needs a connection; "
                "a file on this machine can be given by its path.",
                name=name,
            ) from error
    return None


def install_hint() -> str:
    """Return a sentence about the packages that are not installed, or ""."""
    present = _installed()
    missing = [library.title for library in LIBRARIES if library not in present]
    if not missing:
        return ""
    return f" For the models of {' and '.join(missing)}, run {INSTALL}."


def _installed() -> list[Library]:
    return [
        library
        for library in LIBRARIES
        if importlib.util.find_spec(library.package) is not None
    ]
