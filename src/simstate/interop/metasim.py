"""MetaSim's interface of environments: lists of states in and out.

    env = MetaSimEnv(sim)  # a Simulation or another simulator
    env = MetaSimTaskEnv(Env(tasks.make_cfg("Arm-Reach"), …))  # or a task
    states, extra = env.reset()
    states, rewards, success, time_out, extra = env.step(actions)

An action is a dictionary for each robot with targets by joint name, for each world:
`[{"franka": {"dof_pos_target": {"joint1": 0.1, …}}}, …]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor

from simstate.base.checks import has_shape, whole_number
from simstate.base.errors import InvalidInputError, ShapeError, unknown_name
from simstate.base.ids import Ids
from simstate.entity.state_writes import TARGETS
from simstate.env import Env
from simstate.env.actions import JointAction
from simstate.simulation import Simulation
from simstate.simulators.protocol import Simulator
from simstate.state import State
from simstate.state.apply import States

Action: TypeAlias = "Mapping[str, Mapping[str, Mapping[str, float]]]"
"""Targets of one world: robot → "dof_pos_target" or similar → joint → value."""

_TARGET_OF = {kind: key for key, kind in TARGETS.items()}
"""MetaSim's names of the targets of each kind of action term."""

Extra: TypeAlias = "dict[str, Any]"

PerWorld: TypeAlias = "Callable[[Any], Tensor]"
"""Function of the simulator that returns a number or bool by world; (num_envs,)."""


class MetaSimEnv:
    """A simulator behind MetaSim's interface.

    Args:
        sim: a Simulation or another simulator; its reset state is the environment's.
        decimation: physics steps for each action.
        reward: the reward of each world; None: zero.
        success: mask of worlds that have succeeded; None: none.
        max_episode_steps: actions after which a world times out; None: never.
    """

    def __init__(
        self,
        sim: Simulator,
        decimation: int = 4,
        reward: PerWorld | None = None,
        success: PerWorld | None = None,
        max_episode_steps: int | None = None,
    ) -> None:
        whole_number("decimation", decimation, 1)
        if max_episode_steps is not None:
            whole_number("max_episode_steps", max_episode_steps, 1)
        self.sim = sim
        self.decimation = decimation
        self._reward = reward
        self._success = success
        self._limit = max_episode_steps
        self._steps = 0

    @property
    def num_envs(self) -> int:
        """The number of worlds."""
        return self.sim.num_envs

    def reset(self, init_states: States | None = None) -> tuple[list[State], Extra]:
        """Reset all worlds; complete or partial `init_states` override the state."""
        undo = _restorer(self.sim)
        self.sim.reset()
        if init_states is not None:
            try:
                self.sim.set_states(init_states)
            except Exception:
                undo()
                raise
        self._steps = 0
        return self._states(), {"time": self.sim.time.clone()}

    def step(
        self, actions: Sequence[Action]
    ) -> tuple[list[State], list[float], list[bool], list[bool], Extra]:
        """Apply an action in each world and advance by `decimation` steps."""
        self.sim.set_states(self._as_states(actions))
        self.sim.step(self.decimation)
        self._steps += 1
        late = self._limit is not None and self._steps >= self._limit
        return (
            self._states(),
            [float(x) for x in _of_worlds(self.sim, self._reward, "reward")],
            [bool(x) for x in _of_worlds(self.sim, self._success, "success")],
            [late] * self.num_envs,
            {"time": self.sim.time.clone()},
        )

    def _states(self) -> list[State]:
        return self.sim.get_states()

    def _as_states(self, actions: Sequence[Action]) -> list[State]:
        """Return the actions as states that contain only targets."""
        _check_count(actions, self.num_envs)
        for world, action in enumerate(actions):
            for robot, targets in action.items():
                for key in targets:
                    if key not in TARGETS:
                        kind = f"key in actions[{world}].{robot}:"
                        raise unknown_name(kind, key, TARGETS)
        return cast("list[State]", [{"robots": action} for action in actions])


class MetaSimTaskEnv:
    """A task behind MetaSim's interface, with its events, rewards and time limit.

    Targets of joints that the task drives are converted to columns of its action; those
    of other joints are written to the state. Joints that are not named keep theirs.
    Worlds whose episodes have ended continue until a reset.

    Args:
        env: the environment, made with auto_reset=False.
        success: mask of worlds that have succeeded; None: none.
    """

    def __init__(self, env: Env, success: PerWorld | None = None) -> None:
        if env.auto_reset:
            raise InvalidInputError(
                "MetaSim's step returns the states that ended an episode: create the "
                "Env with auto_reset=False.",
                name="auto_reset",
            )
        self.env = env
        self._success = success
        self._columns: dict[tuple[str, str], dict[str, int]] = {}
        """Column of each joint in the action, by robot and kind of target."""
        self._terms: list[tuple[slice, JointAction]] = []
        first = 0
        for term in env.actions.values():
            if isinstance(term, JointAction) and term.cfg.kind in _TARGET_OF:
                key = (term.entity.name, _TARGET_OF[term.cfg.kind])
                columns = self._columns.setdefault(key, {})
                columns |= {name: first + k for k, name in enumerate(term.names)}
                self._terms.append((slice(first, first + term.dim), term))
            first += term.dim

    @property
    def num_envs(self) -> int:
        """The number of worlds."""
        return self.env.num_envs

    def reset(
        self, init_states: States | None = None, env_ids: Ids = None
    ) -> tuple[list[State], Extra]:
        """Start an episode in some worlds, None: all; `init_states` override the state.

        Returns the states of all worlds, and extra with "observations", "log" and
        "time".
        """
        seen, extras = self.env.reset(env_ids=env_ids, init_states=init_states)
        return self._states_and_extra(seen, extras["log"])

    def step(
        self, actions: Sequence[Action]
    ) -> tuple[list[State], list[float], list[bool], list[bool], Extra]:
        """Apply an action in each world; extra["terminated"] marks failures."""
        action, others = self._as_action(actions)
        if any(others):
            self.env.sim.set_states(others)
        seen, reward, terminated, truncated, extras = self.env.step(action)
        success = _of_worlds(self.env.sim, self._success, "success")
        states, extra = self._states_and_extra(seen, extras["log"])
        extra["terminated"] = terminated
        return (
            states,
            [float(x) for x in reward],
            [bool(x) for x in success],
            [bool(x) for x in truncated],
            extra,
        )

    def _states_and_extra(
        self, observations: dict[str, Tensor], log: Extra
    ) -> tuple[list[State], Extra]:
        sim = self.env.sim
        details = {"observations": observations, "log": log, "time": sim.time.clone()}
        return sim.get_states(), details

    def _as_action(
        self, actions: Sequence[Action]
    ) -> tuple[Tensor, list[dict[str, Any]]]:
        """Return the task's action, (num_envs, action_dim), and other targets.

        Targets of joints that the task does not drive are states of each world.
        """
        _check_count(actions, self.num_envs)
        shape = self.env.action.shape
        wanted = torch.full(shape, torch.nan, dtype=self.env.sim.dtype)
        others: list[dict[str, Any]] = [{} for _ in actions]
        for world, action in enumerate(actions):
            for robot, targets in action.items():
                for key, values in targets.items():
                    columns = self._columns.get((robot, key), {})
                    for joint, value in values.items():
                        if joint in columns:
                            number = _finite(value, world, joint)
                            wanted[world, columns[joint]] = number
                    rest = {j: v for j, v in values.items() if j not in columns}
                    if rest or not columns:
                        robots = others[world].setdefault("robots", {})
                        robots.setdefault(robot, {})[key] = rest
        wanted = wanted.to(self.env.device)
        result = self.env.action.clone()
        for columns, term in self._terms:
            values = term.action_for(wanted[:, columns]).to(result.dtype)
            kept = wanted[:, columns].isnan()
            result[:, columns] = torch.where(kept, result[:, columns], values)
        return result, others


def _check_count(actions: Sequence[Action], num_envs: int) -> None:
    if len(actions) != num_envs:
        raise ShapeError(
            f"actions must have one entry for each of {num_envs} worlds, got "
            f"{len(actions)}. "
            "Nothing was written.",
            name="actions",
            shape=[len(actions)],
        )


def _finite(value: float, world: int, joint: str) -> float:
    if not math.isfinite(value):
        raise InvalidInputError(
            f"The target of {joint!r} in actions[{world}] must be finite, got {value}. "
            "Nothing was written.",
            name=joint,
            worlds=[world],
        )
    return value


def _restorer(sim: Simulator) -> Callable[[], None]:
    """Return a function that restores the present state: a snapshot's, or unified."""
    if isinstance(sim, Simulation):
        kept = sim.snapshot()
        return lambda: sim.restore(kept)
    states, time = sim.get_states(mode="tensor"), sim.time.clone()

    def undo() -> None:
        sim.set_states(states)
        sim.time.copy_(time)

    return undo


def _of_worlds(sim: Simulator, function: PerWorld | None, what: str) -> Tensor:
    """Return one value for each world, after a check of the shape."""
    if function is None:
        return torch.zeros(sim.num_envs)
    values = function(sim)
    has_shape(what, values, (sim.num_envs,))
    return values
