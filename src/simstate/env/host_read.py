"""HostRead: the one place of a step in which the host waits for the device.

A step needs to know on the host which worlds are due for a command, an event or a
reset, and whether something went wrong. All of it is read at once; everything else of a
step is queued on the device without waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from simstate.world.worlds import Worlds

MakeError = Callable[[], Exception]


class HostRead:
    """Collects masks and mistakes of a step, and brings them to the host together."""

    def __init__(self, parts: Worlds) -> None:
        self._worlds = parts
        self._mistakes: list[tuple[Tensor, MakeError]] = []

    def raise_if(self, mistake: Tensor, error: MakeError) -> None:
        """Raise an error at the next read if `mistake` holds, a boolean of no shape."""
        self._mistakes.append((mistake, error))

    def ids(self, masks: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The ids of the worlds in each mask; raises for mistakes so far."""
        mistakes, self._mistakes = self._mistakes, []
        flags = [flag.reshape(1) for flag, _ in mistakes]
        found = torch.cat([*masks.values(), *flags]).cpu().numpy()
        worlds = self._worlds.num_envs
        for k, (_, error) in enumerate(mistakes):
            if found[len(masks) * worlds + k]:
                raise error()
        ids: dict[str, Tensor] = {}
        for k, name in enumerate(masks):
            (rows,) = found[k * worlds : (k + 1) * worlds].nonzero()
            ids[name] = torch.as_tensor(rows, device=self._worlds.device)
        return ids

    def check(self) -> None:
        """Raise for mistakes so far, where looking costs nothing: on the host."""
        if self._mistakes and self._worlds.device.type == "cpu":
            self.ids({})

    def forget(self) -> None:
        """Leave out mistakes of a step that was not finished."""
        self._mistakes.clear()


def host_read_of(env: Any) -> HostRead:
    """Return what a step of an environment reads on the host, for its components."""
    return env._host_read
