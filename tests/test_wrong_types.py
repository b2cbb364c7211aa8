"""Every public class and function, called with what it cannot take, says so."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from types import ModuleType, TracebackType

import pytest
import torch

import simstate
from simstate import SimStateError, flight, integrate, space
from simstate.math import conventions
from simstate.study import dispersions, linear

WRONG = {
    "a number": 3,
    "a negative number": -1.0,
    "a text": "x",
    "nothing": None,
    "NaN": math.nan,
    "an empty list": [],
    "an uneven list": [[1, 2], [3]],
    "a dictionary": {"a": 1},
    "an object": object(),
    "a function": lambda *_: None,
    "a tensor of NaN": torch.full((2, 3), math.nan),
    "a truth": True,
    "a list of texts": ["a"],
    "a class": int,
    "a complex number": 1j,
    "a huge number": 10**400,
}
PACKAGES = (conventions, dispersions, flight, integrate, linear, space)
ROOT = str(simstate.__path__[0])


def callables(package: ModuleType) -> Iterator[tuple[str, Callable[..., object]]]:
    for name in package.__all__:
        thing = getattr(package, name)
        if not inspect.isroutine(thing) and not inspect.isclass(thing):
            continue
        if inspect.isabstract(thing):
            continue
        if inspect.isclass(thing) and issubclass(thing, tuple | Exception):
            continue  # what we return or raise
        yield f"{package.__name__}.{name}", thing


def calls(thing: Callable[..., object], wrong: object) -> Iterator[dict[str, object]]:
    """All that is required is wrong; where nothing is, one argument after another."""
    given = inspect.signature(thing).parameters.values()
    named = [p for p in given if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    required = [p.name for p in named if p.default is p.empty]
    if required:
        yield dict.fromkeys(required, wrong)
    else:
        yield from ({p.name: wrong} for p in named)


def is_ours(traceback: TracebackType | None) -> bool:
    """Whether an error came from within the package, not from its signature."""
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith(ROOT):
            return True
        traceback = traceback.tb_next
    return False


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_what_it_cannot_take_is_refused_by_a_sentence(package, what):
    raw = []
    for name, thing in callables(package):
        for arguments in calls(thing, WRONG[what]):
            try:
                thing(**arguments)
            except SimStateError:
                continue
            except Exception as error:
                if is_ours(error.__traceback__):
                    raw.append(f"{name}({', '.join(arguments)}): {error!r}")
    assert not raw
