"""Evaluation of a policy: rewards, successes, failures and command errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.env import Env
from simstate.env.commands import VelocityCommand
from simstate.env.groups import Observations

Act = Callable[[Observations], Tensor]


@dataclass(frozen=True)
class Evaluation:
    """Results of a policy; each world counts until it is terminated."""

    num_envs: int
    seconds: float
    """Simulated time of each world [s]."""
    reward: float
    """Mean reward per second."""
    failures: int
    """Number of worlds that a termination of kind "failure" ended: fallen, diverged."""
    successes: int
    """Number of worlds that a termination of kind "success" ended."""
    ends: dict[str, int]
    """Number of worlds that each termination term ended."""
    returns: dict[str, float]
    """Mean return of each reward term: its weighted sum over a world's time."""
    metrics: dict[str, float]
    """Mean of each metric over the episodes, including unfinished ones."""
    errors: dict[str, float]
    """Mean error of each command, in its unit; for a velocity |v* − v| in the plane
    [m/s], and as "…/forward" that along the robot's x axis only."""
    can_succeed: bool
    """True if the task has a termination of kind "success"."""

    @property
    def failure_rate(self) -> float:
        """Fraction of the worlds that failed."""
        return self.failures / self.num_envs

    @property
    def success_rate(self) -> float:
        """Fraction of the worlds that succeeded."""
        return self.successes / self.num_envs


def evaluate(env: Env, act: Act, seconds: float) -> Evaluation:
    """Reset the worlds and run a policy; `env` must have auto_reset=False.

    A terminated world is not reset and no longer counts. A truncated one is reset.
    """
    if env.auto_reset:
        raise InvalidInputError(
            "evaluate reads worlds before they are reset: create the Env with "
            "auto_reset=False.",
            name="auto_reset",
        )
    steps = round(seconds / env.step_dt)
    if steps < 1:
        raise InvalidInputError(
            f"seconds must be at least one step of {env.step_dt:g} s, got {seconds}.",
            name="seconds",
        )
    seen, _ = env.reset()
    running = torch.ones_like(env.terminated)
    totals = _Totals(env)
    for _ in range(steps):
        wanted = _forward_commands(env)
        totals.begin()
        seen, reward, terminated, truncated, _ = env.step(act(seen))
        totals.add(running, reward, wanted)
        ended = running & (terminated | truncated)
        if bool(ended.any()):
            totals.end(ended)
        running &= ~terminated
        if bool(truncated.any()):
            seen, _ = env.reset(env_ids=truncated)
    totals.end_metrics(running & (env.episode_length_buf > 0))
    return totals.evaluation(steps * env.step_dt)


class _Totals:
    """Sums over the steps and worlds of an evaluation."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._all = torch.arange(env.num_envs, device=env.device)
        self._counted = torch.zeros((), device=env.device)
        self._reward = torch.zeros_like(self._counted)
        self._errors: dict[str, Tensor] = {}
        self._returns: dict[str, Tensor] = {}
        self._ends = dict.fromkeys(env.ends.names, 0)
        self._kinds = {"failure": 0, "success": 0}
        self._metrics: dict[str, list[Tensor]] = {n: [] for n in env.metrics.names}

    def begin(self) -> None:
        """Record the sums before a step."""
        env = self._env
        self._error_sums = {n: c.error_sum.clone() for n, c in env.commands.items()}
        self._reward_sums = env.rewards.episode_sums(self._all)

    def add(self, running: Tensor, reward: Tensor, wanted: dict[str, Tensor]) -> None:
        """Add a step of the worlds that have not been terminated."""
        env = self._env
        errors = {
            name: command.error_sum - self._error_sums[name]
            for name, command in env.commands.items()
        }
        for name, forward in wanted.items():
            errors[f"{name}/forward"] = (forward - _forward_velocity(env, name)).abs()
        sums = env.rewards.episode_sums(self._all)
        parts = {name: sums[name] - self._reward_sums[name] for name in sums}
        for totals, found in ((self._errors, errors), (self._returns, parts)):
            for name, values in found.items():
                total = totals.get(name, torch.zeros_like(self._counted))
                totals[name] = total + values[running].sum()
        self._counted += running.sum()
        self._reward += reward[running].sum()

    def end(self, worlds: Tensor) -> None:
        """Count the ends of worlds by term and kind; bool, (num_envs,)."""
        ends = self._env.ends
        for name, column in zip(ends.names, ends.reasons.unbind(1), strict=True):
            self._ends[name] += int((column & worlds).sum())
        for kind in ("failure", "success"):
            self._kinds[kind] += int((ends.ended_by(kind) & worlds).sum())
        self.end_metrics(worlds)

    def end_metrics(self, worlds: Tensor) -> None:
        """Keep the metrics of the episodes of these worlds; bool, (num_envs,)."""
        for name, values in self._env.metrics.of(worlds.nonzero()[:, 0]).items():
            self._metrics[name].append(values)

    def evaluation(self, seconds: float) -> Evaluation:
        """Return the results."""
        env, counted = self._env, self._counted
        return Evaluation(
            num_envs=env.num_envs,
            seconds=seconds,
            reward=float(self._reward / counted) / env.step_dt,
            failures=self._kinds["failure"],
            successes=self._kinds["success"],
            ends=dict(self._ends),
            returns={n: float(x) / env.num_envs for n, x in self._returns.items()},
            metrics={n: float(torch.cat(x).mean()) for n, x in self._metrics.items()},
            errors={n: float(x / counted) for n, x in self._errors.items()},
            can_succeed="success" in env.ends.kinds,
        )


def _forward_commands(env: Env) -> dict[str, Tensor]:
    """Return the forward velocity of each velocity command [m/s]; (num_envs,)."""
    return {
        name: command.command[:, 0].clone()
        for name, command in env.commands.items()
        if isinstance(command, VelocityCommand)
    }


def _forward_velocity(env: Env, command: str) -> Tensor:
    """Return the velocity along the root link's x axis [m/s]; shape (num_envs,)."""
    return env.commands[command].entity.data.root_link_lin_vel_b[:, 0]
