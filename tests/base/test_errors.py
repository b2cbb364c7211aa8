"""Errors carry data besides their text, and survive the way between processes."""

from __future__ import annotations

import copy
import pickle

import pytest
from tests.raised import raises

from simstate import (
    DivergenceError,
    EntityCfg,
    InvalidInputError,
    SceneCfg,
    SceneMismatchError,
    ShapeError,
    SimStateError,
    Simulation,
    UnknownNameError,
)
from simstate.world.worlds import worlds_of


@pytest.fixture
def sim() -> Simulation:
    scene = SceneCfg(entities={"robot": EntityCfg(model="cartpole")}, timestep=None)
    return Simulation(scene, 4)


def raised(kind, call):
    with pytest.raises(kind) as caught:
        call()
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value)
    assert str(again) == str(caught.value)
    assert vars(again) == vars(caught.value)
    return caught.value


def test_an_unknown_name_has_the_name_and_those_that_are_known(sim):
    error = raised(UnknownNameError, lambda: sim.scene["robt"])
    assert error.name == "robt"
    assert error.known == ("robot",)
    error = raised(UnknownNameError, lambda: sim.scene["robot"].find_joints("sldr"))
    assert error.name == "sldr"
    assert error.known == tuple(sim.scene["robot"].joint_names)
    for name in ("contact", "qM", "not_a_field"):
        error = raised(UnknownNameError, lambda name=name: getattr(sim.data, name))
        assert (error.name, "qpos" in error.known) == (name, True)


def test_a_wrong_shape_has_what_was_given(sim):
    robot = sim.scene["robot"]
    error = raised(
        ShapeError, lambda: robot.write_joint_position_to_sim([[0.1, 0.2]] * 3)
    )
    assert error.shape == (3, 2)
    assert error.name
    error = raised(ShapeError, lambda: sim.step(1, env_ids=[True, False]))
    assert error.shape == (2,)


def test_divergence_has_the_worlds(sim):
    sim.data.qvel[[3, 1]] = float("nan")
    error = raised(DivergenceError, sim.step)
    assert error.worlds == (1, 3)
    assert error.env_ids == [1, 3]


def test_a_number_that_is_not_finite_has_its_name(sim):
    bad = [[float("nan"), 0.0]] * 4
    error = raised(
        InvalidInputError, lambda: sim.scene["robot"].write_joint_position_to_sim(bad)
    )
    assert error.name == "position"
    assert error.shape == (4, 2)
    assert error.worlds == ()


FIELDS = {"name": "n", "known": ["k", "l"], "shape": (2, 3), "worlds": [4]}


def everything(kind) -> SimStateError:
    if issubclass(kind, DivergenceError):
        return kind("text", [4, 1], "n")
    if issubclass(kind, SceneMismatchError):
        return kind("text", "n", "geom 'a'", "1.0", "2.0")
    return kind("text", **FIELDS)


def subclasses(kind) -> list[type]:
    below = [one for child in kind.__subclasses__() for one in subclasses(child)]
    own = kind.__module__ == SimStateError.__module__
    return [kind, *below] if own else below


@pytest.mark.parametrize("kind", dict.fromkeys(subclasses(SimStateError)))
def test_another_message_and_a_copy_keep_the_class_and_all_fields(kind):
    """AttributeError's `name` is no item of `vars`, and arguments differ by class."""
    error = everything(kind)
    other = error.with_message("In the term: text")
    assert str(other) == "In the term: text"
    assert str(error) == "text"
    for again in (other, copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is kind
        assert vars(again) == vars(error)
        assert again.name == error.name == "n"


def test_another_message_names_what_has_no_name():
    assert SimStateError("text").with_message("more", "term").name == "term"
    assert SimStateError("text", name="n").with_message("more", "term").name == "n"


def other_world(sim) -> None:
    """A task that writes to a world which it was not called for."""
    sim.add_task(lambda sim, ids: sim.data.ctrl.fill_(1.0), 0.1, name="clock")
    sim.step(env_ids=[1])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (other_world, "clock"),
        (lambda sim: sim.add_event(len, action=3), "action"),
        (lambda sim: sim.add_event(3, action=len), "function"),
        (lambda sim: sim.add_task(3, 0.1), "function"),
        (lambda sim: sim.add_process("x"), "process"),
        (lambda sim: sim.add_noise(3), "noise"),
        (lambda sim: sim.add_coupled_force(3), "model"),
        (lambda sim: sim.stop_recording(None), "history"),
        (lambda sim: worlds_of(3), "sim"),
        (lambda sim: sim.run("soon"), "until"),
        (lambda sim: sim.step(env_ids=[9]), "env_ids"),
        (lambda sim: sim.write_parameter("body_mass", [[1.0]], [9]), "element_ids"),
    ],
    ids=[
        "other_world", "action", "function", "task", "process", "noise", "model",
        "history", "sim", "until", "env_ids", "element_ids",
    ],
)  # fmt: skip
def test_an_error_names_the_argument(sim, call, name):
    with raises(InvalidInputError, name=name):
        call(sim)
