"""The parts of the core-seconds add up, and none counts twice."""

from __future__ import annotations

import time

import pytest

from simstate.train.core_seconds import CoreSeconds


def work(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_an_inner_part_is_not_counted_in_the_outer_one():
    spent = CoreSeconds()
    begin = time.process_time()
    for _ in range(2):
        with spent("outer"):
            work(0.01)
            with spent("inner"):
                work(0.03)
            work(0.01)
    took = time.process_time() - begin
    assert spent.spent["outer"] + spent.spent["inner"] == pytest.approx(took, rel=0.02)
    assert spent.spent["inner"] == pytest.approx(0.06, abs=0.015)


def test_a_part_that_raises_is_counted():
    spent = CoreSeconds()

    def fail() -> None:
        with spent("outer"), spent("inner"):
            work(0.02)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert spent.spent["inner"] >= 0.02
    assert spent.spent["outer"] < 0.01
    assert sum(spent.table().values()) == pytest.approx(time.process_time(), rel=0.05)
