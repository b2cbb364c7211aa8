"""What is done to the columns of an observation group, term by term or all at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from simstate.env.observation_noise import ObservationNoise, UniformNoise


class Processed(Protocol):
    """A term, and what is done to its columns."""

    noise: ObservationNoise | None
    clip: tuple[float, float] | None
    scale: float | Tensor | None


class Columns(NamedTuple):
    """Noise, clip and scale of the columns of several terms side by side."""

    noisy: tuple[tuple[slice, slice], ...]
    """Columns with noise, and where their noise is among the numbers drawn."""
    noise_low: Tensor
    """The least noise of each of those; float64."""
    noise_high: Tensor
    clip: tuple[Tensor, Tensor] | None
    """Least and greatest value of each column, float32; None: no term has any."""
    scale: Tensor | None
    """The factor of each column, float32; None: all are 1."""

    @staticmethod
    def of(
        terms: Sequence[Processed], widths: Sequence[int], device: torch.device
    ) -> Columns:
        """Of terms with so many columns each, whose noise is evenly spread."""
        noisy: list[tuple[slice, slice]] = []
        spans: list[tuple[float, float]] = []
        clips: list[tuple[float, float]] = []
        scales: list[Tensor] = []
        first = 0
        for term, width in zip(terms, widths, strict=True):
            if isinstance(term.noise, UniformNoise):
                noisy.append(_joined(noisy, first, len(spans), width))
                spans += [(term.noise.low, term.noise.high)] * width
            clips += [term.clip or (-math.inf, math.inf)] * width
            scale = 1.0 if term.scale is None else term.scale
            scales.append(torch.as_tensor(scale, dtype=torch.float32).expand(width))
            first += width
        low, high = torch.tensor(spans, dtype=torch.float64).view(-1, 2).unbind(1)
        least, greatest = torch.tensor(clips, dtype=torch.float32).view(-1, 2).unbind(1)
        has_clip = any(term.clip is not None for term in terms)
        has_scale = any(term.scale is not None for term in terms)
        return Columns(
            tuple(noisy),
            low.to(device),
            high.to(device),
            (least.to(device), greatest.to(device)) if has_clip else None,
            torch.cat(scales).to(device) if has_scale else None,
        )


def _joined(
    noisy: list[tuple[slice, slice]], first: int, drawn: int, width: int
) -> tuple[slice, slice]:
    """The next columns with noise, together with those that end where they begin."""
    before, start = first, drawn
    if noisy and noisy[-1][0].stop == first:
        at, of = noisy.pop()
        before, start = at.start, of.start
    return slice(before, first + width), slice(start, drawn + width)
