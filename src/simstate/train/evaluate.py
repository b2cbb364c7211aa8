"""How well a policy does: rewards, falls, and how far it is from its commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.env import Env
from simstate.env.commands import VelocityCommand

Act = Callable[[dict[str, Tensor]], Tensor]


@dataclass(frozen=True)
class Evaluation:
    """What came of some worlds; a world counts until it falls."""

    num_envs: int
    seconds: float
    """Simulated time of each world [s]."""
    reward: float
    """Mean reward per second."""
    falls: int
    """Worlds that were terminated: fallen, out of bounds, diverged."""
    errors: dict[str, float]
    """Mean error of each command, in its own unit; for a velocity |v* − v| in the
    plane [m/s], and under "…/forward" that along the robot's x alone."""

    @property
    def upright_share(self) -> float:
        """The share of worlds that never fell."""
        return 1.0 - self.falls / self.num_envs


def evaluate(env: Env, act: Act, seconds: float) -> Evaluation:
    """Run a policy from a reset on; the environment must not reset itself.

    A world that falls is left where it is. One whose time is up begins anew.
    """
    if env.auto_reset:
        raise InvalidInputError(
            "evaluate looks at worlds before they are reset: make the Env with "
            "auto_reset=False."
        )
    steps = round(seconds / env.step_dt)
    if steps < 1:
        raise InvalidInputError(
            f"seconds must be at least one step of {env.step_dt:g} s, got {seconds}."
        )
    seen, _ = env.reset()
    fallen = torch.zeros_like(env.terminated)
    counted = torch.zeros((), device=env.device)
    rewards = torch.zeros_like(counted)
    errors: dict[str, Tensor] = {}
    for _ in range(steps):
        asked = _forward_commands(env)
        before = {name: c.error_sum.clone() for name, c in env.commands.items()}
        seen, reward, terminated, truncated, _ = env.step(act(seen))
        standing = ~fallen
        found = {name: c.error_sum - before[name] for name, c in env.commands.items()}
        for name, forward in asked.items():
            found[f"{name}/forward"] = (forward - _forward_velocity(env, name)).abs()
        for name, error in found.items():
            total = errors.get(name, torch.zeros_like(counted))
            errors[name] = total + error[standing].sum()
        counted += standing.sum()
        rewards += reward[standing].sum()
        fallen |= terminated
        if bool(truncated.any()):
            seen, _ = env.reset(env_ids=truncated)
    return Evaluation(
        num_envs=env.num_envs,
        seconds=steps * env.step_dt,
        reward=float(rewards / counted) / env.step_dt,
        falls=int(fallen.sum()),
        errors={name: float(total / counted) for name, total in errors.items()},
    )


def _forward_commands(env: Env) -> dict[str, Tensor]:
    """The forward velocity that each velocity command asks for [m/s]; (num_envs,)."""
    return {
        name: command.command[:, 0].clone()
        for name, command in env.commands.items()
        if isinstance(command, VelocityCommand)
    }


def _forward_velocity(env: Env, command: str) -> Tensor:
    """Velocity along the root link's x [m/s]; shape (num_envs,)."""
    return env.commands[command].entity.data.root_link_lin_vel_b[:, 0]
