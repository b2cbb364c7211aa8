"""Adapters to libraries that are not installed say how to get them."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from simstate import InvalidInputError


@pytest.mark.parametrize(
    ("module", "missing", "line"),
    [
        ("skrl", "skrl", "pip install skrl"),
        ("torchrl", "torchrl", r"pip install torchrl==0\.14\.1 'tensordict<0\.15'"),
        ("torchrl", "tensordict", r"pip install torchrl==0\.14\.1 'tensordict<0\.15'"),
    ],
)
def test_how_to_get_it_is_said(monkeypatch, module, missing, line):
    for name in [n for n in sys.modules if n.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, f"simstate.interop.{module}", raising=False)
    with pytest.raises(InvalidInputError, match=rf"needs {missing}.*{line}"):
        import_module(f"simstate.interop.{module}")
