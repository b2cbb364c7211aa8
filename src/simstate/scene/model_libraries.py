"""Models of other packages by name: MuJoCo Menagerie and robot_descriptions.

Both know their models' names without a download, and fetch a model when it is first
used. They are looked at only where they are installed.
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
"""Commands that make their names available."""


class Library(NamedTuple):
    """A package of models."""

    package: str
    title: str
    names: Callable[[], list[str]]
    """The names of its models that MuJoCo can load."""
    fetch: Callable[[str], mujoco.MjSpec]
    """A model of it, downloaded if it is not there yet."""


def _menagerie_names() -> list[str]:
    return list(_module("mujoco_menagerie").names())


def _fetch_menagerie(name: str) -> mujoco.MjSpec:
    """Return the robot without the scene in its file."""
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
    """The names of all models of the packages that are installed."""
    return [name for library in _installed() for name in library.names()]


def library_spec(name: str) -> mujoco.MjSpec | None:
    """The model of that name in an installed package; None if none has one."""
    for library in _installed():
        if name not in library.names():
            continue
        try:
            # What a download says of its progress is no part of a command's output.
            with contextlib.redirect_stdout(sys.stderr):
                return library.fetch(name)
        except Exception as error:  # git's, the network's, the package's own
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ModelError(
                f"{name!r} is a model of {library.title}, which could not give it: "
                f"{reason}. It is downloaded when it is first used, which needs a "
                "connection; a file on this machine can be given by its path.",
                name=name,
            ) from error
    return None


def install_hint() -> str:
    """A sentence on the packages that are missing; empty if none is."""
    present = _installed()
    missing = [library.title for library in LIBRARIES if library not in present]
    if not missing:
        return ""
    return f" Models of {' and '.join(missing)} are known after {INSTALL}."


def _installed() -> list[Library]:
    return [
        library
        for library in LIBRARIES
        if importlib.util.find_spec(library.package) is not None
    ]
