"""Packages of `report`, columns of `dispersions`, and memory of a container."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from simstate.base.compiled_core import is_available
from simstate.cli import report
from simstate.cli.dispersions import DispersionsCommand
from simstate.study.dispersions import Row
from simstate.train import run_memory


def test_report_lists_packages_whose_names_end_in_a_digit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ["stable-baselines3>=2.7; extra == 'rl'", "h5py (>=3)", "pillow[x]~=13"]
    monkeypatch.setattr(report, "requires", lambda _: lines)
    found = report.packages()
    assert found["stable-baselines3"] == version("stable-baselines3")
    assert found["h5py"] == version("h5py")
    assert found["pillow"] == version("pillow")


def test_dispersions_align_words_left_and_numbers_right() -> None:
    command = DispersionsCommand(Path("drop.py"))
    table = command._table([Row("range", "m", "mean", 1.5, 1.0, 2.0)])
    assert [c.justify for c in table.columns] == ["left"] * 2 + ["right"] * 3


def test_a_full_container_has_no_memory_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_memory, "_free_of_machine", lambda: 10**9)
    monkeypatch.setattr(run_memory, "_free_of_group", lambda: 0)
    assert run_memory.available_bytes("cpu") == 0


@pytest.mark.skipif(not is_available(), reason="the compiled core is not built")
def test_streams_of_floats_are_rejected() -> None:
    from simstate.engine.core import draws

    whole = [np.arange(3), np.arange(3), np.arange(3)]
    draws.uniform((whole[0], whole[1], whole[2]), None, 2, 0.0, 1.0)
    for k in range(3):
        wrong = [x.astype(float) if i == k else x for i, x in enumerate(whole)]
        with pytest.raises(ValueError, match="int64"):
            draws.uniform((wrong[0], wrong[1], wrong[2]), None, 2, 0.0, 1.0)
