"""Turn a glider to a heading while it glides, by torques about its own axes.

MuJoCo's model of air about ellipsoids gives lift and drag to wing, tail and fuselage. A
pod under the left wing makes it bank to the left. The action is a fraction of the
torques of ailerons, elevator and rudder.
"""

from __future__ import annotations

import math

import mujoco

from simstate.env import (
    BodyWrenchActionCfg,
    EnvCfg,
    EventTermCfg,
    HeadingCommandCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
    TrainCfg,
    events,
    observations,
    rewards,
    terminations,
)
from simstate.scene import EntityCfg, InitialStateCfg, SceneCfg, models

TRAINED = "64 of 64 within 0.9° from 2 s on, mean 0.16°"
CORE_SECONDS = 204


def in_air() -> mujoco.MjSpec:
    """Return the glider, with aerodynamic forces on its geoms."""
    spec = models.spec("glider")
    for name in ("fuselage", "wing", "tailplane", "fin"):
        spec.geom(name).fluid_ellipsoid = 1
    return spec


def env_cfg() -> EnvCfg:
    """Return the task."""
    heading = {"command_name": "heading"}
    start = InitialStateCfg(pos=(0.0, 0.0, 100.0), lin_vel=(12.0, 0.0, 0.0))
    return EnvCfg(
        scene=SceneCfg(
            entities={"robot": EntityCfg(model=in_air, init_state=start)},
            ground=True,
            timestep=0.01,
            options={
                "density": 1.2,  # kg/m³
                "viscosity": 1.8e-5,  # Pa·s
                "integrator": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
            },
        ),
        decimation=5,
        episode_length_s=10.0,
        commands={
            "heading": HeadingCommandCfg(
                heading=(-math.pi / 2, math.pi / 2), resampling_time_s=(10.0, 10.0)
            )
        },
        actions={
            "surfaces": BodyWrenchActionCfg(
                body_name="glider", torque_scale=(1.5, 1.0, 0.5)
            )
        },
        observations={
            "policy": ObservationGroupCfg(
                {
                    "missing": ObservationTermCfg(
                        observations.command_offset, params=heading
                    ),
                    "lin_vel": ObservationTermCfg(observations.base_lin_vel, scale=0.1),
                    "ang_vel": ObservationTermCfg(observations.base_ang_vel),
                    "gravity": ObservationTermCfg(observations.projected_gravity),
                    "last_action": ObservationTermCfg(observations.last_action),
                }
            )
        },
        rewards={
            "angle": RewardTermCfg(rewards.command_error, params=heading, weight=-0.5),
            "met": RewardTermCfg(
                rewards.command_tracked, params={**heading, "std": 0.2}, weight=1.0
            ),
            "level": RewardTermCfg(rewards.flat_orientation_l2, weight=-0.5),
            "rates": RewardTermCfg(rewards.ang_vel_xy_l2, weight=-0.02),
            "action_rate": RewardTermCfg(rewards.action_rate_l2, weight=-0.01),
            "lost": RewardTermCfg(rewards.is_terminated, weight=-20.0),
        },
        terminations={
            "time_out": TerminationTermCfg(terminations.time_out, time_out=True),
            "upset": TerminationTermCfg(
                terminations.bad_orientation, params={"limit_angle": 1.4}
            ),
            "grounded": TerminationTermCfg(
                terminations.base_height_below, params={"height": 1.0}
            ),
        },
        events={
            "launch": EventTermCfg(
                events.reset_root_state,
                params={
                    "pose_range": {"roll": (-0.2, 0.2), "pitch": (-0.1, 0.1)},
                    "velocity_range": {"x": (-1.0, 1.0), "y": (-0.5, 0.5)},
                },
                mode="reset",
            )
        },
    )


def train_cfg() -> TrainCfg:
    """Return the settings of its training."""
    return TrainCfg(
        num_envs=512, iterations=200, steps_per_env=24, hidden_sizes=(64, 64)
    )
