"""Estimate of the memory of a training run, before it is allocated."""

from __future__ import annotations

import math
import os
from pathlib import Path

import torch

from simstate.base.errors import InvalidInputError
from simstate.env import Env
from simstate.env.groups import flat
from simstate.train.run_cfg import RunCfg
from simstate.world.worlds import worlds_of

PROBED = 2
"""Worlds of the small environment that is measured."""
SELDOM_TOO_MUCH = 4096
"""Number of worlds up to which nothing is measured, since that would take too long."""
COPIES = 2
"""Copies of a world's state: a step can be rolled back."""
BATCHES = 2
"""Copies of the experience: in order, and shuffled."""


def check_memory(cfg: RunCfg) -> None:
    """Raise if the worlds and the experience of a run do not fit into memory."""
    count = cfg.train.num_envs
    if count <= SELDOM_TOO_MUCH:
        return
    free = available_bytes(cfg.device)
    if free is None:
        return
    env = Env(cfg.env_cfg(), PROBED, engine=cfg.engine, device=cfg.device)
    each = bytes_per_world(env, cfg)
    if each * count > free:
        raise InvalidInputError(
            f"{count:,} worlds with {cfg.train.steps_per_env} steps of experience each "
            f"need about {_gb(each * count)}, and {_gb(free)} are free: "
            f"at most {int(free // each):,} worlds fit ({each / 1e3:.1f} kB each)."
        )


def bytes_per_world(env: Env, cfg: RunCfg) -> int:
    """Memory of one more world of a run: its state, derived fields, experience."""
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


def available_bytes(device: str) -> int | None:
    """Return the available memory of a device [bytes]; None if unknown."""
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info(device)[0]
    found = (_free_of_machine(), _free_of_group())
    known = [value for value in found if value is not None]
    return min(known) if known else None


def _free_of_machine() -> int | None:
    table = Path("/proc/meminfo")
    if table.is_file():
        for line in table.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not on every system
        return None


def _free_of_group() -> int | None:
    """Return the available memory of the container [bytes]."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text())
        return limit - int((group / "memory.current").read_text())
    except (OSError, ValueError):  # none, or "max"
        return None


def _gb(count: float) -> str:
    return f"{count / 1e9:,.1f} GB"
