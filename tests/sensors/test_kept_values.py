"""Values that were read stay as they are while the worlds move on."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest
import torch
from tests.raised import raises
from tests.sensors.heap import heap, stir
from tests.view.scenes import make_sim
from torch import Tensor

from simstate import ContactCfg, EntityCfg, EntityData, ModelError, SceneCfg, Simulation
from simstate.world.declared import Reading

REMEMBERED = (
    "air_time", "contact_time", "last_air_time", "last_contact_time",
    "greatest_force", "force_history_w",
)  # fmt: skip
"""Memory of a contact sensor, which is live."""


@pytest.fixture(scope="module")
def sim() -> Simulation:
    made = heap(3)
    stir(made, 1)
    made.step(60)
    return made


def tensors_of(owner: object) -> dict[str, Tensor]:
    names = [name for name in dir(type(owner)) if not name.startswith("_")]
    found = {name: getattr(owner, name) for name in names}
    return {name: value for name, value in found.items() if isinstance(value, Tensor)}


def test_only_views_and_memory_follow_the_worlds(sim):
    live = {name for name, one in EntityData.quantities.items() if one.is_view}
    live |= {*REMEMBERED}
    owners = {f"contacts {name}": one for name, one in sim.contacts.items()}
    owners |= {name: sim.scene[name].data for name in ("one", "walker", "two")}
    read = {name: tensors_of(owner) for name, owner in owners.items()}
    kept = {n: {k: v.clone() for k, v in one.items()} for n, one in read.items()}
    sim.step(7)
    moved = [
        (owner, name)
        for owner, values in read.items()
        for name, value in values.items()
        if name not in live and not torch.equal(value, kept[owner][name])
    ]
    assert moved == []
    assert sum(map(len, read.values())) > 300


def test_declared_shapes_are_those_of_the_values(sim):
    """Words are sizes, which are the same wherever a sensor has them."""
    sensors = [*sim.contacts.values(), *make_sim(3).rays.values()]
    checked = 0
    for sensor in sensors:
        sizes: dict[str, int] = {}
        for name in dir(type(sensor)):
            reading = inspect.getattr_static(type(sensor), name)
            if not isinstance(reading, Reading):
                continue
            shape = getattr(sensor, name).shape
            assert len(shape) == 1 + len(reading.shape), name
            assert shape[0] == 3
            for size, word in zip(shape[1:], reading.shape, strict=True):
                if isinstance(word, str):
                    assert sizes.setdefault(word, size) == size, name
                else:
                    assert word == size, name
                checked += 1
            assert (reading.axes == "–") == (shape[-1] != 3 or 3 not in reading.shape)
    assert checked > 100


def test_an_entity_without_a_body_has_no_quantities_of_a_root(sim):
    slope = sim.scene["slope"].data
    of_root = [n for n, one in EntityData.quantities.items() if one.subject == "root"]
    for name in (*of_root, "projected_gravity_b", "heading_w"):
        with raises(ModelError, name="slope"):
            getattr(slope, name)


POST = """
<mujoco><worldbody>
  <geom name="left" type="sphere" size="0.1" pos="-0.3 0 0" gap="0.05"/>
  <geom name="right" type="sphere" size="0.1" pos="0.3 0.1 0" gap="0.05"/>
</worldbody></mujoco>
"""
BAR = """
<mujoco><option gravity="0 0 0"/><worldbody><body name="bar" pos="0 0 0.23">
  <freejoint/><geom type="box" size="0.5 0.4 0.1" mass="2"/>
</body></worldbody></mujoco>
"""


def test_contacts_without_a_force_act_nowhere():
    of = ContactCfg(of="bar/bar", kind="body", strongest=2)
    each = replace(of, against=["post/left", "post/right"])
    scene = SceneCfg(
        entities={"post": EntityCfg(model=POST), "bar": EntityCfg(model=BAR)},
        contacts={"all": of, "each": each},
        ground=False,
    )
    sim = Simulation(scene, 2)
    sim.data.qpos[1, 2] += 0.005
    for sensor in sim.contacts.values():
        assert sensor.count.flatten().tolist() == [2, 2]
        assert not sensor.found.any()
        for name in ("force_w", "torque_w", "pos_w", "normal_force"):
            value = getattr(sensor, name)
            assert torch.equal(value, torch.zeros_like(value))
        distances = sensor.strongest_distance[:, 0].sort().values
        apart = torch.tensor([[0.03, 0.03], [0.035, 0.035]]).to(distances)
        torch.testing.assert_close(distances, apart)
