"""Numbers that are used unless others are given: what users rely on without saying so.

`python -m tests.test_defaults` writes them to tests/defaults.json after a change that
is meant; such a change belongs into the changelog. New ones need no entry.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import simstate
from simstate.base.errors import SimStateError

FILE = Path(__file__).parent / "defaults.json"


def modules() -> Iterator[object]:
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


def test_defaults_are_what_they_were():
    known, now = json.loads(FILE.read_text()), defaults()
    assert len(known.keys() & now.keys()) > 300
    changed = {
        key: (value, now[key])
        for key, value in known.items()
        if key in now and now[key] != value
    }
    assert not changed, "Meant? Then write them anew, and a line in the changelog."


if __name__ == "__main__":
    FILE.write_text(json.dumps(defaults(), indent=0, sort_keys=True) + "\n")
