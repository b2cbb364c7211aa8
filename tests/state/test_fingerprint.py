"""A snapshot is of a model's physics: what only reads or shows it may differ."""

from __future__ import annotations

import pytest
import torch
from tests.raised import raises

from simstate import (
    CameraCfg,
    ContactCfg,
    EntityCfg,
    SceneCfg,
    Simulation,
    SnapshotError,
)
from simstate.state import Snapshot

ARM = """<mujoco><option timestep="0.004"/>
  <asset><material name="paint" rgba="{paint}"/></asset>
  <worldbody><light pos="{light}"/>
    <body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0" damping=".1"/>
      <geom name="upper" type="capsule" size=".03 .1" pos=".02 0 .1" mass="{mass}"
            rgba="{rgba}" material="paint"/>
      <site name="tip" pos="0 0 .2" rgba="{rgba}"/>{camera}
      <body name="lower" pos="0 0 .2"><joint name="elbow" axis="0 .6 .8"/>
        <geom name="lower" size=".04" pos=".05 0 0" mass=".3"/></body></body>
  </worldbody>
  <actuator><position joint="elbow" kp="2"/></actuator>
  <sensor>{sensor}</sensor></mujoco>"""
PLAIN = {
    "paint": "1 0 0 1", "light": "0 0 3", "mass": "1", "rgba": "0 1 0 1",
    "camera": "", "sensor": '<jointpos name="elbow" joint="elbow"/>',
}  # fmt: skip
SHOWN = {
    "paint": {"paint": "0 0 1 .5"},
    "light": {"light": "1 2 3"},
    "colour": {"rgba": ".2 .3 .4 1"},
    "camera": {"camera": '<camera name="eye" pos="1 0 0"/>'},
    "sensor": {"sensor": '<framepos name="t" objtype="site" objname="tip"/>'},
    "none": {"sensor": ""},
}


def simulation(cameras=None, contacts=None, **changes):
    robot = EntityCfg(model=ARM.format(**(PLAIN | changes)))
    scene = SceneCfg(
        entities={"robot": robot}, cameras=cameras or {}, contacts=contacts or {},
        ground=False, timestep=None,
    )  # fmt: skip
    return Simulation(scene, 3)


@pytest.fixture
def moved():
    sim = simulation()
    sim.data.qvel[:] = torch.arange(6.0).reshape(3, 2)
    sim.data.ctrl[:] = torch.tensor([[0.3], [-0.2], [0.5]])
    sim.step(20)
    return sim


def test_contact_sensors_may_differ(tmp_path):
    """What one remembers goes where it is declared, and nowhere else."""
    upper = ContactCfg(of="robot/upper", history=2)
    sims = [
        simulation(contacts=contacts)
        for contacts in (
            {"a": upper}, {}, {"b": upper}, {"a": upper, "b": upper},
            {"a": ContactCfg(of="robot/upper", history=3)},
        )
    ]  # fmt: skip
    first = sims[0]
    first.data.qvel[:] = torch.arange(6.0).reshape(3, 2)
    first.step(7)
    first.snapshot().save(tmp_path / "taken")
    taken = Snapshot.load(tmp_path / "taken")
    air = first.contacts["a"].air_time.clone()
    assert (air == 0.028).all()
    first.step(5)
    for sim in sims[1:4]:
        sim.step(2)
        sim.restore(taken)
        clocks = {name: sensor.air_time for name, sensor in sim.contacts.items()}
        for name, clock in clocks.items():
            assert torch.equal(clock, air if name == "a" else torch.zeros_like(air))
        sim.step(5)
        assert torch.equal(sim.state, first.state)
    with raises(SnapshotError, name="contacts/a/force_history_w"):
        sims[4].restore(taken)


@pytest.mark.parametrize("change", SHOWN)
def test_sensors_cameras_and_colours_may_differ(moved, change):
    other = simulation(**SHOWN[change])
    other.restore(moved.snapshot())
    moved.step(10)
    other.step(10)
    assert torch.equal(other.state, moved.state)


def test_a_camera_of_the_scene_may_differ(moved):
    camera = CameraCfg(pos=(2.0, 0.0, 1.0), look_at=(0.0, 0.0, 1.0))
    other = simulation(cameras={"side": camera})
    other.restore(moved.snapshot())
    assert torch.equal(other.state, moved.state)
    moved.restore(other.snapshot())


def test_a_mass_may_not(moved):
    with raises(SnapshotError, name="model"):
        simulation(mass="1.5").restore(moved.snapshot())
