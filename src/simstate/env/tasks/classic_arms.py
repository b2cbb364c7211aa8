"""Gymnasium's pendulums and arms (v5), bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from simstate.env.tasks.classic import (
    Array,
    ClassicWorlds,
    GymnasiumTask,
    Infos,
    by_row,
    is_finite,
    squares,
)


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
        return is_finite(w) & ~(np.abs(w.qpos[:, 1]) > 0.2)

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
