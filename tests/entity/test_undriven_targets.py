"""Targets of joints that no actuator takes: a warning, once, with the remedy."""

from __future__ import annotations

import warnings

import pytest
import torch
from tests.raised import raises

from simstate import (
    EntityCfg,
    InvalidInputError,
    MotorActuatorCfg,
    SceneCfg,
    Simulation,
    UnknownNameError,
)

pytestmark = pytest.mark.fast


def make(model: str, **cfg: object) -> Simulation:
    entities = {"it": EntityCfg(model=model, **cfg)}  # pyright: ignore[reportArgumentType]
    return Simulation(SceneCfg(entities=entities), num_envs=2)


def test_position_targets_without_actuators_warn_once() -> None:
    motors = [MotorActuatorCfg(joints=".*")]
    sim = make("quadruped", actuators=motors, keep_model_actuators=False)
    robot = sim.scene["it"]
    target = torch.rand(2, 12)
    with pytest.warns(RuntimeWarning, match="effort targets, which they take") as found:
        robot.set_joint_position_target(target)
    assert len(found) == 1
    assert found[0].filename == __file__
    assert "PositionActuatorCfg" in str(found[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot.set_joint_position_target(target)
        robot.set_joint_effort_target(target)
    assert torch.equal(robot.data.joint_pos_target, target.double())


def test_driven_joints_do_not_warn() -> None:
    robot = make("quadruped").scene["it"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot.set_joint_position_target(torch.rand(2, 12))


def test_the_warning_comes_before_the_write() -> None:
    sim = make("cartpole")
    pole = sim.scene["it"]
    before = pole.data.joint_pos_target.clone()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            pole.set_joint_position_target(torch.full((2, 2), 0.3))
    assert torch.equal(pole.data.joint_pos_target, before)


def test_targets_of_an_entity_without_joints() -> None:
    with raises(InvalidInputError, name="it"):
        make("cube").scene["it"].set_joint_position_target(torch.zeros(2, 1))


def test_a_name_of_another_kind_is_explained() -> None:
    robot = make("quadruped").scene["it"]
    with pytest.raises(UnknownNameError) as found:
        robot.find_bodies("FL_foot")
    assert "find_sites" in str(found.value)
    assert "find_geoms" in str(found.value)
    assert found.value.name == "FL_foot"
    with raises(UnknownNameError, name="trunk"):
        robot.find_joints("trunk")


def test_a_scene_without_cameras_says_how_to_declare_one() -> None:
    with raises(UnknownNameError, name="front"):
        make("cube").cameras["front"]


def test_a_number_given_as_text_is_quoted() -> None:
    with raises(InvalidInputError, name="num_envs"):
        Simulation(SceneCfg(entities={"it": EntityCfg(model="cube")}), num_envs="4")  # pyright: ignore[reportArgumentType]
