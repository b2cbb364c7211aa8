"""Cameras that follow a body, and the one that a scene is watched by."""

from __future__ import annotations

import pytest
import torch
from tests.raised import raises

from simstate import CameraCfg, EntityCfg, InitialStateCfg, SceneCfg, Simulation
from simstate.base.errors import SimStateError
from simstate.env import tasks
from simstate.sensors.watch_camera import VIEW, with_view


def test_a_following_camera_moves_but_does_not_turn():
    eye = CameraCfg(
        body="cube/cube", follow=True, pos=(1.0, 0.0, 0.5), look_at=(0.0, 0.0, 0.0)
    )
    cube = EntityCfg(model="cube", init_state=InitialStateCfg(pos=(0.0, 0.0, 1.0)))
    sim = Simulation(SceneCfg(entities={"cube": cube}, cameras={"eye": eye}))
    camera = sim.cameras["eye"]
    before, axes = camera.pos.clone(), camera.extrinsic[:, :3, :3].clone()
    turned = [[3.0, -2.0, 1.5, 0.5, 0.5, 0.5, 0.5]]
    sim.scene["cube"].write_root_link_pose_to_sim(turned)
    moved = torch.tensor([[3.0, -2.0, 0.5]], dtype=sim.dtype)
    assert torch.allclose(camera.pos, before + moved)
    assert torch.allclose(camera.extrinsic[:, :3, :3], axes)


def test_following_needs_a_body():
    scene = SceneCfg(entities={}, cameras={"eye": CameraCfg(follow=True)})
    with raises(SimStateError, name="eye"):
        Simulation(scene)


@pytest.mark.parametrize("task", tasks.NAMES)
def test_the_view_has_the_whole_entity_in_the_picture(task):
    sim = Simulation(with_view(tasks.make_cfg(task).scene))
    camera = sim.cameras[VIEW]
    name = next(iter(sim.scene))
    points = sim.scene[name].data.geom_pos_w[0]
    ones = torch.ones_like(points[:, :1])
    seen = (camera.extrinsic[0] @ torch.cat([points, ones], 1).T)[:3]
    pixels = camera.intrinsic[0] @ seen
    assert (pixels[2] > 0.0).all()
    u, v = pixels[0] / pixels[2], pixels[1] / pixels[2]
    assert ((u > 0) & (u < camera.width)).all()
    assert ((v > 0) & (v < camera.height)).all()
    assert float(u.std() + v.std()) > 5.0  # and it is not a speck


def test_a_camera_of_that_name_is_not_replaced():
    scene = with_view(tasks.make_cfg("Cartpole-Balance").scene)
    with raises(SimStateError, name="view"):
        with_view(scene)
