"""NoiseStream: the random increments of worlds, from their streams in the ledger."""

from __future__ import annotations

import torch
from torch import Tensor

from simstate.world.random import WorldRandom
from simstate.world.worlds import Worlds


class NoiseStream:
    """Standard normal samples for the worlds that move in a step."""

    def __init__(self, worlds: Worlds) -> None:
        self._rng: WorldRandom = worlds.rng
        self._num_envs = worlds.num_envs
        self._device = worlds.device

    def draw(self, count: int, env_ids: Tensor | None = None) -> Tensor:
        """Return `count` samples for each world, float64; shape (num_envs, count).

        The streams of worlds that are not in `env_ids` do not advance; they get zeros.
        """
        if env_ids is None:
            return self._rng.normal(slice(None), count)
        shape = (self._num_envs, count)
        numbers = torch.zeros(shape, dtype=torch.float64, device=self._device)
        numbers[env_ids] = self._rng.normal(env_ids, count)
        return numbers
