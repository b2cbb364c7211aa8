"""Writers: what was read can be written back, and what cannot be written says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import columns_of, model_of
from tests.raised import raises
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from simstate import (
    Entity,
    EntityCfg,
    EntityData,
    InitialStateCfg,
    InvalidInputError,
    PositionActuatorCfg,
    SceneCfg,
    SimStateError,
    Simulation,
    UnknownNameError,
)
from simstate.entity.entity import sizes_of
from simstate.scene import models

pytestmark = pytest.mark.fast

NUM_ENVS = 3

# Everything that the shipped models lack: activations, several trees, two mocap
# bodies, ball joints between hinges, a gear, constraints that are off.
MIXED = """
<mujoco>
  <worldbody>
    <body name="target" mocap="true" pos="0 2 1"><geom size="0.1"/></body>
    <body name="floater" pos="3 0 1">
      <freejoint name="floater"/>
      <geom size="0.1" pos="0.2 0.1 -0.1"/>
      <body name="one" pos="0 0 1">
        <joint name="hinge" axis="0 1 0"/>
        <geom size="0.1"/>
        <body name="two" pos="0 0 1">
          <joint name="ball" type="ball"/>
          <geom size="0.1"/>
          <body name="three" pos="0 0 1">
            <joint name="slide" type="slide" range="-1 1"/>
            <geom size="0.1"/>
          </body>
        </body>
      </body>
    </body>
    <body name="mark" mocap="true"><geom size="0.1"/></body>
    <body name="post" pos="-3 0 1">
      <joint name="post" axis="0 0 1"/>
      <geom size="0.1" pos="1 0 0"/>
    </body>
    <body name="drifter" pos="0 -3 1">
      <freejoint name="drifter"/>
      <geom size="0.1" pos="0.1 0.2 0.3"/>
    </body>
  </worldbody>
  <equality>
    <weld name="weld" body1="floater" body2="target" active="false"/>
    <joint name="hold" joint1="post"/>
  </equality>
  <actuator>
    <position name="hinge" joint="hinge" kp="5" kv="1" gear="4"/>
    <motor name="slide" joint="slide" gear="-2"/>
    <general name="lag" joint="post" dyntype="filter" dynprm="0.5" gainprm="2"/>
  </actuator>
</mujoco>
"""
SOURCES = {name: name for name in models.NAMES} | {"mixed": MIXED}


def simulated(source: str, num_envs: int = NUM_ENVS, **entity: Any) -> Simulation:
    """Worlds of one entity "robot"."""
    robot = EntityCfg(model=source, **entity)
    cfg = SceneCfg(entities={"robot": robot}, ground=False, timestep=0.005)
    return Simulation(cfg, num_envs=num_envs, engine="native")


def scatter(sim: Simulation, seed: int) -> None:
    """Put every world into a random state of its own, inputs included."""
    rng = np.random.default_rng(seed)
    model = sim.model
    for world in range(sim.num_envs):
        qpos = model.qpos0.copy()
        mujoco.mj_integratePos(model, qpos, rng.normal(size=model.nv), 1.0)
        sim.data.qpos[world] = torch.from_numpy(qpos)
    quat = rng.normal(size=sim.data.mocap_quat.shape)
    quat /= np.linalg.norm(quat, axis=-1, keepdims=True)
    sim.data.mocap_quat[:] = torch.from_numpy(quat)
    active = rng.integers(0, 2, size=sim.data.eq_active.shape)
    sim.data.eq_active[:] = torch.from_numpy(active).to(sim.data.eq_active.dtype)
    for name in ("qvel", "ctrl", "act", "qfrc_applied", "xfrc_applied", "mocap_pos"):
        field = getattr(sim.data, name)
        field[:] = torch.from_numpy(rng.normal(size=field.shape))
    for entity in sim.scene.values():
        bias = entity.data.encoder_bias
        if bias.numel():
            bias[:] = torch.from_numpy(rng.normal(size=bias.shape))


@pytest.fixture
def mixed() -> Simulation:
    sim = simulated(MIXED)
    scatter(sim, 0)
    return sim


@contextmanager
def refused(sim: Simulation, *says: str) -> Iterator[None]:
    """Expect an error whose text holds all of `says`, and no change of the state."""
    before = sim.state.clone()
    with pytest.raises(SimStateError) as caught:
        yield
    for text in says:
        assert text in str(caught.value)
    assert torch.equal(sim.state, before)


# Read ∘ write


def movable(robot: Entity, mocap: bool) -> list[int]:
    """Positions of the bodies that have a free joint (or are mocap)."""
    names = set(robot.index.free_body_ids)
    if mocap:
        names |= set(robot.index.mocap_bodies.ids)
    return [k for k, body in enumerate(robot.index.bodies.ids) if body in names]


Write = Callable[[Entity, Tensor], None]


def write_wrench(robot: Entity, wrench: Tensor) -> None:
    robot.write_external_wrench_to_sim(wrench[..., :3], wrench[..., 3:])


def write_force(robot: Entity, force: Tensor) -> None:
    robot.write_external_wrench_to_sim(force, robot.data.body_external_torque)


def write_torque(robot: Entity, torque: Tensor) -> None:
    robot.write_external_wrench_to_sim(robot.data.body_external_force, torque)


def write_bodies(method: str, mocap: bool) -> Write:
    def write(robot: Entity, values: Tensor) -> None:
        bodies = movable(robot, mocap)
        if bodies:
            getattr(robot, method)(values[:, bodies], bodies)

    return write


SPECIAL: dict[str, Write] = {
    "body_link_pose_w": write_bodies("write_body_link_pose_to_sim", mocap=True),
    "body_link_vel_w": write_bodies("write_body_link_velocity_to_sim", mocap=False),
    "body_external_wrench": write_wrench,
    "body_external_force": write_force,
    "body_external_torque": write_torque,
}
WRITERS = {name: q.writer for name, q in EntityData.quantities.items() if q.writer}
WRITABLE = [name for name, writer in WRITERS.items() if not writer.startswith("sim.")]


def write(name: str, robot: Entity, value: Tensor) -> None:
    """Write a quantity by the writer that it declares."""
    if name in SPECIAL:
        SPECIAL[name](robot, value)
    else:
        getattr(robot, WRITERS[name])(value)


def can_write(name: str, robot: Entity) -> bool:
    """Whether the entity's base lets the quantity be written at all."""
    base = robot.index.base
    if name.startswith("root_") and "pose" in name:
        moved = model_of(robot).body_dofnum[robot.index.root_body_id]
        return base != "fixed" or not moved
    if name.startswith("root_"):
        return base == "free"
    if name == "mocap_pose_w":
        return len(robot.index.mocap_bodies) > 0
    return True


def written(name: str, robot: Entity) -> slice | list[int]:
    """The elements of a quantity that its writer can write."""
    if name in ("body_link_pose_w", "body_link_vel_w"):
        return movable(robot, mocap="pose" in name)
    return slice(None)


@pytest.fixture(scope="module", params=SOURCES)
def shared(request: pytest.FixtureRequest) -> Simulation:
    """Worlds of each model, which every test puts into a state of its own."""
    return simulated(SOURCES[request.param])


@pytest.mark.parametrize("name", WRITABLE)
def test_what_was_read_can_be_written_back_anywhere(
    shared: Simulation, name: str
) -> None:
    robot = shared.scene["robot"]
    scatter(shared, 1)
    value = robot.data.read(name).clone()
    scatter(shared, 2)
    if not can_write(name, robot):
        with refused(shared, "robot"):
            write(name, robot, value)
        return
    write(name, robot, value)
    part = written(name, robot)
    found = robot.data.read(name)[:, part]
    torch.testing.assert_close(
        found, value[:, part], rtol=0, atol=1e-12, equal_nan=True
    )


@pytest.mark.parametrize("name", WRITABLE)
def test_writing_what_was_read_changes_nothing(shared: Simulation, name: str) -> None:
    robot = shared.scene["robot"]
    scatter(shared, 3)
    if not can_write(name, robot):
        return
    before = shared.state.clone()
    value = robot.data.read(name).clone()
    write(name, robot, robot.data.read(name))
    torch.testing.assert_close(shared.state, before, rtol=0, atol=1e-12)
    torch.testing.assert_close(
        robot.data.read(name), value, rtol=0, atol=1e-12, equal_nan=True
    )


@pytest.mark.parametrize("name", ["joint_pos", "joint_vel", "ctrl", "encoder_bias"])
@pytest.mark.parametrize(
    ("source", "env_ids"),
    [
        ([0, 1, 2, 3], [3, 2, 1, 0]),
        ([0, 1, 2, 3], [1, 2, 3, 0]),
        ([0, 1, 2], [1, 2, 3]),
        ([1, 2, 3], [0, 1, 2]),
        ([0, 1, 2, 3], slice(None, None, -1)),
        ([0, 1, 2], slice(1, 4)),
    ],
)
def test_live_values_may_be_written_to_other_worlds(
    name: str, source: list[int], env_ids: Any
) -> None:
    sim = simulated("quadruped", num_envs=4)
    robot = sim.scene["robot"]
    scatter(sim, 6)
    live = robot.data.read(name)[source[0] : source[-1] + 1]
    expected = robot.data.read(name).clone()
    rows = env_ids if isinstance(env_ids, list) else list(range(4))[env_ids]
    expected[rows] = live.clone()
    getattr(robot, WRITERS[name])(live, env_ids=env_ids)
    assert torch.equal(robot.data.read(name), expected)


@pytest.mark.parametrize("name", ["joint_pos", "joint_vel"])
def test_live_values_may_be_written_to_other_joints(name: str) -> None:
    sim = simulated("quadruped")
    robot = sim.scene["robot"]
    scatter(sim, 6)
    expected = robot.data.read(name).flip(1)
    getattr(robot, WRITERS[name])(robot.data.read(name), list(range(12))[::-1])
    assert torch.equal(robot.data.read(name), expected)


def test_live_positions_and_velocities_may_change_places() -> None:
    sim = simulated("quadruped")
    data = sim.scene["robot"].data
    scatter(sim, 6)
    pos, vel = data.joint_pos.clone(), data.joint_vel.clone()
    sim.scene["robot"].write_joint_state_to_sim(data.joint_vel, data.joint_pos)
    assert torch.equal(data.joint_pos, vel)
    assert torch.equal(data.joint_vel, pos)


def test_the_live_state_may_be_written_to_other_worlds() -> None:
    sim = simulated("quadruped")
    scatter(sim, 6)
    expected = sim.state.flip(0)
    sim.write_state(sim.state, [2, 1, 0])
    assert torch.equal(sim.state, expected)


@pytest.mark.parametrize("name", ["body_mass", "body_inertia", "joint_pos_limits"])
@pytest.mark.parametrize("model", ["cartpole", "humanoid", "mixed"])
def test_parameters_are_written_by_what_they_name(model: str, name: str) -> None:
    sim = simulated(SOURCES[model])
    robot = sim.scene["robot"]
    remedy = EntityData.quantities[name].remedy
    (parameter,) = re.findall(r'sim\.expand\("(\w+)"\)', remedy)
    ids = robot.index.joints.ids if "joint" in name else robot.index.bodies.ids
    value = robot.data.read(name).clone()
    value[1] *= 1.25
    finite = value.isfinite()
    expanded = sim.expand(parameter)
    expanded[:, list(ids)] = torch.where(finite, value, expanded[:, list(ids)])
    assert torch.equal(robot.data.read(name), value)
    assert not torch.equal(robot.data.read(name)[0], value[1])


def test_a_change_of_mass_is_a_change_of_physics() -> None:
    sim = simulated("cube")
    robot = sim.scene["robot"]
    sim.expand("body_mass")[1, robot.index.root_body_id] *= 2
    sim.set_const()
    zero, force = torch.zeros(1, 1, 3), torch.tensor([[[3.0, 0.0, 0.0]]])
    robot.write_external_wrench_to_sim(force, zero)
    acc = robot.data.body_com_lin_acc_w[:, 0, 0]
    torch.testing.assert_close(acc, torch.tensor([30.0, 15.0, 30.0]).double())


def test_selecting_no_body_writes_nothing(mixed: Simulation) -> None:
    robot = mixed.scene["robot"]
    before = mixed.state.clone()
    robot.write_body_link_pose_to_sim(torch.ones(1, 0, 7), [])
    robot.write_external_wrench_to_sim(torch.ones(1, 0, 3), torch.ones(1, 0, 3), [])
    robot.write_ball_joint_quat_to_sim(torch.ones(1, 0, 4), [])
    robot.write_body_link_velocity_to_sim(torch.ones(1, 0, 6), [])
    assert torch.equal(mixed.state, before)


@pytest.mark.parametrize("name", ["encoder_bias", "default_joint_pos"])
def test_what_is_stored_may_be_written_in_place_without_joints(name: str) -> None:
    robot = simulated("cube").scene["robot"]
    robot.data.read(name)[:] = 0.5
    assert robot.data.read(name).shape == (NUM_ENVS, 0)


TOUCHED = {
    "pose": {"qpos", "mocap_pos", "mocap_quat"},
    "quat": {"qpos"},
    "joint_pos": {"qpos"},
    "joint_pos_target": {"ctrl"},
    "vel": {"qvel"},
    "wrench": {"xfrc_applied"},
    "generalized_force": {"qfrc_applied"},
    "qfrc_applied": {"qfrc_applied"},
    "joint_effort_target": {"ctrl"},
    "ctrl": {"ctrl"},
    "act": {"act"},
    "equality_active": {"eq_active"},
}


@pytest.mark.parametrize("name", sorted(set(WRITABLE) - set(SPECIAL)))
def test_a_writer_touches_its_own_worlds_and_fields_alone(
    mixed: Simulation, name: str
) -> None:
    robot = mixed.scene["robot"]
    if name.startswith("root_com") or name == "root_link_vel_w":
        mixed = simulated("glider")
        robot = mixed.scene["robot"]
    scatter(mixed, 4)
    value = robot.data.read(name)[[1]].clone()
    scatter(mixed, 5)
    before = mixed.state.clone()
    getattr(robot, WRITERS[name])(value, env_ids=[1])
    assert torch.equal(mixed.state[[0, 2]], before[[0, 2]])
    changed = (mixed.state[1] != before[1]).nonzero().flatten().tolist()
    fields = {
        field
        for field, part in columns_of(mixed).items()
        if any(part.start <= k < part.stop for k in changed)
    }
    keys = [key for key in TOUCHED if key in name]
    allowed = TOUCHED[max(keys, key=len)] if keys else set()
    assert fields <= allowed
    empty = name in ("joint_vel_target", "encoder_bias")
    assert bool(fields) != empty


@pytest.mark.parametrize("model", SOURCES)
def test_the_default_state_is_where_a_reset_ends(model: str) -> None:
    sim = simulated(SOURCES[model])
    robot = sim.scene["robot"]
    start = sim.state.clone()
    scatter(sim, 5)
    sim.reset([1])
    torch.testing.assert_close(sim.state[1], start[1], rtol=0, atol=1e-14)
    data = robot.data
    assert torch.equal(data.joint_pos[1], data.default_joint_pos[1])
    assert torch.equal(data.joint_vel[1], data.default_joint_vel[1])
    pose = data.default_root_state[1, :7]
    torch.testing.assert_close(data.root_link_pose_w[1], pose, rtol=0, atol=1e-14)


def test_a_reset_gives_the_configured_velocities_again() -> None:
    start = InitialStateCfg(
        pos=(1.0, 2.0, 3.0), rot=(0.5, 0.1, -0.7, 0.5), lin_vel=(1.0, -2.0, 0.5),
        ang_vel=(0.3, 0.8, -1.1),
    )  # fmt: skip
    sim = Simulation(
        SceneCfg(entities={"it": EntityCfg(model="cube", init_state=start)}), 2
    )
    sim.step(3)
    sim.reset()
    data = sim.scene["it"].data
    want = torch.tensor([[*start.lin_vel, *start.ang_vel]] * 2, dtype=sim.dtype)
    torch.testing.assert_close(data.root_link_vel_w, want)
    torch.testing.assert_close(data.default_root_state[:, 7:], want)


@pytest.mark.parametrize("name", ["joint_names", "num_joints", "find_joints"])
def test_the_elements_of_an_entity_cannot_be_assigned(mixed, name: str) -> None:
    robot = mixed.scene["robot"]
    before = robot.joint_names
    with pytest.raises(AttributeError, match=name):
        setattr(robot, name, ())
    assert robot.joint_names == before != ()


def test_a_changed_default_is_that_of_its_world() -> None:
    sim = simulated("quadruped")
    data = sim.scene["robot"].data
    data.default_joint_pos[2] = 0.25
    data.default_root_state[0, :3] = torch.tensor([5.0, 6.0, 7.0])
    sim.reset()
    assert data.joint_pos[2].tolist() == [0.25] * 12
    assert data.joint_pos[1].tolist() != [0.25] * 12
    assert data.root_link_pos_w[0].tolist() == [5, 6, 7]
    assert data.root_link_pos_w[1].tolist() != [5, 6, 7]


# What cannot be written

ROOT_WRITES = {
    "write_root_state_to_sim": 13,
    "write_root_link_pose_to_sim": 7,
    "write_root_com_pose_to_sim": 7,
    "write_root_link_velocity_to_sim": 6,
    "write_root_com_velocity_to_sim": 6,
}


@pytest.mark.parametrize("method", ROOT_WRITES)
@pytest.mark.parametrize("model", ["arm", "cartpole", "finger"])
def test_a_fixed_root_has_no_velocity(model: str, method: str) -> None:
    sim = simulated(model)
    if "pose" not in method:
        with refused(sim, "'robot'", "fixed", "velocity"):
            getattr(sim.scene["robot"], method)(torch.ones(1, ROOT_WRITES[method]))


CART = """<mujoco><worldbody><body name="cart"><joint name="slide" type="slide"/>
  <geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("method", ROOT_WRITES)
def test_a_root_that_joints_move_is_not_written(method: str) -> None:
    sim = simulated(CART)
    with refused(sim, method, "'robot'", "moves on joints", "init_state"):
        getattr(sim.scene["robot"], method)(torch.ones(1, ROOT_WRITES[method]))


def test_a_mocap_root_takes_a_pose_and_no_velocity() -> None:
    sim = simulated("mocap_target")
    robot = sim.scene["robot"]
    for method in ROOT_WRITES:
        if "velocity" in method:
            with refused(sim, "mocap", "velocity"):
                getattr(robot, method)(torch.ones(1, 6))
    state = torch.tensor([[1, 2, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0.0]])
    robot.write_root_state_to_sim(state)
    assert robot.data.root_link_pose_w[1].tolist() == [1, 2, 3, 0, 1, 0, 0]
    state[0, 9] = 1
    with refused(sim, "mocap", "velocity"):
        robot.write_root_state_to_sim(state + 1)


def test_a_zero_quaternion_is_refused(mixed: Simulation) -> None:
    free = simulated("humanoid")
    robot, balls = free.scene["robot"], mixed.scene["robot"]
    zero = torch.ones(NUM_ENVS, 13)
    zero[1, 3:7] = 0
    for method in ("write_root_link_pose_to_sim", "write_root_com_pose_to_sim"):
        with refused(free, "quaternion", "zero", "[1"):
            getattr(robot, method)(zero[:, :7])
    with refused(free, "quaternion", "zero"):
        robot.write_root_state_to_sim(zero)
    with refused(free, "quaternion", "zero"):
        robot.write_body_link_pose_to_sim(zero[:, None, :7], body_ids=[0])
    with refused(mixed, "quaternion", "zero", "[2, 0]"):
        quat = torch.ones(NUM_ENVS, 1, 4)
        quat[2] = 0
        balls.write_ball_joint_quat_to_sim(quat)
    with refused(mixed, "quaternion", "zero", "[0, 1]"):
        pose = torch.ones(1, 2, 7)
        pose[0, 1, 3:] = 0
        balls.write_mocap_pose_to_sim(pose)
    with refused(mixed, "quaternion", "zero"):
        # The free body comes first and must stay as it was.
        pose = torch.ones(1, 2, 7)
        pose[0, 1, 3:] = 0
        balls.write_body_link_pose_to_sim(pose, body_ids=[1, 0])


def test_links_that_move_with_joints_are_not_written(mixed: Simulation) -> None:
    robot = mixed.scene["robot"]
    (post, one), _ = robot.find_bodies(["post", "one"], preserve_order=True)
    for body, name in ((post, "post"), (one, "one")):
        with refused(mixed, "joints", name, "Writable: target, floater, mark, drifter"):
            robot.write_body_link_pose_to_sim(torch.ones(1, 1, 7), [body])
        with refused(mixed, "joints", name, "Writable: floater, drifter"):
            robot.write_body_link_velocity_to_sim(torch.ones(1, 1, 6), [body])
    with refused(mixed, "target"):
        robot.write_body_link_velocity_to_sim(torch.ones(1, 1, 6), [0])
    with refused(mixed, "one, two, three, post"):
        robot.write_body_link_pose_to_sim(torch.ones(1, robot.num_bodies, 7))


def test_bodies_are_written_in_the_order_of_their_ids(mixed: Simulation) -> None:
    robot = mixed.scene["robot"]
    names = ["drifter", "mark", "floater", "target"]
    bodies, _ = robot.find_bodies(names, preserve_order=True)
    gen = torch.Generator().manual_seed(0)
    pose = torch.randn(2, 4, 7, generator=gen).double()
    robot.write_body_link_pose_to_sim(pose, bodies, env_ids=[2, 0])
    pose[..., 3:] /= pose[..., 3:].norm(dim=-1, keepdim=True)
    torch.testing.assert_close(robot.data.body_link_pose_w[[2, 0]][:, bodies], pose)
    free, _ = robot.find_bodies(["drifter", "floater"], preserve_order=True)
    vel = torch.randn(2, 2, 6, generator=gen).double()
    robot.write_body_link_velocity_to_sim(vel, free, env_ids=[2, 0])
    torch.testing.assert_close(robot.data.body_link_vel_w[[2, 0]][:, free], vel)


def test_writers_of_what_the_entity_lacks_say_so() -> None:
    sim = simulated("cube")
    robot = sim.scene["robot"]
    with refused(sim, "robot", "mocap"):
        robot.write_mocap_pose_to_sim(torch.ones(1, 7))
    with refused(sim, "joint ids must be in [0, 0)"):
        robot.write_joint_position_to_sim(torch.ones(1, 1), joint_ids=[0])
    with refused(sim, "(3, 0)"):
        robot.write_ctrl_to_sim(torch.ones(1, 1))


# Targets


def test_targets_become_controls_by_the_gear(mixed: Simulation) -> None:
    robot = mixed.scene["robot"]
    (hinge, slide), _ = robot.find_joints(["hinge", "slide"], preserve_order=True)
    before = mixed.data.ctrl.clone()
    robot.set_joint_position_target([[0.5]], joint_ids=[hinge], env_ids=[1])
    assert float(mixed.data.ctrl[1, 0]) == 4 * 0.5
    assert torch.equal(mixed.data.ctrl[[0, 2]], before[[0, 2]])
    assert torch.equal(mixed.data.ctrl[:, 1:], before[:, 1:])
    assert float(robot.data.joint_pos_target[1, hinge]) == 0.5
    robot.set_joint_effort_target([[3.0]], joint_ids=[slide])
    assert mixed.data.ctrl[:, 1].tolist() == [-1.5] * NUM_ENVS
    assert robot.data.joint_effort_target[:, slide].tolist() == [3.0] * NUM_ENVS


def test_targets_mean_what_they_say_to_the_physics(mixed: Simulation) -> None:
    robot = mixed.scene["robot"]
    (hinge, slide), _ = robot.find_joints(["hinge", "slide"], preserve_order=True)
    robot.set_joint_effort_target([[3.0]], joint_ids=[slide])
    assert robot.data.qfrc_actuator[:, slide].tolist() == [3.0] * NUM_ENVS
    robot.write_joint_state_to_sim([[0.4]], [[0.0]], joint_ids=[hinge])
    robot.set_joint_position_target([[0.4]], joint_ids=[hinge])
    torch.testing.assert_close(
        robot.data.qfrc_actuator[:, hinge], torch.zeros(NUM_ENVS).double()
    )


def test_targets_of_several_joints_go_in_the_order_of_the_ids() -> None:
    sim = simulated("quadruped")
    robot = sim.scene["robot"]
    ids, _ = robot.find_joints(["RR_calf", "FL_hip", "RL_thigh"], preserve_order=True)
    robot.set_joint_position_target([[1.0, 2.0, 3.0]], ids, env_ids=[0, 2])
    target = robot.data.joint_pos_target
    assert target[0, ids].tolist() == target[2, ids].tolist() == [1, 2, 3]
    assert target[1, ids].tolist() != [1, 2, 3]
    assert int((sim.data.ctrl[0] != sim.data.ctrl[1]).sum()) == 3


@pytest.mark.parametrize(
    ("name", "kind"),
    [("joint_pos_target", "position"), ("joint_vel_target", "velocity"),
     ("joint_effort_target", "effort")],
)  # fmt: skip
def test_every_joint_keeps_its_targets(mixed: Simulation, name: str, kind: str) -> None:
    """Also joints without an actuator, or with one of another kind."""
    robot = mixed.scene["robot"]
    assert robot.joint_names == ("hinge", "slide", "post")
    before = mixed.state.clone()
    write = getattr(robot, f"set_joint_{kind}_target")
    values = torch.tensor([[0.25, -3.0, 0.5], [0.75, 4.0, -1.5]], dtype=mixed.dtype)
    write(values, env_ids=[2, 0])
    torch.testing.assert_close(robot.data.read(name)[[2, 0]], values)
    write([[9.0]], joint_ids=[2], env_ids=[1])
    assert robot.data.read(name)[:, 2].tolist() == [-1.5, 9.0, 0.5]
    driven = robot.index.target_inputs(kind).joints
    changed = int((mixed.state != before).sum())
    assert changed <= 2 * len(driven)  # the controls, and nothing else
    with refused(mixed, "finite"):
        write(torch.full((1, 3), torch.nan))
    saved = mixed.snapshot()
    mixed.reset([0])
    want = robot.data.default_joint_pos[0, 2] if kind == "position" else 0.0
    assert float(robot.data.read(name)[0, 2]) == float(want)
    mixed.restore(saved)
    assert float(robot.data.read(name)[0, 2]) == -1.5


def test_encoder_bias_is_added_to_what_is_reported(mixed: Simulation) -> None:
    robot = mixed.scene["robot"]
    bias = robot.data.encoder_bias.clone()
    torch.testing.assert_close(
        robot.data.joint_pos_biased, robot.data.joint_pos + bias, rtol=0, atol=0
    )
    robot.set_encoder_bias([[0.5, -0.5]], joint_ids=[2, 0], env_ids=[1])
    bias[1, 2], bias[1, 0] = 0.5, -0.5
    assert torch.equal(robot.data.encoder_bias, bias)
    torch.testing.assert_close(robot.data.joint_pos_biased, robot.data.joint_pos + bias)
    before = bias.clone()
    for bad in ([[1.0]], [[float("nan")] * 3]):
        with pytest.raises(InvalidInputError):
            robot.set_encoder_bias(bad)
    assert torch.equal(robot.data.encoder_bias, before)


# Equality constraints


def test_equality_constraints_are_switched_by_world() -> None:
    sim = simulated(MIXED)
    robot = sim.scene["robot"]
    assert robot.equality_names == ("weld", "hold")
    assert robot.data.equality_active.tolist() == [[0, 1]] * NUM_ENVS
    robot.write_equality_active_to_sim([[0.0]], equality_ids=[1], env_ids=[2])
    assert robot.data.equality_active.tolist() == [[0, 1], [0, 1], [0, 0]]
    robot.write_joint_force_to_sim([[20.0]], robot.find_joints("post")[0])
    sim.step(50)
    post = robot.data.joint_pos[:, robot.find_joints("post")[0][0]].abs()
    assert float(post[:2].max()) < 0.01 < 0.05 < float(post[2])


@pytest.mark.parametrize("make", [list, np.array, torch.tensor])
def test_equality_constraints_take_bools(make) -> None:
    sim = simulated(MIXED)
    robot = sim.scene["robot"]
    robot.write_equality_active_to_sim(
        make([[True, False], [True, True]]), None, [0, 2]
    )
    assert sim.data.eq_active.tolist() == [[1, 0], [0, 1], [1, 1]]


def test_a_weld_that_is_switched_on_pulls_to_its_target() -> None:
    sim = simulated(MIXED)
    robot = sim.scene["robot"]
    robot.write_equality_active_to_sim([[1.0]], equality_ids=[0], env_ids=[0])
    before = robot.data.body_link_pos_w[0, 1].clone()
    target = robot.data.mocap_pose_w.clone()
    target[:, 0, 0] += 0.5
    robot.write_mocap_pose_to_sim(target)
    sim.step(200)
    moved = robot.data.body_link_pos_w[:, 1] - before
    assert float(moved[0, 0]) > 0.2
    assert abs(float(moved[1, 0])) < 0.1


@pytest.mark.parametrize("value", [0.5, 2.0, -1.0, float("nan")])
def test_equality_constraints_are_on_or_off(mixed: Simulation, value: float) -> None:
    with refused(mixed, "active"):
        mixed.scene["robot"].write_equality_active_to_sim([[1.0, value]])


# Names


def test_find_takes_expressions_and_lists_of_them() -> None:
    robot = simulated("quadruped").scene["robot"]
    assert robot.find_joints("FL_.*")[1] == ["FL_hip", "FL_thigh", "FL_calf"]
    assert robot.find_joints(".*_hip") == (
        [0, 3, 6, 9],
        ["FL_hip", "FR_hip", "RL_hip", "RR_hip"],
    )
    both = ["RR_calf", "FL_(hip|calf)"]
    assert robot.find_joints(both) == ([0, 2, 11], ["FL_hip", "FL_calf", "RR_calf"])
    assert robot.find_joints(both, preserve_order=True) == (
        [11, 0, 2],
        ["RR_calf", "FL_hip", "FL_calf"],
    )
    twice = ["FL_calf", ".*_calf"]
    assert robot.find_joints(twice, preserve_order=True)[0] == [2, 5, 8, 11]
    assert robot.find_joints(twice)[0] == [2, 5, 8, 11]


@pytest.mark.parametrize("preserve_order", [False, True])
def test_find_refuses_what_matches_nothing(preserve_order: bool) -> None:
    robot = simulated("quadruped").scene["robot"]
    for names in ("FL_hipp", ["RR_calf", "FL_hipp"]):
        with raises(UnknownNameError, name="FL_hipp"):
            robot.find_joints(names, preserve_order)
    with raises(UnknownNameError, name="hip"):
        robot.find_joints("hip", preserve_order)  # a part is no match
    with raises(UnknownNameError, name="FL_("):
        robot.find_joints("FL_(", preserve_order)


def test_find_knows_every_kind(mixed: Simulation) -> None:
    robot, cat = mixed.scene["robot"], simulated("quadruped").scene["robot"]
    finger = simulated("finger").scene["robot"]
    assert robot.find_bodies("t.*") == ([0, 3, 4], ["target", "two", "three"])
    assert robot.find_ball_joints("ball") == ([0], ["ball"])
    assert robot.find_actuators("lag") == ([2], ["lag"])
    assert robot.find_controls("slide") == ([1], ["slide"])
    assert cat.find_geoms("FL_foot")[1] == ["FL_foot"]
    assert cat.find_sites("imu")[1] == ["imu"]
    assert cat.find_sensors("imu_gyro")[1] == ["imu_gyro"]
    assert finger.find_tendons("extensor") == ([1], ["extensor"])


# Assignments and writes in place


@pytest.mark.parametrize("name", EntityData.quantities)
def test_assigning_to_a_quantity_raises_and_names_the_writer(
    mixed: Simulation, name: str
) -> None:
    robot = mixed.scene["robot"]
    quantity = EntityData.quantities[name]
    value = torch.zeros_like(robot.data.read(name))
    with refused(mixed, name, quantity.remedy.format(entity="robot")):
        setattr(robot.data, name, value)
    with refused(mixed, name, quantity.remedy.format(entity="robot")):
        setattr(robot.data, name, 0.0)


@pytest.mark.parametrize("name", WRITABLE)
def test_the_writers_that_messages_name_exist(name: str) -> None:
    writer = EntityData.quantities[name].writer
    assert callable(getattr(Entity, writer, None))


def test_adding_in_place_is_a_raw_write_where_it_is_live() -> None:
    sim = simulated("quadruped")
    robot = sim.scene["robot"]
    pos, feet = robot.data.joint_pos.clone(), robot.data.site_pos_w.clone()
    robot.data.joint_pos += 0.1
    torch.testing.assert_close(robot.data.joint_pos, pos + 0.1, rtol=0, atol=0)
    torch.testing.assert_close(sim.data.qpos[:, 7:], pos + 0.1, rtol=0, atol=0)
    assert float((robot.data.site_pos_w - feet).abs().max()) > 0.01
    robot.data.joint_pos[1] = 0.2
    assert sim.data.qpos[1, 7:].tolist() == [0.2] * 12
    robot.data.joint_vel *= 0
    robot.data.ctrl += 1
    sim.step()


@pytest.mark.parametrize("as_given", [Tensor.clone, Tensor.numpy, Tensor.float])
def test_poses_are_normalised_and_the_given_ones_stay(
    mixed: Simulation, as_given: Callable[[Tensor], Any]
) -> None:
    robot = mixed.scene["robot"]
    floater, ids = robot.body_names.index("floater"), [2, 0]
    pose = torch.tensor(
        [[0.5, -1.0, 2.0, 2.0, -1.0, 0.5, 1.5], [0.25, 1.0, 3.0, 0.5, 4.0, -1.0, 2.0]]
    ).double()
    given = as_given(pose.clone()[:, None])
    robot.write_body_link_pose_to_sim(given, [floater], ids)
    np.testing.assert_array_equal(np.asarray(given)[:, 0], pose)
    quat = pose[:, 3:].numpy()
    want = quat / np.sqrt((quat**2).sum(axis=1, keepdims=True))
    got = robot.data.body_link_pose_w[ids, floater]
    np.testing.assert_allclose(got[:, 3:], want, rtol=0, atol=1e-15)
    np.testing.assert_allclose(got[:, :3], pose[:, :3], rtol=0, atol=1e-15)


def test_adding_in_place_to_a_copy_raises(mixed: Simulation) -> None:
    data = mixed.scene["robot"].data
    for name in ("joint_pos", "root_com_quat_w", "projected_gravity_b", "heading_w"):
        kept = data.read(name).clone()
        with refused(mixed, name):
            setattr(data, name, data.read(name).add_(1.0))
        torch.testing.assert_close(data.read(name), kept, rtol=0, atol=0)


COPIES = (
    "joint_pos",
    "joint_vel",
    "root_com_quat_w",
    "root_link_pose_w",
    "body_link_vel_w",
    "root_link_lin_vel_b",
    "projected_gravity_b",
    "joint_pos_biased",
    "joint_pos_target",
    "ball_joint_quat",
    "mocap_pose_w",
    "joint_pos_limits",
    "body_mass",
    "qfrc_external",
    "body_link_acc_w",
)


@pytest.mark.parametrize("name", COPIES)
def test_a_write_into_a_copy_raises_at_the_next_read(
    mixed: Simulation, name: str
) -> None:
    data = mixed.scene["robot"].data
    kept = data.read(name).clone()
    data.read(name)[0] = 7.0
    quantity = EntityData.quantities[name]
    with refused(mixed, name, quantity.remedy.format(entity="robot")):
        data.read(name)
    torch.testing.assert_close(data.read(name), kept, rtol=0, atol=0, equal_nan=True)


def test_a_write_into_a_part_of_a_copy_raises_too(mixed: Simulation) -> None:
    data = mixed.scene["robot"].data
    data.body_link_lin_vel_w[0] = 7.0
    with refused(mixed, "body_link_lin_vel_w"):
        _ = data.body_link_lin_vel_w
    data.body_link_pose_w[..., :3] += 1.0
    with refused(mixed, "body_link_pose_w"):
        _ = data.body_link_pose_w


@pytest.mark.parametrize("name", ["root_link_pos_w", "body_link_pos_w", "site_pos_w"])
def test_a_write_into_a_computed_field_raises_at_the_next_read(name: str) -> None:
    sim = simulated("quadruped")
    data = sim.scene["robot"].data
    kept = data.read(name).clone()
    data.read(name)[0] = 7.0
    with refused(sim, "written"):
        data.read(name)
    torch.testing.assert_close(data.read(name), kept, rtol=0, atol=0)


# The contract


@pytest.mark.parametrize("model", SOURCES)
def test_shapes_are_those_declared(model: str) -> None:
    sim = simulated(SOURCES[model])
    robot = sim.scene["robot"]
    for name, quantity in EntityData.quantities.items():
        sizes = [
            sizes_of(robot)[s] if isinstance(s, str) else s for s in quantity.shape
        ]
        value = robot.data.read(name)
        assert value.shape == (NUM_ENVS, *sizes), name
        assert value.dtype == torch.float64, name


@pytest.mark.parametrize("name", EntityData.quantities)
def test_every_docstring_says_unit_and_shape(name: str) -> None:
    quantity = EntityData.quantities[name]
    doc = " ".join(quantity.doc.split())
    if quantity.evaluates and not doc.endswith(")."):
        doc = doc[: doc.index(". Evaluates the dynamics") + 1]
    assert doc.endswith(f"; {quantity.shape_text}.")
    words = {
        "1": ("wxyz", "unit length", "1 or 0"),
        "actuator's own": ("own unit",),
    }
    allowed = words.get(quantity.unit, (f"[{quantity.unit}]",))
    assert any(word in doc for word in allowed)
    axes = {"w": "world", "b": "axes", "parent": "parent", "": ""}
    if quantity.kind not in ("quat", "heading"):
        assert axes[quantity.axes] in doc


REFERENCE = [
    "root_link_pose_w",
    "root_link_pos_w",
    "root_link_quat_w",
    "root_link_vel_w",
    "root_link_lin_vel_w",
    "root_link_ang_vel_w",
    "root_link_lin_vel_b",
    "root_link_ang_vel_b",
    "root_com_pose_w",
    "root_com_pos_w",
    "root_com_quat_w",
    "root_com_vel_w",
    "root_com_lin_vel_w",
    "root_com_ang_vel_w",
    "root_com_lin_vel_b",
    "root_com_ang_vel_b",
    "projected_gravity_b",
    "heading_w",
    "body_link_pose_w",
    "body_link_pos_w",
    "body_link_quat_w",
    "body_link_vel_w",
    "body_link_lin_vel_w",
    "body_link_ang_vel_w",
    "body_com_pose_w",
    "body_com_pos_w",
    "body_com_quat_w",
    "body_com_vel_w",
    "body_com_lin_vel_w",
    "body_com_ang_vel_w",
    "body_external_wrench",
    "body_external_force",
    "body_external_torque",
    "joint_pos",
    "joint_pos_biased",
    "joint_vel",
    "joint_acc",
    "actuator_force",
    "generalized_force",
    "geom_pose_w",
    "geom_pos_w",
    "geom_quat_w",
    "geom_vel_w",
    "geom_lin_vel_w",
    "geom_ang_vel_w",
    "site_pose_w",
    "site_pos_w",
    "site_quat_w",
    "site_vel_w",
    "site_lin_vel_w",
    "site_ang_vel_w",
    "tendon_len",
    "tendon_vel",
    "default_root_state",
    "default_joint_pos",
    "default_joint_vel",
    "joint_pos_limits",
    "soft_joint_pos_limits",
    "joint_pos_target",
    "joint_vel_target",
    "joint_effort_target",
    "encoder_bias",
    "qfrc_actuator",
    "qfrc_external",
    "body_mass",
    "body_inertia",
    "body_link_lin_acc_w",
    "body_link_ang_acc_w",
    "body_com_lin_acc_w",
    "body_com_ang_acc_w",
]


@pytest.mark.parametrize("name", REFERENCE)
def test_every_name_of_the_reference_exists(name: str) -> None:
    assert name in EntityData.quantities
    assert EntityData.quantities[name].name == name


def test_generalized_force_is_of_the_free_joints(mixed: Simulation) -> None:
    robot = mixed.scene["robot"]
    force = torch.arange(36.0).reshape(3, 12)
    robot.write_generalized_force_to_sim(force)
    assert torch.equal(robot.data.generalized_force, force.double())
    for k, name in enumerate(("floater", "drifter")):
        adr = mixed.model.joint(f"robot/{name}").dofadr[0]
        found = mixed.data.qfrc_applied[:, adr : adr + 6]
        assert torch.equal(found, force[:, 6 * k : 6 * k + 6].double())


def test_a_position_servo_from_the_configuration_takes_targets() -> None:
    servo = PositionActuatorCfg(joints="pole", stiffness=10.0, damping=1.0)
    sim = simulated("cartpole", actuators=(servo,))
    robot = sim.scene["robot"]
    pole = robot.find_joints("pole")[0]
    robot.set_joint_position_target([[0.3]], joint_ids=pole)
    force = robot.data.qfrc_actuator[:, pole]
    torch.testing.assert_close(force, torch.full((NUM_ENVS, 1), 3.0).double())


class _ThreadsOfIndexing(TorchDispatchMode):
    """The numbers of threads that torch had in operations that pick elements."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func.overloadpacket in (torch.ops.aten.index, torch.ops.aten.zeros_like):
            self.found.add(torch.get_num_threads())
        return func(*args, **(kwargs or {}))


@pytest.mark.filterwarnings("ignore:No actuator")
def test_writes_pick_elements_with_one_thread_of_torch() -> None:
    """More would wait for the threads of a step, which spin for milliseconds."""
    cfg = {name: EntityCfg(model=name) for name in ("arm", "cube")}
    sim = Simulation(SceneCfg(entities=cfg, timestep=0.002), num_envs=3)
    arm, cube = sim.scene["arm"], sim.scene["cube"]
    mask = torch.tensor([True, False, True])
    states = sim.get_states(mode="tensor")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with _ThreadsOfIndexing() as threads:
            sim.set_states(states)
            sim.set_states([{"objects": {"cube": {"rot": [0.0, 1.0, 0.0, 0.0]}}}])
            arm.set_joint_effort_target(torch.zeros(3, 9))
            arm.write_joint_state_to_sim(arm.data.joint_pos, arm.data.joint_vel)
            cube.write_root_link_velocity_to_sim(torch.ones(2, 6), mask)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert threads.found == {1}
