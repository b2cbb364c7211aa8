"""Gymnasium's eleven MuJoCo environments (v5), bit for bit.

Each class has Gymnasium's keyword arguments as its fields, and computes what Gymnasium
does in the order in which Gymnasium does it. Where the sum, norm or power of one vector
rounds otherwise than that of many rows, it is computed row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from simstate.base.errors import InvalidInputError
from simstate.base.extras import library
from simstate.env.tasks.classic import (
    Array,
    Classic,
    ClassicWorlds,
    Infos,
    Range,
    by_row,
    is_within,
    squares,
    sum_of_squares,
)

INF = float("inf")


def _plane_position(w: ClassicWorlds) -> Infos:
    """Return the position in the plane, and its distance from the origin."""
    xy = w.qpos[:, :2]
    return {"x_position": xy[:, 0], "y_position": xy[:, 1],
            "distance_from_origin": by_row(np.linalg.norm, xy)}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class GymnasiumTask(Classic):
    """An environment whose model is among Gymnasium's assets, or a separate file."""

    def model(self) -> Path:
        """Return the path of `xml_file`, which may be a name among the assets."""
        if self.xml_file.startswith((".", "/", "~")):
            path = Path(self.xml_file).expanduser()
        else:
            what = "Gymnasium's environments"
            folder = Path(library("gymnasium", "gym", what).__file__).parent
            path = folder / "envs/mujoco/assets" / self.xml_file
        if not path.exists():
            raise InvalidInputError(
                f"The model {str(path)!r} (xml_file) is missing.", name="xml_file"
            )
        return path


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
        finite = np.isfinite(w.qpos).all(axis=1) & np.isfinite(w.qvel).all(axis=1)
        return finite & (low <= w.qpos[:, 2]) & (w.qpos[:, 2] <= high)

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
class HumanoidStandup(GymnasiumTask):
    """HumanoidStandup-v5."""

    xml_file: str = "humanoidstandup.xml"
    frame_skip: int = 5
    uph_cost_weight: float = 1
    ctrl_cost_weight: float = 0.1
    impact_cost_weight: float = 0.5e-6
    impact_cost_range: Range = (-INF, 10.0)
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
        return _humanoid_observation(self, w)

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return the height divided by the time step, less costs."""
        up = (w.qpos[:, 2] - 0) / w.timestep
        control = self.ctrl_cost_weight * sum_of_squares(w.ctrl)
        impact = self.impact_cost_weight * sum_of_squares(w.kept["cfrc_ext"])
        impact = np.clip(impact, *self.impact_cost_range)
        return up - control - impact + 1, {
            "reward_linup": up, "reward_quadctrl": -control, "reward_impact": -impact,
        }  # fmt: skip

    def infos(self, w: ClassicWorlds) -> Infos:
        """Return the position, the height above the initial one, and tendons."""
        return {
            "x_position": w.qpos[:, 0], "y_position": w.qpos[:, 1],
            "z_distance_from_origin": w.qpos[:, 2] - w.init_qpos[2], **_tendons(w),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Humanoid(GymnasiumTask):
    """Humanoid-v5."""

    xml_file: str = "humanoid.xml"
    frame_skip: int = 5
    forward_reward_weight: float = 1.25
    ctrl_cost_weight: float = 0.1
    contact_cost_weight: float = 5e-7
    contact_cost_range: Range = (-INF, 10.0)
    healthy_reward: float = 5.0
    terminate_when_unhealthy: bool = True
    healthy_z_range: Range = (1.0, 2.0)
    reset_noise_scale: float = 1e-2
    exclude_current_positions_from_observation: bool = True
    include_cinert_in_observation: bool = True
    include_cvel_in_observation: bool = True
    include_qfrc_actuator_in_observation: bool = True
    include_cfrc_ext_in_observation: bool = True
    kept: ClassVar[tuple[str, ...]] = ("xipos", *HumanoidStandup.kept)

    def position(self, w: ClassicWorlds) -> Array:
        """Return the centre of mass in the plane."""
        sums = [np.einsum("b,bj->j", w.masses, xipos) for xipos in w.kept["xipos"]]
        return (np.array(sums) / w.masses.sum())[:, :2]

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return the state, inertias, velocities, and forces of motors and contacts."""
        return _humanoid_observation(self, w)

    def is_healthy(self, w: ClassicWorlds) -> Array:
        """Return True while the height is within its range."""
        return is_within(w.qpos[:, 2], self.healthy_z_range)

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return velocity and health, less the costs of controls and contacts."""
        velocity = (self.position(w) - w.before) / w.dt
        forward = self.forward_reward_weight * velocity[:, 0]
        survival = self.is_healthy(w) * self.healthy_reward
        control = self.ctrl_cost_weight * sum_of_squares(w.ctrl)
        contact = self.contact_cost_weight * sum_of_squares(w.kept["cfrc_ext"])
        contact = np.clip(contact, *self.contact_cost_range)
        return (forward + survival) - (control + contact), {
            "x_velocity": velocity[:, 0], "y_velocity": velocity[:, 1],
            "reward_survive": survival, "reward_forward": forward,
            "reward_ctrl": -control, "reward_contact": -contact,
        }  # fmt: skip

    def infos(self, w: ClassicWorlds) -> Infos:
        """Return the position in the plane, and tendons."""
        return _plane_position(w) | _tendons(w)


def _tendons(w: ClassicWorlds) -> Infos:
    """Return lengths and velocities of tendons."""
    length, velocity = w.kept["ten_length"], w.kept["ten_velocity"]
    return {"tendon_length": length, "tendon_velocity": velocity}


def _humanoid_observation(
    task: Humanoid | HumanoidStandup, w: ClassicWorlds
) -> tuple[Array, ...]:
    """Return the state, inertias, velocities, and forces of motors and contacts."""
    fields = [
        (task.include_cinert_in_observation, w.kept["cinert"][:, 1:]),
        (task.include_cvel_in_observation, w.kept["cvel"][:, 1:]),
        (task.include_qfrc_actuator_in_observation, w.kept["qfrc_actuator"][:, 6:]),
        (task.include_cfrc_ext_in_observation, w.kept["cfrc_ext"][:, 1:]),
    ]
    position = w.qpos[:, 2 * task.exclude_current_positions_from_observation :]
    return position, w.qvel, *(values for included, values in fields if included)


@dataclass(frozen=True, kw_only=True)
class InvertedPendulum(GymnasiumTask):
    """InvertedPendulum-v5."""

    xml_file: str = "inverted_pendulum.xml"
    frame_skip: int = 2
    reset_noise_scale: float = 0.01

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return positions and velocities."""
        return w.qpos, w.qvel

    def is_healthy(self, w: ClassicWorlds) -> Array:
        """Return True while the state is finite and the pole upright."""
        finite = np.isfinite(w.qpos).all(axis=1) & np.isfinite(w.qvel).all(axis=1)
        return finite & ~(np.abs(w.qpos[:, 1]) > 0.2)

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return 1 while the pole is upright."""
        reward = self.is_healthy(w).astype(np.int64)
        return reward, {"reward_survive": reward}


@dataclass(frozen=True, kw_only=True)
class InvertedDoublePendulum(GymnasiumTask):
    """InvertedDoublePendulum-v5."""

    xml_file: str = "inverted_double_pendulum.xml"
    frame_skip: int = 5
    healthy_reward: float = 10.0
    reset_noise_scale: float = 0.1
    kept: ClassVar[tuple[str, ...]] = ("site_xpos", "qfrc_constraint")
    has_normal_noise: ClassVar[bool] = True

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return the cart, angles, velocities and the constraint force on the cart."""
        angles = w.qpos[:, 1:]
        force = np.clip(w.kept["qfrc_constraint"], -10, 10)[:, :1]
        turned = by_row(np.sin, angles), by_row(np.cos, angles)
        return w.qpos[:, :1], *turned, np.clip(w.qvel, -10, 10), force

    def is_healthy(self, w: ClassicWorlds) -> Array:
        """Return True while the tip is high."""
        return ~(w.kept["site_xpos"][:, 0, 2] <= 1)

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return a bonus, less penalties on the tip's position and on velocities."""
        x, _, y = w.kept["site_xpos"][:, 0].T
        distance = 0.01 * squares(x) + squares(y - 2)
        velocity = 1e-3 * squares(w.qvel[:, 1]) + 5e-3 * squares(w.qvel[:, 2])
        bonus = self.healthy_reward * self.is_healthy(w)
        return bonus - distance - velocity, {
            "reward_survive": bonus, "distance_penalty": -distance,
            "velocity_penalty": -velocity,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Pusher(GymnasiumTask):
    """Pusher-v5."""

    xml_file: str = "pusher_v5.xml"
    frame_skip: int = 5
    reward_near_weight: float = 0.5
    reward_dist_weight: float = 1
    reward_control_weight: float = 0.1
    limit: ClassVar[int] = 100
    kept: ClassVar[tuple[str, ...]] = ("xpos",)

    def points(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return the positions of the tip, the object and the goal; (num_envs, 3)."""
        names = ("tips_arm", "object", "goal")
        return tuple(w.kept["xpos"][:, w.body(name)] for name in names)

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return the arm's state, and the positions of its tip, object and goal."""
        return w.qpos[:, :7], w.qvel[:, :7], *self.points(w)

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return penalties: the object's distance, the cost of controls, the tip's."""
        tip, thing, goal = self.points(w)
        near = -by_row(np.linalg.norm, thing - tip) * self.reward_near_weight
        far = -by_row(np.linalg.norm, thing - goal) * self.reward_dist_weight
        control = -w.action_squares() * self.reward_control_weight
        parts = {"reward_dist": far, "reward_ctrl": control, "reward_near": near}
        return far + control + near, parts

    def draw(self, rng: Generator, w: ClassicWorlds) -> tuple[Array, Array]:
        """Return the state at reset, with the object at a random position."""
        while True:
            x = rng.uniform(low=-0.3, high=0, size=1)
            found = np.concatenate([x, rng.uniform(low=-0.2, high=0.2, size=1)])
            if np.linalg.norm(found) > 0.17:
                break
        qpos = np.concatenate([w.init_qpos[:-4], found, [0.0, 0.0]])
        qvel = w.init_qvel + rng.uniform(low=-0.005, high=0.005, size=len(w.init_qvel))
        qvel[-4:] = 0
        return qpos, qvel


@dataclass(frozen=True, kw_only=True)
class Reacher(GymnasiumTask):
    """Reacher-v5."""

    xml_file: str = "reacher.xml"
    frame_skip: int = 2
    reward_dist_weight: float = 1
    reward_control_weight: float = 1
    limit: ClassVar[int] = 50
    kept: ClassVar[tuple[str, ...]] = ("xpos",)

    def offset(self, w: ClassicWorlds) -> Array:
        """Return the vector from the target to the fingertip; shape (num_envs, 3)."""
        xpos = w.kept["xpos"]
        return xpos[:, w.body("fingertip")] - xpos[:, w.body("target")]

    def observation(self, w: ClassicWorlds) -> tuple[Array, ...]:
        """Return angles, the target, velocities, and the vector from the target."""
        angles = w.qpos[:, :2]
        turned = by_row(np.cos, angles), by_row(np.sin, angles)
        return *turned, w.qpos[:, 2:], w.qvel[:, :2], self.offset(w)[:, :2]

    def reward(self, w: ClassicWorlds) -> tuple[Array, Infos]:
        """Return penalties: the distance and the cost of controls."""
        far = -by_row(np.linalg.norm, self.offset(w)) * self.reward_dist_weight
        control = -w.action_squares() * self.reward_control_weight
        return far + control, {"reward_dist": far, "reward_ctrl": control}

    def draw(self, rng: Generator, w: ClassicWorlds) -> tuple[Array, Array]:
        """Return the state at reset with noise, and a random target."""
        qpos = rng.uniform(low=-0.1, high=0.1, size=len(w.init_qpos)) + w.init_qpos
        while True:
            qpos[-2:] = rng.uniform(low=-0.2, high=0.2, size=2)
            if np.linalg.norm(qpos[-2:]) < 0.2:
                break
        qvel = w.init_qvel + rng.uniform(low=-0.005, high=0.005, size=len(w.init_qvel))
        qvel[-2:] = 0
        return qpos, qvel


_KINDS = (
    Ant, HalfCheetah, Hopper, Walker2d, Swimmer, Humanoid, HumanoidStandup,
    InvertedPendulum, InvertedDoublePendulum, Pusher, Reacher,
)  # fmt: skip

CLASSICS: dict[str, type[Classic]] = {f"{kind.__name__}-v5": kind for kind in _KINDS}
"""The environments by their names in Gymnasium."""
