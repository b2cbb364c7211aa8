"""HostRead: the one place of a step in which the host waits for the device.

A step needs to know on the host which worlds are due for a command, an event or a
reset, and whether something went wrong. All of it is read at once; everything else of a
step is queued on the device without waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from simstate.physics import Physics

MakeError = Callable[[], Exception]


class HostRead:
    """Collects masks and mistakes of a step, and brings them to the host together."""

    def __init__(self, physics: Physics) -> None:
        self._physics = physics
        self._mistakes: list[tuple[Tensor, MakeError]] = []

    def raise_if(self, mistake: Tensor, error: MakeError) -> None:
        """Raise an error at the next read if `mistake` holds, a boolean of no shape."""
        self._mistakes.append((mistake, error))

    def ids(self, masks: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The ids of the worlds in each mask; raises for mistakes so far."""
        mistakes, self._mistakes = self._mistakes, []
        flags = [flag.reshape(1) for flag, _ in mistakes]
        found = torch.cat([*masks.values(), *flags]).cpu().numpy()
        worlds = self._physics.num_envs
        for k, (_, error) in enumerate(mistakes):
            if found[len(masks) * worlds + k]:
                raise error()
        ids: dict[str, Tensor] = {}
        for k, name in enumerate(masks):
            (rows,) = found[k * worlds : (k + 1) * worlds].nonzero()
            ids[name] = torch.as_tensor(rows, device=self._physics.device)
        return ids

    def check(self) -> None:
        """Raise for mistakes so far, where looking costs nothing: on the host."""
        if self._mistakes and self._physics.device.type == "cpu":
            self.ids({})

    def forget(self) -> None:
        """Leave out mistakes of a step that was not finished."""
        self._mistakes.clear()
