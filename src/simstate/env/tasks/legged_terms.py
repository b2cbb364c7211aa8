"""Common terms of the shipped walking robots."""

from __future__ import annotations

import math

from simstate.env import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    SceneEntityCfg,
    UniformNoise,
    events,
    observations,
)


def observed(period_s: float) -> dict[str, ObservationGroupCfg]:
    """Return the observations of the policy, with noise, and the critic, without.

    They include the command "velocity" and a clock of this period.
    """
    return {
        name: ObservationGroupCfg(_terms(period_s), noise=noise)
        for name, noise in (("policy", True), ("critic", False))
    }


def _terms(period_s: float) -> dict[str, ObservationTermCfg]:
    return {
        "base_lin_vel": ObservationTermCfg(
            observations.base_lin_vel, noise=UniformNoise(-0.1, 0.1)
        ),
        "base_ang_vel": ObservationTermCfg(
            observations.base_ang_vel, noise=UniformNoise(-0.2, 0.2), scale=0.25
        ),
        "projected_gravity": ObservationTermCfg(
            observations.projected_gravity, noise=UniformNoise(-0.05, 0.05)
        ),
        "command": ObservationTermCfg(
            observations.generated_commands, params={"command_name": "velocity"}
        ),
        "phase": ObservationTermCfg(observations.phase, params={"period_s": period_s}),
        "joint_pos": ObservationTermCfg(
            observations.joint_pos_rel, noise=UniformNoise(-0.01, 0.01)
        ),
        "joint_vel": ObservationTermCfg(
            observations.joint_vel_rel, noise=UniformNoise(-1.0, 1.0), scale=0.05
        ),
        "last_action": ObservationTermCfg(observations.last_action),
    }


def disturbed(
    bend_rad: float, push_m_s: float, joints: SceneEntityCfg
) -> dict[str, EventTermCfg]:
    """Return the events: random heading and joints at reset, and pushes."""
    push = (-push_m_s, push_m_s)
    return {
        "place": EventTermCfg(
            events.reset_root_state,
            params={"pose_range": {"yaw": (-math.pi, math.pi)}},
            mode="reset",
        ),
        "bend": EventTermCfg(
            events.reset_joints,
            params={"position_range": (-bend_rad, bend_rad), "asset_cfg": joints},
            mode="reset",
        ),
        "push": EventTermCfg(
            events.push_by_setting_velocity,
            params={"velocity_range": {"x": push, "y": push}},
            mode="interval",
            interval_s=(6.0, 10.0),
        ),
    }
