"""SoftActorCritic: an off-policy learner that needs few worlds and few cores.

Soft actor-critic (Haarnoja et al., 2018) with two critics and a learnt temperature, on
the experience of many worlds at once. Every sample is used several times, so that it
needs fewer environment steps than PPO, which pays off if physics is expensive.
"""

# rsl-rl comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from rsl_rl.models import MLPModel
from rsl_rl.modules import EmpiricalNormalization
from rsl_rl.utils import resolve_class, resolve_nn_activation
from torch import Tensor, nn

from simstate.base.errors import SnapshotError
from simstate.env import TrainCfg
from simstate.interop.rsl_rl import RslRlVecEnv, grouped
from simstate.train.checkpoint import Content

FIRST_TEMPERATURE = 0.1
FOLLOW = 0.01
"""Fraction by which the target critics move towards the critics in each step."""
ACTOR_EVERY = 2
"""Steps of the critics per step of the actor."""


class TwinValues(nn.Module):
    """Two perceptrons that estimate the value of an action, computed together."""

    def __init__(
        self, seen: int, actions: int, sizes: list[int], activation: str
    ) -> None:
        super().__init__()
        self.normaliser = EmpiricalNormalization(seen)
        ends = zip([seen + actions, *sizes], [*sizes, 1], strict=True)
        layers = [(nn.Linear(a, b), nn.Linear(a, b)) for a, b in ends]
        self.weights = nn.ParameterList(
            torch.stack([x.weight.T, y.weight.T]).detach().clone() for x, y in layers
        )
        self.biases = nn.ParameterList(
            torch.stack([x.bias, y.bias]).detach().clone()[:, None] for x, y in layers
        )
        self._activate = resolve_nn_activation(activation)

    def forward(self, seen: Tensor, action: Tensor) -> Tensor:
        """Return both estimates for normalised observations; shape (2, n)."""
        x = torch.cat([seen, action], 1).expand(2, -1, -1)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = torch.baddbmm(bias, x, weight)
            x = self._activate(nn.functional.layer_norm(x, x.shape[-1:]))
        return torch.baddbmm(self.biases[-1], x, self.weights[-1])[..., 0]


class ExperienceBuffer:
    """The latest steps of all worlds, a row each; the oldest are overwritten."""

    def __init__(self, capacity: int, widths: list[int], device: str) -> None:
        self._rows = torch.zeros(capacity, sum(widths), device=device)
        self._widths = widths
        self._next, self._count = 0, 0

    def add(self, *columns: Tensor) -> None:
        """Append the rows of one step; each (num_envs, width)."""
        rows = torch.cat(columns, 1)
        at = (torch.arange(len(rows)) + self._next) % len(self._rows)
        self._rows[at] = rows
        self._next = (self._next + len(rows)) % len(self._rows)
        self._count = min(self._count + len(rows), len(self._rows))

    def draw(self, count: int) -> tuple[Tensor, ...]:
        """Return the columns of random rows, with replacement; each (count, width)."""
        at = torch.randint(self._count, (count,), device=self._rows.device)
        return self._rows[at].split(self._widths, 1)

    def save(self) -> Content:
        """Return the rows for a checkpoint."""
        return {"rows": self._rows[: self._count], "next": self._next}

    def load(self, saved: Content) -> None:
        """Continue from the result of `save`."""
        rows: Tensor = saved["rows"]
        if rows.shape[1:] != self._rows.shape[1:] or len(rows) > len(self._rows):
            raise SnapshotError(
                f"The checkpoint has experience of shape {tuple(rows.shape)}, but this "
                f"run stores {tuple(self._rows.shape)}."
            )
        self._rows[: len(rows)] = rows
        self._next, self._count = saved["next"], len(rows)


class SoftActorCritic:
    """The learner, with the interface of rsl-rl's learners."""

    def __init__(
        self,
        worlds: RslRlVecEnv,
        cfg: TrainCfg,
        settings: dict[str, Any],
        device: str,
    ) -> None:
        self._cfg, self._num_envs = cfg, worlds.num_envs
        self._per_second = 1.0 / worlds.env.step_dt
        self._groups: dict[str, list[str]] = settings["obs_groups"]
        self.learning_rate = cfg.learning_rate
        self.desired_kl: float | None = None
        """Unused: the learning rate is fixed."""
        seen, actions = worlds.get_observations(), worlds.num_actions
        made, actor = resolve_class(settings["actor"])
        self.actor: MLPModel = made(seen, self._groups, "actor", actions, **actor)
        self.actor.to(device)
        judged = self._judged(seen).shape[1]
        critic = settings["critic"]
        sizes, activation = critic["hidden_dims"], critic["activation"]
        self.values = TwinValues(judged, actions, sizes, activation).to(device)
        self._targets = copy.deepcopy(self.values).requires_grad_(False)
        self._log_temperature = torch.tensor(
            math.log(FIRST_TEMPERATURE), device=device, requires_grad=True
        )
        self._optimisers = {
            name: torch.optim.Adam(parameters, lr=cfg.learning_rate, fused=True)
            for name, parameters in (
                ("actor", self.actor.parameters()),
                ("values", self.values.parameters()),
                ("temperature", [self._log_temperature]),
            )
        }
        self._steps = 0
        width = self._seen(seen).shape[1]
        self._replay = ExperienceBuffer(
            max(cfg.replay_size, worlds.num_envs),
            [width, judged, actions, 1, 1, width, judged],
            device,
        )
        self._before: tuple[Tensor, Tensor, Tensor] | None = None
        self._fresh: list[tuple[Tensor, Tensor]] = []
        """Observations since the last update, of actor and critics."""

    def _seen(self, observations: Any) -> Tensor:
        return torch.cat([observations[name] for name in self._groups["actor"]], 1)

    def _judged(self, observations: Any) -> Tensor:
        return torch.cat([observations[name] for name in self._groups["critic"]], 1)

    def act(self, obs: Any) -> Tensor:
        """Draw actions; shape (num_envs, actions)."""
        action: Tensor = self.actor(obs, stochastic_output=True)
        self._before = self._seen(obs), self._judged(obs), action
        return action

    def process_env_step(
        self, obs: Any, rewards: Tensor, dones: Tensor, extras: dict[str, Any]
    ) -> None:
        """Store a step of the worlds, with their observations before any reset."""
        assert self._before is not None
        seen, judged, action = self._before
        after = grouped(extras["final_observation"], self._num_envs).to(obs.device)
        continues = 1.0 - dones.float()
        if "time_outs" in extras:  # bootstrap from the value after a time-out
            continues = torch.maximum(continues, extras["time_outs"].float())
        self._fresh.append((seen, judged))
        self._replay.add(
            seen, judged, action, rewards[:, None] * self._per_second,
            continues[:, None], self._seen(after), self._judged(after),
        )  # fmt: skip

    def compute_returns(self, obs: Any) -> None:
        """Do nothing: values are learnt from single steps."""

    def update(self) -> dict[str, float]:
        """Take all steps of the optimisers; return the mean losses."""
        cfg = self._cfg
        steps = cfg.num_learning_epochs * cfg.num_mini_batches
        losses = torch.zeros(3)
        self._normalise()
        for _ in range(steps):
            seen, judged, action, reward, continues, next_seen, next_judged = (
                self._replay.draw(cfg.batch_size)
            )
            with torch.no_grad():
                judged = self.values.normaliser(judged)
                next_judged = self.values.normaliser(next_judged)
            after = next_seen, next_judged
            losses[0] += self._learn_values(judged, action, reward, continues, *after)
            if self._steps % ACTOR_EVERY == 0:
                losses[1:] += self._learn_actor(seen, judged)
            self._steps += 1
        value, actor, entropy = (losses / steps).tolist()
        share = 1.0 / ACTOR_EVERY
        return {
            "value": value,
            "actor": actor / share,
            "entropy": entropy / share,
            "temperature": float(self._log_temperature.detach().exp()),
        }

    def _normalise(self) -> None:
        """Update the normalisers with the observations since the last update."""
        if self._cfg.normalize_observations:
            seen, judged = (torch.cat(x) for x in zip(*self._fresh, strict=True))
            normaliser: Any = self.actor.obs_normalizer
            normaliser.update(seen)
            self.values.normaliser.update(judged)
        self._fresh.clear()

    def _draw(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Return random actions for observations, and their log-probabilities."""
        noise: Any = self.actor.distribution
        noise.update(self.actor.mlp(self.actor.obs_normalizer(seen)))
        return noise.draw()

    def _learn_values(
        self, judged: Tensor, action: Tensor, reward: Tensor, continues: Tensor,
        next_seen: Tensor, next_judged: Tensor,
    ) -> Tensor:  # fmt: skip
        """Take a step of the critics and their targets; return the loss."""
        with torch.no_grad():
            next_action, log_prob = self._draw(next_seen)
            value = self._targets(next_judged, next_action).amin(0)
            value = value - self._log_temperature.exp() * log_prob
            target = reward[:, 0] + self._cfg.gamma * continues[:, 0] * value
        loss = (self.values(judged, action) - target).square().mean(1).sum()
        self._step("values", loss)
        with torch.no_grad():
            pairs = zip(
                self._targets.parameters(), self.values.parameters(), strict=True
            )
            for followed, value in pairs:
                followed.lerp_(value, FOLLOW)
        return loss.detach()

    def _learn_actor(self, seen: Tensor, judged: Tensor) -> Tensor:
        """Take a step of actor and temperature; return the loss and the entropy."""
        action, log_prob = self._draw(seen)
        temperature = self._log_temperature.detach().exp()
        self.values.requires_grad_(False)
        loss = (temperature * log_prob - self.values(judged, action).amin(0)).mean()
        self._step("actor", loss)
        self.values.requires_grad_(True)
        excess = log_prob.detach().mean() - action.shape[1]
        self._step("temperature", -self._log_temperature * excess)
        return torch.stack([loss.detach(), -log_prob.detach().mean()]).cpu()

    def _step(self, name: str, loss: Tensor) -> None:
        optimiser = self._optimisers[name]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def train_mode(self) -> None:
        """Enable updates of the normalisers."""
        self.actor.train()
        self.values.train()

    def get_policy(self) -> MLPModel:
        """Return the actor."""
        return self.actor

    def save(self) -> Content:
        """Return networks and optimisers for a checkpoint."""
        return {
            "actor_state_dict": self.actor.state_dict(),
            "critic_state_dict": self.values.state_dict(),
            "target_state_dict": self._targets.state_dict(),
            "log_temperature": self._log_temperature.detach(),
            "optimizer_state_dicts": {
                name: each.state_dict() for name, each in self._optimisers.items()
            },
        }

    def load(self, saved: Content, parts: Content | None, strict: bool) -> None:
        """Load all of `save`, or the networks that `parts` names."""
        self.actor.load_state_dict(saved["actor_state_dict"], strict=strict)
        self.values.load_state_dict(saved["critic_state_dict"], strict=strict)
        targets = "critic_state_dict" if parts else "target_state_dict"
        self._targets.load_state_dict(saved[targets], strict=strict)
        if parts:
            return
        self._log_temperature.data.copy_(saved["log_temperature"])
        for name, each in self._optimisers.items():
            each.load_state_dict(saved["optimizer_state_dicts"][name])

    def save_experience(self) -> Content:
        """Return the stored steps of the worlds for a checkpoint."""
        return {"steps": self._steps, **self._replay.save()}

    def load_experience(self, saved: Content) -> None:
        """Continue from the result of `save_experience`."""
        self._steps = saved["steps"]
        self._replay.load(saved)
