"""Columns of MuJoCo's contact sensors, and their combination."""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.math.vector import norm
from simstate.scene.contact_sensors import BuiltContacts

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
        self._net = _Columns(model, built.net, others, sum(NET.values()), device)
        width = self.strongest * sum(SINGLE.values())
        self._single = _Columns(model, built.single, others, width, device)
        self.others = others
        self._net_views: tuple[Tensor, dict[str, Tensor]] | None = None

    @property
    def net_sensors(self) -> np.ndarray:
        """MuJoCo's sensors of net forces, −1: none; (E, others)."""
        return self._net.sensors

    @property
    def single_sensors(self) -> np.ndarray:
        """MuJoCo's sensors of the strongest contacts; of the same shape."""
        return self._single.sensors

    @property
    def force_columns(self) -> np.ndarray:
        """First column of each force in sensordata; (E, others)."""
        return self._net.ids[..., 0] + NET["count"]

    def net(self, sensordata: Tensor) -> dict[str, Tensor]:
        """Net forces against each other side; shapes (num_envs, E, others, …).

        MuJoCo's sign: by the named side, on the other. World axes. They may be views,
        which are made once for a tensor.
        """
        if self._net_views is not None and self._net_views[0] is sensordata:
            return self._net_views[1]
        shape = (-1, self.num_elements, self.others, sum(NET.values()))
        with torch.inference_mode(False):
            parts = _split(self._net.read(sensordata).view(shape), NET)
        if self._net.are_side_by_side:
            self._net_views = (sensordata, parts)
        return parts

    def single(self, sensordata: Tensor) -> dict[str, Tensor]:
        """Return the strongest contacts of each element; shapes (num_envs, E, k, …).

        MuJoCo's sign: the normal points to the other side, forces act on it, along
        normal, tangent and their cross product. They may be views.
        """
        width = sum(SINGLE.values())
        shape = (-1, self.num_elements, self.others, self.strongest, width)
        values = self._single.read(sensordata).view(shape)
        if self.others > 1:
            values = _take_strongest(values.flatten(2, 3), self.strongest)
        else:
            values = values[:, :, 0]
        return _split(values, SINGLE)


class _Columns:
    """Columns of sensordata: for each element and other side, a block of equal width.

    Elements with fewer other sides than most have zeros in their place.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        sensors: tuple[tuple[str, ...], ...],
        others: int,
        width: int,
        device: torch.device,
    ) -> None:
        self.ids = np.zeros((len(sensors), others, width), dtype=np.int64)
        self.sensors = np.full((len(sensors), others), -1)
        for k, names in enumerate(sensors):
            for j, name in enumerate(names):
                sensor = model.sensor(name)
                self.sensors[k, j] = sensor.id
                self.ids[k, j] = int(sensor.adr[0]) + np.arange(width)
        flat = self.ids.ravel()
        self._whole: slice | None = None
        there = self.sensors >= 0
        if there.all() and flat.size and bool((np.diff(flat) == 1).all()):
            self._whole = slice(int(flat[0]), int(flat[-1]) + 1)
        self._index = torch.as_tensor(flat, device=device)
        mask = np.repeat(there, width)
        self._mask = torch.as_tensor(mask, device=device)

    @property
    def are_side_by_side(self) -> bool:
        """True if `read` returns a view."""
        return self._whole is not None

    def read(self, sensordata: Tensor) -> Tensor:
        """Their numbers, one after the other; a view where they lie side by side."""
        if self._whole is not None:
            return sensordata[:, self._whole]
        return sensordata.index_select(1, self._index) * self._mask


def _take_strongest(values: Tensor, count: int) -> Tensor:
    """Return the strongest contacts; (N, E, all, 17) → (N, E, count, 17)."""
    found, force = values[..., 0] > 0, norm(values[..., 1:4])[..., 0]
    order = torch.where(found, force, -1.0).topk(count, dim=2).indices
    return values.gather(2, order[..., None].expand(*order.shape, values.shape[-1]))


def _split(values: Tensor, widths: dict[str, int]) -> dict[str, Tensor]:
    """Return the numbers by name; scalars have no dimension."""
    found: dict[str, Tensor] = {}
    first = 0
    for name, width in widths.items():
        part = values[..., first : first + width]
        found[name] = part[..., 0] if width == 1 else part
        first += width
    return found
