"""Rays exactly through corners, vertices and edges hit, as those next to them do."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from simstate import EntityCfg, OwnPattern, RayCastCfg, SceneCfg, Simulation

FLOOR = '<geom name="floor" type="plane" size="0 0 .1" pos="0 0 -9"/>'
BOX = """
<mujoco><worldbody><body name="it" pos=".3 -.2 1.1"><freejoint/>
  <geom type="box" size=".11 .23 .37" mass="2" pos=".02 -.03 .05" euler="20 10 70"/>
  </body></worldbody></mujoco>
"""
CYLINDER = BOX.replace('type="box" size=".11 .23 .37"', 'type="cylinder" size=".21 .3"')
MESH = """
<mujoco><asset><mesh name="ball" builtin="sphere" params="3" scale=".2 .3 .4"/></asset>
<worldbody><body name="it" pos=".3 -.2 1.1"><freejoint/>
  <geom type="mesh" mesh="ball" mass="2" pos=".02 -.03 .05" euler="20 10 70"/>
  </body></worldbody></mujoco>
"""


def corners(model: mujoco.MjModel) -> np.ndarray:
    """The corners of the only geom but the floor, from its body's origin; (n, 3)."""
    (geom,) = np.flatnonzero(model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE)
    size = model.geom_size[geom]
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX:
        points = np.stack(np.meshgrid(*[[-1, 0, 1]] * 3), -1).reshape(-1, 3) * size
        points = points[(np.abs(points) > 0).sum(1) > 1]  # and the middles of edges
    elif model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CYLINDER:
        angle = np.linspace(0, 2 * np.pi, 40)
        ring = [size[0] * np.cos(angle), size[0] * np.sin(angle)]
        points = np.stack([*ring, np.where(angle > 3, 1, -1) * size[1]], -1)
    else:
        vertices = np.asarray(model.mesh_vert, dtype=np.float64)
        edges = np.unique(
            np.sort(model.mesh_face[:, [0, 1, 1, 2]].reshape(-1, 2)), axis=0
        )
        points = np.concatenate([vertices, vertices[edges].mean(1)])
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.geom_quat[geom])
    return points @ turn.reshape(3, 3).T + model.geom_pos[geom]


@pytest.mark.parametrize("behind", ["nothing", "floor"])
@pytest.mark.parametrize("shape", ["box", "cylinder", "mesh"])
def test_from_the_centre_through_every_corner(engine, shape, behind):
    model = {"box": BOX, "cylinder": CYLINDER, "mesh": MESH}[shape]
    if behind == "floor":
        model = model.replace("<worldbody>", f"<worldbody>{FLOOR}")
    points = corners(mujoco.MjModel.from_xml_string(model))
    pattern = OwnPattern(directions=points.tolist())
    scene = SceneCfg(
        entities={"a": EntityCfg(model=model)},
        rays={"all": RayCastCfg(pattern=pattern, body="a/it", exclude=())},
        ground=False,
    )
    sim = Simulation(scene, num_envs=5, engine=engine)
    rng = np.random.default_rng(2)
    sim.data.qpos[1:] += torch.as_tensor(rng.normal(size=(4, 7))).to(sim.dtype)
    sim.data.qpos[:, 3:] /= sim.data.qpos[:, 3:].norm(dim=1, keepdim=True)
    rays = sim.rays["all"]
    want = torch.as_tensor(np.linalg.norm(points, axis=1)).to(sim.dtype)
    tolerance = 2e-6 if engine == "native" else 3e-4
    assert bool(rays.hit.all())
    gap = (rays.distance - want).abs().max()
    assert float(gap) < tolerance
    assert bool((rays.geom_id == rays.geom_id[0, 0]).all())
    outwards = (rays.normal_w * rays.direction_w).sum(-1)
    assert bool((outwards.abs() > 1e-3).all())


GROUND = """
<mujoco><asset><hfield name="hills" nrow="9" ncol="7" size="1.5 2 .4 .3"/></asset>
<worldbody><geom name="hills" type="hfield" hfield="hills" pos=".1 .2 .3"/>
</worldbody></mujoco>
"""


def test_a_height_scan_at_the_points_of_a_heightfield(engine):
    """A grid of rays as fine as the field's: each ray falls on a point of it."""
    rows, columns = 9, 7
    rng = np.random.default_rng(4)
    height = rng.uniform(0, 1, (rows, columns))
    spec = mujoco.MjSpec.from_string(GROUND)
    spec.hfields[0].userdata = height.ravel().tolist()
    x = np.linspace(-1.5, 1.5, columns)[1:-1]
    y = np.linspace(-2, 2, rows)[1:-1]
    origins = np.stack([*np.meshgrid(x, y), np.zeros((len(y), len(x)))], -1)
    origins = origins.reshape(-1, 3)
    pattern = OwnPattern(
        directions=[[0, 0, -1]] * len(origins), origins=origins.tolist()
    )
    scene = SceneCfg(
        entities={"ground": EntityCfg(model=spec), "it": EntityCfg(model=BOX)},
        rays={"scan": RayCastCfg(pattern=pattern, pos=(0.1, 0.2, 5), exclude="it/it")},
        ground=False,
    )
    sim = Simulation(scene, num_envs=2, engine=engine)
    normed = (height - height.min()) / (height.max() - height.min())
    want = 5 - 0.3 - 0.4 * torch.as_tensor(normed[1:-1, 1:-1].ravel())
    scan = sim.rays["scan"]
    assert bool(scan.hit.all())
    tolerance = 2e-6 if engine == "native" else 1e-4
    assert float((scan.distance[1].double() - want).abs().max()) < tolerance


@pytest.mark.parametrize("shape", ["box", "cylinder", "mesh"])
def test_heights_of_corners_are_those_of_their_points(shape):
    model = {"box": BOX, "cylinder": CYLINDER, "mesh": MESH}[shape]
    points = corners(mujoco.MjModel.from_xml_string(model))
    pattern = OwnPattern(directions=points.tolist())
    scene = SceneCfg(
        entities={"a": EntityCfg(model=model)},
        rays={"all": RayCastCfg(pattern=pattern, body="a/it", exclude=())},
        ground=False,
    )
    sim = Simulation(scene, num_envs=5)
    rng = np.random.default_rng(3)
    sim.data.qpos[1:] += torch.as_tensor(rng.normal(size=(4, 7)))
    sim.data.qpos[:, 3:] /= sim.data.qpos[:, 3:].norm(dim=1, keepdim=True)
    for qpos, height in zip(sim.data.qpos.numpy(), sim.rays["all"].height, strict=True):
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, qpos[3:])
        below = -(points @ turn.reshape(3, 3).T)[:, 2]
        np.testing.assert_allclose(height, below, atol=3e-6)
