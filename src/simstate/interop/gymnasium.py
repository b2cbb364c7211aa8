"""Gymnasium's VectorEnv and Env for tasks, which importing this module registers.

    import gymnasium, simstate.interop.gymnasium
    envs = gymnasium.make_vec("simstate/Quadruped-Velocity-v0", num_envs=64)
    ant = gymnasium.make("simstate/Ant-v5", ctrl_cost_weight=0.1)

Without the import, gymnasium imports this module for the name
"simstate.interop.gymnasium:simstate/Quadruped-Velocity-v0".
"""

# Gymnasium leaves type parameters of its own classes open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from simstate.base.checks import whole_number
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.engine import EngineCfg
from simstate.env import EndedEpisodes, Env, EnvCfg, tasks
from simstate.env.groups import Observations
from simstate.interop.gymnasium_spaces import (
    Array,
    Info,
    action_space,
    add_infos,
    episode_end,
    host_array,
    infos_of,
    observation_space,
    on_host,
    row_of,
)
from simstate.sensors.watch_camera import VIEW, with_view

Observation: TypeAlias = "Array | dict[str, Any]"
Seeds: TypeAlias = "int | Sequence[int | None] | None"


_OPTIONS = ("num_envs", "autoreset_mode", "engine", "device", "group", "action_limit",
            "render_mode", "render_size")  # fmt: skip
_RENDERER_OPTIONS = ("camera_id", "camera_name", "default_camera_config", "max_geom",
                     "visual_options")  # fmt: skip
"""Keyword arguments of Gymnasium's renderer, besides width and height."""


class GymnasiumVectorEnv(VectorEnv[Any, Any, Any]):
    """A task in many worlds behind Gymnasium's vector interface.

    Observations are those of one group, or of all groups in a Dict. A group is a Box,
    or a Dict of Boxes by term if its terms are not concatenated. A picture of uint8 is
    Box(0, 255, (H, W, C), uint8).
    `infos` contains those of the task (`EnvCfg.info`, parts of `EnvCfg.reward`). If it
    has none, they are "episode_length", the steps of each world's episode, and in the
    step that ends it "episode_end" (with SAME_STEP in infos["final_info"]): its
    "return" and "length", "reason" (the termination terms) and "kind", "rewards" by
    term and "metrics". A world may be terminated and truncated in the same step.

    Args:
        task: a task's name, file or function, or a configuration.
        num_envs: the number of worlds.
        autoreset_mode: NEXT_STEP resets a world in the step after the one that ends
            it, whose action it ignores; SAME_STEP resets it at once, and its last
            observation is in infos["final_obs"]; DISABLED leaves it to
            `reset(options={"reset_mask": mask})`.
        engine: "native" or "warp", or a NativeCfg or WarpCfg.
        device: device of the worlds; actions and observations are NumPy arrays on the
            host.
        group: the observation group that is returned; None: all of them by name.
        action_limit: bound ± of the action space; None: those of the task's terms, or
            1. Actions are not clipped.
        render_mode: None or "rgb_array", which shows all worlds without a display.
        render_size: width and height of a picture [px].
        options: keyword arguments of the task, as `tasks.make_cfg` takes them.
    """

    def __init__(
        self,
        task: str | EnvCfg,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        engine: EngineCfg = "native",
        device: str | torch.device = "cpu",
        group: str | None = "policy",
        action_limit: float | None = None,
        render_mode: str | None = None,
        render_size: tuple[int, int] = (320, 240),
        **options: Any,
    ) -> None:
        mode = _autoreset_mode(autoreset_mode)
        if isinstance(task, str):
            if tasks.is_classic(task):
                render_size = _renderer_options(options, render_mode, render_size)
            task = tasks.make_cfg(task, **options)
        elif options:
            raise unknown_name("keyword argument", next(iter(options)), _OPTIONS)
        cfg = task
        if render_mode not in (None, "rgb_array"):
            raise unknown_name("render_mode", str(render_mode), ["rgb_array"])
        if render_mode is not None:
            cfg = dataclasses.replace(cfg, scene=with_view(cfg.scene, *render_size))
        same_step = mode is AutoresetMode.SAME_STEP
        self.env = Env(
            cfg, num_envs, engine=engine, device=device, auto_reset=same_step
        )
        self.num_envs = self.env.num_envs
        self.render_mode = render_mode
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": round(1.0 / self.env.step_dt),
            "autoreset_mode": mode,
        }
        self.log: dict[str, Any] = {}
        """Means over the episodes that ended last: rewards by term, and so on."""
        self._mode = mode
        self._group = group
        self._ended = np.zeros(self.num_envs, dtype=bool)
        self._is_seeded = False
        self.single_observation_space = observation_space(self.env, group)
        self._has_infos = cfg.info is not None or cfg.reward is not None
        self.single_action_space = action_space(self.env, action_limit)
        self.observation_space = batch_space(
            self.single_observation_space, self.num_envs
        )
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: Seeds = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start an episode in all worlds, or in those of options["reset_mask"].

        A seed determines all that follows; a sequence has one for each world.
        """
        mask = self._reset_mask(options)
        env_ids = torch.from_numpy(mask).to(self.env.device)
        if isinstance(seed, Sequence):
            extras = self._reset_with_seeds(seed, mask)
        else:
            super().reset(seed=seed)
            if seed is None and not self._is_seeded:
                seed = int(self.np_random.integers(2**31))
            self._is_seeded = True
            extras = self.env.reset(seed=seed, env_ids=env_ids)[1]
            self.log = extras["log"]
        self._ended[mask] = False
        infos = self._info(mask)
        add_infos(infos, extras["info"], mask)
        return self._observation(self.env.observations), infos

    def step(self, actions: Array) -> tuple[Observation, Array, Array, Array, Info]:
        """Apply actions; return observations, rewards, ends and infos."""
        renewed = self._ended
        seen, rewards, terminations, truncations, extras = self.advance(actions)
        infos: Info = {}
        if self._mode is AutoresetMode.SAME_STEP:
            ended = terminations | truncations
            if ended.any():
                infos = self._final(extras, ended)
                add_infos(infos["final_info"], extras["info"], ended)
                self._add_ends(infos["final_info"], extras["episodes"])
                renewed = ended
        infos |= self.task_infos(extras["episodes"])
        add_infos(infos, extras["info"], ~renewed)
        add_infos(infos, extras["reset_info"], renewed)
        return seen, rewards, terminations, truncations, infos

    def advance(
        self, actions: Array
    ) -> tuple[Observation, Array, Array, Array, dict[str, Any]]:
        """Apply actions; return the Env's extras instead of infos."""
        env, renewed = self.env, self._ended
        any_renewed = bool(renewed.any())
        if any_renewed and self._mode is AutoresetMode.DISABLED:
            ended = np.flatnonzero(renewed)[:10].tolist()
            raise InvalidInputError(
                "The episode has ended: start a new one by reset()."
                if self.num_envs == 1
                else f"The episodes of worlds {ended} have ended: start new ones by "
                'reset(options={"reset_mask": mask}).',
                name="step",
                worlds=np.flatnonzero(renewed).tolist(),
            )
        values = np.array(actions, dtype=self._dtype_of(actions))
        action = torch.from_numpy(values).to(env.device)
        # Only with NEXT_STEP can there be worlds to reset.
        seen, reward, terminated, _, extras = env.step(
            action, reset_ids=np.flatnonzero(renewed) if any_renewed else ()
        )
        if extras["log"]:
            self.log = extras["log"]
        terminations, truncations = (
            host_array(terminated),
            host_array(env.ends.timed_out()),
        )
        if self._mode is not AutoresetMode.SAME_STEP:
            self._ended = terminations | truncations
        rewards = host_array(reward).astype(np.float64, copy=False)
        return self._observation(seen), rewards, terminations, truncations, extras

    def task_infos(self, episodes: EndedEpisodes | None) -> Info:
        """Return the infos of a step; none if the task declares infos itself."""
        if self._has_infos:
            return {}
        infos = self._info(np.ones(self.num_envs, dtype=bool))
        if self._mode is not AutoresetMode.SAME_STEP:
            self._add_ends(infos, episodes)
        return infos

    def _add_ends(self, infos: Info, episodes: EndedEpisodes | None) -> None:
        """Add the ended episodes, unless the task declares infos itself."""
        if episodes is None or self._has_infos:
            return
        for row, world in enumerate(episodes.env_ids.tolist()):
            self._add_info(infos, {"episode_end": episode_end(episodes, row)}, world)

    def _dtype_of(self, actions: object) -> type:
        """Return float64 if both the actions and the environment are, else float32.

        Gymnasium computes the cost of float32 actions in float32.
        """
        is_double = getattr(actions, "dtype", np.dtype(float)) == np.float64
        return (
            np.float64 if is_double and self.env.cfg.dtype == "float64" else np.float32
        )

    def render(self) -> tuple[Array, ...] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a picture of each world, uint8, shape (height, width, 3)."""
        if self.render_mode is None:
            return None
        return tuple(host_array(self.env.sim.cameras[VIEW].rgb))

    def close_extras(self, **kwargs: Any) -> None:
        """Nothing is open."""

    def _observation(self, observations: Observations) -> Observation:
        """Copy observations to the host, in the structure of the observation space."""
        chosen = observations if self._group is None else observations[self._group]
        return on_host(chosen)

    def _info(self, mask: Array) -> Info:
        if self._has_infos:
            return {}
        lengths = host_array(self.env.episode_length_buf).copy()
        return {"episode_length": lengths, "_episode_length": mask.copy()}

    def _final(self, extras: dict[str, Any], ended: Array) -> Info:
        """Return the last observations and infos of the worlds that were reset."""
        last = self._observation(extras["final_observation"])
        final: Array = np.full(self.num_envs, None, dtype=object)
        for world in (int(k) for k in np.flatnonzero(ended)):
            final[world] = row_of(last, world)
        info: Info = {}
        if not self._has_infos:
            lengths = np.zeros(self.num_envs, dtype=np.int64)
            lengths[ended] = host_array(extras["episodes"].length)
            info = {"episode_length": lengths, "_episode_length": ended.copy()}
        return {
            "final_obs": final,
            "_final_obs": ended.copy(),
            "final_info": info,
            "_final_info": ended,
        }

    def _reset_mask(self, options: dict[str, Any] | None) -> Array:
        mask: Any = (options or {}).get("reset_mask")
        if mask is None:
            return np.ones(self.num_envs, dtype=bool)
        is_mask = isinstance(mask, np.ndarray) and mask.dtype == np.bool_
        if not is_mask or mask.shape != (self.num_envs,) or not mask.any():
            raise InvalidInputError(
                'options["reset_mask"] must be a boolean array of shape '
                f"({self.num_envs},) that is true somewhere, got {mask!r}.",
                name="reset_mask",
            )
        return mask.copy()

    def _reset_with_seeds(self, seeds: Sequence[int | None], mask: Array) -> Info:
        if len(seeds) != self.num_envs:
            raise InvalidInputError(
                f"seed must be one number or {self.num_envs} of them, got "
                f"{len(seeds)}.",
                name="seed",
            )
        for seed in seeds:  # all of them, before a world is reset
            if seed is not None:
                whole_number("seed", seed, 0)
        super().reset(seed=seeds[0])
        extras: Info = {}
        for world in (int(k) for k in np.flatnonzero(mask)):
            seed = seeds[world]
            extras = self.env.reset(
                seed=None if seed is None else [seed], env_ids=[world]
            )[1]
        self._is_seeded = True
        return extras


class GymnasiumEnv(gymnasium.Env[Any, Any]):
    """A task in one world behind Gymnasium's plain interface.

    Takes the arguments of GymnasiumVectorEnv except num_envs and autoreset_mode. A task
    with an argument `max_episode_steps` gets no limit: `gymnasium.make` adds one.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, task: str | EnvCfg, **options: Any) -> None:
        if isinstance(task, str) and tasks.find(task).takes("max_episode_steps"):
            options.setdefault("max_episode_steps", None)
        self._envs = GymnasiumVectorEnv(
            task, num_envs=1, autoreset_mode=AutoresetMode.DISABLED, **options
        )
        self.metadata = {
            key: self._envs.metadata[key] for key in ("render_modes", "render_fps")
        }
        self.render_mode = self._envs.render_mode
        self.observation_space = self._envs.single_observation_space
        self.action_space = self._envs.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start an episode; a seed determines all that follows."""
        super().reset(seed=seed)
        seen, infos = self._envs.reset(seed=seed)
        return row_of(seen, 0), infos_of(infos, 0)

    def step(self, action: Array) -> tuple[Observation, float, bool, bool, Info]:
        """Apply an action; return observation, reward, terminated, truncated, info."""
        envs = self._envs
        seen, reward, terminated, truncated, extras = envs.advance(
            np.asarray(action)[None]
        )
        info = infos_of(envs.task_infos(extras["episodes"]), 0)
        info |= {name: values[0] for name, values in extras["info"].items()}
        ends = bool(terminated[0]), bool(truncated[0])
        return row_of(seen, 0), float(reward[0]), *ends, info

    def render(self) -> Array | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a picture of the world, uint8, shape (height, width, 3)."""
        pictures = self._envs.render()
        return None if pictures is None else pictures[0]


def environment_id(task: str) -> str:
    """Return the name under which a task is registered with Gymnasium."""
    return f"simstate/{task}" if tasks.is_classic(task) else f"simstate/{task}-v0"


def _register(name: str) -> None:
    """Register a task with Gymnasium under its name."""
    if environment_id(name) not in gymnasium.registry:
        gymnasium.register(
            id=environment_id(name),
            entry_point=f"{__name__}:GymnasiumEnv",
            vector_entry_point=f"{__name__}:GymnasiumVectorEnv",
            kwargs={"task": name},
            max_episode_steps=tasks.classic_limit(name),
        )


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError as error:
        known = [known.value for known in AutoresetMode]
        raise unknown_name("autoreset_mode", str(mode), known) from error


def _renderer_options(
    options: Info, render_mode: str | None, size: tuple[int, int]
) -> tuple[int, int]:
    """Remove arguments of Gymnasium's renderer; return a picture's width and height.

    With a render_mode, those that simstate's renderer does not support raise.
    """
    size = options.pop("width", size[0]), options.pop("height", size[1])
    for name in _RENDERER_OPTIONS:
        if options.pop(name, None) is not None and render_mode is not None:
            raise InvalidInputError(
                f"{name} is for Gymnasium's renderer, but simstate draws the pictures: "
                "set width and height, or declare SceneCfg.cameras.",
                name=name,
            )
    return size


for _name in tasks.names():
    _register(_name)
tasks.when_registered(_register)
