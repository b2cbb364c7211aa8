"""Differences of two models and of two tasks, by element and value."""

from __future__ import annotations

import math

import mujoco
import pytest

from simstate.data.replay.model_changes import model_changes, setting_changes

pytestmark = pytest.mark.fast

CHAIN = """
<mujoco><option timestep="0.004"/><worldbody>
  <body name="one"><joint name="a" axis="0 1 0" damping="0.1"/>
    <geom name="g" size="0.1" mass="0.5"/>
    <body pos="0 0 0.3"><joint name="b" type="ball"/><geom size="0.1" mass="0.4"/>
      <body name="three" pos="0 0 0.3"><joint axis="0 1 0"/>
        <geom size="0.1" mass="0.3"/></body></body></body></worldbody>
  <actuator><position name="m" joint="a" kp="3"/></actuator></mujoco>
"""


def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(CHAIN)


def changed(field: str, place: tuple[int, ...], value: float) -> list[str]:
    then, now = model(), model()
    getattr(now, field)[place] = value
    return model_changes(then, now)


def test_equal_models_have_no_differences():
    assert model_changes(model(), model()) == []


@pytest.mark.parametrize(
    ("field", "place", "element", "old"),
    [
        ("body_mass", (1,), "of one", 0.5),
        ("body_mass", (2,), "of 2", 0.4),  # which has no name
        ("body_ipos", (3, 1), "of three[1]", 0.0),
        ("dof_damping", (0,), "of a", 0.1),
        ("dof_armature", (3,), "of b", 0.0),  # the third of the ball's
        ("dof_armature", (4,), "of 2", 0.0),  # the joint after it
        ("actuator_gainprm", (0, 0), "of m[0]", 3.0),
        ("geom_friction", (0, 2), "of g[2]", 0.0001),
    ],
)
def test_the_element_that_differs_is_named(field, place, element, old):
    assert changed(field, place, 7.5) == [f"{field} {element} is 7.5, it was {old}"]


def test_at_most_five_elements_of_a_field_are_listed():
    for count, more in ((5, None), (6, 1), (8, 3)):
        then, now = model(), model()
        now.body_inertia.reshape(-1)[3 : 3 + count] += 1.0
        lines = model_changes(then, now)
        assert len(lines) == 5 + (more is not None)
        if more is not None:
            assert lines[-1] == f"{more} more of body_inertia"


def test_nan_differs_from_numbers_alone():
    then, now = model(), model()
    then.body_ipos[1, 0] = then.body_ipos[2] = now.body_ipos[1, 0] = math.nan
    assert model_changes(then, now) == [
        f"body_ipos of 2[{k}] is 0.0, it was nan" for k in range(3)
    ]


def test_options_differ_by_component_or_as_one_number():
    then, now = model(), model()
    now.opt.timestep, now.opt.gravity[1] = 0.002, 0.5
    found = model_changes(then, now)
    assert "opt.timestep is 0.002, it was 0.004" in found
    assert "opt.gravity[1] is 0.5, it was 0.0" in found
    assert len(found) == 2


def test_models_of_other_elements_are_compared_as_a_whole():
    """Although a mass differs, too."""
    text = CHAIN.replace('name="a"', 'name="c"').replace('joint="a"', 'joint="c"')
    other = mujoco.MjModel.from_xml_string(text.replace('mass="0.4"', 'mass="0.6"'))
    (line,) = model_changes(model(), other)
    assert "joint names" in line
    assert "'a'" in line
    assert "'c'" in line
    fewer = mujoco.MjModel.from_xml_string("<mujoco><worldbody/></mujoco>")
    assert model_changes(model(), fewer)


def test_settings_differ_by_value_and_not_by_type():
    then = {"a": 30, "b": [1, 2], "c": "x", "d": 0.5, "e": None}
    now = {"a": 30.0, "b": [1, 3], "d": 0.25, "e": None, "f": True}
    assert setting_changes(then, now) == [
        "b is [1, 3], it was [1, 2]", 'c is absent, it was "x"',
        "d is 0.25, it was 0.5", "f is true, it was absent",
    ]  # fmt: skip
    assert setting_changes(then, then) == []
    assert setting_changes({"a": None}, {}) == ["a is absent, it was null"]
