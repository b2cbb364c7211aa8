"""Task: a configuration to train, and the places where tasks are found.

A task is a file with a function `env_cfg() -> EnvCfg` and, optionally, `train_cfg() ->
TrainCfg`; a function of a module, as "my_package.tasks:ant"; an entry point of the
group "simstate.tasks"; or a registered name. All of them are used alike.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from simstate.base.errors import TaskError, close_to, listed
from simstate.base.places import place_of, place_of_function, written_at
from simstate.base.python_file import run_file
from simstate.env.env_cfg import EnvCfg
from simstate.env.train_cfg import TrainCfg

GROUP = "simstate.tasks"
"""Group of entry points with which installed packages provide tasks."""

EnvSource: TypeAlias = "Callable[[], EnvCfg | tuple[EnvCfg, TrainCfg]] | EnvCfg"
TrainSource: TypeAlias = "Callable[[], TrainCfg] | TrainCfg"


@dataclass(frozen=True)
class Task:
    """An environment and its training, under one name."""

    name: str
    """Name: a registered one, or the reference by which it was found."""
    env: EnvSource
    """The configuration of the environment, or a function that returns it."""
    train: TrainSource | None = None
    """That of the training, or a function that returns it; None: TrainCfg()."""
    description: str = ""
    """Description in one line."""
    path: Path | None = None
    """The file that it is written in, if it was given as a file."""
    trained: str = ""
    """Quality of a policy that was trained with it; "": not stated."""
    core_seconds: float | None = None
    """CPU time of that training [s], of all threads; None: not stated."""

    @property
    def command(self) -> str:
        """The command that trains it."""
        return f"simstate train {self.reference}"

    @property
    def label(self) -> str:
        """A short name for folders and titles."""
        return label_of(self.name)

    @property
    def reference(self) -> str:
        """Reference that is valid in any folder."""
        if self.path is None:
            return self.name
        return f"{self.path}:{self._function}" if self._function else str(self.path)

    @property
    def _function(self) -> str:
        """Function named of a file, as in "file.py:ant"; "": none."""
        head, _, function = self.name.rpartition(".py:")
        return function if head else ""

    def env_cfg(self, **options: Any) -> EnvCfg:
        """Return a new configuration of the environment, which the caller may change.

        `options` are keyword arguments of the function that makes it.
        """
        made = self._made(options)
        return made[0] if isinstance(made, tuple) else made

    def train_cfg(self) -> TrainCfg:
        """Return a new configuration of the training, which the caller may change."""
        if self.train is None:
            made = self._made()
            return made[1] if isinstance(made, tuple) else TrainCfg()
        made = self._call(self.train, "train_cfg")
        if not isinstance(made, TrainCfg):
            with written_at(place_of_function(self.train)):
                raise TaskError(
                    f"train_cfg of the task {self.name!r} must give a TrainCfg, got "
                    f"{type(made).__name__}."
                )
        return made

    def takes(self, option: str) -> bool:
        """Return True if the function that makes the environment has this argument."""
        return callable(self.env) and option in inspect.signature(self.env).parameters

    def _made(
        self, options: dict[str, Any] | None = None
    ) -> EnvCfg | tuple[EnvCfg, TrainCfg]:
        made = self._call(self.env, "env_cfg", options or {})
        if isinstance(made, EnvCfg):
            return made
        match made:
            case (EnvCfg() as env, TrainCfg() as train):
                return env, train
            case _:
                pass
        with written_at(place_of_function(self.env)):
            raise TaskError(
                f"The task {self.name!r} must give an EnvCfg, or an EnvCfg and a "
                f"TrainCfg, got {type(made).__name__}."
            )

    def _call(
        self, source: Any, what: str, options: dict[str, Any] | None = None
    ) -> Any:
        """Return the result of a function, or a copy of the object."""
        options = options or {}
        self._check_options(source, what, options)
        if not callable(source):
            return copy.deepcopy(source)
        try:
            return source(**options)
        except TypeError as error:
            needed = [
                name
                for name, p in inspect.signature(source).parameters.items()
                if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD
            ]
            if not needed:
                raise
            with written_at(place_of_function(source)):
                raise TaskError(
                    f"{what} of the task {self.name!r} is called without arguments, "
                    f"but it needs {', '.join(needed)}: give them defaults."
                ) from error

    def _check_options(self, source: Any, what: str, options: dict[str, Any]) -> None:
        """Raise for keyword arguments that a function does not have."""
        if not options:
            return
        known: list[str] = []
        if callable(source):
            parameters = inspect.signature(source).parameters
            if any(p.kind == p.VAR_KEYWORD for p in parameters.values()):
                return  # the function itself checks them
            known = list(parameters)
        for name in options:
            if name not in known:
                raise TaskError(
                    f"{what} of the task {self.name!r} has no argument {name!r}."
                    f"{close_to(name, known)} It has {listed(known) or 'none'}.",
                    name=name,
                )


def label_of(reference: str) -> str:
    """Return a short name for a reference: its file or function, without folders."""
    file, dot, function = reference.rpartition(".py")
    if dot and (not function or function.startswith(":")):
        return Path(file).name + function.replace(":", "-")
    return reference.rpartition(":")[2]


def from_reference(reference: str) -> Task | None:
    """Return the task of a file or a module's function; None for other references."""
    head, colon, attribute = reference.rpartition(":")
    if not colon or "/" in attribute or "\\" in attribute:  # C:\…
        head, attribute = reference, ""
    if head.endswith(".py") or os.path.isfile(head):  # also of a name that is too long
        return _from_file(reference, Path(head), attribute)
    if not attribute:
        return None
    return _from_object(reference, _imported(reference, head), attribute, None)


def from_entry_point(name: str) -> Task | None:
    """Return the task of this name in an installed package; None: there is none."""
    for point in offered():
        if point.name == name:
            try:
                found = point.load()
            except Exception as error:
                raise TaskError(
                    f"The task {name!r}, which an installed package offers as "
                    f"{point.value!r}, cannot be loaded: {_description(error)}."
                ) from error
            return found if isinstance(found, Task) else _task(name, found, None)
    return None


def offered() -> list[EntryPoint]:
    """Return the entry points of installed packages, by name."""
    return sorted(entry_points(group=GROUP), key=lambda point: point.name)


def _from_file(reference: str, path: Path, attribute: str) -> Task:
    if path.is_dir() or not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise TaskError(
            f"The task file {str(path)!r} {what}. `simstate new-task {path.name} "
            "MODEL` writes a new one."
        )
    if path.suffix != ".py":
        raise TaskError(
            f"{str(path)!r} is no Python file: a task file ends in .py and has a "
            "function env_cfg() that gives an EnvCfg."
        )
    module = run_file(path)
    if attribute:
        return _from_object(reference, module, attribute, path.resolve())
    return _task(reference, module, path.resolve())


def _imported(reference: str, module: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as of `python -m`
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module != missing and not module.startswith(f"{missing}."):
            raise  # the module is there; something that it imports is not
        raise TaskError(
            f"There is no module {module!r} for the task {reference!r}: write "
            "package.module:function, or the path of a .py file."
        ) from error


def _from_object(
    reference: str, module: ModuleType, attribute: str, path: Path | None
) -> Task:
    found: Any = module
    for name in attribute.split("."):
        if not hasattr(found, name):
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(f"{module.__name__}.{attribute}")
        if not hasattr(found, name):
            raise TaskError(
                f"There is no {attribute!r} for the task {reference!r}. It has "
                f"{listed(_functions(module))}."
            )
        found = getattr(found, name)
    if isinstance(found, Task):
        return found
    return _task(reference, found, path)


def _functions(module: ModuleType) -> list[str]:
    """Return the functions that a module itself defines."""
    return [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    ]


def _task(reference: str, found: Any, path: Path | None) -> Task:
    """Return the task of a function, or of what has an `env_cfg`, such as a module."""
    text = inspect.cleandoc(getattr(found, "__doc__", None) or "")
    description = text.partition("\n")[0]
    source = getattr(found, "env_cfg", None)
    if source is not None:
        train = getattr(found, "train_cfg", None)
        return Task(reference, source, train, description, path)
    if isinstance(found, EnvCfg):
        return Task(reference, found, None, "", path)
    if not callable(found):
        functions = _functions(found) if isinstance(found, ModuleType) else []
        raise TaskError(
            f"The task {reference!r} needs a function env_cfg() that gives an EnvCfg, "
            f"and has none.{close_to('env_cfg', functions)} It has "
            f"{listed(functions)}; `simstate new-task` writes a file that has it."
        )
    made: Any = found
    return Task(reference, made, None, description, path)


def _description(error: Exception) -> str:
    place = place_of(error)
    where = "" if place is None else f"{place}: "
    return f"{where}{type(error).__name__}: {error}"
