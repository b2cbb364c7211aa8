"""The tracer by which tests interrupt calls at several lines."""

from __future__ import annotations

import itertools
import sys

import pytest
from tests import tracer

HERE = __file__


def patient(log: list[str]) -> None:
    try:
        log.append("begun")
        log.append("more")
    except KeyboardInterrupt:
        try:
            log.append("handling")
            log.append("still handling")
        except KeyboardInterrupt:
            log.append("handled")
    log.append("end")


def outcomes(many: int) -> dict[tuple[str, ...], tracer.Traced]:
    """Interrupt `patient` at all combinations of this many lines; results by log."""
    found = {}
    for lines in itertools.combinations(range(14), many):
        log: list[str] = []
        one = tracer.traced(lambda log=log: patient(log), *lines, folder=HERE)
        assert len(one.places) <= many
        found[tuple(log)] = one
    return found


def test_lines_are_counted_where_nothing_is_raised():
    log: list[str] = []
    found = tracer.traced(lambda: patient(log), folder=HERE)
    assert log == ["begun", "more", "end"]
    assert found.count >= 4
    assert (found.places, found.error) == ((), None)
    again = tracer.traced(lambda: patient(log), found.count, folder=HERE)
    assert again == found


def test_it_stays_active_after_it_has_raised():
    once, twice, thrice = (outcomes(many) for many in (1, 2, 3))
    handled = ("begun", "handling", "handled", "end")
    assert ("begun", "handling", "still handling", "end") in once
    assert handled not in once
    assert twice[handled].error is None
    first, second = (int(place.rpartition(":")[2]) for place in twice[handled].places)
    assert first < second
    assert ("begun", "handling") not in once
    interrupted = thrice["begun", "handling"]
    assert len(interrupted.places) >= 2
    assert isinstance(interrupted.error, KeyboardInterrupt)


def test_other_errors_pass_and_tracing_ends():
    outer = sys.gettrace()
    with pytest.raises(ZeroDivisionError):
        tracer.traced(lambda: 1 / 0)
    assert sys.gettrace() is outer
    log: list[str] = []
    call = lambda: patient(log)  # noqa: E731
    found = tracer.traced(call, 3, error=MemoryError, folder=HERE)
    assert isinstance(found.error, MemoryError)
    assert "handling" not in log


def test_a_machine_without_a_compiler_skips(monkeypatch):
    real = tracer.sysconfig.get_config_var
    for link, why in (
        (None, "LDSHARED"),
        ("no-such-compiler -shared", "no compiler"),
        ("false", "the compiler failed"),
    ):
        monkeypatch.setattr(
            tracer.sysconfig,
            "get_config_var",
            lambda name, link=link: link if name == "LDSHARED" else real(name),
        )
        tracer.build.cache_clear()
        with pytest.raises(pytest.skip.Exception, match=why):
            tracer.traced(lambda: None)
    tracer.build.cache_clear()
