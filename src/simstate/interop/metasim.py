"""MetaSim's environment calls on a Simulation: lists of states in and out.

    env = MetaSimEnv(sim)
    states, extra = env.reset()
    states, rewards, success, time_out, extra = env.step(actions)

An action is a dictionary for each robot with targets by joint name, for each world:
`[{"franka": {"dof_pos_target": {"joint1": 0.1, …}}}, …]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor

from simstate.errors import InvalidInputError, ShapeError, unknown_name
from simstate.simulation import Simulation
from simstate.state import State, StateList

Action: TypeAlias = "Mapping[str, Mapping[str, Mapping[str, float]]]"
"""Targets of one world: robot → dof_pos_target or dof_vel_target → joint → value."""

Extra: TypeAlias = "dict[str, Any]"

PerWorld: TypeAlias = "Callable[[Simulation], Tensor]"
"""A number or a truth of each world, computed from the simulation; (num_envs,)."""


class MetaSimEnv:
    """A simulation behind MetaSim's calls.

    Args:
        sim: the simulation, whose reset state is the environment's.
        decimation: physics steps for each action.
        reward: the reward of each world; None: zero.
        success: which worlds have succeeded; None: none.
        max_episode_steps: actions after which a world times out; None: never.
    """

    def __init__(
        self,
        sim: Simulation,
        decimation: int = 4,
        reward: PerWorld | None = None,
        success: PerWorld | None = None,
        max_episode_steps: int | None = None,
    ) -> None:
        if decimation < 1:
            raise InvalidInputError(f"decimation must be ≥ 1, got {decimation}.")
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

    def reset(
        self, init_states: Sequence[State] | None = None
    ) -> tuple[StateList, Extra]:
        """Reset all worlds, then put them into `init_states`, whole or in part."""
        kept = self.sim.snapshot()
        self.sim.reset()
        if init_states is not None:
            try:
                self.sim.set_states(init_states)
            except Exception:
                self.sim.restore(kept)
                raise
        self._steps = 0
        return self._states(), {"time": self.sim.time.clone()}

    def step(
        self, actions: Sequence[Action]
    ) -> tuple[StateList, list[float], list[bool], list[bool], Extra]:
        """Apply an action in each world and advance by `decimation` steps."""
        self.sim.set_states(self._as_states(actions))
        self.sim.step(self.decimation)
        self._steps += 1
        late = self._limit is not None and self._steps >= self._limit
        return (
            self._states(),
            [float(x) for x in self._of_worlds(self._reward, "reward")],
            [bool(x) for x in self._of_worlds(self._success, "success")],
            [late] * self.num_envs,
            {"time": self.sim.time.clone()},
        )

    def _states(self) -> StateList:
        return cast("StateList", self.sim.get_states())

    def _as_states(self, actions: Sequence[Action]) -> list[State]:
        """The actions as states that hold targets alone."""
        if len(actions) != self.num_envs:
            raise ShapeError(
                f"actions must be {self.num_envs}, one for each world, got "
                f"{len(actions)}. Nothing was written."
            )
        allowed = ("dof_pos_target", "dof_vel_target")
        for world, action in enumerate(actions):
            for robot, targets in action.items():
                for key in targets:
                    if key not in allowed:
                        kind = f"key in actions[{world}].{robot}:"
                        raise unknown_name(kind, key, allowed)
        return cast("list[State]", [{"robots": action} for action in actions])

    def _of_worlds(self, function: PerWorld | None, what: str) -> Tensor:
        """One value for each world, checked."""
        if function is None:
            return torch.zeros(self.num_envs)
        values = function(self.sim)
        if values.shape != (self.num_envs,):
            raise ShapeError(
                f"The {what} function must return shape ({self.num_envs},), got "
                f"{tuple(values.shape)}."
            )
        return values
