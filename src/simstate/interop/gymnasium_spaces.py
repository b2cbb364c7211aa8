"""Gymnasium's spaces, observations and infos of a task."""

# Gymnasium leaves type parameters of its own classes open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Space
from torch import Tensor

from simstate.base.checks import number
from simstate.base.errors import unknown_name
from simstate.env import EndedEpisodes, Env
from simstate.env.observation_term import ObservationSpec

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Info: TypeAlias = "dict[str, Any]"


def action_space(env: Env, limit: float | None) -> Box:
    """Return the space of actions: ± `limit`; None: the terms' limits, or ± 1."""
    if limit is not None:
        number("action_limit", limit, more_than=0, finite=False)
        return Box(-limit, limit, (env.action_dim,), np.float32)
    low, high = list[float](), list[float]()
    for term in env.actions.values():
        lower, upper = term.limits or ([-1.0] * term.dim, [1.0] * term.dim)
        low += lower
        high += upper
    return Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)


def observation_space(env: Env, group: str | None) -> Space[Any]:
    """Return the space of one group's observations; None: a Dict of all groups."""
    spaces = {name: _space(spec) for name, spec in env.observation_specs.items()}
    if group is None:
        return Dict(spaces)
    if group not in spaces:
        raise unknown_name("observation group", group, spaces)
    return spaces[group]


def _space(spec: ObservationSpec | dict[str, ObservationSpec]) -> Space[Any]:
    """Return the space of a group: a Box, or a Dict of Boxes by term."""
    if isinstance(spec, dict):
        return Dict({name: _space(one) for name, one in spec.items()})
    kind: Any = torch.empty(0, dtype=spec.dtype).numpy().dtype.type
    return Box(spec.low, spec.high, spec.shape, kind)


def on_host(values: Any) -> Any:
    """Copy tensors, also in dictionaries, to NumPy arrays."""
    if isinstance(values, dict):
        each = cast("dict[str, Any]", values)
        return {name: on_host(one) for name, one in each.items()}
    return host_array(values).copy()


def row_of(observation: Any, world: int) -> Any:
    """Return the observation of one world."""
    if isinstance(observation, dict):
        each = cast("dict[str, Any]", observation)
        return {name: row_of(values, world) for name, values in each.items()}
    return observation[world]


def host_array(values: Tensor | Array) -> Array:
    """Return values as a NumPy array, without a copy if they are on the host."""
    return values if isinstance(values, np.ndarray) else values.cpu().numpy()


def add_infos(infos: Info, found: Info, mask: Array) -> None:
    """Add infos of some worlds, with the mask of worlds that have them."""
    if not found or not mask.any():
        return
    if mask.all():  # `found` is a copy already
        infos |= found
        infos |= {f"_{name}": mask.copy() for name in found}
        return
    for name, values in found.items():
        known = infos.get(name)
        if known is None:
            known = infos[name] = np.zeros_like(values)
            infos[f"_{name}"] = np.zeros(len(mask), dtype=bool)
        known[mask] = values[mask]
        infos[f"_{name}"] |= mask


def episode_end(episodes: EndedEpisodes, row: int) -> Info:
    """Return the infos of one ended episode."""
    kinds = [kind for kind, ended in episodes.kinds.items() if ended[row]]
    return {
        "return": float(episodes.returns[row]),
        "length": int(episodes.length[row]),
        "reason": episodes.reason(row),
        "kind": kinds[0],
        "rewards": {name: float(x[row]) for name, x in episodes.rewards.items()},
        "metrics": {name: float(x[row]) for name, x in episodes.metrics.items()},
    }


def infos_of(infos: Info, world: int) -> Info:
    """Return the infos of one world."""
    return {
        name: infos_of(cast("Info", x), world) if isinstance(x, dict) else x[world]
        for name, x in infos.items()
        if not name.startswith("_") and infos[f"_{name}"][world]
    }
