"""Quantities that a user declares: as fresh, as checked and as named as ours."""

import mujoco
import pytest
import torch
from tests.raised import raises

from simstate import (
    EntityCfg,
    EntityData,
    InvalidInputError,
    ModelError,
    Quantity,
    SceneCfg,
    Simulation,
    StaleReadError,
    UnknownNameError,
)

pytestmark = pytest.mark.fast


def total_mass(data):
    return data.read("body_mass").sum(-1)


def speed(data):
    return data.read("root_com_lin_vel_w").norm(dim=-1)


class OwnData(EntityData):
    """Two quantities more."""

    total_mass = Quantity(
        total_mass, kind="total_mass", unit="kg", shape=(), reads=(),
        parameters=("body_mass",),
    )  # fmt: skip
    """Mass of all links [kg]; (num_envs,)."""
    root_com_speed = Quantity(
        speed, subject="root", point="com", kind="speed", unit="m/s", shape=(),
        reads=("xipos", "subtree_com", "cvel"), point_text="centre of mass",
    )  # fmt: skip
    """Speed of the root's centre of mass [m/s]; (num_envs,)."""


def make(data=OwnData, engine="native", **options):
    robot = EntityCfg(model="quadruped", data=data)
    other = EntityCfg(model="cube")
    scene = SceneCfg(entities={"robot": robot, "cube": other})
    return Simulation(scene, 3, engine=engine, **options)


def test_it_reads_as_an_attribute_and_by_name():
    sim = make()
    data = sim.scene["robot"].data
    assert isinstance(data, OwnData)
    body = sim.model.body("robot/trunk").id
    mass = torch.full((3,), float(sim.model.body_subtreemass[body]), dtype=sim.dtype)
    torch.testing.assert_close(data.total_mass, mass)
    torch.testing.assert_close(data.read("total_mass"), mass)


def test_it_is_fresh_after_every_kind_of_write():
    sim = make()
    data = sim.scene["robot"].data
    assert data.root_com_speed.tolist() == [0.0] * 3
    velocity = torch.zeros(1, 6)
    velocity[0, :3] = torch.tensor([3.0, 4.0, 0.0])
    sim.scene["robot"].write_root_com_velocity_to_sim(velocity, env_ids=[1])
    assert data.root_com_speed.tolist() == pytest.approx([0.0, 5.0, 0.0])
    sim.data.qvel[:, :6] = 0.0
    assert data.root_com_speed.tolist() == [0.0] * 3
    sim.step(5)
    velocity = torch.zeros(6, dtype=torch.float64).numpy()
    plain = mujoco.MjData(sim.model)
    mujoco.mj_setState(sim.model, plain, sim.state[0].numpy(),
                       mujoco.mjtState.mjSTATE_INTEGRATION.value)  # fmt: skip
    mujoco.mj_forward(sim.model, plain)
    body = sim.model.body("robot/trunk").id
    kind = mujoco.mjtObj.mjOBJ_BODY  # its centre of mass, unlike mjOBJ_XBODY
    mujoco.mj_objectVelocity(sim.model, plain, kind, body, velocity, 0)
    expected = float((velocity[3:] ** 2).sum() ** 0.5)
    assert float(data.root_com_speed[0]) == pytest.approx(expected, rel=1e-9)
    sim.expand("body_mass")[2] *= 2.0
    assert float(data.total_mass[2] / data.total_mass[0]) == pytest.approx(2.0)


def test_it_is_kept_until_the_state_moves_on():
    sim = make()
    data = sim.scene["robot"].data
    assert data.root_com_speed is data.root_com_speed
    before = data.root_com_speed
    sim.step()
    assert data.root_com_speed is not before


def test_strict_freshness_names_it():
    sim = make(freshness="strict")
    sim.data.qvel[:] = 1.0
    with raises(StaleReadError, name="root_com_speed"):
        _ = sim.scene["robot"].data.root_com_speed


def test_the_contract_is_data_and_other_entities_are_untouched():
    sim = make()
    assert set(OwnData.quantities) - set(EntityData.quantities) == {
        "total_mass",
        "root_com_speed",
    }
    contract = OwnData.quantities["root_com_speed"].to_dict()
    assert contract["unit"] == "m/s"
    assert contract["doc"].startswith("Speed of the root's centre of mass")
    assert type(sim.scene["cube"].data) is EntityData
    with raises(UnknownNameError, name="total_mass"):
        sim.scene["cube"].data.read("total_mass")


def test_it_cannot_be_assigned():
    data = make().scene["robot"].data
    with raises(InvalidInputError, name="total_mass"):
        data.total_mass = torch.zeros(3)


def test_reads_that_are_not_declared_are_refused():
    class Wrong(EntityData):
        own_speed = Quantity(
            speed, kind="own_speed", unit="m/s", shape=(), reads=("qvel",)
        )

    class Raw(EntityData):
        own_height = Quantity(
            lambda data: data.raw("xpos")[:, 1, 2],
            kind="own_height", unit="m", shape=(), reads=("qpos",),
        )  # fmt: skip

    class Evaluating(EntityData):
        own_acc = Quantity(
            lambda data: data.read("body_com_lin_acc_w")[:, 0],
            kind="own_acc", unit="m/s²", shape=(3,), reads=("cvel", "xipos"),
        )  # fmt: skip

    for data in (Wrong, Raw, Evaluating):
        sim = make(data)
        name = next(reversed(data.quantities))
        with raises(ModelError, name=name):
            sim.scene["robot"].data.read(name)
        # The failed read leaves everything as it was.
        assert sim.scene["robot"].data.root_com_lin_vel_w.shape == (3, 3)


def test_bad_declarations_are_refused():
    with raises(UnknownNameError, name="qpoz"):
        Quantity(speed, kind="x", unit="m", shape=(), reads=("qpoz",))
    for wrong in (dict, Quantity, OwnData.total_mass):
        with raises(InvalidInputError, name="data"):
            make(wrong)


def test_a_class_without_a_file_has_no_doc():
    declared = "Q(f, kind='own', unit='1', shape=(), reads=())"
    source = f"class Typed(EntityData):\n    own = {declared}"
    names = {"EntityData": EntityData, "Q": Quantity, "f": total_mass}
    exec(source, names)
    assert names["Typed"].quantities["own"].doc == ""
    assert names["Typed"].quantities["joint_pos"].doc
