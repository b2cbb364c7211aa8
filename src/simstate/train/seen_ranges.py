"""SeenRanges: least and largest value of each column during training."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


class SeenRanges:
    """Least and largest values of observations and actions, by name."""

    def __init__(self) -> None:
        self.ranges: dict[str, Tensor] = {}
        """Rows of least and of largest values; shape (2, columns)."""

    def add(self, values: Mapping[str, Tensor]) -> None:
        """Extend the ranges by values of shape (n, columns); others are left out."""
        for name, each in values.items():
            if each.ndim != 2:
                continue
            new = torch.stack(torch.aminmax(each, dim=0))
            old = self.ranges.get(name)
            if old is not None:
                new[0].clamp_(max=old[0])
                new[1].clamp_(min=old[1])
            self.ranges[name] = new
