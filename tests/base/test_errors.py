"""Errors carry data besides their text, and survive the way between processes."""

from __future__ import annotations

import pickle

import pytest

from simstate import (
    DivergenceError,
    EntityCfg,
    InvalidInputError,
    SceneCfg,
    ShapeError,
    Simulation,
    UnknownNameError,
)


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
