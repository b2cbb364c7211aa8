"""Checked values: what is refused, what the message says, and its data."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.raised import raises

import simstate
from simstate import InvalidInputError, ShapeError, UnknownNameError
from simstate.base.checks import (
    Limits,
    all_of,
    as_array,
    as_device,
    as_path,
    check_calls,
    check_finite,
    check_range,
    has_shape,
    instance_of,
    number,
    one_of,
    whole_number,
)

NONE_OF_THEM = [math.nan, "1", b"1", None, True, [1.0, 2.0], 1j, torch.ones(2), {}, ...]


@pytest.mark.parametrize("value", NONE_OF_THEM, ids=repr)
def test_what_is_no_number_is_refused(value):
    with raises(InvalidInputError, name="mass") as caught:
        number("mass", value)
    assert caught.value.name == "mass"


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), torch.tensor(2.0)], ids=repr)
def test_a_number_of_any_kind_is_taken(value):
    assert number("mass", value, more_than=1, at_most=2) == 2.0


@pytest.mark.parametrize(
    ("limits", "inside", "outside", "name"),
    [
        ({}, [-1e300, 0, 7], [math.inf, -math.inf], "it"),
        ({"more_than": 0}, [1e-300, 9], [0, -1, math.inf], "it"),
        ({"at_least": 0}, [0, 9], [-1e-300, math.inf], "it"),
        ({"more_than": 0, "at_most": 1}, [0.1, 1], [0, 1.1], "it"),
        ({"at_least": 1, "less_than": 3}, [1, 2.9], [0.9, 3], "it"),
        ({"more_than": 0, "finite": False}, [math.inf], [0, math.nan], "it"),
        ({"less_than": 5, "unit": "kg"}, [4.9], [5], "it"),
    ],
)
def test_limits(limits, inside, outside, name):
    for value in inside:
        assert number("it", value, **limits) == value
    for value in outside:
        with raises(InvalidInputError, name=name):
            number("it", value, **limits)


def test_the_first_value_outside_is_named():
    values = torch.tensor([[1.0, 2.0], [3.0, -4.0], [-5.0, 6.0]])
    with raises(InvalidInputError, name="std") as caught:
        Limits(at_least=0).check(values, "std", " Oh.")
    assert (caught.value.name, caught.value.shape) == ("std", (3, 2))
    assert Limits(at_least=-5).check(values, "std") is values


def test_finite_values():
    good = torch.tensor([1.0, -1e300], dtype=torch.float64)
    assert check_finite(good, "force") is good
    for bad in (math.nan, math.inf):
        with raises(InvalidInputError, name="force"):
            check_finite(torch.tensor([0.0, bad]), "force")


@pytest.mark.parametrize("value", [0, -3, 1.0, "2", None, True, 10**400], ids=str)
def test_what_is_no_whole_number_is_refused(value):
    with raises(InvalidInputError, name="n"):
        whole_number("n", value, 1, 9)


def test_whole_numbers():
    assert whole_number("n", np.int8(1), 1) == 1
    assert whole_number("n", 9, 1, 9) == 9
    assert whole_number("n", 1, 1, 9) == 1
    assert whole_number("n", 10**400, 0) == 10**400


@pytest.mark.parametrize("value", ["c", 1, None, ["a"], torch.ones(2)], ids=str)
def test_a_name_is_one_of_those_that_are_known(value):
    one_of("mode", "a", ("a", "b"))
    with raises(UnknownNameError, name=str(value)) as caught:
        one_of("mode", value, ("a", "b"))
    assert caught.value.known == ("a", "b")


def test_a_class_is_asked_for():
    assert instance_of("path", "x", str) == "x"
    with raises(InvalidInputError, name="path"):
        instance_of("path", 3, str, " Hint.")


class Clock:
    def __call__(self, t):
        return t

    def rate(self, t):
        return 1.0


def test_an_object_has_the_methods_that_are_called():
    clock = Clock()
    check_calls("clock", clock, "clock(t)", "clock.rate(t)")
    check_calls("clock", abs, "clock(t)")
    for value, call in (
        (clock, "clock.at(t)"),
        (abs, "clock.rate(t)"),
        (7.3e-5, "clock(t)"),
        (Clock, "clock.rate(t)"),  # the class in place of an object
        (Clock, "clock(t)"),
    ):
        with raises(InvalidInputError, name="clock"):
            check_calls("clock", value, call)


@pytest.mark.parametrize(
    ("shapes", "fits", "others"),
    [
        ([(2, 3)], [(2, 3)], [(3, 2), (2,), ()]),
        ([()], [()], [(1,)]),
        ([(), (4,)], [(), (4,)], [(3,)]),
        ([("n", 3)], [(0, 3), (7, 3)], [(3,), (3, 4)]),
        ([(2,), (5,)], [(2,), (5,)], [(3,)]),
    ],
)
def test_shapes(shapes, fits, others):
    for shape in fits:
        has_shape("it", np.zeros(shape), *shapes)
    for shape in others:
        with raises(ShapeError, name="it") as caught:
            has_shape("it", torch.zeros(shape), *shapes)
        assert caught.value.shape == shape


def test_what_has_no_shape_is_shown():
    with raises(ShapeError, name="it"):
        has_shape("it", "text", (2,))


@pytest.mark.parametrize(
    "values", [[[1.0], [1.0, 2.0]], ["a"], [None], [True], [1j], {}, [10**400]], ids=str
)
def test_what_are_no_numbers_is_refused(values):
    with raises(InvalidInputError, name="pos") as caught:
        as_array(values, "pos")
    assert caught.value.name == "pos"


@pytest.mark.parametrize(
    "device", ["gpu", 3.5, None, 10**400], ids=lambda d: str(d)[:9]
)
def test_what_is_no_device_is_refused(device):
    with raises(InvalidInputError, name="device"):
        as_device(device)


@pytest.mark.parametrize(
    "values",
    [3, "ab", {"a": 1}, None, torch.tensor(1.0), object()],
    ids=lambda v: str(v)[:9],
)
def test_what_is_no_sequence_is_refused(values):
    with raises(InvalidInputError, name="names") as caught:
        all_of("names", values, str)
    assert caught.value.name == "names"


def test_every_one_of_a_sequence_is_looked_at():
    assert all_of("names", ("a", "b"), str) == ["a", "b"]
    assert all_of("names", (name for name in "ab"), str) == ["a", "b"]
    with raises(InvalidInputError, name="names[1]"):
        all_of("names", ["a", 7], str)
    for numbers in (torch.tensor([3, 4]), np.array([3, 4])):
        assert all_of("ids", numbers, int) == [3, 4]
    with raises(InvalidInputError, name="ids[0]"):
        all_of("ids", torch.ones(2), int)


def test_a_path_is_a_text_or_a_path():
    assert as_path("path", "a/b") == as_path("path", Path("a/b")) == Path("a/b")
    for value in (3, None, b"a", ["a"]):
        with raises(InvalidInputError, name="path"):
            as_path("path", value)


def test_limits_say_which_values_are_outside():
    values = torch.tensor([[-2.0, -1.0, 0.0], [1.0, 2.0, math.inf]])
    outside = Limits(at_least=-1, less_than=2).outside(values)
    assert outside.tolist() == [[True, False, False], [False, True, True]]
    outside = Limits(more_than=-1, at_most=1).outside(values)
    assert outside.tolist() == [[True, True, False], [False, True, True]]
    assert Limits(finite=False).outside(values).sum() == 0


# Everywhere.

DATA = {"ShapeError": {"name", "shape"}, "UnknownNameError": {"name"}}


def calls() -> list[tuple[str, ast.Call]]:
    folder = Path(simstate.__file__).parent
    found = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found.append((f"{path.relative_to(folder)}:{node.lineno}", node))
    return found


def test_every_error_has_the_data_of_its_kind():
    lacking = [
        f"{place} {node.func.id}: {sorted(missing)}"
        for place, node in calls()
        if (missing := DATA.get(node.func.id, set()) - {k.arg for k in node.keywords})
    ]
    assert lacking == []


@pytest.mark.parametrize(
    "span",
    [
        (1, 0),
        (-math.inf, 1.0),
        (0.0, math.inf),
        (math.nan, 1),
        (1,),
        (0, 1, 2),
        "01",
        3,
        ("a", "b"),
        (None, 1),
    ],
)
def test_a_range_has_two_finite_ends_in_order(span):
    with raises(InvalidInputError, name="speed"):
        check_range("event 'push'", "speed", span)


@pytest.mark.parametrize("span", [None, (0, 0), [-1.5, 2], (-3, -2.5)])
def test_ranges_that_will_do(span):
    check_range("event 'push'", "speed", span)
