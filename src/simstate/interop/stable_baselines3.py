"""Stable-Baselines3's VecEnv for tasks.

envs = StableBaselines3VecEnv("Cartpole-Balance", num_envs=64)
PPO("MlpPolicy", envs).learn(100_000)
"""

# Gymnasium leaves type parameters of its own classes open.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import VecEnv

from simstate.base.errors import InvalidInputError
from simstate.env import EnvCfg
from simstate.interop.gymnasium import Array, GymnasiumVectorEnv, Observation
from simstate.interop.gymnasium_spaces import infos_of

Indices = int | Iterable[int] | None


class StableBaselines3VecEnv(VecEnv):
    """A task in many worlds, which are reset in the step that ends their episode.

    The last observation of a world is `infos[k]["terminal_observation"]`, and
    `infos[k]["TimeLimit.truncated"]` is True if only the time ran out, unless the time
    limit is part of the task. Other infos are those of GymnasiumVectorEnv, by world;
    those of a new episode are in `reset_infos`. Takes the arguments of
    GymnasiumVectorEnv except `autoreset_mode`.
    """

    def __init__(self, task: str | EnvCfg, num_envs: int = 1, **options: Any) -> None:
        self.envs = GymnasiumVectorEnv(
            task, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **options
        )
        super().__init__(
            num_envs,
            self.envs.single_observation_space,
            self.envs.single_action_space,
        )
        self._seed: int | None = None
        self._actions: Array | None = None

    def reset(self) -> Observation:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Start an episode in all worlds, with the seed of the last call of `seed`."""
        seen, infos = self.envs.reset(seed=self._seed)
        self._seed = None
        self.reset_infos = [infos_of(infos, world) for world in range(self.num_envs)]
        return seen

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seed of the next reset."""
        self._seed = int(np.random.randint(2**31)) if seed is None else seed
        return [self._seed] * self.num_envs

    def step_async(self, actions: Array) -> None:
        """Record the actions."""
        self._actions = actions

    def step_wait(self) -> tuple[Observation, Array, Array, list[dict[str, Any]]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Apply the actions; return observations, rewards, dones and infos."""
        if self._actions is None:
            raise InvalidInputError(
                "step_wait without actions: call step_async first.", name="step_async"
            )
        actions, self._actions = self._actions, None
        seen, rewards, terminated, truncated, found = self.envs.step(actions)
        done = terminated | truncated
        infos = [infos_of(found, world) for world in range(self.num_envs)]
        for world in np.flatnonzero(done):
            self.reset_infos[world] = begun = infos[world]
            last = {"terminal_observation": begun.pop("final_obs")}
            infos[world] = begun.pop("final_info") | last
        # SB3 adds the estimated value of the last observation to these rewards.
        bootstraps = truncated & ~terminated & (not self.envs.env.cfg.is_finite_horizon)
        for info, goes_on in zip(infos, bootstraps.tolist(), strict=True):
            info["TimeLimit.truncated"] = goes_on
        return seen, rewards.astype(np.float32), done, infos

    def get_images(self) -> Sequence[Array | None]:
        """Return a picture of each world; needs render_mode="rgb_array"."""
        return self.envs.render() or [None] * self.num_envs

    def close(self) -> None:
        """Close the Gymnasium environment."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute, which is the same for all worlds."""
        value = getattr(self.envs, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute for all worlds at once."""
        self._check_all(indices, "set_attr")
        setattr(self.envs, attr_name, value)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: Indices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method once for all worlds; return the result for each."""
        self._check_all(indices, "env_method")
        result = getattr(self.envs, method_name)(*method_args, **method_kwargs)
        return [result] * self.num_envs

    def env_is_wrapped(
        self,
        wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]],
        indices: Indices = None,
    ) -> list[bool]:
        """Return False for each world: worlds have no separate wrappers."""
        del wrapper_class
        return [False for _ in self._get_indices(indices)]

    def _check_all(self, indices: Indices, what: str) -> None:
        if (
            indices is not None
            and len(list(self._get_indices(indices))) < self.num_envs
        ):
            raise InvalidInputError(
                f"{what} applies to all worlds, which are one environment; got "
                f"indices={indices!r}.",
                name="indices",
            )


__all__ = ["StableBaselines3VecEnv"]
