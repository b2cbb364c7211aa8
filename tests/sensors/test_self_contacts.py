"""Contacts of a robot with itself: each pair once, against the table of contacts."""

from __future__ import annotations

import mujoco
import pytest
import torch
from tests.raised import raises

from simstate import ContactCfg, EntityCfg, SceneCfg, Simulation
from simstate.base.errors import ModelError

LINK = """
<body name="{name}" pos="0 0 {length}">
  <joint name="{name}" axis="0 1 0"/>
  <geom name="{name}" type="capsule" size="0.05" fromto="0 0 0.06 0 0 0.34" {mask}/>
  <geom name="{name}_end" size="0.06" pos="0 0.02 0.36" {mask}/>
  {{child}}
</body>
"""


def chain(*names, masks=None):
    """Links that hang on each other, each with two geoms."""
    text = "{child}"
    for k, name in enumerate(names):
        mask = (masks or {}).get(name, "")
        link = LINK.format(name=name, length=0.4 if k else 1.2, mask=mask)
        text = text.format(child=link)
    return text.format(child="")


NO_CONTACTS = {"e": 'contype="0" conaffinity="0"'}
MODEL = f"""
<mujoco>
  <option gravity="0 0 -3"/>
  <worldbody>{chain("a", "b", "c", "d", "e", masks=NO_CONTACTS)}</worldbody>
  <contact><exclude body1="b" body2="d"/></contact>
</mujoco>
"""
# Folded so that different links meet in each world; the last is stretched.
POSES = torch.tensor(
    [[0.1, 2.5, 2.4, 0.2, 0.3], [0.0, 2.3, 2.2, 2.3, 0.1], [0.3, 0.1, 0.2, 0.1, 0.0]]
)


def folded(**contacts):
    scene = SceneCfg(
        entities={"arm": EntityCfg(model=MODEL)},
        contacts={name: ContactCfg(**given) for name, given in contacts.items()},
        ground=False,
    )
    sim = Simulation(scene, num_envs=3)
    sim.scene["arm"].write_joint_position_to_sim(POSES.double())
    sim.forward()
    return sim


def pairs_of(sim, names, least=0.0):
    """Pairs with a force beyond `least` on each other by the table, by world."""
    table = sim.contact_table()
    forces: list[dict] = [{} for _ in range(3)]
    for k, contact in enumerate(getattr(table, names)):
        key = frozenset(contact)
        world = forces[int(table.world[k])]
        # Signed alike for both orders of a pair.
        sign = 1.0 if contact[0] == min(contact) else -1.0
        world[key] = world.get(key, 0.0) + sign * table.force_w[k]
    return [
        {key for key, force in world.items() if float(force.norm()) > least}
        for world in forces
    ]


@pytest.mark.parametrize(
    ("kind", "names"), [("body", "body_names"), ("geom", "geom_names")]
)
def test_each_pair_counts_once(kind, names):
    sim = folded(own={"of": "arm/.*", "kind": kind, "against": "self"})
    sensor, expected = sim.contacts["own"], pairs_of(sim, names)
    assert len(expected[1]) > len(expected[0]) > len(expected[2]) == 0
    found = [
        {
            frozenset(name.split(" & "))
            for name, touches in zip(sensor.element_names, row, strict=True)
            if touches
        }
        for row in sensor.found.tolist()
    ]
    assert found == expected
    counts = [len(pairs) for pairs in expected]
    assert sensor.found.sum(-1).tolist() == counts


def test_only_pairs_that_can_collide_are_elements():
    sim = folded(own={"of": "arm/.*", "against": "self"})
    names = set(sim.contacts["own"].element_names)
    # Neighbours, the excluded pair and the link without collisions are left out.
    assert names == {"arm/a & arm/c", "arm/a & arm/d"}


def test_subtrees_with_different_numbers_of_others():
    """What the larger one is measured against is fewer: the rest counts as zero."""
    first = {"of": "arm/a", "against": "arm/.*"}  # no column 0 that is zero
    sim = folded(first=first, own={"of": "arm/(b|d)", "kind": "subtree"})
    assert bool((sim.data.sensordata[:2, 0] > 0).all())
    sensor, table = sim.contacts["own"], sim.contact_table()
    for k, own in enumerate(("bcde", "de")):
        expected = torch.zeros(3, 3, dtype=torch.float64)
        count = torch.zeros(3, dtype=torch.int64)
        for row, names in enumerate(table.body_names):
            first, second = (name[-1] in own for name in names)
            if first != second:
                sign = 1.0 if second else -1.0
                expected[table.world[row]] += sign * table.force_w[row]
                count[table.world[row]] += 1
        assert expected[1].abs().min() > 1.0
        torch.testing.assert_close(sensor.force_w[:, k], expected)
        assert torch.equal(sensor.count[:, k], count)


def test_forces_are_those_on_the_first_of_a_pair():
    sim = folded(own={"of": "arm/.*", "against": "self"})
    sensor, table = sim.contacts["own"], sim.contact_table()
    for k, name in enumerate(sensor.element_names):
        first, second = name.split(" & ")
        expected = torch.zeros(3, 3, dtype=torch.float64)
        for row, (one, other) in enumerate(table.body_names):
            if {one, other} == {first, second}:
                sign = 1.0 if other == first else -1.0  # on the second side
                expected[table.world[row]] += sign * table.force_w[row]
        torch.testing.assert_close(sensor.force_w[:, k], expected)


def test_what_cannot_be_counted_is_an_error():
    with raises(ModelError, name="own"):
        folded(own={"of": "arm/.*", "kind": "subtree", "against": "self"})
    with raises(ModelError, name="own"):
        folded(own={"of": "arm/(b|d|e)", "against": "self"})


FIXED = """
<mujoco>
  <option><flag filterparent="{filters}"/></option>
  <worldbody>
    <body name="base" pos="0.1 0 1"><geom size="0.4"/>
      <body name="plate" pos="0 0.02 0"><geom size="0.38"/></body>
      <body name="arm" pos="0.05 0 0.1"><joint axis="0 1 0"/><geom size="0.3"/>
        <body name="tool" pos="0 0.1 0"><geom size="0.32"/>
          <body name="finger" pos="0.1 0 0"><joint axis="1 0 0"/><geom size="0.2"/>
            <body name="tip" pos="0 0.03 0"><joint axis="0 0 1"/><geom size="0.25"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("filters", ["enable", "disable"])
def test_pairs_are_those_that_mujoco_lets_collide(filters):
    """All geoms overlap: MuJoCo's contacts are all pairs that it does not filter."""
    text = FIXED.format(filters=filters)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    touching = model.geom_bodyid[data.contact.geom]
    expected = {frozenset(f"arm/{model.body(k).name}" for k in pair)
                for pair in touching}  # fmt: skip
    scene = SceneCfg(
        entities={"arm": EntityCfg(model=text)},
        contacts={"self": ContactCfg(of="arm/.*", against="self")},
        ground=False,
    )
    found = Simulation(scene, num_envs=2).contacts["self"].element_names
    assert {frozenset(name.split(" & ")) for name in found} == expected
    assert len(found) == len(expected)
