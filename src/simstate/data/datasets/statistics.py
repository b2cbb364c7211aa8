"""Statistics of a feature, over an episode or a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ColumnStatistics:
    """Minimum, maximum, mean and standard deviation of each component."""

    least: np.ndarray
    greatest: np.ndarray
    mean: np.ndarray
    square: np.ndarray
    """The mean of the squares."""
    count: int
    """Number of frames."""

    @staticmethod
    def of(values: np.ndarray) -> ColumnStatistics:
        """Return the statistics of values; shape (frames, components)."""
        x = values.astype(np.float64)
        return ColumnStatistics(x.min(0), x.max(0), x.mean(0), (x**2).mean(0), len(x))

    @staticmethod
    def of_pictures(pictures: np.ndarray) -> ColumnStatistics:
        """Return the statistics of uint8 colours as 0 … 1; (frames, H, W, 3).

        They are computed from histograms, without converting pictures to floats.
        """
        shades = np.arange(256) / 255.0
        channels = [pictures[..., k] for k in range(pictures.shape[-1])]
        shares = [np.bincount(c.ravel(), minlength=256) / c.size for c in channels]

        def each(values: list[float]) -> np.ndarray:
            return np.array(values).reshape(-1, 1, 1)  # channels first, as in torch

        return ColumnStatistics(
            each([float(shades[p > 0].min()) for p in shares]),
            each([float(shades[p > 0].max()) for p in shares]),
            each([float(p @ shades) for p in shares]),
            each([float(p @ shades**2) for p in shares]),
            len(pictures),
        )

    @staticmethod
    def joined(parts: Sequence[ColumnStatistics]) -> ColumnStatistics:
        """Return the statistics of all episodes together."""
        count = sum(part.count for part in parts)
        return ColumnStatistics(
            np.min([part.least for part in parts], axis=0),
            np.max([part.greatest for part in parts], axis=0),
            np.sum([part.count / count * part.mean for part in parts], axis=0),
            np.sum([part.count / count * part.square for part in parts], axis=0),
            count,
        )

    def to_dict(self) -> dict[str, list[float]]:
        """Return the statistics in the form of `meta/stats.json`."""
        variance = np.clip(self.square - self.mean**2, 0.0, None)
        return {
            "min": self.least.tolist(),
            "max": self.greatest.tolist(),
            "mean": self.mean.tolist(),
            "std": np.sqrt(variance).tolist(),
            "count": [self.count],
        }
