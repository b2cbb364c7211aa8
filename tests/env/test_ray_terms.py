"""Terms on rays, momentum and power against numbers computed by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from simstate import ContactCfg, GridPattern, RayCastCfg
from simstate.env import (
    Env,
    ObservationGroupCfg,
    ObservationTermCfg,
    SceneEntityCfg,
    observations,
    rewards,
    terminations,
)

RAYS = {
    "scan": RayCastCfg(
        pattern=GridPattern(size=(0.4, 0.2), resolution=0.2), body="robot/trunk",
        alignment="yaw", offset=(0, 0, 0.3),
    )
}  # fmt: skip
SCAN = {"sensor_name": "scan"}


def test_terms_by_hand(make_cfg) -> None:
    terms = {
        "scan": ObservationTermCfg(
            observations.height_scan, params=SCAN | {"offset": 0.5, "limit": 0.08}
        ),
        "rays": ObservationTermCfg(observations.ray_distance, params=SCAN),
        "momentum": ObservationTermCfg(observations.momentum),
    }
    cfg = make_cfg(observations={"policy": ObservationGroupCfg(terms)})
    scene = dataclasses.replace(
        cfg.scene, rays=RAYS, contacts={"feet": ContactCfg(of="robot/shin")},
        ground=True, timestep=None,
    )  # fmt: skip
    env = Env(dataclasses.replace(cfg, scene=scene), 4, seed=2)
    rng = np.random.default_rng(4)
    for _ in range(9):
        action = rng.normal(size=(4, env.action_dim))
        env.step(torch.as_tensor(action, dtype=torch.float32))
    data = env.scene["robot"].data
    height = data.root_link_pos_w[:, 2:3].numpy()  # the ground is at z = 0
    scan = np.clip(height - 0.5, -0.08, 0.08).repeat(6, axis=1)
    linear = (data.body_mass[..., None] * data.body_com_lin_vel_w).sum(1)
    seen = env.observations["policy"].numpy()
    np.testing.assert_allclose(seen[:, :6], scan, atol=1e-6)
    np.testing.assert_allclose(seen[:, 6:12], height.repeat(6, 1) + 0.3, atol=1e-5)
    np.testing.assert_allclose(seen[:, 12:15], linear, atol=1e-5)
    assert env.observation_names["policy"][5:7] == ["scan/ray 5", "rays/ray 0"]
    error = rewards.height_over_terrain_l2(env, "scan", 0.4)
    np.testing.assert_allclose(error, (height[:, 0] - 0.4) ** 2, atol=1e-9)
    low = terminations.height_over_terrain_below(env, "scan", float(np.median(height)))
    assert (low.numpy() == (height[:, 0] < np.median(height))).all()
    assert low.any()
    assert not low.all()
    knee = SceneEntityCfg("robot", joint_names="knee")
    k = env.scene["robot"].joint_names.index("knee")
    power = (data.qfrc_actuator * data.joint_vel)[:, k].abs()
    assert torch.equal(rewards.joint_power(env, knee), power)
    spin = seen[:, 15:18]
    got = rewards.angular_momentum_l2(env, SceneEntityCfg("robot"))
    np.testing.assert_allclose(got, (spin**2).sum(1), rtol=1e-4)
