"""Memoised values: computed again when they may differ, and only then."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest
import torch
from tests.inside import engine_of, record_forwards
from tests.raised import raises

from simstate import (
    EntityCfg,
    EntityData,
    InitialStateCfg,
    InvalidInputError,
    ModelError,
    Quantity,
    SceneCfg,
    Simulation,
    StaleReadError,
    integrate,
)
from simstate.engine import core

pytestmark = pytest.mark.fast

needs_core = pytest.mark.skipif(
    not core.is_available(), reason="the compiled core is not there"
)
CONSTANTS = ("joint_pos_limits", "soft_joint_pos_limits", "body_mass", "body_inertia")


class OwnData(EntityData):
    """Quantities that depend on parameters, settings and computed constants."""

    inverse_weight = Quantity(
        lambda data: data.parameter("dof_invweight0")[:, 6:].expand(data.num_envs, -1),
        kind="inverse_weight", unit="1/kg", shape=("num_joints",), reads=(),
        parameters=("dof_invweight0",),
    )  # fmt: skip
    """Inverse weight of each hinge, as mj_setConst computes it."""
    clamped_default = Quantity(
        lambda data: torch.minimum(
            data.read("default_joint_pos"), data.read("joint_pos_limits")[..., 1]
        ),
        kind="clamped_default", unit="rad", shape=("num_joints",), reads=(),
        parameters=("jnt_range", "jnt_limited"),
    )  # fmt: skip
    """Default position, at most the upper limit."""
    room = Quantity(
        lambda data: data.read("joint_pos_limits")[..., 1] - data.read("joint_pos"),
        kind="room", unit="rad", shape=("num_joints",), reads=("qpos",),
    )  # fmt: skip
    """Distance to the upper limit."""


def make(num_envs: int = 3, **options) -> Simulation:
    tilted = InitialStateCfg(pos=(0.3, -0.2, 0.6), rot=(0.8, 0.1, -0.3, 0.5))
    robot = EntityCfg(model="quadruped", init_state=tilted, data=OwnData)
    scene = SceneCfg(entities={"cube": EntityCfg(model="cube"), "robot": robot})
    sim = Simulation(scene, num_envs, **options)
    sim.data.qvel[:] = torch.linspace(-0.4, 0.7, sim.data.qvel.numel()).view_as(
        sim.data.qvel
    )
    return sim


def limits_of(sim: Simulation, world: int) -> np.ndarray:
    """The limits of the robot's hinges in a world, from the parameters themselves."""
    ids = [sim.model.joint(f"robot/{name}").id for name in robot_of(sim).joint_names]
    return (
        engine_of(sim)
        .parameter("jnt_range")
        .expand(sim.num_envs, -1, -1)[world, ids]
        .numpy()
    )


def robot_of(sim: Simulation):
    return sim.scene["robot"]


# Constants.


@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.parametrize("integrator", [None, integrate.RK4()])
def test_a_step_does_not_compute_a_constant_again(name, integrator):
    sim = make(integrator=integrator)
    data = robot_of(sim).data
    before = data.read(name)
    for _ in range(3):
        sim.step()
        sim.data.ctrl[1] += 0.1
        assert data.read(name) is before
    assert data.quantities[name].to_dict()["stage"] == "constant"


def test_every_value_is_computed_once_for_each_state():
    sim = make()
    data = robot_of(sim).data
    for _ in range(2):
        sim.step()
        for name in data.quantities:
            assert data.read(name) is data.read(name), name


def test_limits_follow_every_kind_of_write():
    sim = make()
    data = robot_of(sim).data
    start = sim.snapshot()
    seen = [data.joint_pos_limits.clone()]

    def check(differs: bool = True) -> None:
        now = data.joint_pos_limits
        for world in range(sim.num_envs):
            np.testing.assert_array_equal(now[world].numpy(), limits_of(sim, world))
        assert torch.equal(now, seen[-1]) is not differs
        seen.append(now.clone())
        middle, half = now.mean(-1), 0.5 * (now[..., 1] - now[..., 0])
        soft = data.soft_joint_pos_limits
        factor = soft[..., 1].sub(middle).div(half)
        torch.testing.assert_close(factor, factor[:1, :1].expand_as(factor))

    check(differs=False)
    sim.expand("jnt_range")
    check(differs=False)
    sim.step()
    sim.expand("jnt_range")[1] *= 0.5  # in place
    check()
    changed = sim.snapshot()
    sim.write_parameter("jnt_range", sim.expand("jnt_range")[[2]] * 0.7, env_ids=[2])
    check()
    sim.step()
    sim.restore(changed)
    check()
    sim.restore(start)
    check()
    sim.expand("jnt_range").numpy()[0] *= 0.9  # torch does not count it
    sim.forward()
    check()
    sim.reset([0])
    check(differs=False)  # parameters are kept


def test_limits_follow_a_call_that_is_undone():
    sim = make()
    data = robot_of(sim).data
    sim.expand("jnt_range")[1] *= 0.8
    before = data.joint_pos_limits.clone()
    seen = []

    def action(sim, env_ids):
        sim.expand("jnt_range")[2] *= 0.3
        seen.append(data.joint_pos_limits.clone())
        raise RuntimeError("stop")

    sim.add_event(lambda sim: sim.data.time - 0.003, action=action)
    with pytest.raises(RuntimeError, match="stop"):
        sim.step(3)
    assert not torch.equal(seen[0], before)
    assert torch.equal(data.joint_pos_limits, before)


def test_masses_are_views_once_they_differ_by_world():
    sim = make()
    data = robot_of(sim).data
    data.body_mass[1] *= 2.0  # of a copy
    with raises(InvalidInputError, name="body_mass"):
        _ = data.body_mass
    sim.expand("body_mass")
    data.body_mass[1] *= 2.0
    assert torch.equal(data.body_mass[1], 2.0 * data.body_mass[0])
    ids = list(robot_of(sim).index.bodies.ids)
    assert torch.equal(sim.expand("body_mass")[1, ids], data.body_mass[1])


def test_masses_that_flow_are_read_again():
    sim = make(integrator=integrate.RK4())
    data = robot_of(sim).data
    sim.mass_rate[:] = torch.zeros_like(sim.mass_rate)
    body = robot_of(sim).index.bodies.ids[0]
    sim.mass_rate[:, body] = torch.tensor([-0.1, -0.2, -0.4], dtype=sim.dtype)
    before = data.body_inertia.clone()
    mass = data.body_mass.clone()
    sim.step(4)
    lost = mass[:, 0] - data.body_mass[:, 0]
    expected = -4 * sim.model.opt.timestep * sim.mass_rate[:, body]
    torch.testing.assert_close(lost, expected)
    ratio = data.body_inertia[:, 0] / before[:, 0]
    torch.testing.assert_close(ratio[:, 0], data.body_mass[:, 0] / mass[:, 0])


def test_constants_of_the_engine_are_brought_up_to_date():
    sim = make()
    data = robot_of(sim).data
    before = data.inverse_weight.clone()
    sim.step()
    assert torch.equal(data.inverse_weight, before)
    sim.expand("body_mass")[1] *= 2.0
    sim.expand("body_inertia")[1] *= 2.0
    now = data.inverse_weight
    heavy = copy.deepcopy(sim.model)
    heavy.body_mass[:] *= 2.0
    heavy.body_inertia[:] *= 2.0
    mujoco.mj_setConst(heavy, mujoco.MjData(heavy))
    np.testing.assert_allclose(now[1].numpy(), heavy.dof_invweight0[6:], rtol=1e-12)
    torch.testing.assert_close(now[[0, 2]], before[[0, 2]])


def test_in_strict_mode_a_parameter_is_never_stale():
    sim = make(freshness="strict")
    data = robot_of(sim).data
    sim.forward()
    sim.expand("body_mass")[1] *= 2.0
    assert float(data.body_mass[1, 0] / data.body_mass[0, 0]) == 2.0
    with raises(StaleReadError, name="inverse_weight"):
        _ = data.inverse_weight


def test_a_constant_follows_a_setting():
    sim = make()
    data = robot_of(sim).data
    assert torch.equal(data.clamped_default, data.default_joint_pos)
    data.default_joint_pos[1] += 100.0
    assert torch.equal(data.clamped_default[1], data.joint_pos_limits[1, :, 1])
    assert torch.equal(data.clamped_default[0], data.default_joint_pos[0])


def test_a_quantity_of_the_state_may_read_a_constant():
    sim = make()
    data = robot_of(sim).data
    before = data.room.clone()
    robot_of(sim).write_joint_position_to_sim(data.joint_pos[[1]] - 0.1, env_ids=[1])
    torch.testing.assert_close(data.room[1], before[1] + 0.1)
    sim.expand("jnt_range")[2, :, 1] += 0.5
    torch.testing.assert_close(data.room[2], before[2] + 0.5)


def test_a_constant_that_reads_the_state_is_refused():
    class Wrong(EntityData):
        own_room = Quantity(
            lambda data: data.read("joint_pos_limits")[..., 1] - data.raw("qpos")[:, 1],
            kind="own_room", unit="rad", shape=("num_joints",), reads=(),
            parameters=("jnt_range", "jnt_limited"),
        )  # fmt: skip

    robot = EntityCfg(model="quadruped", data=Wrong)
    sim = Simulation(SceneCfg(entities={"robot": robot}), 2)
    with raises(ModelError, name="own_room"):
        _ = sim.scene["robot"].data.own_room


# Memory.


@needs_core
@pytest.mark.parametrize("name", ["body_link_pose_w", "root_link_lin_vel_b"])
def test_memory_is_used_again_when_nothing_refers_to_it(name):
    sim = make()
    data = robot_of(sim).data
    address = data.read(name).data_ptr()
    for _ in range(3):
        sim.step()
        assert data.read(name).data_ptr() == address


def as_array(value: torch.Tensor | np.ndarray | memoryview) -> np.ndarray:
    """A copy of the values."""
    if isinstance(value, torch.Tensor):
        return value.clone().numpy()
    return np.array(value)


@pytest.mark.parametrize(
    "hold",
    [
        lambda value: value,
        lambda value: value[1:],
        lambda value: value.detach(),
        lambda value: value.data,
        lambda value: value.numpy()[0],
        lambda value: torch.from_dlpack(value),
        lambda value: memoryview(value.numpy()),
    ],
    ids=["tensor", "view", "detached", "data", "array", "dlpack", "buffer"],
)
def test_values_that_are_held_stay_what_they_were(hold):
    sim = make()
    data = robot_of(sim).data
    names = ("body_link_pose_w", "body_link_vel_w", "root_link_lin_vel_b")
    held = {name: hold(data.read(name)) for name in names}
    copies = {name: as_array(value) for name, value in held.items()}
    for _ in range(3):
        sim.step()
        for name in names:
            now = as_array(hold(data.read(name)))
            np.testing.assert_array_equal(as_array(held[name]), copies[name])
            assert not np.array_equal(now, copies[name])


def test_a_graph_keeps_the_values_that_it_needs():
    sim = make()
    data = robot_of(sim).data
    weight = torch.full((3, 3), 1.5, dtype=sim.dtype, requires_grad=True)
    total = (weight * data.root_link_lin_vel_b).sum()
    expected = data.root_link_lin_vel_b.clone()
    for _ in range(2):
        sim.step()
        _ = data.root_link_lin_vel_b
    total.backward()
    assert torch.equal(weight.grad, expected)


# Kinematic trees.


def entities() -> Simulation:
    """Two robots, a mocap body and a cube, in motion, no two worlds alike."""
    names = {"first": "quadruped", "second": "humanoid", "target": "mocap_target"}
    placed = {
        name: EntityCfg(
            model=model, init_state=InitialStateCfg(pos=(2.0 * k, 0.1, 1.5))
        )
        for k, (name, model) in enumerate(names.items())
    }
    sim = Simulation(SceneCfg(entities={**placed, "cube": EntityCfg(model="cube")}), 3)
    velocity = torch.linspace(-0.9, 1.1, sim.data.qvel.numel(), dtype=sim.dtype)
    sim.data.qvel[:] = velocity.view_as(sim.data.qvel)
    sim.step(3)
    for name in sim.scene:
        check_bodies(sim, name)
    return sim


def body_poses(sim: Simulation, name: str) -> np.ndarray:
    """Poses and velocities of an entity's bodies by MuJoCo's functions; (N, B, 13)."""
    bodies = sim.scene[name].index.bodies.ids
    kind = mujoco.mjtState.mjSTATE_INTEGRATION.value
    values = np.zeros((sim.num_envs, len(bodies), 13))
    for world in range(sim.num_envs):
        plain = mujoco.MjData(sim.model)
        mujoco.mj_setState(sim.model, plain, sim.state[world].numpy(), kind)
        mujoco.mj_forward(sim.model, plain)
        for k, body in enumerate(bodies):
            velocity = np.zeros(6)
            body_kind = mujoco.mjtObj.mjOBJ_XBODY
            mujoco.mj_objectVelocity(sim.model, plain, body_kind, body, velocity, 0)
            values[world, k, :3] = plain.xpos[body]
            values[world, k, 3:7] = plain.xquat[body]
            values[world, k, 7:10], values[world, k, 10:] = velocity[3:], velocity[:3]
    return values


def check_bodies(sim: Simulation, name: str) -> None:
    data = sim.scene[name].data
    expected = body_poses(sim, name)
    now = torch.cat([data.body_link_pose_w, data.body_link_vel_w], dim=-1)
    np.testing.assert_allclose(now.numpy(), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        data.body_link_pos_w.numpy(), expected[..., :3], rtol=0, atol=1e-12
    )


WRITES = {
    "first": lambda first: first.write_joint_position_to_sim(
        first.data.joint_pos[[0, 2]] + 0.2, env_ids=[0, 2]
    ),
    "second": lambda second: second.write_root_link_pose_to_sim(
        torch.tensor([[0.4, 3.0, 1.2, 0.5, -0.5, 0.1, 0.7]]), env_ids=[1]
    ),
    "target": lambda target: target.write_mocap_pose_to_sim(
        target.data.mocap_pose_w + 0.1
    ),
    "cube": lambda cube: cube.write_root_link_velocity_to_sim(
        torch.tensor([[0.1, 0.2, 0.3, -1.0, 0.5, 2.0]]).expand(3, 6)
    ),
}


@pytest.mark.parametrize("written", WRITES)
def test_a_write_to_one_entity_leaves_the_others_fresh(written, monkeypatch):
    sim = entities()
    WRITES[written](sim.scene[written])
    forwards = record_forwards(sim, monkeypatch)
    for name in sim.scene:
        if name != written:
            check_bodies(sim, name)
            _ = sim.scene[name].data.projected_gravity_b
    assert forwards == []
    check_bodies(sim, written)
    assert len(forwards) == 1
    for name in sim.scene:
        check_bodies(sim, name)
    assert len(forwards) == 1


def test_writes_to_several_entities_add_up(monkeypatch):
    sim = entities()
    WRITES["cube"](sim.scene["cube"])
    WRITES["first"](sim.scene["first"])
    forwards = record_forwards(sim, monkeypatch)
    check_bodies(sim, "second")
    assert forwards == []
    check_bodies(sim, "cube")
    check_bodies(sim, "first")
    assert len(forwards) == 1


def test_other_writes_and_reads_concern_all_trees(monkeypatch):
    sim = entities()
    forwards = record_forwards(sim, monkeypatch)
    sim.data.qpos[1, 9] += 0.2  # by hand: any of them
    check_bodies(sim, "second")
    assert len(forwards) == 1
    WRITES["cube"](sim.scene["cube"])
    before = sim.scene["second"].data.body_link_pos_w.clone()
    assert len(forwards) == 1
    sim.expand("body_pos")[2, 1:] += 0.1
    assert not torch.equal(sim.scene["second"].data.body_link_pos_w, before)
    assert len(forwards) == 2
    WRITES["cube"](sim.scene["cube"])
    _ = sim.data.cvel
    assert len(forwards) == 3
    WRITES["cube"](sim.scene["cube"])
    _ = sim.scene["first"].data.joint_acc  # accelerations depend on all of them
    assert len(forwards) == 4


def test_strict_mode_asks_for_an_evaluation_as_before():
    scene = SceneCfg(
        entities={"a": EntityCfg(model="cube"), "b": EntityCfg(model="arm")}
    )
    sim = Simulation(scene, 2, freshness="strict")
    sim.forward()
    sim.scene["a"].write_root_link_pose_to_sim(
        torch.tensor([[0.1, 0, 1, 0, 1, 0, 0.0]])
    )
    with raises(StaleReadError, name="body_link_pos_w"):
        _ = sim.scene["b"].data.body_link_pos_w


# Watched fields.


def test_a_write_to_a_derived_field_is_rejected_by_the_next_call():
    sim = make()
    for call in (sim.step, lambda: sim.scene["robot"].data.joint_pos, sim.reset):
        sim.data.xpos[1, 2] += 1.0
        with raises(InvalidInputError, name="sim.data.xpos"):
            call()
        call()
        check = mujoco.MjData(sim.model)
        check.qpos[:], check.qvel[:] = sim.data.qpos[1], sim.data.qvel[1]
        mujoco.mj_kinematics(sim.model, check)
        np.testing.assert_allclose(sim.data.xpos[1].numpy(), check.xpos, atol=1e-12)


@pytest.mark.parametrize("num_envs", [1, 3])
def test_a_write_to_masses_that_all_worlds_share_leaves_the_model_alone(num_envs):
    sim = make(num_envs)
    data = robot_of(sim).data
    before = data.body_mass.clone()
    data.body_mass[0] *= 3.0
    with pytest.raises(InvalidInputError):
        _ = data.body_mass
    assert torch.equal(data.body_mass, before)
    ids = list(robot_of(sim).index.bodies.ids)
    assert torch.equal(sim.expand("body_mass")[:, ids], before)
