"""Estimate of the memory of a training run, before it is allocated."""

from __future__ import annotations

import math

import torch

from simstate.base.errors import InvalidInputError
from simstate.engine.memory_budget import free_memory, readable
from simstate.env import Env
from simstate.env.groups import flat
from simstate.train.run_cfg import RunCfg
from simstate.world.worlds import worlds_of

PROBED = 2
"""Number of worlds of the small environment that is measured."""
SELDOM_TOO_MUCH = 4096
"""Number of worlds up to which memory is not measured, because that takes time."""
COPIES = 2
"""Copies of a world's state, since a step can be rolled back."""
BATCHES = 2
"""Copies of the experience: in order and shuffled."""


def check_memory(cfg: RunCfg) -> None:
    """Raise if the worlds and the experience of a run do not fit into memory."""
    count = cfg.train.num_envs
    if count <= SELDOM_TOO_MUCH:
        return
    free = free_memory(torch.device(cfg.device))
    if free is None:
        return
    env = Env(cfg.env_cfg(), PROBED, engine=cfg.engine, device=cfg.device)
    each = bytes_per_world(env, cfg)
    if each * count > free:
        raise InvalidInputError(
            f"{count:,} worlds with {cfg.train.steps_per_env} steps of experience each "
            f"need about {readable(each * count)}, but {readable(free)} are free: "
            f"at most {int(free // each):,} worlds fit ({each / 1e3:.1f} kB each).",
            name="num_envs",
        )


def bytes_per_world(env: Env, cfg: RunCfg) -> int:
    """Return the memory of one world of a run: state, derived fields, experience."""
    internals = worlds_of(env.sim)
    slots = sum(
        slot.tensor.nbytes
        for slot in internals.ledger.of(("sim", "env"))
        if slot.tensor.ndim and slot.tensor.shape[0] == env.num_envs
    )
    fields = sum(field.nbytes for field in internals.engine.fields.values())
    seen = sum(
        math.prod(spec.shape) * spec.dtype.itemsize
        for spec in flat(env.observation_specs).values()
    )
    step = seen + 4 * (4 * env.action_dim + 6)
    experience = BATCHES * cfg.train.steps_per_env * step
    return (COPIES * slots + fields) // env.num_envs + experience
