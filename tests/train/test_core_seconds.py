"""The parts of the core-seconds add up, and none counts twice."""

from __future__ import annotations

import pytest

from simstate.train import core_seconds
from simstate.train.core_seconds import CoreSeconds


class Clock:
    """Takes the place of the module `time`: CPU time passes by `work` alone."""

    def __init__(self) -> None:
        self.now = 2.0

    def process_time(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(core_seconds, "time", made)
    return made


def test_an_inner_part_is_not_counted_in_the_outer_one(clock):
    spent = CoreSeconds()
    for _ in range(2):
        with spent("outer"):
            clock.work(0.25)
            with spent("inner"):
                clock.work(3.0)
            clock.work(0.5)
    assert spent.spent == {"inner": 6.0, "outer": 1.5}
    assert spent.table() == {"inner": 6.0, "outer": 1.5, "imports and other": 2.0}


def test_a_part_that_raises_is_counted(clock):
    spent = CoreSeconds()

    def fail() -> None:
        with spent("outer"), spent("inner"):
            clock.work(0.5)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert spent.spent == {"inner": 0.5, "outer": 0.0}
