"""Poses and velocities that are drawn from ranges by direction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.errors import unknown_name
from simstate.env.commands import Range

if TYPE_CHECKING:
    from simstate.env.env import Env

DIRECTIONS = ("x", "y", "z", "roll", "pitch", "yaw")
NO_RANGE: Mapping[str, Range] = {}


def drawn_directions(env: Env, env_ids: Tensor, ranges: Mapping[str, Range]) -> Tensor:
    """Draw x, y, z, roll, pitch and yaw, zero without a range; shape (n, 6)."""
    spans = spans_of(env, ranges, DIRECTIONS)
    return env.rng.uniform(env_ids, 6, spans[:, 0], spans[:, 1])


def spans_of(
    env: Env, ranges: Mapping[str, Range], directions: tuple[str, ...]
) -> Tensor:
    """Return minimum and maximum of each direction, float64; (directions, 2)."""
    for name in ranges:
        if name not in directions:
            raise unknown_name("direction of a range", name, directions)
    spans = [ranges.get(name, (0.0, 0.0)) for name in directions]
    return torch.tensor(spans, dtype=torch.float64, device=env.device)


def drawn_vectors(
    env: Env,
    env_ids: Tensor,
    count: int,
    ranges: Mapping[str, Range],
    directions: tuple[str, ...] = DIRECTIONS[:3],
) -> Tensor:
    """Draw vectors with ranges by three directions, float64; shape (n, count, 3)."""
    spans = spans_of(env, ranges, directions)
    shares = env.rng.uniform(env_ids, 3 * count).reshape(-1, count, 3)
    return spans[:, 0] + (spans[:, 1] - spans[:, 0]) * shares
