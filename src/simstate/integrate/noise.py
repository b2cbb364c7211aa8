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
        self._device = device
        self.draws = torch.zeros(num_envs, dtype=torch.int64, device=device)
        """How often each world has drawn; shape (num_envs,)."""
        self.seeds = torch.full_like(self.draws, seed % 2**63)
        """The seed of each world's stream: a restored world keeps that of its own."""
        self.rows = torch.arange(num_envs, dtype=torch.int64, device=device)
        """Which of that seed's streams it is; shape (num_envs,)."""

    def seed(self, seed: int, rows: Index) -> None:
        """Start the streams of these worlds anew, each that of its own number."""
        self.draws[rows] = 0
        self.seeds[rows] = seed % 2**63
        self.rows[rows] = torch.arange(len(self.rows), device=self._device)[rows]

    def draw(self, count: int, rows: Index | None = None) -> Tensor:
        """`count` standard normal numbers per world, float64; (num_envs, count)."""
        keys = torch.stack([self.seeds, self.draws], dim=1).cpu().numpy()
        streams = self.rows.cpu().numpy()
        uniform = np.empty((keys.shape[0], count))
        kinds, kind_of = np.unique(keys, axis=0, return_inverse=True)
        for kind, (seed, draw) in enumerate(kinds.tolist()):
            here = np.flatnonzero(kind_of.reshape(-1) == kind)
            uniform[here] = _uniform(seed, draw, streams[here], count)
        self.draws[slice(None) if rows is None else rows] += 1
        return torch.special.ndtri(torch.from_numpy(uniform)).to(self._device)


def _uniform(seed: int, draw: int, streams: np.ndarray, count: int) -> np.ndarray:
    """Numbers in (0, 1) by stream: Philox's counter is the stream, then the draw."""
    counters = -(-count // 4)  # one counter gives four numbers

    def block(first: int, length: int) -> np.ndarray:
        bits = np.random.Philox(key=seed, counter=[first * counters, draw, 0, 0])
        return bits.random_raw(length * counters * 4).reshape(length, -1)[:, :count]

    length = int(streams.max()) + 1
    if length <= 16 * streams.size:  # most of them: all in one go
        raw = block(0, length)[streams]
    else:
        raw = np.concatenate([block(int(stream), 1) for stream in streams])
    return ((raw >> np.uint64(11)) + 0.5) * 2.0**-53
