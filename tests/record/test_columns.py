"""Columns of all kinds: what they read, and the names and contracts of components."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises
from tests.record.conftest import ARM, PUCK

from simstate import (
    CameraCfg,
    ContactCfg,
    EntityCfg,
    InvalidInputError,
    SceneCfg,
    ShapeError,
    Simulation,
    UnknownNameError,
)
from simstate.base.contract import NO, PURE, UNDECLARED, Contract
from simstate.record import Column, columns_of
from simstate.record.columns import reads_of

EYE = CameraCfg(pos=(0.3, -0.7, 0.3), look_at=(0.3, 0.0, 0.2), width=8, height=6)
BALLS = """
<mujoco>
  <worldbody>
    <body name="one" pos="0 0 0.09">
      <freejoint/><geom name="one" size="0.1" mass="0.4"/>
    </body>
    <body name="two" pos="0.5 0 0.3">
      <freejoint/><geom name="two" size="0.1" mass="0.6" rgba="1 0 0 1"/>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def balls() -> Simulation:
    entities = {"balls": EntityCfg(model=BALLS)}
    contacts = {"feel": ContactCfg(of="balls/(one|two)")}
    scene = SceneCfg(entities=entities, contacts=contacts, cameras={"eye": EYE})
    return Simulation(scene, 2)


def test_a_camera_is_a_column_of_its_pictures(balls):
    balls.data.qpos[1, 7] += 0.3
    given = {"front": "camera/eye", "x": "balls.body_link_pos_w"}
    picture, _ = columns_of(balls, given, ())
    values = picture.checked(2)
    assert torch.equal(values, balls.cameras["eye"].rgb)
    assert not torch.equal(values[0], values[1])
    told = picture.describe(values)
    assert (picture.name, told["source"], told["axes"]) == (
        "front", "camera/eye", "image",
    )  # fmt: skip
    assert (told["unit"], told["dtype"], told["shape"]) == ("1", "uint8", [6, 8, 3])
    for wrong in ("camera/ear", "camera/"):
        with raises(UnknownNameError, name=wrong.removeprefix("camera/")) as caught:
            columns_of(balls, [wrong], ())
        assert list(caught.value.known) == ["eye"]


def test_readings_of_a_sensor_are_named_by_its_elements(balls):
    balls.step(40)
    (force,) = columns_of(balls, ["contacts/feel.force_w"], ())
    values = force.checked(2)
    weight = 0.4 * 9.81
    assert float(values[0, 0, 2]) == pytest.approx(weight, rel=0.5)
    elements = balls.contacts["feel"].element_names
    assert list(force.names) == [f"{name}.{k}" for name in elements for k in "xyz"]
    assert (force.contract.unit, force.contract.axes) == ("N", "world")
    assert force.describe(values)["shape"] == [2, 3]
    for wrong, name in (
        ("contacts/feel", "contacts/feel"), ("contacts/", "contacts/"),
        ("contacts/feel.force", "force"), ("contacts/fell.force_w", "fell"),
    ):  # fmt: skip
        with raises((InvalidInputError, UnknownNameError), name=name):
            columns_of(balls, [wrong], ())


def test_fields_are_named_by_mujocos_elements(make_sim):
    sim = make_sim(2)
    model = sim.model
    sim.step()
    fields = ["xpos", "xquat", "xmat", "cinert", "cvel", "ctrl"]
    columns = {column.name: column for column in columns_of(sim, (), fields)}
    bodies = [
        mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, k)
        for k in range(model.nbody)
    ]
    for field, parts in {
        "xpos": ["x", "y", "z"],
        "xquat": ["w", "x", "y", "z"],
        "xmat": [f"{a}.{b}" for a in "xyz" for b in "xyz"],
        "cinert": [str(k) for k in range(10)],
        "cvel": ["x", "y", "z", "rx", "ry", "rz"],
    }.items():
        wanted = [f"{body}.{part}" for body in bodies for part in parts]
        assert list(columns[field].names) == wanted
        values = columns[field].checked(2)
        assert torch.equal(values, getattr(sim.data, field))
        assert columns[field].describe(values)["names"] == wanted
    assert len(columns["ctrl"].names) == model.nu
    assert columns["xpos"].contract.unit == "m"
    assert columns["xpos"].source == "xpos"
    assert columns["ctrl"].contract.axes == NO


def test_components_of_quantities_repeat_for_each_element(make_sim):
    sim = make_sim(2)
    names = ["arm.body_link_pose_w", "puck.default_root_state", "arm.joint_pos_limits"]
    pose, state, limits = columns_of(sim, names, ())
    seven = ["x", "y", "z", "qw", "qx", "qy", "qz"]
    assert list(pose.names) == [f"{b}.{k}" for b in ("upper", "lower") for k in seven]
    assert list(state.names) == [*seven, "vx", "vy", "vz", "wx", "wy", "wz"]
    assert list(limits.names) == [
        f"{j}.{k}" for j in ("shoulder", "elbow") for k in "01"
    ]
    told = state.describe(state.checked(2))
    assert told["units"] == ["m"] * 3 + ["1"] * 4 + ["m/s"] * 3 + ["rad/s"] * 3
    assert told["each_axes"] == told["points"] == []
    assert limits.describe(limits.checked(2))["units"] == []
    with raises(UnknownNameError, name="joint_poss"):
        columns_of(sim, ["arm.joint_poss"], ())


def column(values: torch.Tensor, **parts) -> dict:
    found = Column("q", lambda: values, **parts)
    return found.describe(found.checked(len(values)))


def test_a_contract_is_given_once_or_for_each_component():
    values = torch.zeros(2, 2, 2, dtype=torch.float32)
    two = [Contract("m", "world", "tip"), Contract("s", "world", "tip")]
    told = column(values, each=two, names=list("abcd"))
    assert (told["units"], told["each_axes"], told["points"]) == (
        ["m", "s"] * 2,
        [],
        [],
    )
    assert (told["unit"], told["axes"], told["point"]) == ("m, s", "world", "tip")
    assert (told["names"], told["shape"]) == (list("abcd"), [2, 2])
    assert (told["dtype"], told["doc"], told["source"]) == ("float32", "", "")
    known = column(values, each=two, contract=Contract("m or s", UNDECLARED, NO))
    assert (known["unit"], known["axes"], known["point"]) == ("m or s", "world", "tip")
    # Three contracts do not fit four components, and three names are not theirs.
    other = column(values, each=[*two, PURE], contract=PURE, names=list("abc"))
    assert (other["unit"], other["units"], other["names"]) == ("1", [], [])
    scaled = column(values, contract=PURE.scaled(0.5))
    assert (scaled["unit"], scaled["axes"]) == ("0.5", NO)


def test_a_column_has_a_row_for_each_world():
    for wrong in (torch.zeros(3, 2), torch.zeros(()), np.zeros(2), None):
        with raises(ShapeError, name="q"):
            Column("q", lambda wrong=wrong: wrong).checked(2)
    assert Column("q", lambda: torch.ones(2)).checked(2).tolist() == [1.0, 1.0]


def test_functions_are_read_from_the_simulation(make_sim):
    sim = make_sim(2)
    given = {
        "v": (lambda s: 3 * s.data.qvel[:, 1], "rad/s"),
        "u": lambda s: s.data.ctrl,
    }
    sim.data.qvel[:, 1] = torch.tensor([0.5, -0.25])
    v, u = columns_of(sim, given, ())
    assert v.checked(2).tolist() == [1.5, -0.75]
    assert (v.contract.unit, u.contract.unit) == ("rad/s", UNDECLARED)
    assert (v.source, u.source) == ("", "")
    reads = reads_of(sim, given)
    assert [unit for _, unit in reads.values()] == ["rad/s", UNDECLARED]
    assert reads["v"][0](sim).tolist() == [1.5, -0.75]
    assert columns_of(sim, {"w": (given["u"], "")}, ())[0].contract.unit == UNDECLARED


def test_names_are_used_once(make_sim):
    sim = make_sim(2)
    with raises(InvalidInputError, name="qpos"):
        columns_of(sim, ["qpos", "qvel"], ["ctrl", "qpos"])
    assert [one.name for one in columns_of(sim, ["qpos", "qvel"], ["ctrl"])] == [
        "qpos", "qvel", "ctrl",
    ]  # fmt: skip


def test_a_field_of_mujoco_goes_before_a_quantity_of_a_single_entity():
    puck = SceneCfg(entities={"puck": EntityCfg(model=PUCK)}, timestep=None)
    sim = Simulation(puck, 2)
    field, quantity, renamed = columns_of(
        sim, {"qpos": "qpos", "root_link_pos_w": "root_link_pos_w",
              "where": "root_link_pos_w"}, ()
    )  # fmt: skip
    assert (field.name, field.source) == ("qpos", "qpos")
    assert quantity.name == quantity.source == "puck.root_link_pos_w"
    assert (renamed.name, renamed.source) == ("puck.where", "puck.root_link_pos_w")
    (both,) = columns_of(sim, ["qfrc_actuator"], ())
    assert both.source == "qfrc_actuator"


def test_units_of_slides_and_hinges_whichever_is_first():
    slide = ARM.replace("KP", "3").replace(
        'name="elbow" axis', 'name="elbow" type="slide" axis', 1
    )
    sim = Simulation(
        SceneCfg(entities={"arm": EntityCfg(model=slide)}, timestep=None), 2
    )
    units = {
        name: columns_of(sim, [name], ())[0].describe(torch.zeros(2, 2))["units"]
        for name in ("joint_pos", "joint_vel", "joint_acc", "arm.qfrc_actuator")
    }
    assert units == {
        "joint_pos": ["rad", "m"], "joint_vel": ["rad/s", "m/s"],
        "joint_acc": ["rad/s²", "m/s²"], "arm.qfrc_actuator": ["N·m", "N"],
    }  # fmt: skip
