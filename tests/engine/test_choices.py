"""Whole numbers of the model by world: choices are checked, structure stays."""

from __future__ import annotations

import mujoco
import pytest
import torch
from tests.raised import raises

from simstate import (
    EntityCfg,
    InvalidInputError,
    SceneCfg,
    ShapeError,
    Simulation,
    SnapshotError,
    UnknownNameError,
)

BOXES = """
<mujoco>
  <asset>
    <mesh name="small" builtin="sphere" params="1"/>
    <mesh name="large" builtin="sphere" params="2" scale="2 2 2"/>
  </asset>
  <worldbody>
    <body name="one" pos="0 0 3"><freejoint/><geom type="mesh" mesh="small"/>
      <body name="two" pos="1 0 0"><joint axis="0 1 0"/><geom size=".2"/></body></body>
  </worldbody>
</mujoco>
"""


def make(num_envs: int = 3) -> Simulation:
    scene = SceneCfg(entities={"it": EntityCfg(model=BOXES)}, timestep=None)
    sim = Simulation(scene, num_envs)
    sim.data.qvel[:, 2] = torch.linspace(-1, 1, num_envs, dtype=sim.dtype)
    return sim


@pytest.mark.parametrize(
    "name",
    [
        "body_parentid",
        "jnt_type",
        "geom_bodyid",
        "dof_parentid",
        "M_rownnz",
        "geom_type",
    ],
)
def test_the_structure_of_a_model_is_common_to_all_worlds(name):
    """MuJoCo reads it unchecked: a world that changed it would end the process."""
    sim = make()
    before = sim.snapshot().slots.keys()
    with raises(InvalidInputError, name=name):
        sim.expand(name)
    assert sim.snapshot().slots.keys() == before
    sim.step()


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("geom_dataid", 2),
        ("geom_dataid", -1),
        ("geom_dataid", -2),
        ("geom_condim", 10**6),
        ("geom_matid", 99),
        ("opt.cone", 2),
        ("opt.cone", -1),
        ("opt.timestep", 0.0),
        ("opt.timestep", -0.002),
        ("opt.gravity", float("nan")),
        ("opt.iterations", -1),
        ("opt.impratio", 0.0),
        ("opt.viscosity", -1e-9),
        ("opt.disableflags", int(mujoco.mjtDisableBit.mjDSBL_MULTICCD) * 2),
    ],
)
def test_a_choice_that_the_model_does_not_have_is_refused(name, bad):
    sim, twin = make(), make()
    choice = sim.expand(name)
    good = choice.clone()
    twin.expand(name)
    choice[2, ...] = bad
    for call in (sim.step, sim.forward):
        with raises(InvalidInputError, name=name, worlds=[2]):
            call()
    choice.copy_(good)
    sim.step()
    twin.step()
    assert torch.equal(sim.state, twin.state)


FIELDS = """
<mujoco>
  <asset>
    <mesh name="only" builtin="sphere" params="1"/>
    <hfield name="low" nrow="3" ncol="3" size="9 9 .1 .1"/>
    <hfield name="high" nrow="3" ncol="3" size="9 9 .5 .1"/>
  </asset>
  <worldbody>
    <body pos="0 0 3"><freejoint/><geom type="mesh" mesh="only"/></body>
    <geom name="ground" type="hfield" hfield="low"/>
  </worldbody>
</mujoco>
"""


def test_a_geom_chooses_among_the_assets_of_its_type():
    """There are two height fields and one mesh, and MuJoCo does not check ids."""
    sim = Simulation(SceneCfg(entities={"it": EntityCfg(model=FIELDS)}), 2)
    ground, ball = sim.model.geom("it/ground").id, 1 - sim.model.geom("it/ground").id
    choice = sim.expand("geom_dataid")
    choice[1, ground] = 1
    sim.step()
    choice[0, ball] = 1
    with raises(InvalidInputError, name="geom_dataid", worlds=[0]):
        sim.step()


def test_a_number_for_each_world_is_written_and_read():
    sim = make()
    sim.write_parameter("opt.timestep", [0.001, 0.003], env_ids=[2, 0])
    assert sim.expand("opt.timestep").tolist() == [0.003, 0.002, 0.001]
    sim.step()
    assert sim.data.time.tolist() == [0.003, 0.002, 0.001]
    with raises(InvalidInputError, name="opt.timestep"):
        sim.write_parameter("opt.timestep", [0.001], element_ids=[0], env_ids=[1])


@pytest.mark.parametrize(
    ("name", "values", "error"),
    [
        ("opt.cone", [5], InvalidInputError),
        ("geom_condim", [[2]], InvalidInputError),
        ("body_mass", [[float("nan")] * 3], InvalidInputError),
        ("body_mass", [1.0], ShapeError),
        ("body_mas", [1.0], UnknownNameError),
    ],
)
def test_a_parameter_whose_write_is_refused_stays_common(name, values, error):
    sim = make()
    before = sim.snapshot().slots.keys()
    with pytest.raises(error):
        sim.write_parameter(name, values)
    assert sim.snapshot().slots.keys() == before


def test_a_snapshot_cannot_bring_such_a_choice():
    """A file of somebody else may have any number in it."""
    sim = make()
    sim.expand("geom_dataid")
    snapshot = sim.snapshot()
    snapshot.slots["model/geom_dataid"][1, 0] = 10**6
    before = sim.state.clone()
    for fresh in (sim, make()):
        with raises(SnapshotError, name="model/geom_dataid"):
            fresh.restore(snapshot)
    assert torch.equal(sim.state, before)
    assert int(sim.expand("geom_dataid").max()) == 0


def test_choices_by_world_are_those_of_models_compiled_so():
    sim = make()
    sim.expand("geom_condim")[1] = 1
    sim.expand("geom_dataid")[2, 0] = 1
    sim.step(5)
    model = mujoco.MjModel.from_xml_string(BOXES)
    model.geom_condim[:] = 1
    data = mujoco.MjData(model)
    data.qvel[2] = 0.0
    for _ in range(5):
        mujoco.mj_step(model, data)
    torch.testing.assert_close(
        sim.data.qpos[1], torch.from_numpy(data.qpos), rtol=1e-12, atol=1e-14
    )


def test_what_worlds_have_in_common_and_what_they_may_choose_is_reported():
    body = "<body><freejoint/><geom size='.1'/></body>"
    assets = "".join(f"<material name='m{k}'/>" for k in range(3))
    xml = f"<mujoco><asset>{assets}</asset><worldbody>{body}</worldbody></mujoco>"
    sim = Simulation(mujoco.MjModel.from_xml_string(xml), 2)
    with raises(InvalidInputError, name="mesh_vert"):
        sim.expand("mesh_vert")
    with raises(InvalidInputError, name="geom_matid"):
        sim.write_parameter("geom_matid", [[3.0]], env_ids=[1])


def test_the_world_of_a_wrong_value_is_named_where_some_are_written():
    sim = make(4)
    for worlds, values, expected in (
        ([3], [0.0], (3,)), ([2, 0], [-1.0, 0.002], (2,)), (slice(1, 3), [0.0], (1, 2)),
    ):  # fmt: skip
        with raises(InvalidInputError, name="opt.timestep", worlds=list(expected)):
            sim.write_parameter("opt.timestep", torch.as_tensor(values), env_ids=worlds)
