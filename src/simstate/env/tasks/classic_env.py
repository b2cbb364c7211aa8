"""An EnvCfg of a classic: its terms, and the model that it is published with."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from torch import Tensor

from simstate.base.errors import InvalidInputError, unknown_name
from simstate.entity.writer_base import control_writer
from simstate.env.actions import Action, ActionCfg
from simstate.env.env_cfg import (
    EnvCfg,
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    TermCfg,
    TerminationTermCfg,
)
from simstate.env.host_view import either
from simstate.env.tasks.classic import Array, Classic, ClassicWorlds, Infos
from simstate.env.tasks.classics import CLASSICS
from simstate.env.tasks.suite import SUITE
from simstate.env.terminations import time_out
from simstate.scene import EntityCfg, SceneCfg
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env

NAMES = (
    *(CLASSICS if find_spec("gymnasium") else ()),
    *(SUITE if find_spec("dm_control") else ()),
)
"""The names of the tasks whose models are installed."""

Parameters = dict[str, tuple[int, Array]]
"""Values of an element, by the name of the parameter."""


@dataclass(kw_only=True)
class ClassicActionCfg(ActionCfg):
    """Controls as they are given: neither scaled nor clipped."""

    classic: Classic

    def make(self, name: str, env: Env) -> ClassicAction:
        """Return the term, resolved in the environment's scene."""
        del name
        return ClassicAction(self, env)


@either
class ClassicAction(Action):
    """Writes all controls; records what the reward compares the next state with."""

    keeps_dtype = True

    def __init__(self, cfg: ClassicActionCfg, env: Env) -> None:
        if not worlds_of(env.sim).engine.is_exact:
            raise InvalidInputError(
                "Gymnasium's and dm_control's tasks run on the native engine only, "
                f"got engine={env.sim.engine_name!r}.",
                name="engine",
            )
        entity = env.scene[cfg.asset_name]
        self.classic = cfg.classic
        self.worlds = ClassicWorlds(env.sim, cfg.classic.kept, cfg.classic.frame_skip)
        self.names = tuple(entity.control_names)
        low, high = env.sim.model.actuator_ctrlrange.T
        self.limits = tuple(low.tolist()), tuple(high.tolist())
        self._write = control_writer(entity)
        self.classic.position(self.worlds)  # raises if it names an unknown body

    def apply(self, action: Any) -> None:
        """Write the controls."""
        worlds = self.worlds
        worlds.begin_step(action, self.classic.position(worlds))
        self._write(action)


def _worlds(env: Any) -> ClassicWorlds:
    """Return what the action term of an environment has resolved."""
    return env.actions["controls"].worlds


@either
def observation(env: Any, classic: Classic) -> Array:
    """Return the observation of a classic, side by side; shape (num_envs, k)."""
    parts = classic.observation(_worlds(env))
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


@either
def reward(env: Any, classic: Classic) -> tuple[Array, Infos]:
    """Return the reward of a classic, and its parts; shape (num_envs,) each."""
    return classic.reward(_worlds(env))


@either
def infos(env: Any, classic: Classic) -> Infos:
    """Return the infos that a classic has after a step and after a reset."""
    return classic.infos(_worlds(env))


@either
def is_over(env: Any, classic: Classic) -> Array:
    """Return the worlds that a classic terminates; shape (num_envs,)."""
    return classic.is_over(_worlds(env))


def start(env: Env, env_ids: Tensor, classic: Classic) -> None:
    """Draw the state at reset from each world's NumPy stream, and write it as drawn."""
    worlds, sim = _worlds(env), env.sim
    drawn, parameters = list[tuple[Array, Array]](), list[Parameters]()
    for _, rng in sim.numpy_rng.generators(env_ids):
        drawn.append(classic.draw(rng, worlds))
        parameters.append(classic.draw_parameters(rng, worlds))
    sim.write_field("qpos", np.array([qpos for qpos, _ in drawn]), env_ids)
    sim.write_field("qvel", np.array([qvel for _, qvel in drawn]), env_ids)
    sensors = [classic.sensors_at_reset(worlds, *state) for state in drawn]
    if sensors[0] is not None:
        worlds.first_sensors[env_ids.numpy()] = sensors
    for name in parameters[0]:
        element = parameters[0][name][0]
        values = np.array([[each[name][1]] for each in parameters])
        sim.write_parameter(name, values, [element], env_ids)


def env_cfg(name: str, max_episode_steps: int | None = -1, **options: Any) -> EnvCfg:
    """Return the configuration of one of Gymnasium's or dm_control's environments.

    Args:
        name: the name in Gymnasium, such as "Ant-v5"; or "dm-" with the domain and the
            task in dm_control, such as "dm-cheetah-run".
        max_episode_steps: steps after which an episode is truncated; -1: the published
            number; None: no limit.
        options: the keyword arguments of Gymnasium's environment, except those of its
            renderer.
    """
    kind = (CLASSICS | SUITE)[name]
    known = [field.name for field in dataclasses.fields(_class_of(kind))]
    for option in options:
        if option not in known:
            known = [*known, "max_episode_steps"]
            raise unknown_name(f"keyword argument of {name}", option, known)
    classic: Classic = kind(**options)
    model = classic.model()
    limit = classic.limit if max_episode_steps == -1 else max_episode_steps
    spec = model() if callable(model) else mujoco.MjSpec.from_file(str(model))
    params = {"classic": classic}
    ends = {"over": TerminationTermCfg(is_over, params=params)}
    if limit is not None:
        ends["time_out"] = TerminationTermCfg(time_out, time_out=True)
    state = ObservationTermCfg(observation, params=params)
    length_s = (limit or classic.limit) * classic.frame_skip * spec.option.timestep
    return EnvCfg(
        scene=SceneCfg(
            entities={"model": EntityCfg(model=model)}, timestep=None, ground=None
        ),
        decimation=classic.frame_skip,
        episode_length_s=length_s,
        observations={"policy": ObservationGroupCfg({"state": state})},
        actions={"controls": ClassicActionCfg(asset_name="model", classic=classic)},
        rewards={},
        reward=TermCfg(reward, params=params),
        info=TermCfg(infos, params=params),
        terminations=ends,
        events={"start": EventTermCfg(start, mode="reset", params=params)},
        dtype="float64",
    )


def _class_of(kind: Any) -> Any:
    """Return the class of a task, which may be given with other defaults."""
    return kind.func if isinstance(kind, functools.partial) else kind
