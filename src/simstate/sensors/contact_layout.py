"""Where MuJoCo's contact sensors have their numbers, and how those go together."""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.math.vector import norm
from simstate.scene.contacts import BuiltContacts

NET = {"count": 1, "force": 3, "torque": 3, "pos": 3}
"""The numbers of a net force, in their order, and how many there are of each."""
SINGLE = {
    "found": 1, "force": 3, "torque": 3, "dist": 1, "pos": 3, "normal": 3, "tangent": 3
}  # fmt: skip
"""The same for one contact."""


class ContactLayout:
    """The columns of sensordata that belong to the elements of one contact sensor."""

    def __init__(
        self, model: mujoco.MjModel, built: BuiltContacts, device: torch.device
    ) -> None:
        self.num_elements = len(built.names)
        self.strongest = built.cfg.strongest
        others = max(len(sensors) for sensors in built.net)
        self._net, self._is_net = _columns(
            model, built.net, others, sum(NET.values()), device
        )
        width = self.strongest * sum(SINGLE.values())
        self._single, self._is_single = _columns(
            model, built.single, others, width, device
        )
        self.others = others

    def net(self, sensordata: Tensor) -> dict[str, Tensor]:
        """Net forces against each other side; shapes (num_envs, E, others, …).

        MuJoCo's sign: by the named side, on the other. World axes.
        """
        shape = (-1, self.num_elements, self.others, sum(NET.values()))
        values = sensordata.index_select(1, self._net).view(shape) * self._is_net
        return _split(values, NET)

    def single(self, sensordata: Tensor) -> dict[str, Tensor]:
        """The strongest contacts of each element; shapes (num_envs, E, k, …).

        MuJoCo's sign: the normal points to the other side, forces act on it, along
        normal, tangent and their cross product.
        """
        width = sum(SINGLE.values())
        shape = (-1, self.num_elements, self.others, self.strongest, width)
        values = sensordata.index_select(1, self._single).view(shape)
        values = values * self._is_single[..., None]
        if self.others > 1:
            values = _take_strongest(values.flatten(2, 3), self.strongest)
        else:
            values = values[:, :, 0]
        return _split(values, SINGLE)


def _columns(
    model: mujoco.MjModel,
    sensors: tuple[tuple[str, ...], ...],
    others: int,
    width: int,
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """Columns of sensordata, one after the other, and 1.0 where there are such.

    Elements with fewer other sides than most have zeros in their place; the second has
    shape (E, others, 1).
    """
    ids = np.zeros((len(sensors), others, width), dtype=np.int64)
    there = np.zeros((len(sensors), others, 1), dtype=bool)
    for k, names in enumerate(sensors):
        for j, name in enumerate(names):
            ids[k, j] = int(model.sensor(name).adr[0]) + np.arange(width)
            there[k, j] = True
    flat = torch.as_tensor(ids.reshape(-1), device=device)
    return flat, torch.as_tensor(there, device=device)


def _take_strongest(values: Tensor, count: int) -> Tensor:
    """The contacts with the greatest force; (N, E, all, 17) → (N, E, count, 17)."""
    found, force = values[..., 0] > 0, norm(values[..., 1:4])[..., 0]
    order = torch.where(found, force, -1.0).topk(count, dim=2).indices
    return values.gather(2, order[..., None].expand(*order.shape, values.shape[-1]))


def _split(values: Tensor, widths: dict[str, int]) -> dict[str, Tensor]:
    """The numbers by name; those that are one have no dimension of their own."""
    found: dict[str, Tensor] = {}
    first = 0
    for name, width in widths.items():
        part = values[..., first : first + width]
        found[name] = part[..., 0] if width == 1 else part
        first += width
    return found
