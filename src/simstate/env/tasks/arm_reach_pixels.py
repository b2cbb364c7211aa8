"""Move the hand of a seven-joint arm to a ball that two cameras show.

The policy gets the pixels of the ball in a picture from the front and one from above,
and the joints of the arm. The critic also gets the position of the ball, which stays
for an episode.
"""

from __future__ import annotations

import dataclasses

from simstate.env import (
    EnvCfg,
    EventTermCfg,
    MetricTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TrainCfg,
    events,
    observations,
    rewards,
)
from simstate.env.tasks import arm_reach
from simstate.scene import CameraCfg, EntityCfg

HAND = SceneEntityCfg("robot", site_names="tcp")
BALL = SceneEntityCfg("ball", site_names="target")
MODEL = """
<mujoco model="ball">
  <worldbody>
    <body name="target" mocap="true" pos="0 0 0.35">
      <geom name="target" size="0.05" contype="0" conaffinity="0"
            rgba="0.2 0.8 0.35 1"/>
      <site name="target" size="0.01"/>
    </body>
  </worldbody>
</mujoco>
"""
"""A ball that touches nothing."""
CAMERAS = {
    "front": CameraCfg(
        pos=(1.7, 0.0, 0.35), look_at=(0.5, 0.0, 0.35), fovy=34.0, width=32, height=32
    ),
    "above": CameraCfg(
        pos=(0.5, 0.01, 1.6), look_at=(0.5, 0.0, 0.35), fovy=34.0, width=32, height=32
    ),
}
TRAINED = "64 of 64 within 8 cm after 4 s, mean 3.4 cm"
CORE_SECONDS = 299


def env_cfg() -> EnvCfg:
    """Return the task."""
    cfg = arm_reach.env_cfg()
    sites = {"asset_cfg": HAND, "target_cfg": BALL}
    known = cfg.observations["policy"].terms
    arm = {name: known[name] for name in ("joint_pos", "joint_vel", "last_action")}
    seen = {
        name: ObservationTermCfg(
            observations.camera_mask, params={"camera": name, "asset_cfg": BALL}
        )
        for name in CAMERAS
    }
    offset = ObservationTermCfg(observations.site_offset, params=sites)
    ball = EntityCfg(model=MODEL)
    return dataclasses.replace(
        cfg,
        scene=dataclasses.replace(
            cfg.scene,
            entities={**cfg.scene.entities, "ball": ball},
            cameras=dict(CAMERAS),
        ),
        episode_length_s=4.0,
        commands={},
        observations={
            "policy": ObservationGroupCfg({**seen, **arm}),
            "critic": ObservationGroupCfg({**arm, "offset": offset}),
        },
        rewards={
            "near": RewardTermCfg(
                rewards.sites_close, params={**sites, "std": 0.3}, weight=1.0
            ),
            "reached": RewardTermCfg(
                rewards.sites_close, params={**sites, "std": 0.08}, weight=1.0
            ),
            "action_rate": cfg.rewards["action_rate"],
            "joint_vel": cfg.rewards["joint_vel"],
        },
        metrics={
            "reached": MetricTermCfg(
                rewards.sites_close, params={**sites, "std": 0.08}, reduction="last"
            )
        },
        events={
            **cfg.events,
            "place_ball": EventTermCfg(
                events.reset_root_state,
                params={
                    "pose_range": {
                        "x": (0.35, 0.65),
                        "y": (-0.3, 0.3),
                        "z": (-0.15, 0.15),
                    },
                    "asset_cfg": SceneEntityCfg("ball"),
                },
                mode="reset",
            ),
        },
    )


def train_cfg() -> TrainCfg:
    """Return the settings of its training."""
    return TrainCfg(
        num_envs=256,
        iterations=150,
        steps_per_env=16,
        network="cnn",
        hidden_sizes=(64, 64),
        conv_channels=(8, 16),
        conv_kernels=(5, 3),
        conv_strides=(2, 2),
        num_learning_epochs=4,
    )
