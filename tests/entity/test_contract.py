"""A quantity's contract is true: it reads the fields that it declares, no others."""

import pytest
from tests.inside import forget_reads

from simstate import EntityCfg, EntityData, SceneCfg, Simulation
from simstate.entity.reader import EntityReader

pytestmark = pytest.mark.fast


@pytest.fixture(scope="module")
def sims():
    names = ("humanoid", "finger", "mocap_target", "arm")
    scenes = [SceneCfg(entities={"robot": EntityCfg(model=name)}) for name in names]
    return [Simulation(scene, num_envs=2) for scene in scenes]


@pytest.mark.parametrize("name", EntityData.quantities)
def test_reads_what_it_declares(sims, name, monkeypatch):
    used = set()
    lookup = EntityReader.field

    def recorded(self, field):
        used.add(field)
        return lookup(self, field)

    monkeypatch.setattr(EntityReader, "field", recorded)
    for sim in sims:
        sim.step()  # every quantity is recomputed
        forget_reads(sim.scene["robot"].data)
        sim.scene["robot"].data.read(name)
    assert used == set(EntityData.quantities[name].reads)


@pytest.mark.parametrize("name", EntityData.quantities)
def test_has_the_shape_that_it_declares(sims, name):
    declared = EntityData.quantities[name].shape
    for sim in sims:
        robot = sim.scene["robot"]
        shape = robot.data.read(name).shape
        assert len(shape) == 1 + len(declared)
        for got, want in zip(shape[1:], declared, strict=True):
            # Some counts, as of activations, are no attributes of entities.
            assert got == (getattr(robot, want, got) if isinstance(want, str) else want)


def test_names_and_contracts_agree_on_axes():
    contracts = {name: one.to_dict() for name, one in EntityData.quantities.items()}
    for name, contract in contracts.items():
        if name.endswith(("_w", "_b")):
            assert contract["axes"] == {"w": "world", "b": "root link"}[name[-1]]
        elif "joint" in name and "ball" not in name:
            assert contract["axes"] == "–", name
    assert contracts["ball_joint_quat"]["axes"] == "parent"
    assert contracts["ball_joint_ang_vel"]["axes"] == "body"
    assert contracts["generalized_force"]["axes"] == "world, then body"


@pytest.mark.parametrize("name", EntityData.quantities)
def test_depends_on_the_parameters_that_it_declares(sims, name, monkeypatch):
    used = set()
    parameter = EntityReader.parameter

    def recorded(self, field):
        used.add(field)
        return parameter(self, field)

    monkeypatch.setattr(EntityReader, "parameter", recorded)
    for sim in sims:
        sim.step()
        forget_reads(sim.scene["robot"].data)
        sim.scene["robot"].data.read(name)
    assert used <= set(EntityData.quantities[name].parameters)
