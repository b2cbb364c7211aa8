"""Numbers that are used unless others are given: what users rely on without saying so.

They are the defaults of public functions and classes, public constants, and the
settings of the shipped tasks, which published figures and trained policies belong to.
`python -m tests.test_defaults` writes them to tests/defaults.json after a change that
is meant; such a change belongs into the changelog. New ones need no entry.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.mistakes import CHOICE

import simstate
from simstate.base.errors import SimStateError
from simstate.env import tasks
from simstate.env.settings import settings_of

FILE = Path(__file__).parent / "defaults.json"


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(simstate.__path__, "simstate."):
        if "__main__" in found.name or "._core" in found.name:
            continue
        try:
            yield importlib.import_module(found.name)
        except (ImportError, SimStateError):
            continue  # of a library that is not installed


def is_number(value: object) -> bool:
    if isinstance(value, tuple):
        return len(value) > 0 and all(is_number(one) for one in value)
    return isinstance(value, int | float)


def constants() -> dict[str, str]:
    """Numbers by "module.NAME", without those that only bound what is shown."""
    found: dict[str, str] = {}
    for module in modules():
        path = Path(module.__file__ or "")
        source = path.read_text() if path.suffix == ".py" else ""
        own = set(re.findall(r"^([A-Z]\w*)\b.* = ", source, re.MULTILINE))
        for name, value in vars(module).items():
            if not name.isupper() or name not in own or CHOICE.fullmatch(name):
                continue
            if isinstance(value, dict) and all(map(is_number, value.values())):
                items = value.items()
                found |= {f"{module.__name__}.{name}[{k}]": repr(v) for k, v in items}
            elif is_number(value):
                found[f"{module.__name__}.{name}"] = repr(value)
    return found


def of_tasks() -> dict[str, str]:
    """Settings of the shipped tasks by "task: path" that are not their defaults."""
    found: dict[str, str] = {}
    for task in tasks.NAMES:
        env, train = tasks.make_cfg(task), tasks.make_train_cfg(task)
        settings = settings_of(env, "env") | settings_of(train, "train")
        for path, one in settings.items():
            if is_number(one.value) and not one.is_default:
                found[f"{task}: {path}"] = repr(one.value)
    return found


def defaults() -> dict[str, str]:
    """Numbers by "module.function(argument)", of public functions and methods."""
    found: dict[str, str] = {}
    for module in modules():
        owners = [(module.__name__, vars(module))]
        owners += [
            (f"{module.__name__}.{name}", vars(one))
            for name, one in vars(module).items()
            if inspect.isclass(one) and one.__module__ == module.__name__
        ]
        for owner, members in owners:
            for name, one in list(members.items()):
                if name.startswith("_") and name != "__init__":
                    continue
                if not inspect.isfunction(one) or one.__module__ != module.__name__:
                    continue
                for key, parameter in inspect.signature(one).parameters.items():
                    if is_number(parameter.default):
                        found[f"{owner}.{name}({key})"] = repr(parameter.default)
    return found


KINDS = {"defaults": defaults, "constants": constants, "tasks": of_tasks}


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_what_they_were(kind):
    known, now = json.loads(FILE.read_text())[kind], KINDS[kind]()
    assert len(known.keys() & now.keys()) > 100
    changed = {
        key: (value, now[key])
        for key, value in known.items()
        if key in now and now[key] != value
    }
    assert not changed, "Meant? Then write them anew, and a line in the changelog."


if __name__ == "__main__":
    found = {kind: numbers() for kind, numbers in KINDS.items()}
    FILE.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
