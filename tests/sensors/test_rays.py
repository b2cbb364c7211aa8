"""Rays against mj_ray, closed forms, and their own geometry."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from tests.raised import raises
from tests.sensors.heap import mujoco_at

from simstate import (
    DownwardRingPattern,
    EntityCfg,
    GridPattern,
    InvalidInputError,
    LidarPattern,
    OutwardRingPattern,
    OwnPattern,
    RayCastCfg,
    SceneCfg,
    Simulation,
    UnknownNameError,
)
from simstate.math import quaternion

SCENERY = """
<mujoco><worldbody>
  <geom name="slope" type="plane" size="0 0 0.1" zaxis="0.2 -0.1 1"/>
  <geom name="post" type="cylinder" size="0.2 1" pos="1.1 0.3 0.5" group="3"/>
  <geom name="ball" type="sphere" size="0.3" pos="-0.8 0.5 0.4" group="2"/>
  <body name="wall" pos="0.2 -1.2 0.5"><joint type="slide" axis="0 1 0"/>
    <geom name="wall" type="box" size="0.5 0.1 0.6" group="4" mass="5"/></body>
</worldbody></mujoco>
"""
ROBOT = """
<mujoco><worldbody><body name="trunk" pos="0.1 0.2 1.1"><freejoint/>
  <geom name="trunk" type="box" size="0.2 0.15 0.1" pos="0.02 0.01 0" mass="3"/>
  <body name="head" pos="0.25 0 0.1"><joint axis="0 1 0"/>
    <geom name="head" type="sphere" size="0.08" mass="0.5"/>
    <site name="tip" pos="0.1 -0.02 0.03" quat="0.9 0.1 -0.3 0.2"/></body>
  <site name="mount" pos="-0.1 0.05 0.1" quat="0.8 0.2 0.1 0.5"/>
</body></worldbody></mujoco>
"""
OWN = OwnPattern(
    directions=[[1, 0, 0], [0, 0.5, -0.5], [-1, 0.3, -0.2], [0, 0, -2], [0, 0, 3]],
    origins=[[0.1, 0, 0], [0, 0.1, 0.2], [0, 0, 0], [0, 0, 0.5], [0, 0, 0]],
)
RAYS = {
    "scan": RayCastCfg(
        body="robot/trunk", alignment="yaw", pos=(0.02, 0.05, -0.03),
        offset=(0.1, 0, 0.6),
    ),
    "ends": RayCastCfg(
        pattern=DownwardRingPattern(rings=((0.03, 3), (0.06, 5))), alignment="yaw",
        site=("robot/tip", "robot/mount"), pos=(0.1, 0.02, 0.03), max_distance=3.0,
    ),
    "shapes": RayCastCfg(pattern=OWN, geom="robot/.*", pos=(0.1, 0.2, 0.3)),
    "lidar": RayCastCfg(
        pattern=LidarPattern(channels=3, count=11), body="robot/head", exclude=(),
        max_distance=2.5,
    ),
    "ring": RayCastCfg(
        pattern=OutwardRingPattern(count=7, radius=0.3), body="robot/trunk",
        exclude="robot/(trunk|head)", groups=(3, 0),
    ),
    "own": RayCastCfg(pattern=OWN, body="robot/trunk", exclude=["robot/head"]),
    "fixed": RayCastCfg(
        pattern=GridPattern(size=(2.0, 1.0), resolution=0.5), pos=(0.1, -0.2, 2.0),
        max_distance=1.6,
    ),
    "world": RayCastCfg(pattern=OWN, body="robot/head", alignment="world"),
}  # fmt: skip


def _sim(engine: str = "native", num_envs: int = 3) -> Simulation:
    scene = SceneCfg(
        entities={"robot": EntityCfg(model=ROBOT), "world": EntityCfg(model=SCENERY)},
        rays=RAYS,
        ground=False,
        timestep=0.002,
    )
    sim = Simulation(scene, num_envs=num_envs, engine=engine)
    rng = np.random.default_rng(3)
    turn = torch.as_tensor(rng.normal(size=(num_envs, 4))).to(sim.data.qpos)
    shift = torch.as_tensor(rng.normal(size=(num_envs, 3))).to(sim.data.qpos)
    sim.data.qpos[:, :3] += 0.2 * shift
    quat = turn * 0.3 + torch.tensor([1.0, 0, 0, 0]).to(turn)
    sim.data.qpos[:, 3:7] = quaternion.normalize(quat)
    sim.data.qpos[:, 7:] = 0.3 * turn[:, :2]
    return sim


def _can_be_hit(model: mujoco.MjModel, name: str) -> np.ndarray:
    """Which geoms, said by hand."""
    names = np.array([model.geom(k).name for k in range(model.ngeom)])
    hidden = {
        "scan": ["robot/trunk", "robot/head"],
        "lidar": [],
        "ring": ["robot/trunk", "robot/head", "world/ball", "world/wall"],
        "own": ["robot/head"],
        "ends": ["robot/trunk", "robot/head"],
        "shapes": ["robot/trunk", "robot/head"],
        "fixed": [],
        "world": ["robot/trunk", "robot/head"],
    }[name]
    return ~np.isin(names, hidden)


def test_hits_are_those_of_mj_ray(engine: str) -> None:
    sim = _sim(engine)
    tol = 1e-10 if engine == "native" else 2e-4
    model = sim.model
    for name, rays in sim.rays.items():
        seen = _can_be_hit(model, name)
        groups = model.geom_group.copy()
        reach = RAYS[name].max_distance
        hits = 0
        for world in (2, 0):
            data = mujoco_at(sim, world)
            for k in range(rays.num_rays):
                start = rays.origin_w[world, k].double().numpy()
                along = rays.direction_w[world, k].double().numpy()
                model.geom_group[:] = np.where(seen, 0, 1)
                geom, normal = np.zeros(1, dtype=np.int32), np.zeros(3)
                only = np.array([1, 0, 0, 0, 0, 0], dtype=np.uint8)
                far = mujoco.mj_ray(
                    model, data, start, along, only, True, -1, geom, normal
                )
                model.geom_group[:] = groups
                got = float(rays.distance[world, k])
                if far < 0 or far > reach:
                    assert not rays.hit[world, k]
                    assert rays.geom_id[world, k] == -1
                    assert got == pytest.approx(reach)
                    assert (rays.normal_w[world, k] == 0).all()
                    continue
                hits += 1
                assert abs(got - far) < tol
                assert rays.geom_id[world, k] == geom[0]
                got = rays.normal_w[world, k].double().numpy()
                assert np.abs(got - normal).max() < 10 * tol
        assert hits > 2, name


def test_where_rays_start_and_point() -> None:
    """By the body's matrix, by its heading, or by nothing at all."""
    sim = _sim()
    trunk = sim.model.body("robot/trunk").id
    head = sim.model.body("robot/head").id
    for world in (1, 2):
        data = mujoco_at(sim, world)
        rot, pos = data.xmat[trunk].reshape(3, 3), data.xpos[trunk]
        own = sim.rays["own"]
        start = pos + np.array(OWN.origins) @ rot.T
        np.testing.assert_allclose(own.origin_w[world], start, atol=1e-12)
        along = np.array(OWN.directions, dtype=float)
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        np.testing.assert_allclose(own.direction_w[world], along @ rot.T, atol=1e-12)
        np.testing.assert_allclose(sim.rays["world"].direction_w[world], along)
        start = data.xpos[head] + np.array(OWN.origins)
        np.testing.assert_allclose(sim.rays["world"].origin_w[world], start)
        scan = sim.rays["scan"]
        angle = np.arctan2(rot[1, 0], rot[0, 0])
        turn = np.array(
            [[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0],
             [0, 0, 1]]
        )  # fmt: skip
        pos = pos + rot @ [0.02, 0.05, -0.03]
        first = pos + turn @ [0.1 - 0.8, -0.5, 0.6]
        second = pos + turn @ [0.1 - 0.7, -0.5, 0.6]
        np.testing.assert_allclose(scan.origin_w[world, 0], first, atol=1e-12)
        np.testing.assert_allclose(scan.origin_w[world, 1], second, atol=1e-12)
        np.testing.assert_allclose(scan.direction_w[world, 5], [0, 0, -1], atol=1e-12)
        assert scan.num_rays == 187


def test_several_parents_carry_a_pattern_each() -> None:
    sim = _sim()
    ends, shapes = sim.rays["ends"], sim.rays["shapes"]
    assert ends.parent_names == ("robot/mount", "robot/tip")
    assert shapes.parent_names == ("robot/trunk", "robot/head")
    assert sim.rays["fixed"].parent_names == ()
    assert ends.num_rays == 2 * (1 + 3 + 5)
    for world in (0, 2):
        data = mujoco_at(sim, world)
        for parent, name in enumerate(ends.parent_names):
            site = data.site(name)
            rot = site.xmat.reshape(3, 3)
            centre = site.xpos + rot @ [0.1, 0.02, 0.03]
            first = 9 * parent
            got = ends.origin_w[world, first : first + 9].numpy()
            np.testing.assert_allclose(got[0], centre, atol=1e-12)
            heading = np.array([rot[0, 0], rot[1, 0], 0])
            heading /= np.linalg.norm(heading)
            np.testing.assert_allclose(got[1], centre + 0.03 * heading, atol=1e-12)
            np.testing.assert_allclose(got[4], centre + 0.06 * heading, atol=1e-12)
            np.testing.assert_allclose(ends.direction_w[world, first + 3], [0, 0, -1])
            fall = ends.hit_pos_w[world, first : first + 9, 2].numpy()
            height = ends.height[world, first : first + 9].numpy()
            np.testing.assert_allclose(height, site.xpos[2] - fall, atol=1e-12)
        for parent, name in enumerate(shapes.parent_names):
            geom = data.geom(name)
            rot = geom.xmat.reshape(3, 3)
            start = geom.xpos + rot @ [0.1, 0.2, 0.3] + np.array(OWN.origins) @ rot.T
            got = shapes.origin_w[world, 5 * parent : 5 * parent + 5]
            np.testing.assert_allclose(got, start, atol=1e-12)


def test_a_height_scan_over_a_slope_is_the_plane() -> None:
    """z of the plane below each ray, in closed form, but where something stands."""
    sim = _sim()
    scan = sim.rays["scan"]
    normal = np.array([0.2, -0.1, 1.0])
    start = scan.origin_w.numpy()
    ground = -(start[..., :2] @ normal[:2]) / normal[2]
    expected = sim.scene["robot"].data.root_link_pos_w[:, 2:].numpy() - ground
    slope = sim.model.geom("world/slope").id
    on = scan.geom_id.numpy() == slope
    assert on.mean() > 0.5
    assert not on.all()
    np.testing.assert_allclose(scan.height.numpy()[on], expected[on], atol=1e-10)
    np.testing.assert_allclose(scan.hit_pos_w.numpy()[on][:, 2], ground[on], atol=1e-10)


def test_rays_are_cast_once_for_a_state_and_see_every_write() -> None:
    sim = _sim()
    scan = sim.rays["scan"]
    before = scan.distance
    assert scan.distance is before
    state, groups = sim.state.clone(), sim.model.geom_group.copy()
    pose = sim.scene["robot"].data.root_link_pose_w[1:2].clone()
    pose[:, 2] += 0.5
    sim.scene["robot"].write_root_link_pose_to_sim(pose, env_ids=[1])
    after = scan.distance
    assert torch.equal(after[[0, 2]], before[[0, 2]])
    assert not torch.allclose(after[1], before[1])
    sim.write_state(state)
    assert torch.equal(scan.distance, before)
    assert (sim.model.geom_group == groups).all()
    other = _sim()
    for one in (sim, other):
        one.step(5)
    assert torch.equal(sim.state, other.state)  # casting leaves physics alone


def test_patterns() -> None:
    origins, directions = LidarPattern(
        channels=2, elevation=(-10, 20), count=4, azimuth=(0, 360)
    ).rays()
    assert origins.shape == (8, 3)
    assert (origins == 0).all()
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    np.testing.assert_allclose(
        np.rad2deg(np.arcsin(directions[:, 2])), [-10] * 4 + [20] * 4
    )
    np.testing.assert_allclose(
        np.rad2deg(np.arctan2(directions[:3, 1], directions[:3, 0])), [0, 90, 180]
    )
    half = LidarPattern(
        channels=1, elevation=(0, 0), count=3, azimuth=(-90, 90)
    ).rays()[1]
    np.testing.assert_allclose(half, [[0, -1, 0], [1, 0, 0], [0, 1, 0]], atol=1e-12)
    origins, directions = OutwardRingPattern(count=4, radius=0.5).rays()
    np.testing.assert_allclose(origins, 0.5 * directions)


def test_what_makes_no_sense_says_what_to_do() -> None:
    nowhere = OwnPattern(directions=[[0, 0, 0]])
    for cfg, error, name in (
        (RayCastCfg(body="robot/trnk"), UnknownNameError, "robot/trnk"),
        (RayCastCfg(exclude="robot/nose"), UnknownNameError, "robot/nose"),
        (RayCastCfg(site="robot/top"), UnknownNameError, "robot/top"),
        (RayCastCfg(body="robot/head", geom="robot/head"), InvalidInputError, "r"),
        (RayCastCfg(offset=(0, 1)), InvalidInputError, "offset"),
        (
            RayCastCfg(pattern=DownwardRingPattern(rings=[(-1.0, 3)])),
            InvalidInputError,
            "radius",
        ),
        (RayCastCfg(max_distance=0.0), InvalidInputError, "max_distance"),
        (RayCastCfg(groups=[6]), InvalidInputError, "groups"),
        (RayCastCfg(alignment="roll"), UnknownNameError, "roll"),  # pyright: ignore
        (
            RayCastCfg(pattern=GridPattern(resolution=0.0)),
            InvalidInputError,
            "resolution",
        ),
        (RayCastCfg(pattern=3), InvalidInputError, "pattern"),  # pyright: ignore
        (RayCastCfg(pattern=nowhere), InvalidInputError, "rays"),
    ):
        scene = SceneCfg(
            entities={"robot": EntityCfg(model=ROBOT)}, rays={"r": cfg}, ground=True,
            timestep=0.002,
        )  # fmt: skip
        with raises(error, name=name):
            Simulation(scene)
    sim = _sim()
    with raises(UnknownNameError, name="scna"):
        _ = sim.rays["scna"]
    with raises(UnknownNameError, name="scan"):
        _ = Simulation(sim.model).rays["scan"]
