"""The rows of a compiled scene that correspond to the rows of an entity's model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import mujoco
import numpy as np

from simstate.scene.model_fields import BLOCKS, KINDS, RowBlock

_WIDTHS = {"nq": np.array([7, 4, 1, 1]), "nv": np.array([6, 3, 1, 1])}
"""Number of rows of a joint, by its type."""
_DERIVED = (*_WIDTHS, "ntree", "nmocap")

UNOWNED = -2
"""Marks a row that belongs to no element of a model."""

_PLUGIN_USERS = {
    "nbody": "body_plugin", "ngeom": "geom_plugin",
    "nactuator": "actuator_plugin", "nsensor": "sensor_plugin",
}  # fmt: skip

Names = Mapping[str, Sequence[str]]
"""The names of a model's elements in the order of their ids, by size."""


def element_names(model: Any) -> dict[str, list[str]]:
    """Return the names of all elements of a compiled model, by size."""
    # Names are stored in this order, each terminated by a zero.
    names = bytes(model.names).decode(errors="replace").split("\0")[1:]
    found: dict[str, list[str]] = {}
    first = 0
    for size in KINDS:
        count = int(getattr(model, size))
        found[size] = names[first : first + count]
        first += count
    return found


def element_ids(model: Any) -> dict[str, dict[str, int]]:
    """Return the ids of all elements of a compiled model by name, by size."""
    return {
        size: {name: k for k, name in enumerate(names)}
        for size, names in element_names(model).items()
    }


class ModelRows:
    """Row numbers in a scene for each row of a model that several entities share.

    `rows[size]` has shape (entities, rows of the model); −1: the scene has no such row,
    UNOWNED: the row belongs to no element of the model.
    """

    def __init__(
        self,
        own: mujoco.MjModel,
        names: Names,
        scene: mujoco.MjModel,
        ids: Mapping[str, Mapping[str, int]],
        prefixes: Sequence[str],
    ) -> None:
        self.own: Any = own
        self.scene: Any = scene
        self.prefixes = tuple(prefixes)
        self._rows = {
            size: _named_rows(size, names[size], ids[size], prefixes) for size in KINDS
        }
        self._find_plugins()
        self._starts: dict[str, int | None] = {}

    def __getitem__(self, size: str) -> np.ndarray:
        if size not in self._rows:
            rows = self._find(size)
            rows[rows >= getattr(self.scene, size)] = -1
            self._rows[size] = rows
        return self._rows[size]

    def __contains__(self, size: str) -> bool:
        return size in self._rows or size in BLOCKS or size in _DERIVED

    def start(self, size: str) -> int | None:
        """Return the first row of one entity if its rows are consecutive, else None."""
        if size not in self._starts:
            self._starts[size] = self._find_start(size)
        return self._starts[size]

    def _find_plugins(self) -> None:
        """Find the plugin instances without names by the elements that use them."""
        rows = self._rows["nplugin"]
        for size, field in _PLUGIN_USERS.items() if rows.size else ():
            used = np.flatnonzero(getattr(self.own, field) >= 0)
            users, there = self[size][:, used], getattr(self.scene, field)
            if len(used) and len(there):
                rows[:, getattr(self.own, field)[used]] = np.where(
                    users < 0, -1, there[users]
                )

    def _find_start(self, size: str) -> int | None:
        count = int(getattr(self.own, size))
        if len(self.prefixes) != 1 or not count:
            return None
        if size in BLOCKS:
            shifts = [shift for block in BLOCKS[size] for shift in self._shifts(block)]
        else:
            shifts = [self[size][0] - np.arange(count)]
        if not shifts:
            return None
        start = int(shifts[0][0])
        consecutive = all((shift == start).all() for shift in shifts)
        inside = start >= 0 and start + count <= getattr(self.scene, size)
        return start if consecutive and inside else None

    def _shifts(self, block: RowBlock) -> Iterator[np.ndarray]:
        """Yield the distances from the blocks in the model to those in the scene."""
        own = np.asarray(getattr(self.own, block.address))
        there = np.asarray(getattr(self.scene, block.address))
        stored = own >= 0
        if block.length is not None:
            stored &= np.asarray(getattr(self.own, block.length)) > 0
        if stored.any() and len(there):
            start = self.start(block.owner)
            if start is not None:
                yield (there[start : start + len(own)] - own)[stored]
            else:
                owners = self[block.owner][0, stored]
                yield np.where(owners < 0, -1, there[owners] - own[stored])

    def _find(self, size: str) -> np.ndarray:
        rows = np.full((len(self.prefixes), int(getattr(self.own, size))), UNOWNED)
        if size in _WIDTHS:
            address = "jnt_qposadr" if size == "nq" else "jnt_dofadr"
            counts = _WIDTHS[size][self.own.jnt_type]
            self._fill(rows, "njnt", address, counts)
        elif size == "ntree":
            trees = self.scene.dof_treeid[self["nv"]]
            rows[:, self.own.dof_treeid] = np.where(self["nv"] < 0, -1, trees)
        elif size == "nmocap":
            carried = np.flatnonzero(self.own.body_mocapid >= 0)
            bodies = self["nbody"][:, carried]
            ids = np.where(bodies < 0, -1, self.scene.body_mocapid[bodies])
            rows[:, self.own.body_mocapid[carried]] = ids
        else:
            for block in BLOCKS[size]:
                counts = self.counts(block, rows.shape[1])
                self._fill(rows, block.owner, block.address, counts)
        return rows

    def counts(self, block: RowBlock, total: int) -> np.ndarray:
        """Return the numbers of rows of the blocks in the model."""
        if block.length is not None:
            return np.asarray(getattr(self.own, block.length))
        addresses = np.asarray(getattr(self.own, block.address))
        stored = np.unique(addresses[addresses >= 0])
        ends = np.append(stored, total)[np.searchsorted(stored, addresses, "right")]
        return np.where(addresses >= 0, ends - addresses, 0)

    def _fill(
        self, rows: np.ndarray, owner: str, address: str, counts: np.ndarray
    ) -> None:
        """Write the rows of the blocks of all elements of a kind."""
        own = np.asarray(getattr(self.own, address))
        there = np.asarray(getattr(self.scene, address))
        owned = np.flatnonzero((own >= 0) & (counts > 0))
        if not len(owned) or not len(there):
            return
        owners = self[owner][:, owned]
        starts = np.where(owners < 0, -1, there[owners])
        counts = counts[owned]
        firsts = np.repeat(np.cumsum(counts) - counts, counts)
        within = np.arange(len(firsts)) - firsts
        start = np.repeat(starts, counts, axis=1)
        columns = np.repeat(own[owned], counts) + within
        rows[:, columns] = np.where(start < 0, -1, start + within)


def _named_rows(
    size: str, names: Sequence[str], ids: Mapping[str, int], prefixes: Sequence[str]
) -> np.ndarray:
    rows = [
        [ids.get(prefix + name, -1) if name else -1 for name in names]
        for prefix in prefixes
    ]
    found = np.array(rows, dtype=np.int64).reshape(len(prefixes), len(names))
    if size == "nbody":
        found[:, 0] = 0  # the world is the scene's
    return found
