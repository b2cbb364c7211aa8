"""The wording of the errors of `base`, which other tests identify by their fields."""

from numbers import Integral
from os import PathLike

import numpy as np
import pytest
from tests.raised import says

from simstate.base.checks import (
    all_of,
    as_array,
    as_device,
    check_calls,
    has_shape,
    instance_of,
    number,
    one_of,
    whole_number,
)
from simstate.base.errors import (
    InvalidInputError,
    ShapeError,
    UnknownNameError,
    with_article,
)

LONG = "x" * 99


@pytest.mark.parametrize(
    ("call", "error", "fragments"),
    [
        (
            lambda: one_of("mode", "sofware", ("software", "opengl")),
            UnknownNameError,
            ["Unknown mode 'sofware'.", "Did you mean 'software'?", "Known: software"],
        ),
        (
            lambda: one_of("mode", None, ("a", "b")),
            UnknownNameError,
            ["Unknown mode 'None'.", "Known: a, b."],
        ),
        (
            lambda: one_of("joint", "grip", ("tool/g/grip", "tool/g/trip", "gr")),
            UnknownNameError,
            ["Unknown joint 'grip'. Did you mean 'tool/g/grip' or"],
        ),
        (
            lambda: one_of("joint", "crane/yaw", ("yaw", "crane")),
            UnknownNameError,
            ["Unknown joint 'crane/yaw'. Did you mean 'yaw' or"],
        ),
        (
            lambda: number("mass", -1.0, more_than=0.0, unit="kg"),
            InvalidInputError,
            ["mass must be > 0 and finite [kg], got -1."],
        ),
        (
            lambda: whole_number("n", 2.5, 1),
            InvalidInputError,
            ["n must be an integer ≥ 1, got 2.5."],
        ),
        (
            lambda: has_shape("it", np.zeros((3, 2)), (2, 3)),
            ShapeError,
            ["it must have shape (2, 3), got (3, 2)."],
        ),
        (
            lambda: has_shape("it", np.zeros(1), ()),
            ShapeError,
            ["it must be a number, got (1,)."],
        ),
        (
            lambda: has_shape("it", np.zeros(3), (), (4,)),
            ShapeError,
            ["it must be a number or have shape (4,), got (3,)."],
        ),
        (
            lambda: has_shape("it", np.zeros((3, 4)), ("n", 3)),
            ShapeError,
            ["it must have shape (n, 3), got (3, 4)."],
        ),
        (
            lambda: has_shape("it", np.zeros(3), (2,), (5,)),
            ShapeError,
            ["it must have shape (2,) or (5,), got (3,)."],
        ),
        (
            lambda: instance_of("path", 3, str | PathLike),
            InvalidInputError,
            ["path must be a str or a PathLike, got int: 3."],
        ),
        (
            lambda: check_calls("air", 1.5, "air.at(height)", "air.wind(t)"),
            InvalidInputError,
            ["air must support air.at(height) and air.wind(t), got float: 1.5."],
        ),
        (
            lambda: check_calls("air", "sea", "air.strip()", "air.at(height)"),
            InvalidInputError,
            ["air must support air.at(height), got str: sea."],
        ),
        (
            lambda: check_calls("name", str, "name.strip()"),
            InvalidInputError,
            ["name must support name.strip(), got the class str: create an object."],
        ),
    ],
)
def test_texts(call, error, fragments):
    with says(error, *fragments):
        call()


@pytest.mark.parametrize(
    ("article", "nouns"),
    [
        ("a", ["str", "UniformRotation", "Mapping", "RigidBodyState", "bool"]),
        ("an", ["int", "Atmosphere", "Epoch", "OrbitalElements", "Unknown", "MjModel"]),
    ],
)
def test_articles(article, nouns):
    for noun in nouns:
        assert with_article(noun) == f"{article} {noun}"


@pytest.mark.parametrize(
    "call",
    [
        lambda: whole_number("n", LONG, 0),
        lambda: instance_of("n", LONG, int),
        lambda: all_of("n", LONG, str),
        lambda: as_array(LONG, "n"),
        lambda: as_device(LONG),
    ],
)
def test_long_values_are_shown_in_part(call):
    """The first 60 characters of them, whichever check refuses them."""
    with pytest.raises(InvalidInputError, match=r"[^x]x{60}[^x]"):
        call()


@pytest.mark.parametrize(
    ("kind", "text"),
    [(str, "a str"), (Integral, "an int"), (Exception, "an Exception")],
)
def test_a_type_has_its_article(kind, text):
    with pytest.raises(InvalidInputError, match=f"must be {text}, got float"):
        instance_of("value", 3.0, kind)
