"""Gymnasium's eleven MuJoCo environments (v5), bit for bit.

Each class has Gymnasium's keyword arguments as its fields, and computes what Gymnasium
does in the order in which Gymnasium does it. Where the sum, norm or power of one vector
rounds otherwise than that of many rows, it is computed row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from simstate.env.tasks.classic import (
    INF,
    Array,
    Classic,
    ClassicWorlds,
    GymnasiumTask,
    Infos,
    Range,
    by_row,
    is_finite,
    is_within,
    sum_of_squares,
)
from simstate.env.tasks.classic_arms import (
    InvertedDoublePendulum,
    InvertedPendulum,
    Pusher,
    Reacher,
)


def _plane_position(w: ClassicWorlds) -> Infos:
    """Return the position in the plane, and its distance from the origin."""
    xy = w.qpos[:, :2]
    return {"x_position": xy[:, 0], "y_position": xy[:, 1],
            "distance_from_origin": by_row(np.linalg.norm, xy)}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Runner(GymnasiumTask):
    """Base of HalfCheetah, Swimmer, Walker2d and Hopper."""

    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 1e-3
    healthy_reward: ClassVar[float] = 0.0
    reset_noise_scale: float = 5e-3
    exclude_current_positions_from_observation: bool = True
    num_skipped: ClassVar[int] = 1
    velocity_limit: ClassVar[float] = INF

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return positions without the horizontal ones, and velocities."""
        skipped = self.num_skipped * self.exclude_current_positions_from_observation
        limit, velocity = self.velocity_limit, w.qvel
        if limit < INF:
            velocity = np.clip(velocity, -limit, limit)
        return w.qpos[:, skipped:], velocity

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return the forward velocity and health, less the cost of controls."""
        velocity = (self.position(w) - w.before) / w.dt
        forward = self.forward_reward_weight * velocity[:, 0]
        cost = self.ctrl_cost_weight * w.action_squares()
        infos = {"x_velocity": velocity[:, 0], "reward_forward": forward,
                 "reward_ctrl": -cost}  # fmt: skip
        if self.num_skipped == 2:
            infos["y_velocity"] = velocity[:, 1]
        healthy = self.is_healthy(w)
        if healthy is None:
            return forward - cost, infos
        infos["reward_survive"] = healthy * self.healthy_reward
        return (forward + infos["reward_survive"]) - cost, infos

    def infos(self, w: ClassicWorlds) -> Infos:
        """Return the horizontal position."""
        return {"x_position": w.qpos[:, 0]}


@dataclass(frozen=True, kw_only=True)
class HalfCheetah(Runner):
    """HalfCheetah-v5."""

    xml_file: str = "half_cheetah.xml"
    frame_skip: int = 5
    ctrl_cost_weight: float = 0.1
    reset_noise_scale: float = 0.1
    has_normal_noise: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class Swimmer(Runner):
    """Swimmer-v5."""

    xml_file: str = "swimmer.xml"
    frame_skip: int = 4
    ctrl_cost_weight: float = 1e-4
    reset_noise_scale: float = 0.1
    num_skipped: ClassVar[int] = 2

    def infos(self, w: ClassicWorlds) -> Infos:
        """Return the position in the plane."""
        return _plane_position(w)


@dataclass(frozen=True, kw_only=True)
class Walker2d(Runner):
    """Walker2d-v5."""

    xml_file: str = "walker2d_v5.xml"
    frame_skip: int = 4
    healthy_reward: float = 1.0  # pyright: ignore[reportIncompatibleVariableOverride]
    terminate_when_unhealthy: bool = True
    healthy_z_range: Range = (0.8, 2.0)
    healthy_angle_range: Range = (-1.0, 1.0)
    velocity_limit: ClassVar[float] = 10.0

    def is_healthy(self, w: ClassicWorlds) -> Array:
        """Return True while height and angle are within their ranges."""
        z, angle = w.qpos[:, 1], w.qpos[:, 2]
        upright = is_within(angle, self.healthy_angle_range)
        return is_within(z, self.healthy_z_range) & upright

    def infos(self, w: ClassicWorlds) -> Infos:
        """Return the position, and the height above the initial one."""
        height = w.qpos[:, 1] - w.init_qpos[1]
        return {"x_position": w.qpos[:, 0], "z_distance_from_origin": height}


@dataclass(frozen=True, kw_only=True)
class Hopper(Walker2d):
    """Hopper-v5."""

    xml_file: str = "hopper.xml"
    healthy_state_range: Range = (-100.0, 100.0)
    healthy_z_range: Range = (0.7, INF)
    healthy_angle_range: Range = (-0.2, 0.2)

    def is_healthy(self, w: ClassicWorlds) -> Array:
        """Return True while state, height and angle are within their ranges."""
        state = np.concatenate([w.qpos[:, 2:], w.qvel], axis=1)
        within = is_within(state, self.healthy_state_range).all(axis=1)
        return Walker2d.is_healthy(self, w) & within


@dataclass(frozen=True, kw_only=True)
class Ant(GymnasiumTask):
    """Ant-v5."""

    xml_file: str = "ant.xml"
    frame_skip: int = 5
    forward_reward_weight: float = 1
    ctrl_cost_weight: float = 0.5
    contact_cost_weight: float = 5e-4
    healthy_reward: float = 1.0
    main_body: int | str = 1
    terminate_when_unhealthy: bool = True
    healthy_z_range: Range = (0.2, 1.0)
    contact_force_range: Range = (-1.0, 1.0)
    reset_noise_scale: float = 0.1
    exclude_current_positions_from_observation: bool = True
    include_cfrc_ext_in_observation: bool = True
    kept: ClassVar[tuple[str, ...]] = ("xpos", "cfrc_ext")
    has_normal_noise: ClassVar[bool] = True

    def position(self, w: ClassicWorlds) -> Array:
        """Return the main body's origin in the plane."""
        return w.kept["xpos"][:, w.body(self.main_body), :2]

    def contact_forces(self, w: ClassicWorlds) -> Array:
        """Return the clipped contact forces; shape (num_envs, nbody, 6)."""
        return np.clip(w.kept["cfrc_ext"], *self.contact_force_range)

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return positions, velocities and contact forces."""
        state = w.qpos[:, 2 * self.exclude_current_positions_from_observation :], w.qvel
        if not self.include_cfrc_ext_in_observation:
            return state
        return *state, self.contact_forces(w)[:, 1:]

    def is_healthy(self, w: ClassicWorlds) -> Array:
        """Return True while the state is finite and the height within its range."""
        low, high = self.healthy_z_range
        return is_finite(w) & (low <= w.qpos[:, 2]) & (w.qpos[:, 2] <= high)

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return velocity and health, less the costs of controls and contacts."""
        velocity = (self.position(w) - w.before) / w.dt
        forward = velocity[:, 0] * self.forward_reward_weight
        survival = self.is_healthy(w) * self.healthy_reward
        control = self.ctrl_cost_weight * w.action_squares()
        contact = self.contact_cost_weight * sum_of_squares(self.contact_forces(w))
        return (forward + survival) - (control + contact), {
            "x_velocity": velocity[:, 0], "y_velocity": velocity[:, 1],
            "reward_forward": forward, "reward_ctrl": -control,
            "reward_contact": -contact, "reward_survive": survival,
        }  # fmt: skip

    def infos(self, w: ClassicWorlds) -> Infos:
        """Return the position in the plane."""
        return _plane_position(w)


@dataclass(frozen=True, kw_only=True)
class _AnyHumanoid(GymnasiumTask):
    """Base of Humanoid and HumanoidStandup."""

    frame_skip: int = 5
    ctrl_cost_weight: float = 0.1
    reset_noise_scale: float = 1e-2
    exclude_current_positions_from_observation: bool = True
    include_cinert_in_observation: bool = True
    include_cvel_in_observation: bool = True
    include_qfrc_actuator_in_observation: bool = True
    include_cfrc_ext_in_observation: bool = True
    kept: ClassVar[tuple[str, ...]] = (
        "cinert", "cvel", "qfrc_actuator", "cfrc_ext", "ten_length", "ten_velocity",
    )  # fmt: skip

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return the state, inertias, velocities, and forces of motors and contacts."""
        fields = [
            (self.include_cinert_in_observation, w.kept["cinert"][:, 1:]),
            (self.include_cvel_in_observation, w.kept["cvel"][:, 1:]),
            (self.include_qfrc_actuator_in_observation, w.kept["qfrc_actuator"][:, 6:]),
            (self.include_cfrc_ext_in_observation, w.kept["cfrc_ext"][:, 1:]),
        ]
        position = w.qpos[:, 2 * self.exclude_current_positions_from_observation :]
        return position, w.qvel, *(values for included, values in fields if included)

    def infos(self, w: ClassicWorlds) -> Infos:
        """Return lengths and velocities of tendons."""
        length, velocity = w.kept["ten_length"], w.kept["ten_velocity"]
        return {"tendon_length": length, "tendon_velocity": velocity}

    def control_cost(self, w: ClassicWorlds) -> Array:
        """Return the cost of controls; shape (num_envs,)."""
        return self.ctrl_cost_weight * sum_of_squares(w.ctrl)

    def contact_cost(self, w: ClassicWorlds, weight: float, limits: Range) -> Array:
        """Return the cost of contact forces, within limits; shape (num_envs,)."""
        return np.clip(weight * sum_of_squares(w.kept["cfrc_ext"]), *limits)


@dataclass(frozen=True, kw_only=True)
class HumanoidStandup(_AnyHumanoid):
    """HumanoidStandup-v5."""

    xml_file: str = "humanoidstandup.xml"
    uph_cost_weight: float = 1
    impact_cost_weight: float = 0.5e-6
    impact_cost_range: Range = (-INF, 10.0)

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return the height divided by the time step, less costs."""
        up = (w.qpos[:, 2] - 0) / w.timestep
        control = self.control_cost(w)
        impact = self.contact_cost(w, self.impact_cost_weight, self.impact_cost_range)
        return up - control - impact + 1, {
            "reward_linup": up, "reward_quadctrl": -control, "reward_impact": -impact,
        }  # fmt: skip

    def infos(self, w: ClassicWorlds) -> Infos:
        """Return the position, the height above the initial one, and tendons."""
        return {
            "x_position": w.qpos[:, 0], "y_position": w.qpos[:, 1],
            "z_distance_from_origin": w.qpos[:, 2] - w.init_qpos[2],
            **super().infos(w),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Humanoid(_AnyHumanoid):
    """Humanoid-v5."""

    xml_file: str = "humanoid.xml"
    forward_reward_weight: float = 1.25
    contact_cost_weight: float = 5e-7
    contact_cost_range: Range = (-INF, 10.0)
    healthy_reward: float = 5.0
    terminate_when_unhealthy: bool = True
    healthy_z_range: Range = (1.0, 2.0)
    kept: ClassVar[tuple[str, ...]] = ("xipos", *_AnyHumanoid.kept)

    def position(self, w: ClassicWorlds) -> Array:
        """Return the centre of mass in the plane."""
        sums = [np.einsum("b,bj->j", w.masses, xipos) for xipos in w.kept["xipos"]]
        return (np.array(sums) / w.masses.sum())[:, :2]

    def is_healthy(self, w: ClassicWorlds) -> Array:
        """Return True while the height is within its range."""
        return is_within(w.qpos[:, 2], self.healthy_z_range)

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return velocity and health, less the costs of controls and contacts."""
        velocity = (self.position(w) - w.before) / w.dt
        forward = self.forward_reward_weight * velocity[:, 0]
        survival = self.is_healthy(w) * self.healthy_reward
        control = self.control_cost(w)
        weight, limits = self.contact_cost_weight, self.contact_cost_range
        contact = self.contact_cost(w, weight, limits)
        return (forward + survival) - (control + contact), {
            "x_velocity": velocity[:, 0], "y_velocity": velocity[:, 1],
            "reward_survive": survival, "reward_forward": forward,
            "reward_ctrl": -control, "reward_contact": -contact,
        }  # fmt: skip

    def infos(self, w: ClassicWorlds) -> Infos:
        """Return the position in the plane, and tendons."""
        return _plane_position(w) | super().infos(w)


_KINDS = (
    Ant, HalfCheetah, Hopper, Walker2d, Swimmer, Humanoid, HumanoidStandup,
    InvertedPendulum, InvertedDoublePendulum, Pusher, Reacher,
)  # fmt: skip

CLASSICS: dict[str, type[Classic]] = {f"{kind.__name__}-v5": kind for kind in _KINDS}
"""The environments by their names in Gymnasium."""
