"""Targets of joints reach the controls that take them, with gains of each world."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate import InvalidInputError, ShapeError, Simulation

pytestmark = pytest.mark.fast

MODEL = """<mujoco>
  <worldbody><body name="torso" pos="0 0 1" quat=".6 0 0 .8">
    <joint name="a" axis="0 1 0"/><geom size=".1" mass="2"/>
    <body pos=".2 0 0"><joint name="b" axis="1 0 0"/><geom size=".05" mass=".4"/>
      <body pos=".2 0 0"><joint name="c" axis="0 0 1"/><geom size=".04" mass=".3"/>
        <body pos=".1 0 0"><joint name="d"/><geom size=".03" mass=".1"/></body>
    </body></body></body></worldbody>
  <actuator>
    <position joint="c" kp="3" gear="-2"/><motor joint="b" gear="4"/>
    <position joint="a" kp="5" gear="1.5"/><position joint="b" kp="2" gear="3"/>
  </actuator></mujoco>"""
NUM = 4
GEAR = {"a": 1.5, "b": 3.0, "c": -2.0}
COLUMN = {"a": 2, "b": 3, "c": 0}


@pytest.fixture
def sim() -> Simulation:
    return Simulation(mujoco.MjModel.from_xml_string(MODEL), NUM)


def given(count: int, joints: int) -> torch.Tensor:
    return torch.as_tensor(np.random.default_rng(8).standard_normal((count, joints)))


@pytest.mark.parametrize("joints", ["abc", "cab", "b", "adcb", None])
@pytest.mark.parametrize("env_ids", [None, [3, 1], slice(1, 4, 2), 2])
def test_targets_are_controls_times_gear(sim, joints, env_ids):
    robot = sim.scene["model"]
    names = "abcd" if joints is None else joints
    ids = None if joints is None else ["abcd".index(name) for name in joints]
    rows = torch.arange(NUM)[slice(None) if env_ids is None else env_ids].reshape(-1)
    start = given(NUM, 4) + 5.0
    sim.data.ctrl[:] = start
    want = start.clone()
    target = given(len(rows), len(names))
    for k, name in enumerate(names):
        if name != "d":  # no actuator takes it
            want[rows, COLUMN[name]] = target[:, k] * GEAR[name]
    robot.set_joint_position_target(target, ids, env_ids)
    assert torch.equal(sim.data.ctrl, want)
    if "d" in names:
        kept = robot.data.joint_pos_target[rows, 3]
        assert torch.equal(kept, target[:, names.index("d")])


def test_gears_that_differ_later_count():
    taken = MODEL.replace('<joint name="d"/>', "")
    sim = Simulation(mujoco.MjModel.from_xml_string(taken), NUM)
    robot, target = sim.scene["model"], given(NUM, 3)
    for _ in range(2):
        robot.set_joint_position_target(target)
    assert torch.equal(sim.data.ctrl[:, 2], target[:, 0] * 1.5)
    gear = sim.expand("actuator_gear")
    gear[:, 2, 0] = torch.tensor([1.5, 2.5, -3.5, 0.25])
    robot.set_joint_position_target(target)
    assert torch.equal(sim.data.ctrl[:, 2], target[:, 0] * gear[:, 2, 0])
    robot.set_joint_position_target(target[:2], None, [3, 1])
    assert torch.equal(sim.data.ctrl[[3, 1], 2], target[:2, 0] * gear[[3, 1], 2, 0])


KINDS = {
    "tensor": lambda x: x,
    "one row": lambda x: x[:1],
    "float32": lambda x: x.float(),
    "with a graph": lambda x: x.clone().requires_grad_(),
    "strided": lambda x: x.repeat_interleave(2, dim=1)[:, ::2],
    "array": lambda x: x.numpy(),
    "list": lambda x: x.tolist(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_every_kind(sim, kind):
    robot, values = sim.scene["model"], KINDS[kind](given(NUM, 3))
    numbers = values.detach().double() if isinstance(values, torch.Tensor) else values
    want = np.broadcast_to(np.asarray(numbers), (NUM, 3))
    robot.set_joint_position_target(values, [0, 1, 2])
    assert np.array_equal(sim.data.ctrl[:, [2, 3, 0]], want * [1.5, 3.0, -2.0])
    assert not sim.data.ctrl.requires_grad


@pytest.mark.parametrize(
    ("change", "error", "name"),
    [
        (lambda x: x.fill_(float("nan")), InvalidInputError, "target"),
        (lambda x: x[:3], ShapeError, "target"),
        (lambda x: x[:, :2], ShapeError, "target"),
        (lambda x: x.long(), InvalidInputError, "target"),
        (lambda x: x.to("meta"), InvalidInputError, "target"),
    ],
)
def test_bad_targets_leave_controls_as_they_were(sim, change, error, name):
    sim.data.ctrl[:] = before = given(NUM, 4)
    with raises(error, name=name):
        sim.scene["model"].set_joint_position_target(change(given(NUM, 3)), [0, 1, 2])
    assert torch.equal(sim.data.ctrl, before)


def test_only_accelerations_of_the_written_worlds_are_stale():
    sim = Simulation(mujoco.MjModel.from_xml_string(MODEL), NUM, freshness="strict")
    sim.forward()
    robot = sim.scene["model"]
    robot.set_joint_position_target(given(2, 3), [2, 0, 1], [3, 1])
    assert robot.data.joint_pos.shape == (NUM, 4)
    with raises(RuntimeError, name="joint_acc"):
        _ = robot.data.joint_acc
