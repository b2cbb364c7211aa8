"""Columns of a log and the values of a model that they measure: names, order, signs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.contract import Contract
from simstate.base.errors import InvalidInputError, UnknownNameError
from simstate.data.logs import read_log
from simstate.record import Log, LogColumn
from simstate.study.identification.signals import match_signals

MODEL = """
<mujoco><worldbody><body name="base"><freejoint name="root"/><geom size="0.1"/>
  <body pos="0.3 0 0"><joint name="hip" axis="0 1 0"/><geom size="0.1"/>
    <body pos="0.3 0 0"><joint name="knee" axis="0 1 0"/><geom size="0.1"/>
    </body></body></body></worldbody>
<actuator><motor name="hip" joint="hip"/><motor name="knee" joint="knee"/></actuator>
<sensor><jointvel name="rate" joint="knee"/><jointpos name="angle" joint="hip"/>
  <gyro name="gyro" site="s"/></sensor></mujoco>
""".replace(
    '<geom size="0.1"/>\n  <body', '<geom size="0.1"/><site name="s"/>\n  <body'
)
TIME = np.arange(200) * 0.01
POS = np.stack([np.sin(3 * TIME), 0.5 * np.cos(11 * TIME)], 1)
VEL = np.stack([3 * np.cos(3 * TIME), -5.5 * np.sin(11 * TIME)], 1)
CTRL = LogColumn("ctrl", TIME, np.stack([TIME, 2 * TIME], 1), ("hip", "knee"))


@pytest.fixture(scope="module")
def sim() -> Simulation:
    robot = {"robot": EntityCfg(model=MODEL)}
    made = Simulation(SceneCfg(entities=robot, ground=None, timestep=None), 2)
    made.data.qpos[:] = torch.arange(18.0).reshape(2, 9) / 10
    made.data.qvel[:] = torch.arange(16.0).reshape(2, 8)
    return made


def column(name, values, *names, unit=None, axes="") -> LogColumn:
    contracts = ()
    if unit is not None:
        contracts = (Contract(unit=unit, axes=axes),) * values.shape[1]
    return LogColumn(f"robot.{name}" if "_" in name else name, TIME, values, names,
                     contracts)  # fmt: skip


def matched(sim, *columns, outputs=None):
    return match_signals(sim, Log([*columns, CTRL]), outputs)


def test_components_are_matched_by_name_in_any_order(sim):
    found = matched(
        sim, column("joint_vel", VEL[:, ::-1], "knee", "hip"),
        column("joint_pos", POS, "hip", "knee"),
    )  # fmt: skip
    vel, pos = found.outputs
    assert vel.picked == (1, 0)
    assert vel.addresses == (("qvel", 7), ("qvel", 6))
    assert pos.addresses == (("qpos", 7), ("qpos", 8))
    np.testing.assert_allclose(pos.read()[1].numpy(), [1.6, 1.7])
    assert found.notes == (
        "robot.joint_vel: unit not declared; assumed to be the model's.",
        "robot.joint_pos: unit not declared; assumed to be the model's.",
    )


def test_numbers_of_components_are_the_models(sim):
    """As in a table with the headings "ctrl[1]" and "ctrl[0]"."""
    control = replace(CTRL, names=("1", "0"))
    pos = column("joint_pos", POS, "1", "0")
    found = match_signals(sim, Log([pos, control]), None)
    assert found.outputs[0].picked == (1, 0)
    assert found.control is not None
    assert found.control.names == ("hip", "knee")
    np.testing.assert_array_equal(found.control.values, CTRL.values[:, ::-1])
    with raises(UnknownNameError, name="2"):
        match_signals(sim, Log([pos, replace(CTRL, names=("2", "1"))]), None)


def test_a_recording_has_each_command_of_an_actuator_with_several(tmp_path):
    model = MODEL.replace(
        '<motor name="hip" joint="hip"/>', '<pid name="hip" joint="hip" kp="2"/>'
    )
    robot = {"robot": EntityCfg(model=model)}
    made = Simulation(SceneCfg(entities=robot, ground=False))
    path = tmp_path / "a.simrec"
    with made.record(path, quantities=["robot.joint_pos"], fields=["ctrl"]):
        for k in range(5):
            made.data.ctrl[:] = torch.tensor([1.0, 20.0, 300.0]) * k
            made.step()
    control = match_signals(made, read_log(path)).control
    assert control is not None
    assert control.names == ("hip:pos", "hip:vel", "knee")
    assert control.values[-1].tolist() == [4.0, 80.0, 1200.0]


def test_columns_without_names_are_in_the_order_of_the_model(sim):
    found = matched(sim, column("joint_pos", POS, unit="rad"))
    assert found.outputs[0].picked == (0, 1)
    (note,) = found.notes
    assert "order of the components not declared" in note
    for wrong in (POS[:, :1], np.concatenate([POS, POS], 1)):
        with pytest.raises(InvalidInputError):
            matched(sim, column("joint_pos", wrong))
    with pytest.raises(UnknownNameError) as error:
        matched(sim, column("joint_pos", POS, "hip", "toe"))
    assert error.value.name == "toe"


def test_root_and_raw_fields_have_their_addresses(sim):
    quat = np.tile([1.0, 0.0, 0.0, 0.0], (200, 1))
    root = column("root_link_quat_w", quat, "w", "x", "y", "z")
    place = column("root_link_pos_w", np.zeros((200, 3)), "x", "y", "z")
    speed = column("root_link_lin_vel_w", np.zeros((200, 3)), "x", "y", "z")
    found = matched(sim, root, place, speed).outputs
    assert found[0].addresses == tuple(("qpos", k) for k in (3, 4, 5, 6))
    assert found[0].is_quaternion
    assert found[1].addresses == tuple(("qpos", k) for k in (0, 1, 2))
    assert not found[1].is_quaternion
    assert found[2].addresses == (("", 0),) * 3
    raw = matched(sim, LogColumn("qvel", TIME, np.zeros((200, 8)))).outputs[0]
    assert raw.addresses == tuple(("qvel", k) for k in range(8))


def test_sensors_are_read_where_they_are(sim):
    rate = LogColumn("rate", TIME, VEL[:, 1:])
    angle = LogColumn("angle", TIME, POS[:, :1])
    gyro = LogColumn("gyro", TIME, np.zeros((200, 3)))
    found = matched(sim, rate, angle, gyro).outputs
    assert [one.picked for one in found] == [(0,), (1,), (2, 3, 4)]
    assert found[0].addresses == (("qvel", 7),)
    assert found[1].addresses == (("qpos", 7),)
    assert found[2].addresses == (("", 0),) * 3
    with pytest.raises(InvalidInputError):
        matched(sim, LogColumn("gyro", TIME, np.zeros((200, 2))))


def test_commands_are_in_the_order_of_the_actuators(sim):
    pos = column("joint_pos", POS, "hip", "knee")
    swapped = LogColumn("ctrl", TIME, CTRL.values, ("knee", "hip"))
    found = match_signals(sim, Log([pos, swapped])).control
    np.testing.assert_array_equal(found.values, CTRL.values[:, ::-1])
    assert found.names == ("hip", "knee")
    with pytest.raises(UnknownNameError) as error:
        match_signals(sim, Log([pos]))
    assert error.value.name == "ctrl"
    for wrong in (
        LogColumn("ctrl", TIME, CTRL.values[:, :1], ("knee",)),
        LogColumn("ctrl", TIME, np.where(TIME[:, None] > 1, np.nan, CTRL.values),
                  ("hip", "knee")),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError):
            match_signals(sim, Log([pos, wrong]))


def test_what_is_not_used_is_noted_and_what_is_double_is_left_out(sim):
    pos = column("joint_pos", POS, "hip", "knee", unit="rad")
    other = LogColumn("temperature", TIME, TIME)
    raw = LogColumn("qpos", TIME, np.zeros((200, 9)))
    found = matched(sim, pos, raw, other)
    assert [one.column.name for one in found.outputs] == ["robot.joint_pos"]
    assert found.notes == ("qpos: not used.", "temperature: not used.")
    with pytest.raises(InvalidInputError):
        matched(sim, other)
    with pytest.raises(UnknownNameError):
        matched(sim, other, outputs=["temperature"])
    bad = POS.copy()
    bad[5, 1] = np.inf
    with pytest.raises(InvalidInputError) as error:
        matched(sim, column("joint_pos", bad, "hip", "knee"))
    assert error.value.name == "robot.joint_pos"


def test_units_and_axes_must_be_the_models(sim):
    matched(sim, column("joint_pos", POS, "hip", "knee", unit="rad"))
    with pytest.raises(InvalidInputError) as error:
        matched(sim, column("joint_pos", POS, "hip", "knee", unit="deg"))
    assert error.value.name == "robot.joint_pos"
    vector, parts = np.zeros((200, 3)), ("x", "y", "z")
    matched(sim, column("root_link_pos_w", vector, *parts, unit="m", axes="world"))
    with pytest.raises(InvalidInputError):
        matched(
            sim, column("root_link_pos_w", vector, *parts, unit="m", axes="root link")
        )


@pytest.mark.parametrize(
    ("factor", "fits"),
    [(1.0, True), (1.15, True), (-1.0, False), (180 / np.pi, False),
     (np.pi / 180, False), (-1.15, False), (0.5, True), (1e3, False), (1e6, False),
     (1e9, False), (1e4, True)],
)  # fmt: skip
def test_a_velocity_is_the_rate_of_its_position(sim, factor, fits):
    noise = np.random.default_rng(0).normal(0.0, 0.002, POS.shape)
    columns = (
        column("joint_pos", POS + noise, "hip", "knee"),
        column("joint_vel", factor * VEL, "hip", "knee"),
    )
    if fits:
        matched(sim, *columns)
    else:
        with pytest.raises(InvalidInputError):
            matched(sim, *columns)


def test_only_velocities_of_the_same_robot_are_compared():
    entities = {name: EntityCfg(model=MODEL) for name in ("left", "right")}
    sim = Simulation(SceneCfg(entities=entities, ground=None, timestep=None), 1)
    names = ("hip", "knee")
    ctrl = LogColumn("ctrl", TIME, np.zeros((200, 4)))

    def check(**logged):
        columns = [
            LogColumn(f"{name}.joint_{kind}", TIME, values, names)
            for name, given in logged.items()
            for kind, values in given.items()
        ]
        match_signals(sim, Log([*columns, ctrl]))

    check(left={"pos": POS}, right={"vel": -VEL})
    check(left={"pos": POS, "vel": VEL}, right={"pos": -POS, "vel": -VEL})
    for wrong in ("left", "right"):
        both = {"left": {"pos": POS, "vel": VEL}, "right": {"pos": -POS, "vel": -VEL}}
        both[wrong]["vel"] = -both[wrong]["vel"]
        with raises(InvalidInputError, name="hip"):
            check(**both)


def test_outputs_are_a_list_of_names(sim):
    with raises(InvalidInputError, name="outputs"):
        matched(sim, column("joint_pos", POS), outputs="robot.joint_pos")


def test_velocities_of_exchanged_joints_are_found(sim):
    pos = column("joint_pos", POS, "hip", "knee")
    with pytest.raises(InvalidInputError):
        matched(sim, pos, column("joint_vel", VEL, "knee", "hip"))
    still = column("joint_vel", 0 * VEL, "hip", "knee")
    matched(sim, pos, still)  # nothing can be said of these
    rng = np.random.default_rng(1)
    matched(sim, pos, column("joint_vel", rng.normal(size=VEL.shape), "hip", "knee"))
