"""Random increments: a stream of its own for each world, from one seed."""

# Torch's signatures of these two functions are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from simstate.ids import Index


class NoiseStream:
    """Standard normal numbers by world and draw, whatever the other worlds do.

    The numbers are a function of the seed, the world and how often it has drawn, so
    one world of a thousand gets what it would get alone.
    """

    def __init__(self, seed: int, num_envs: int, device: torch.device) -> None:
        self._seed = seed % 2**64  # torch takes negative seeds, Philox does not
        self._device = device
        self.draws = torch.zeros(num_envs, dtype=torch.int64, device=device)
        """How often each world has drawn; shape (num_envs,)."""

    def draw(self, count: int, rows: Index | None = None) -> Tensor:
        """`count` standard normal numbers per world, float64; (num_envs, count)."""
        draws = self.draws.cpu()
        num_envs = draws.shape[0]
        uniform = np.empty((num_envs, count))
        for draw in torch.unique(draws).tolist():
            here = (draws == draw).numpy()
            uniform[here] = self._uniform(draw, num_envs, count)[here]
        self.draws[slice(None) if rows is None else rows] += 1
        return torch.special.ndtri(torch.from_numpy(uniform)).to(self._device)

    def _uniform(self, draw: int, num_envs: int, count: int) -> np.ndarray:
        """Numbers in (0, 1): Philox's counter is the draw, then the world."""
        counters = -(-count // 4)  # one counter gives four numbers
        bits = np.random.Philox(key=self._seed, counter=[0, draw, 0, 0])
        raw = bits.random_raw(num_envs * counters * 4).reshape(num_envs, -1)
        return ((raw[:, :count] >> np.uint64(11)) + 0.5) * 2.0**-53
