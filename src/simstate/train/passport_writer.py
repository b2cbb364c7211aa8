"""The passport of a trained policy, from its environment and a run of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simstate.base.mujoco_version import LIBRARIES, installed_versions
from simstate.engine import OneTorchThread
from simstate.env import Env
from simstate.env.groups import flat
from simstate.train.checkpoint_policy import Policy
from simstate.train.passport_columns import (
    TermSource,
    action_columns,
    observation_columns,
    terms_of,
)
from simstate.train.policy_passport import (
    ACTION,
    PROOF_STEPS,
    Passport,
    PassportColumn,
)

_WORLDS, _STEPS = 16, 256
"""Worlds and steps of the run that a passport describes."""
_PROOF_BYTES = 2_000_000
"""Maximum size of a proof's pictures; larger ones have fewer steps."""


class _Run:
    """Steps of the trained policy in new worlds of its task, with noise."""

    def __init__(self, policy: Policy, env: Env) -> None:
        group = policy.run.train.actor_group
        specs = flat({group: env.observation_specs[group]})
        self.keys = [name for name in specs if name in env.observation_names]
        """Parts of the observations that have columns."""
        self.pictures = {
            k: tuple(x.shape) for k, x in specs.items() if len(x.shape) > 1
        }
        size = sum(int(np.prod(shape)) for shape in self.pictures.values())
        worlds, steps = (2, PROOF_STEPS) if size else (_WORLDS, _STEPS)
        made = Env(
            env.cfg, worlds, engine=policy.run.engine, device=env.device,
            seed=(policy.run.seed + 1) % 2**63,
        )  # fmt: skip
        acting = policy.in_env(made)
        sources = [TermSource(term, made) for term in terms_of(made, group)]
        inputs, actions = list[dict[str, Tensor]](), list[Tensor]()
        length = torch.zeros(worlds, dtype=torch.int64)
        with OneTorchThread():
            for k in range(steps):
                if k % 50 == 0:
                    for source in sources:
                        source.compare()
                length += (length == k) & (made.episode_length_buf.cpu() == k)
                action = acting(made.observations)
                inputs.append(self._inputs(flat({group: made.observations[group]})))
                actions.append(action.cpu())
                made.step(action)
        self.columns = list(observation_columns(made, group, sources))
        world, kept = int(length.argmax()), max(_PROOF_BYTES // (size or 1), 1)
        if policy.run.train.is_recurrent:  # its memory spans one episode
            kept = min(kept, int(length[world]))
        kept = min(kept, PROOF_STEPS)
        each = [{**inputs[k], "actions": actions[k]} for k in range(kept)]
        self.proof: Mapping[str, NDArray[Any]] = {
            name: np.stack([one[name][world].numpy() for one in each])
            for name in each[0]
        }
        self.actions = torch.cat(actions)
        none = torch.empty(worlds, 0)
        self.observations = torch.cat([x.get("obs", none) for x in inputs])

    def _inputs(self, seen: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the network's inputs by name."""
        found = {name: seen[name].cpu() for name in self.pictures}
        if self.keys:
            found["obs"] = torch.cat([seen[k] for k in self.keys], 1).cpu().float()
        return found


def make_passport(policy: Policy, env: Env) -> Passport:
    """Return the passport of a policy that was trained in this kind of environment."""
    run = _Run(policy, env)
    has_ranges = all(name in policy.seen for name in (*run.keys, ACTION))
    seen: dict[str, Tensor] = policy.seen if has_ranges else {}
    limits = [seen[name].cpu() for name in run.keys if seen]
    joints = {
        name: tuple(entity.joint_names)
        for name, entity in env.scene.items()
        if len(entity.joint_names)
    }
    return Passport(
        task=policy.run.task,
        seed=policy.run.seed,
        iterations=policy.iterations,
        engine=policy.run.engine,
        step_dt=env.step_dt,
        ranges_from="training" if has_ranges else "export",
        observations=tuple(
            _with_ranges(
                run.columns, run.observations, torch.cat(limits, 1) if limits else None
            )
        ),
        actions=tuple(_with_ranges(action_columns(env), run.actions, seen.get(ACTION))),
        pictures=run.pictures,
        joints=joints,
        versions=installed_versions((*LIBRARIES, "rsl-rl-lib")),
        proof=run.proof,
    )


def _with_ranges(
    columns: Iterable[PassportColumn], run: Tensor, limits: Tensor | None
) -> Iterator[PassportColumn]:
    """Yield columns with their ranges in training and statistics of a run [unit]."""
    limits = torch.stack(torch.aminmax(run, dim=0)) if limits is None else limits
    for k, one in enumerate(columns):
        values = one.value_of(run[:, k].double().numpy())
        span = sorted(one.value_of(limits[:, k].cpu().double().numpy()).tolist())
        yield dataclasses.replace(
            one, low=span[0], high=span[1], mean=float(values.mean()),
            std=float(values.std()),
        )  # fmt: skip
