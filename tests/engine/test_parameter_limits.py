"""Parameters by world are those that MuJoCo's compiler would take."""

from __future__ import annotations

import mujoco
import pytest
import torch
from tests.raised import raises

from simstate import EntityCfg, InvalidInputError, SceneCfg, Simulation, SnapshotError

MODEL = """
<mujoco>
  <worldbody>
    <camera name="first"/>
    <camera name="eye" fovy="{fovy}"/>
    <body name="arm" quat="0.9 0.1 0.3 0.2">
      <joint name="hip" axis="0 1 0.2" range="-1 {range}" limited="true"/>
      <inertial pos="0.1 0 0.02" mass="{mass}" diaginertia="{inertia} 0.03 0.02"/>
      <geom name="skin" type="box" size="0.1 0.2 {size}" mass="0"/>
      <body name="hand" pos="0.3 0 0.1">
        <joint name="wrist" axis="1 0 0.1"/>
        <geom name="palm" type="capsule" size="0.05 0.1" mass="0.3"/>
        <site name="tip" type="sphere" size="0.02"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="wrist" gear="1.5" ctrlrange="-1 {ctrl}"
    ctrllimited="true"/></actuator>
</mujoco>
"""
GOOD = {"range": 0.5, "mass": 0.7, "inertia": 0.02, "size": 0.3, "ctrl": 2.0,
        "fovy": 50.0}  # fmt: skip


def make() -> Simulation:
    arm = EntityCfg(model=MODEL.format(**GOOD))
    return Simulation(SceneCfg(entities={"a": arm}, ground=False, timestep=None), 3)


COMPILED = [
    ("mass", "body_mass", 1, 0, -0.1, "body 'a/arm'"),
    ("mass", "body_mass", 1, 0, 0.0, "body 'a/arm'"),
    ("inertia", "body_inertia", 1, 0, -0.02, "body 'a/arm'"),
    ("inertia", "body_inertia", 1, 0, 0.06, "body 'a/arm'"),
    ("size", "geom_size", 0, 2, -0.3, "geom 'a/skin'"),
    ("size", "geom_size", 0, 2, 0.0, "geom 'a/skin'"),
    ("range", "jnt_range", 0, 1, -1.5, "joint 'a/hip'"),
    ("ctrl", "actuator_ctrlrange", 0, 1, -2.0, "actuator 'a/push'"),
    ("fovy", "cam_fovy", 1, 0, 180.0, "camera 'a/eye'"),
]
"""The attribute, its field, element and component, a value, and the element's name."""


@pytest.mark.parametrize("case", COMPILED)
def test_what_the_compiler_rejects_is_rejected(case):
    attribute, field, element, component, value, name = case
    with pytest.raises(ValueError, match=r"."):
        mujoco.MjModel.from_xml_string(MODEL.format(**GOOD | {attribute: value}))
    sim = make()
    row = torch.as_tensor(getattr(sim.model, field)[element]).double().clone()
    row.reshape(-1)[component if row.ndim else 0] = value
    with raises(InvalidInputError, name=field, worlds=[2]) as told:
        sim.write_parameter(field, row[None, None], [element], [2])
    assert name in str(told.value)
    assert f"model/{field}" not in sim.snapshot().slots  # it is common to all worlds
    tensor = sim.expand(field)
    tensor[2, element] = row
    with raises(InvalidInputError, name=field, worlds=[2]):
        sim.step()
    tensor[2, element] = torch.as_tensor(getattr(sim.model, field)[element])
    sim.step()


@pytest.mark.parametrize(
    ("field", "element", "name"),
    [("body_mass", 1, "body 'a/arm'"), ("jnt_range", 0, "joint 'a/hip'"),
     ("cam_fovy", 1, "camera 'a/eye'"), ("dof_damping", 1, "joint 'a/wrist'"),
     ("body_pos", 2, "body 'a/hand'")],
)  # fmt: skip
def test_a_value_that_is_not_a_number_is_rejected(field, element, name):
    """Written in place, it is named as the parameter, not as a divergence."""
    sim = make()
    tensor = sim.expand(field)
    tensor[2, element] = torch.nan
    with raises(InvalidInputError, name=field, worlds=[2]) as told:
        sim.step()
    assert name in str(told.value)
    assert sim.time.tolist() == [0.0] * 3
    tensor[2, element] = torch.as_tensor(getattr(sim.model, field)[element])
    sim.step()


@pytest.mark.parametrize(
    ("field", "element", "name"),
    [("dof_armature", 1, "joint 'a/wrist'"), ("dof_frictionloss", 0, "joint 'a/hip'"),
     ("geom_friction", 1, "geom 'a/palm'"), ("site_size", 0, "site 'a/tip'")],
)  # fmt: skip
def test_negative_values_are_rejected(field, element, name):
    sim = make()
    values = sim.expand(field)
    values[1, element] = -0.5
    with raises(InvalidInputError, name=field, worlds=[1]) as told:
        sim.step()
    assert name in str(told.value)


def test_a_snapshot_with_a_negative_mass_is_refused():
    sim = make()
    sim.expand("body_mass")[:] *= torch.tensor([[0.8], [1.1], [1.3]])
    taken = sim.snapshot()
    taken.slots["model/body_mass"][1, 2] = -0.1
    with raises(SnapshotError, name="model/body_mass"):
        sim.restore(taken)


def test_values_that_the_compiler_takes_are_taken():
    """Sizes that a type does not use, ranges that are not used, welded masses."""
    sim = make()
    sim.write_parameter("geom_size", torch.tensor([[[0.1, 0.2, -3.0]]]), [1], [0])
    sim.write_parameter("jnt_range", torch.tensor([[[1.0, -1.0]]]), [1], [2])
    sim.expand("body_inertia")[:] *= torch.tensor([[[0.3]], [[1.0]], [[2.7]]])
    sim.step()
    for name in ("body_mass", "geom_size", "geom_friction", "dof_armature"):
        own = torch.as_tensor(getattr(sim.model, name)).expand_as(sim.expand(name))
        sim.expand(name)[:] = own
    sim.step()


SIZES = {
    "plane": "1 2 0.3", "sphere": "0.2", "capsule": "0.2 0.3", "cylinder": "0.2 0.3",
    "ellipsoid": "0.1 0.2 0.3", "box": "0.1 0.2 0.3",
}  # fmt: skip


@pytest.mark.parametrize("kind", SIZES)
def test_the_sizes_of_a_geom_are_those_that_the_compiler_takes(kind):
    """Each size alone is 0: the compiler decides."""
    text = (
        f'<mujoco><worldbody><geom type="{kind}" size="{SIZES[kind]}"/>'
        "</worldbody></mujoco>"
    )
    scene = SceneCfg(entities={"a": EntityCfg(model=text)}, ground=False, timestep=None)
    sim = Simulation(scene, 2)
    for k in range(3):
        spec = mujoco.MjSpec.from_string(text)
        spec.geoms[0].size[k] = 0.0
        values = torch.as_tensor(spec.geoms[0].size).nan_to_num(0.0)[None, None]
        try:
            spec.compile()
        except ValueError:
            with raises(InvalidInputError, name="geom_size", worlds=[1]):
                sim.write_parameter("geom_size", values, [0], [1])
        else:
            sim.write_parameter("geom_size", values, [0], [1])
