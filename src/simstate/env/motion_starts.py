"""MotionStarts: starts of episodes in the motions that they track."""

from __future__ import annotations

import math
from typing import Literal, Protocol

import torch
from torch import Tensor

from simstate.world import Ledger

LONGEST_BIN_S = 1.0
"""The parts of a motion in which failures are counted are at most this long [s]."""
_EARLIER = (1.0, 0.8, 0.64)
"""Weight of a failure for starts in its own bin and in those before it."""


class StartCfg(Protocol):
    """The settings of the starts: fields of MotionCommandCfg."""

    start: tuple[float, float]
    sampling: Literal["uniform", "adaptive"]
    uniform_share: float
    failure_memory: int


class MotionStarts:
    """Starts in several motions, drawn evenly, or where episodes have failed.

    The motions are divided into bins. A bin is chosen by its weight, and all times in
    it are equally likely.
    """

    def __init__(
        self, duration: Tensor, cfg: StartCfg, ledger: Ledger, place: str
    ) -> None:
        counts = [max(1, math.ceil(float(d) / LONGEST_BIN_S)) for d in duration]
        device = duration.device
        number = torch.tensor(counts, device=device)
        self._clip = torch.arange(len(counts), device=device).repeat_interleave(number)
        self._first = number.cumsum(0) - number
        self._bins_per_s = number / duration
        """Number of bins of each motion per second [1/s]."""
        within = torch.arange(len(self._clip), device=device) - self._first[self._clip]
        width = 1.0 / self._bins_per_s[self._clip]
        low, high = (share * duration[self._clip] for share in cfg.start)
        self._begin = (within * width).maximum(low)
        self._length = (((within + 1) * width).minimum(high) - self._begin).clamp(min=0)
        weight = self._length
        if not bool(weight.any()):  # one time in each motion: `low` is within its bin
            weight = (within * width <= low) & (low < (within + 1) * width)
            weight |= (low >= duration[self._clip]) & (within + 1 == number[self._clip])
            self._begin = low
        self._uniform = weight / weight.sum()
        self._keep, self._share = 1.0 - 1.0 / cfg.failure_memory, cfg.uniform_share
        self.failures: Tensor | None = None
        if cfg.sampling == "adaptive":
            zeros = torch.zeros(len(self._clip), dtype=torch.float64)
            self.failures = ledger.shared(f"{place}/failures", zeros).tensor
        """Fraction of the last episodes that failed in each bin; None: not counted."""

    @property
    def probability(self) -> Tensor:
        """Probability of each bin, motion after motion; (bins,)."""
        if self.failures is None or not bool(self.failures.any()):
            return self._uniform
        failures = self.failures.to(self._uniform)
        near = torch.zeros_like(failures)
        for k, weight in enumerate(_EARLIER):
            later = failures[k:]
            same = self._clip[k:] == self._clip[: len(later)]
            near[: len(later)] += weight * torch.where(same, later, 0.0)
        near *= self._uniform
        total = near.sum()
        if not bool(total > 0.0):  # failures where no episode may start
            return self._uniform
        return self._share * self._uniform + (1.0 - self._share) * near / total

    def at(self, draws: Tensor) -> tuple[Tensor, Tensor]:
        """Return motions and times [s] for uniform draws in [0, 1); (n,) each."""
        upper = self.probability.cumsum(0)
        place = draws * upper[-1]
        chosen = torch.searchsorted(upper, place, right=True)
        # Rounding may lead beyond the last bin with a probability above zero.
        possible = self._uniform.nonzero().flatten()
        chosen = chosen.clamp(max=int(possible[-1]))
        probability = self.probability[chosen]
        share = ((place - upper[chosen]) / probability + 1.0).clamp(0.0, 1.0)
        time = self._begin[chosen] + share * self._length[chosen]
        return self._clip[chosen], time

    def record(self, clip: Tensor, time: Tensor, failed: Tensor) -> None:
        """Count the failures among episodes that have ended at these times."""
        if self.failures is None:
            return
        last = self._first.roll(-1) - 1
        last[-1] = len(self._clip) - 1
        bins = self._first[clip] + (time * self._bins_per_s[clip]).long()
        bins = bins.minimum(last[clip])[failed]
        counts = torch.bincount(bins, minlength=len(self._clip)).cpu()
        self.failures *= self._keep ** len(clip)
        self.failures += (1.0 - self._keep) * counts
