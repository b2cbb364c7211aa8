"""Data shared by all blocks of the state in a step: sizes, weights, launches."""

# Warp comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import warp as wp
from torch import Tensor

from simstate.engine.tableau import Tableau
from simstate.engine.warp_start import initialise


class Launch:
    """A kernel with its arguments, prepared once and launched in microseconds."""

    def __init__(self, kernel: Any, count: int, inputs: Sequence[Any]) -> None:
        arrays = [x for x in inputs if isinstance(x, Tensor)]
        self._device = arrays[0].device
        initialise(self._device)
        self._tensors = arrays  # Warp borrows their memory
        self._command: Any = wp.launch(
            kernel,
            dim=count,
            inputs=[wp.from_torch(x) if isinstance(x, Tensor) else x for x in inputs],
            device=wp.device_from_torch(self._device),
            record_cmd=True,
        )

    def __call__(self) -> None:
        """Run the kernel on the tensors' current values."""
        if self._device.type == "cpu":
            self._command.launch()
        else:
            stream = torch.cuda.current_stream(self._device)
            self._command.launch(stream=wp.stream_from_torch(stream))


class Stages:
    """The step sizes of the worlds, and the weights of a tableau as tensors."""

    def __init__(self, tableau: Tableau, num_envs: int, device: torch.device) -> None:
        self.tableau = tableau
        self.num_envs = num_envs
        self.device = device
        self.h = torch.zeros(num_envs, dtype=torch.float64, device=device)
        """The step of each world [s]; a world with 0 does not move."""
        self._h32 = self.h.to(torch.float32)
        self.chosen = torch.ones(num_envs, dtype=torch.bool, device=device)
        """Mask of the worlds whose rates are recorded."""

    def set_steps(self, h: Tensor | float) -> None:
        """Set the step of every world [s]."""
        if isinstance(h, Tensor):
            self.h.copy_(h)
        else:
            self.h.fill_(h)
        self._h32.copy_(self.h)

    def steps(self, dtype: torch.dtype) -> Tensor:
        """Return the steps in the precision of a block [s]."""
        return self.h if dtype == torch.float64 else self._h32

    def weights(self, dtype: torch.dtype) -> list[Tensor]:
        """Return the rows of a, then b, one tensor each."""
        rows = [*self.tableau.a, self.tableau.b]
        return [torch.tensor(row, dtype=dtype, device=self.device) for row in rows]


def start(origin: Tensor, value: Tensor, chosen: Tensor | None) -> None:
    """Start the step of the chosen worlds at their current values (None: all)."""
    if chosen is None:
        origin.copy_(value)
    else:
        origin[chosen] = value[chosen]


def weighted(weights: Tensor, rates: Tensor) -> Tensor:
    """Return Σ weights · rates over the stages, the first dimension of `rates`."""
    return torch.tensordot(weights.to(rates.dtype), rates, dims=1)


def int_array(values: list[int], device: torch.device) -> Any:
    """Return integers as a Warp array on a device."""
    initialise(device)
    return wp.array(values, dtype=int, device=wp.device_from_torch(device))
