"""What other systems get wrong, one test each, against plain MuJoCo."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises
from torch import Tensor

from simstate import (
    Entity,
    EntityCfg,
    InvalidInputError,
    SceneCfg,
    ShapeError,
    Simulation,
)

pytestmark = pytest.mark.fast

NUM_ENVS = 4
XBODY, BODY = mujoco.mjtObj.mjOBJ_XBODY, mujoco.mjtObj.mjOBJ_BODY
GEOM, SITE = mujoco.mjtObj.mjOBJ_GEOM, mujoco.mjtObj.mjOBJ_SITE


def simulated(
    model: str, num_envs: int = NUM_ENVS, soft: float = 1.0, **scene: Any
) -> tuple[Simulation, Entity]:
    """Worlds of one entity "robot", at rest in the model's pose."""
    robot = EntityCfg(model=model, soft_joint_pos_limit_factor=soft)
    cfg = SceneCfg(entities={"robot": robot}, ground=False, **scene)
    sim = Simulation(cfg, num_envs=num_envs, engine="native")
    return sim, sim.scene["robot"]


def scatter(sim: Simulation, seed: int = 0) -> None:
    """Put every world into a state of its own, quaternions of unit length."""
    rng = np.random.default_rng(seed)
    qpos = np.tile(sim.model.qpos0, (sim.num_envs, 1))
    qvel = rng.normal(size=(sim.num_envs, sim.model.nv))
    for row in qpos:
        mujoco.mj_integratePos(sim.model, row, rng.normal(size=sim.model.nv), 1.0)
    sim.data.qpos[:] = torch.from_numpy(qpos)
    sim.data.qvel[:] = torch.from_numpy(qvel)
    if sim.model.nmocap:
        shape = (sim.num_envs, sim.model.nmocap)
        quat = rng.normal(size=(*shape, 4))
        quat /= np.linalg.norm(quat, axis=-1, keepdims=True)
        sim.data.mocap_pos[:] = torch.from_numpy(rng.normal(size=(*shape, 3)))
        sim.data.mocap_quat[:] = torch.from_numpy(quat)


def plain(sim: Simulation, world: int) -> mujoco.MjData:
    """The state of a world in an MjData, after plain mj_forward."""
    data = mujoco.MjData(sim.model)
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    row = sim.state[world].numpy().astype(np.float64)
    mujoco.mj_setState(sim.model, data, row, spec)
    mujoco.mj_forward(sim.model, data)
    return data


def velocities(sim: Simulation, kind: mujoco.mjtObj, ids: tuple[int, ...]) -> Tensor:
    """Linear then angular velocity by mj_objectVelocity; (num_envs, ids, 6)."""
    result = np.zeros((sim.num_envs, len(ids), 6))
    for world in range(sim.num_envs):
        data = plain(sim, world)
        for k, i in enumerate(ids):
            vel = np.zeros(6)
            mujoco.mj_objectVelocity(sim.model, data, kind, i, vel, 0)
            result[world, k] = [*vel[3:], *vel[:3]]
    return torch.from_numpy(result)


def check_velocities(sim: Simulation, robot: Entity) -> None:
    """Compare all velocities of the entity with MuJoCo's own."""
    data, index = robot.data, robot.index
    root = index.bodies.ids[:1]
    pairs = {
        "body_link_vel_w": velocities(sim, XBODY, index.bodies.ids),
        "body_com_vel_w": velocities(sim, BODY, index.bodies.ids),
        "geom_vel_w": velocities(sim, GEOM, index.geoms.ids),
        "site_vel_w": velocities(sim, SITE, index.sites.ids),
        "root_link_vel_w": velocities(sim, XBODY, root)[:, 0],
        "root_com_vel_w": velocities(sim, BODY, root)[:, 0],
    }
    for name, expected in pairs.items():
        found = data.read(name)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12, msg=name)
        halves = (name.replace("_vel", "_lin_vel"), name.replace("_vel", "_ang_vel"))
        for half, part in zip(halves, expected.split(3, dim=-1), strict=True):
            torch.testing.assert_close(data.read(half), part, rtol=0, atol=1e-12)


LINK = """
  <geom size="0.1" pos="0.2 0.1 -0.1" density="500"/>
  <geom size="0.05" pos="-0.1 0.1 0.3"/>
  <site name="{0}_site" pos="0.1 0.2 0.3"/>
  <body name="{0}_child" pos="0.3 0 0.5">
    <joint name="{0}_hinge" axis="0 1 1"/>
    <geom size="0.1" pos="0 0.2 0.2"/>
    <site name="{0}_tip" pos="0.1 0.2 0.3"/>
  </body>
"""
TWO_TREES = f"""
<mujoco>
  <worldbody>
    <body name="one" pos="0 0 1"><freejoint/>{LINK.format("one")}</body>
    <body name="two" pos="3 0 1"><freejoint/>{LINK.format("two")}</body>
  </worldbody>
</mujoco>
"""
MOCAP_FIRST = f"""
<mujoco>
  <worldbody>
    <body name="target" mocap="true" pos="0 2 1">
      <geom size="0.1"/>
      <site name="mark" pos="1 0 0"/>
    </body>
    <body name="two" pos="3 0 1"><freejoint name="root"/>{LINK.format("two")}</body>
  </worldbody>
</mujoco>
"""
FREE_IS_SECOND = f"""
<mujoco>
  <worldbody>
    <body name="post" pos="0 0 1">
      <joint name="post" axis="0 0 1"/>
      {LINK.format("post")}
    </body>
    <body name="two" pos="3 0 1"><freejoint name="root"/>{LINK.format("two")}</body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize(
    "model",
    [TWO_TREES, MOCAP_FIRST, FREE_IS_SECOND, "humanoid", "glider", "satellite"],
    ids=[
        "two trees",
        "mocap root",
        "free joint second",
        "humanoid",
        "glider",
        "satellite",
    ],
)
def test_velocities_of_every_tree_are_right(model: str) -> None:
    sim, robot = simulated(model)
    scatter(sim)
    check_velocities(sim, robot)
    assert float(robot.data.body_link_vel_w.abs().max()) > 0.5


def test_velocities_are_right_next_to_other_entities() -> None:
    cfg = SceneCfg(
        entities={
            "first": EntityCfg(model="humanoid"),
            "robot": EntityCfg(model=TWO_TREES),
            "last": EntityCfg(model="glider"),
        },
        options={"integrator": mujoco.mjtIntegrator.mjINT_EULER},
    )
    sim = Simulation(cfg, num_envs=2, engine="native")
    scatter(sim)
    for entity in sim.scene.values():
        check_velocities(sim, entity)


def test_a_mocap_root_is_at_rest_and_its_second_tree_moves() -> None:
    sim, robot = simulated(MOCAP_FIRST)
    scatter(sim)
    assert robot.index.base == "mocap"
    assert not robot.data.root_link_vel_w.any()
    assert not robot.data.root_com_lin_vel_b.any()
    torch.testing.assert_close(robot.data.root_link_pos_w, sim.data.mocap_pos[:, 0])
    moving = robot.find_bodies("two")[0]
    expected = velocities(sim, XBODY, (robot.index.bodies.ids[moving[0]],))
    torch.testing.assert_close(robot.data.body_link_vel_w[:, moving], expected)


def test_a_free_joint_that_is_not_the_first_is_written_at_its_own_address() -> None:
    sim, robot = simulated(FREE_IS_SECOND)
    scatter(sim)
    (body,), _ = robot.find_bodies("two")
    before = sim.data.qpos.clone()
    pose = torch.tensor([[[1.0, 2.0, 3.0, 0.0, 0.6, 0.0, 0.8]]])
    vel = torch.tensor([[[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]]])
    robot.write_body_link_pose_to_sim(pose, body_ids=[body])
    robot.write_body_link_velocity_to_sim(vel, body_ids=[body])
    ids = (robot.index.bodies.ids[body],)
    expected = vel.double().expand(NUM_ENVS, 1, 6)
    torch.testing.assert_close(velocities(sim, XBODY, ids), expected)
    for world in range(NUM_ENVS):
        found = plain(sim, world).xpos[ids[0]]
        np.testing.assert_allclose(found, [1, 2, 3])
    # The hinges of both trees stay as they were.
    adr = sim.model.joint("robot/root").qposadr[0]
    others = [k for k in range(sim.model.nq) if not adr <= k < adr + 7]
    assert torch.equal(sim.data.qpos[:, others], before[:, others])
    assert robot.joint_names == ("post", "post_hinge", "two_hinge")
    assert torch.equal(robot.data.joint_pos[:, 2], sim.data.qpos[:, adr + 7])


def test_a_free_root_behind_other_entities_is_written_at_its_own_address() -> None:
    cfg = SceneCfg(
        entities={"arm": EntityCfg(model="arm"), "cube": EntityCfg(model="cube")}
    )
    sim = Simulation(cfg, num_envs=NUM_ENVS, engine="native")
    scatter(sim)
    arm = sim.scene["arm"].data.joint_pos.clone()
    state = torch.tensor([[1, 2, 3, 0.6, 0, 0.8, 0, 1, 2, 3, 4, 5, 6.0]])
    sim.scene["cube"].write_root_state_to_sim(state)
    body = sim.scene["cube"].index.bodies.ids
    expected = state[:, None, 7:].double().expand(NUM_ENVS, 1, 6)
    torch.testing.assert_close(velocities(sim, XBODY, body), expected)
    np.testing.assert_allclose(plain(sim, 1).xpos[body[0]], [1, 2, 3])
    assert torch.equal(sim.scene["arm"].data.joint_pos, arm)


# Ball joints

BALLS = """
<mujoco>
  <worldbody>
    <body name="base">
      <geom size="0.1"/>
      <body name="one" pos="0 0 1"><joint name="ball1" type="ball"/><geom size="0.1"/>
        <body name="two" pos="0 0 1"><joint name="hinge1"/><geom size="0.1"/>
          <body name="three" pos="0 0 1" quat="0.6 0 0.8 0">
            <joint name="ball2" type="ball"/><geom size="0.1"/>
            <body name="four" pos="0 0 1">
              <joint name="slide2" type="slide"/><geom size="0.1"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def test_shapes_agree_with_ball_joints_between() -> None:
    _, robot = simulated(BALLS)
    data = robot.data
    for name in ("joint_pos", "joint_vel", "joint_acc", "default_joint_pos"):
        assert data.read(name).shape == (NUM_ENVS, 2), name
    assert (data.joint_pos - data.default_joint_pos).shape == (NUM_ENVS, 2)
    assert data.joint_pos_limits.shape == (NUM_ENVS, 2, 2)
    assert data.ball_joint_quat.shape == (NUM_ENVS, 2, 4)
    assert robot.joint_names == ("hinge1", "slide2")
    assert robot.ball_joint_names == ("ball1", "ball2")


def test_a_write_by_joint_id_lands_on_the_joint() -> None:
    sim, robot = simulated(BALLS)
    for k, name in enumerate(robot.joint_names):
        scatter(sim, seed=k)
        qpos, qvel = sim.data.qpos.clone(), sim.data.qvel.clone()
        robot.write_joint_state_to_sim([[7.0]], [[8.0]], joint_ids=[k])
        joint = sim.model.joint(f"robot/{name}")
        qpos[:, joint.qposadr[0]] = 7
        qvel[:, joint.dofadr[0]] = 8
        assert torch.equal(sim.data.qpos, qpos)
        assert torch.equal(sim.data.qvel, qvel)


@pytest.mark.parametrize("chosen", [[0], [1], [1, 0]])
def test_ball_joints_are_written_and_read_as_rotations(chosen: list[int]) -> None:
    sim, robot = simulated(BALLS)
    scatter(sim)
    gen = torch.Generator().manual_seed(3)
    quat = torch.randn(NUM_ENVS, len(chosen), 4, generator=gen).double()
    vel = torch.randn(NUM_ENVS, len(chosen), 3, generator=gen).double()
    qpos, qvel = sim.data.qpos.clone(), sim.data.qvel.clone()
    robot.write_ball_joint_quat_to_sim(quat, chosen)
    robot.write_ball_joint_ang_vel_to_sim(vel, chosen)
    for k, ball in enumerate(chosen):
        joint = sim.model.joint(f"robot/{robot.ball_joint_names[ball]}")
        q, v = joint.qposadr[0], joint.dofadr[0]
        qpos[:, q : q + 4] = quat[:, k] / quat[:, k].norm(dim=-1, keepdim=True)
        qvel[:, v : v + 3] = vel[:, k]
    torch.testing.assert_close(sim.data.qpos, qpos)
    assert torch.equal(sim.data.qvel, qvel)
    torch.testing.assert_close(
        robot.data.ball_joint_quat[:, chosen], quat / quat.norm(dim=-1, keepdim=True)
    )
    assert torch.equal(robot.data.ball_joint_ang_vel[:, chosen], vel)


def test_a_ball_joints_angular_velocity_is_relative_and_in_body_axes() -> None:
    sim, robot = simulated(BALLS)
    scatter(sim)
    (child, parent), _ = robot.find_bodies(["three", "two"], preserve_order=True)
    relative = (
        robot.data.body_link_ang_vel_w[:, child]
        - robot.data.body_link_ang_vel_w[:, parent]
    )
    mats = sim.data.xmat[:, robot.index.bodies.ids[child]]
    in_body = torch.einsum("nji,nj->ni", mats, relative)
    torch.testing.assert_close(robot.data.ball_joint_ang_vel[:, 1], in_body)


# Gravity


def gravity_in_base(sim: Simulation, robot: Entity, gravity: Any) -> Tensor:
    """The vector in the root link's axes, by MuJoCo's own rotation matrix."""
    vectors = [
        plain(sim, world).xmat[robot.index.root_body_id].reshape(3, 3).T @ gravity
        for world in range(sim.num_envs)
    ]
    return torch.from_numpy(np.array(vectors))


@pytest.mark.parametrize(
    "gravity", [(3.0, -4.0, 0.0), (0.1, 2.0, 5.0), (0, 0, -1.62), (0.0, 0.3, -0.4)]
)
def test_projected_gravity_is_along_the_gravity_there_is(gravity: Any) -> None:
    sim, robot = simulated("quadruped", gravity=gravity)
    scatter(sim)
    unit = np.array(gravity) / np.linalg.norm(gravity)
    expected = gravity_in_base(sim, robot, unit)
    torch.testing.assert_close(robot.data.projected_gravity_b, expected)


@pytest.mark.parametrize(
    "scene",
    [
        {"gravity": (0, 0, 0)},
        {"options": {"disableflags": mujoco.mjtDisableBit.mjDSBL_GRAVITY}},
        {
            "gravity": (3, 1, 2),
            "options": {"disableflags": mujoco.mjtDisableBit.mjDSBL_GRAVITY},
        },
    ],
)
def test_projected_gravity_is_world_down_without_gravity(scene: Any) -> None:
    sim, robot = simulated("quadruped", **scene)
    scatter(sim)
    down = gravity_in_base(sim, robot, np.array([0.0, 0.0, -1.0]))
    torch.testing.assert_close(robot.data.projected_gravity_b, down)


def test_projected_gravity_follows_a_gravity_of_each_world() -> None:
    sim, robot = simulated("quadruped")
    scatter(sim)
    down = gravity_in_base(sim, robot, np.array([0.0, 0.0, -1.0]))
    torch.testing.assert_close(robot.data.projected_gravity_b, down)
    gravity = sim.expand("opt.gravity")
    gravity[1] = torch.tensor([0.0, 2.0, 0.0])
    gravity[2] = 0.0
    sideways = gravity_in_base(sim, robot, np.array([0.0, 1.0, 0.0]))
    found = robot.data.projected_gravity_b
    torch.testing.assert_close(found[[0, 3]], down[[0, 3]])
    torch.testing.assert_close(found[1], sideways[1])
    torch.testing.assert_close(found[2], down[2])


# Limits


def test_limits_follow_a_change_at_run_time() -> None:
    sim, robot = simulated("cartpole", soft=0.5)
    before = robot.data.joint_pos_limits.clone()
    inf = float("inf")
    assert before[0].tolist() == [[-1, 1], [-inf, inf]]
    assert robot.data.soft_joint_pos_limits[0].tolist() == [[-0.5, 0.5], [-inf, inf]]
    slider = robot.index.joints.ids[0]
    sim.expand("jnt_range")[2, slider] = torch.tensor([0.0, 4.0])
    assert robot.data.joint_pos_limits[2, 0].tolist() == [0, 4]
    assert robot.data.soft_joint_pos_limits[2, 0].tolist() == [1, 3]
    others = [0, 1, 3]
    assert torch.equal(robot.data.joint_pos_limits[others], before[others])
    sim.expand("jnt_range")[2, slider, 1] = 8.0
    assert robot.data.soft_joint_pos_limits[2, 0].tolist() == [2, 6]


def test_changed_limits_hold_the_joint() -> None:
    sim, robot = simulated("cartpole")
    sim.expand("jnt_range")[1, robot.index.joints.ids[0], 1] = 0.2
    robot.write_ctrl_to_sim([[0.5]])
    sim.step(200)
    pos = robot.data.joint_pos[:, 0]
    assert float(pos[1]) < 0.25
    assert float(pos[0]) > 0.8


# Roots


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("scale", [0.01, 3.0])
def test_a_velocity_after_an_unnormalised_quaternion_is_right(
    raw: bool, scale: float
) -> None:
    sim, robot = simulated("glider")
    gen = torch.Generator().manual_seed(0)
    quat = torch.randn(NUM_ENVS, 4, generator=gen).double()
    quat *= scale / quat.norm(dim=-1, keepdim=True)
    vel = torch.randn(NUM_ENVS, 6, generator=gen).double()
    if raw:
        sim.data.qpos[:, 3:7] = quat
    else:
        pose = torch.cat([torch.zeros(NUM_ENVS, 3).double(), quat], dim=-1)
        robot.write_root_link_pose_to_sim(pose)
    body = robot.index.bodies.ids
    robot.write_root_link_velocity_to_sim(vel)
    torch.testing.assert_close(velocities(sim, XBODY, body)[:, 0], vel)
    torch.testing.assert_close(robot.data.root_link_vel_w, vel)
    robot.write_root_com_velocity_to_sim(vel)
    torch.testing.assert_close(velocities(sim, BODY, body)[:, 0], vel)
    torch.testing.assert_close(robot.data.root_com_vel_w, vel)


@pytest.mark.parametrize("env_ids", [None, [2, 0]])
def test_a_com_velocity_is_that_of_the_com(env_ids: Any) -> None:
    sim, robot = simulated("glider")
    scatter(sim)
    rows = list(range(NUM_ENVS)) if env_ids is None else env_ids
    before = sim.data.qvel.clone()
    gen = torch.Generator().manual_seed(1)
    vel = torch.randn(len(rows), 6, generator=gen).double()
    robot.write_root_com_velocity_to_sim(vel, env_ids)
    body = robot.index.bodies.ids
    torch.testing.assert_close(velocities(sim, BODY, body)[rows, 0], vel)
    # The origin, 0.38 m away, moves otherwise.
    origin = velocities(sim, XBODY, body)[rows, 0]
    assert float((origin[:, :3] - vel[:, :3]).norm(dim=-1).min()) > 0.05
    others = [k for k in range(NUM_ENVS) if k not in rows]
    assert torch.equal(sim.data.qvel[others], before[others])


def test_a_com_pose_is_that_of_the_com() -> None:
    sim, robot = simulated("glider")
    scatter(sim)
    gen = torch.Generator().manual_seed(2)
    pose = torch.randn(NUM_ENVS, 7, generator=gen).double()
    pose[:, 3:] /= pose[:, 3:].norm(dim=-1, keepdim=True)
    robot.write_root_com_pose_to_sim(pose)
    for world in range(NUM_ENVS):
        data = plain(sim, world)
        body = robot.index.root_body_id
        np.testing.assert_allclose(data.xipos[body], pose[world, :3], atol=1e-12)
        mat = np.zeros(9)
        mujoco.mju_quat2Mat(mat, pose[world, 3:].numpy())
        np.testing.assert_allclose(data.ximat[body], mat, atol=1e-12)


def test_mocap_poses_are_written_without_env_ids() -> None:
    _, robot = simulated("mocap_target")
    pose = torch.tensor([[1.0, 2.0, 3.0, 0.0, 0.0, 2.0, 0.0]])
    robot.write_mocap_pose_to_sim(pose)
    unit = torch.tensor([1.0, 2, 3, 0, 0, 1, 0]).double().expand(NUM_ENVS, 7)
    assert torch.equal(robot.data.mocap_pose_w[:, 0], unit)
    assert torch.equal(robot.data.root_link_pose_w, unit)
    robot.write_mocap_pose_to_sim(pose[:, None].expand(NUM_ENVS, 1, 7) + 1.0)
    assert robot.data.root_link_pos_w.tolist() == [[2, 3, 4]] * NUM_ENVS
    robot.write_mocap_pose_to_sim(pose, env_ids=[1])
    assert robot.data.root_link_pos_w[:, 0].tolist() == [2, 1, 2, 2]


@pytest.mark.parametrize("pose", ["abc", [[0, 0, 0], [1]], None, [["a"] * 7]])
def test_a_mocap_pose_that_is_no_pose_is_refused(pose: Any) -> None:
    sim, robot = simulated("mocap_target")
    before = sim.state.clone()
    with raises(InvalidInputError, name="pose"):
        robot.write_mocap_pose_to_sim(pose)
    assert torch.equal(sim.state, before)


# Names and shapes


def test_unnamed_joints_are_read_and_written() -> None:
    xml = BALLS.replace('name="hinge1"', "").replace('name="ball2"', "")
    sim, robot = simulated(xml)
    assert robot.num_joints == robot.num_ball_joints == 2
    assert len({*robot.joint_names, *robot.ball_joint_names}) == 4
    robot.write_joint_position_to_sim([[0.25, 0.75]])
    assert sim.data.qpos[0].tolist() == [1, 0, 0, 0, 0.25, 1, 0, 0, 0, 0.75]
    assert robot.find_joints(robot.joint_names[0])[0] == [0]


def test_nested_prefixes_are_part_of_the_name() -> None:
    xml = BALLS.replace('"hinge1"', '"arm/left/hinge"').replace('"one"', '"arm/one"')
    sim, robot = simulated(xml)
    assert robot.joint_names == ("arm/left/hinge", "slide2")
    assert robot.find_joints("arm/.*") == ([0], ["arm/left/hinge"])
    assert robot.find_bodies("arm/one")[0] == [1]
    robot.write_joint_position_to_sim([[0.5]], joint_ids=[0])
    assert float(sim.data.qpos[0, 4]) == 0.5


@pytest.mark.parametrize("value", [0.0, torch.tensor(1.0), np.float64(2.0)])
def test_scalars_are_refused_by_every_writer(value: Any) -> None:
    sim, robot = simulated(MOCAP_FIRST)
    sim_free, free = simulated("humanoid")
    before, before_free = sim.state.clone(), sim_free.state.clone()
    writes = [
        free.write_root_state_to_sim,
        free.write_root_link_pose_to_sim,
        free.write_root_com_pose_to_sim,
        free.write_root_link_velocity_to_sim,
        free.write_root_com_velocity_to_sim,
        free.write_joint_position_to_sim,
        free.write_joint_velocity_to_sim,
        free.write_joint_force_to_sim,
        free.write_ball_joint_quat_to_sim,
        free.write_ball_joint_ang_vel_to_sim,
        free.write_generalized_force_to_sim,
        free.write_ctrl_to_sim,
        free.set_joint_position_target,
        free.set_encoder_bias,
        robot.write_mocap_pose_to_sim,
    ]
    for write in writes:
        with pytest.raises(ShapeError) as caught:
            write(value)
        assert caught.value.shape == ()
    with pytest.raises(ShapeError):
        free.write_joint_state_to_sim(value, value)
    with pytest.raises(ShapeError):
        free.write_external_wrench_to_sim(value, value)
    for body_writer in (
        free.write_body_link_pose_to_sim,
        free.write_body_link_velocity_to_sim,
    ):
        with pytest.raises(ShapeError):
            body_writer(value, body_ids=[0])
    assert torch.equal(sim.state, before)
    assert torch.equal(sim_free.state, before_free)


# Stale reads


@pytest.mark.parametrize("model", ["quadruped", TWO_TREES], ids=["quadruped", "trees"])
def test_after_a_step_all_of_a_reward_is_of_the_new_state(model: str) -> None:
    sim, robot = simulated(model)
    scatter(sim)
    loop = [plain(sim, world) for world in range(NUM_ENVS)]
    _ = robot.data.body_link_pos_w, robot.data.body_link_vel_w
    sim.step(4)
    bodies = list(robot.index.bodies.ids)
    for world, data in enumerate(loop):
        for _ in range(4):
            mujoco.mj_step(sim.model, data)
        old = data.xpos[bodies].copy()
        mujoco.mj_forward(sim.model, data)
        assert np.abs(data.xpos[bodies] - old).max() > 1e-3
        found = {
            "joint_pos": data.qpos[list(robot.index.qpos_adr)],
            "joint_vel": data.qvel[list(robot.index.dof_adr)],
            "body_link_pos_w": data.xpos[bodies],
            "body_link_quat_w": data.xquat[bodies],
            "body_com_pos_w": data.xipos[bodies],
            "geom_pos_w": data.geom_xpos[list(robot.index.geoms.ids)],
            "site_pos_w": data.site_xpos[list(robot.index.sites.ids)],
            "root_link_pos_w": data.xpos[bodies[0]],
        }
        for name, expected in found.items():
            np.testing.assert_allclose(
                robot.data.read(name)[world], expected, atol=1e-13, err_msg=name
            )
    check_velocities(sim, robot)


# Forces


def test_an_external_wrench_acts_at_the_com_in_world_axes() -> None:
    sim, robot = simulated("glider", gravity=(0, 0, 0))
    scatter(sim)
    sim.data.qvel[:] = 0
    gen = torch.Generator().manual_seed(4)
    force = torch.randn(NUM_ENVS, 1, 3, generator=gen).double()
    robot.write_external_wrench_to_sim(force, torch.zeros_like(force))
    # A force at the COM of a body at rest turns nothing and moves the COM by F/m.
    acc = robot.data.body_com_acc_w[:, 0]
    mass = robot.data.body_mass
    torch.testing.assert_close(acc[:, :3], force[:, 0] / mass)
    torch.testing.assert_close(acc[:, 3:], torch.zeros(NUM_ENVS, 3).double())
    # A torque turns it by the inverse of its inertia in world axes.
    torque = torch.randn(NUM_ENVS, 1, 3, generator=gen).double()
    robot.write_external_wrench_to_sim(torch.zeros_like(force), torque)
    axes = sim.data.ximat[:, robot.index.root_body_id]
    in_body = torch.einsum("nji,nj->ni", axes, torque[:, 0])
    expected = torch.einsum("nij,nj->ni", axes, in_body / robot.data.body_inertia[:, 0])
    torch.testing.assert_close(robot.data.body_com_ang_acc_w[:, 0], expected)


@pytest.mark.parametrize("model", ["glider", "humanoid", TWO_TREES])
def test_external_wrenches_accelerate_as_mujocos_own_applied_forces(model: str) -> None:
    sim, robot = simulated(model)
    scatter(sim)
    rng = np.random.default_rng(5)
    chosen = list(range(robot.num_bodies))[::-2]
    wrench = rng.normal(size=(NUM_ENVS, len(chosen), 6))
    robot.write_external_wrench_to_sim(wrench[..., :3], wrench[..., 3:], chosen)
    qacc = sim.data.qacc.clone()
    for world in range(NUM_ENVS):
        data = plain(sim, world)
        data.xfrc_applied[:] = 0
        data.qfrc_applied[:] = 0
        for k, body in enumerate(robot.index.bodies.ids[i] for i in chosen):
            force, torque = wrench[world, k, :3], wrench[world, k, 3:]
            point = data.xipos[body].copy()
            mujoco.mj_applyFT(
                sim.model, data, force, torque, point, body, data.qfrc_applied
            )
        mujoco.mj_forward(sim.model, data)
        np.testing.assert_allclose(qacc[world], data.qacc, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("model", ["humanoid", "arm", TWO_TREES, FREE_IS_SECOND])
def test_qfrc_external_is_the_jacobian_transposed_times_the_wrench(model: str) -> None:
    sim, robot = simulated(model)
    scatter(sim)
    rng = np.random.default_rng(6)
    wrench = rng.normal(size=(NUM_ENVS, robot.num_bodies, 6))
    robot.write_external_wrench_to_sim(wrench[..., :3], wrench[..., 3:])
    dofs = list(robot.index.dof_adr)
    for world in range(NUM_ENVS):
        data = plain(sim, world)
        expected = np.zeros(sim.model.nv)
        jacp, jacr = np.zeros((3, sim.model.nv)), np.zeros((3, sim.model.nv))
        for k, body in enumerate(robot.index.bodies.ids):
            mujoco.mj_jacBodyCom(sim.model, data, jacp, jacr, body)
            expected += jacp.T @ wrench[world, k, :3] + jacr.T @ wrench[world, k, 3:]
        found = robot.data.qfrc_external[world]
        np.testing.assert_allclose(found, expected[dofs], atol=1e-12)


def test_generalized_force_is_world_force_at_the_origin_and_body_torque() -> None:
    sim, robot = simulated("glider", gravity=(0, 0, 0))
    scatter(sim)
    rng = np.random.default_rng(7)
    force = rng.normal(size=(NUM_ENVS, 6))
    robot.write_generalized_force_to_sim(force)
    qacc = sim.data.qacc.clone()
    body = robot.index.root_body_id
    for world in range(NUM_ENVS):
        data = plain(sim, world)
        data.qfrc_applied[:] = 0
        torque_w = data.xmat[body].reshape(3, 3) @ force[world, 3:]
        mujoco.mj_applyFT(
            sim.model,
            data,
            force[world, :3],
            torque_w,
            data.xpos[body].copy(),
            body,
            data.qfrc_applied,
        )
        mujoco.mj_forward(sim.model, data)
        np.testing.assert_allclose(qacc[world], data.qacc, rtol=1e-9, atol=1e-9)
