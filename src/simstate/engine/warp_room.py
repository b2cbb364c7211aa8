"""Contacts that MuJoCo Warp dropped because a buffer was full. Loads Warp.

Contacts of all worlds share one buffer; each world has a buffer of constraints.
What does not fit is dropped, and the step continues without it.

The host waits for the device once for all evaluations of a step, when a caller requests
the losses.
"""

# Warp and MuJoCo Warp come without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import torch
import warp as wp
from torch import Tensor

from simstate.base.errors import listed, warn

import mujoco_warp as mjw  # isort: skip

_Kind = mjw.OverflowType
_DROPPED = int(_Kind.NEFC | _Kind.NJMAX_NNZ | _Kind.CCD | _Kind.HFIELD | _Kind.NVMAX)
"""Kinds of overflow that Warp records in the worlds whose contacts or constraints it
drops. (An overflow of the common contact buffer is recorded in every world.)"""
_INACCURATE = {
    int(
        _Kind.EPA_HORIZON
    ): "the depth of a contact between convex shapes is inaccurate",
    int(_Kind.CONTACT_MATCH): "a contact sensor counts too few contacts",
    int(_Kind.TACTILE): "a touch grid detects too few geoms",
}
"""Other inaccuracies, which no setting of simstate can prevent."""

_POSITIONS = ("qpos", "mocap_pos", "mocap_quat")
_UNREAD = 16
"""Number of stored evaluations after which the host reads them."""


@dataclass(frozen=True)
class _Evaluation:
    """Record of one evaluation, from which dropped contacts can be found."""

    positions: dict[str, Tensor]
    counts: Tensor
    """Number of contacts, and of pairs of geoms that may touch, which use the same
    buffer; larger than its capacity if some were dropped."""
    worlds: Tensor
    """The world of each contact in the buffer."""


class Room:
    """Finds the worlds in which contacts or constraints were dropped.

    Args:
        model: the compiled scene.
        warp_model: the same model in MuJoCo Warp, with per-world parameters.
        data: the arrays of contacts and constraints.
    """

    def __init__(self, model: mujoco.MjModel, warp_model: Any, data: Any) -> None:
        self._model = model
        self._warp_model = warp_model
        self._data = data
        with torch.inference_mode(False):  # they are written later
            self._bits = _view(data.overflow)
            self._rows = _view(data.nefc)
            self._lost = torch.zeros_like(self._bits, dtype=torch.bool)
        self._unread: list[_Evaluation] = []
        self._is_well = True
        """True if nothing was dropped or inaccurate when the host last read the
        records."""
        self._most_contacts = 0

    def clear(self) -> None:
        """Reset the records."""
        self._bits.zero_()
        self._lost.zero_()
        self._unread.clear()
        self._is_well = True
        self._most_contacts = 0

    def positions(self) -> dict[str, Tensor]:
        """Return a copy of the positions that determine contacts, for `look`."""
        return {name: _view(getattr(self._data, name)).clone() for name in _POSITIONS}

    def look(self, positions: dict[str, Tensor]) -> None:
        """Record what was dropped in a pass that started at these positions.

        Overflows of a world's own buffers are detected on the device, those of the
        common buffer when the host reads the records.
        """
        data = self._data
        self._lost |= (self._bits & _DROPPED) != 0
        self._lost |= self._rows > data.njmax
        if self._warp_model.is_sparse:
            self._lost |= self._nonzeros() > data.njmax_nnz
        counts = torch.cat([_view(data.nacon)[:1], _view(data.ncollision)[:1]])
        worlds = _view(data.contact.worldid).clone()
        self._unread.append(_Evaluation(positions, counts, worlds))
        if len(self._unread) >= _UNREAD:
            self._read()

    @property
    def lost(self) -> Tensor:
        """Worlds in which something was dropped since `clear`; shape (num_envs,)."""
        self._read()
        return self._lost

    def _read(self) -> None:
        """Read all new records at once."""
        if not self._unread:
            return
        unread, self._unread = self._unread, []
        trouble = torch.stack([self._lost.any(), self._bits.any()]).to(torch.int32)
        totals = torch.cat([trouble, *(each.counts for each in unread)]).cpu().numpy()
        self._is_well &= not totals[:2].any()
        for each, counts in zip(unread, totals[2:].reshape(-1, 2), strict=True):
            if counts.max() > self._data.naconmax:
                self._is_well = False
                self._lost |= self._lost_contacts(each, 2 * int(counts.max()))

    def _nonzeros(self) -> Tensor:
        """Return the number of entries of the constraint Jacobian; (num_envs,)."""
        efc, rows = self._data.efc, self._rows.clamp(max=self._data.njmax)
        last = (rows - 1).clamp(min=0).to(torch.int64)[:, None]
        ends = _view(efc.J_rowadr).gather(1, last) + _view(efc.J_rownnz).gather(1, last)
        return torch.where(rows > 0, ends[:, 0], 0)

    def _lost_contacts(self, evaluation: _Evaluation, room: int) -> Tensor:
        """Return the mask of worlds that have more contacts in a larger buffer."""
        num_envs = self._data.nworld
        with wp.ScopedDevice(self._data.nacon.device):
            while True:
                roomy = mjw.make_data(
                    self._model, nworld=num_envs, naconmax=room, njmax=1
                )
                for name, values in evaluation.positions.items():
                    if values.numel():
                        _view(getattr(roomy, name)).copy_(values)
                mjw.fwd_kinematics(self._warp_model, roomy)
                mjw.collision(self._warp_model, roomy)
                contacts = int(roomy.nacon.numpy()[0])
                found = max(contacts, int(roomy.ncollision.numpy()[0]))
                if found <= room:
                    break
                room = 2 * found
        self._most_contacts = max(self._most_contacts, found)
        kept = min(int(evaluation.counts[0]), self._data.naconmax)
        all_worlds = _view(roomy.contact.worldid)[:contacts]
        counted = [
            torch.bincount(worlds, minlength=num_envs)
            for worlds in (all_worlds, evaluation.worlds[:kept])
        ]
        return counted[0] > counted[1]

    def remedy(self) -> str:
        """Describe the loss, and an engine with 1.5 times the required capacity."""
        contacts = max(self._most_contacts, self._data.naconmax) / self._data.nworld
        rows = max(int(self._rows.max()), self._data.njmax)
        return (
            "MuJoCo Warp's buffers were full, and it dropped contacts or constraints; "
            "increase them, for example engine=WarpCfg("
            f"contacts_per_world={math.ceil(1.5 * contacts)}, "
            f"constraints_per_world={math.ceil(1.5 * rows)})"
        )

    def report(self, env_ids: Tensor | None) -> bool:
        """Warn about what was dropped or is inaccurate in these worlds.

        Return True if anything was dropped.
        """
        self._read()
        if self._is_well:
            return False
        lost, bits = self._lost.cpu().numpy(), self._bits.cpu().numpy()
        if env_ids is not None:
            chosen = np.zeros_like(lost)
            chosen[env_ids.cpu().numpy()] = True
            lost, bits = lost & chosen, np.where(chosen, bits, 0)
        if lost.any():
            warn(f"{_in_worlds(lost)}: {self.remedy()}.")
        for kind, consequence in _INACCURATE.items():
            concerned = (bits & kind) != 0
            if concerned.any():
                warn(f"{_in_worlds(concerned)}: {consequence}.")
        return bool(lost.any())


def _in_worlds(mask: np.ndarray) -> str:
    """Return the start of a warning, with the number and ids of the worlds."""
    worlds = np.flatnonzero(mask)
    return f"In {len(worlds)} of {len(mask)} worlds ({listed(worlds, 10)})"


def _view(array: Any) -> Tensor:
    """Return a tensor on the memory of a Warp array."""
    return wp.to_torch(array, requires_grad=False)
