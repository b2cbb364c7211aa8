"""The comparison of a compiled scene with each file compiled separately.

`MjSpec.attach` silently drops what it cannot carry over. Therefore every row of every
array of an entity's model is looked up in the scene, by the names of elements, and
compared bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from simstate.scene.model_fields import (
    ADDRESSES,
    AT_START,
    BLOCKS,
    IDS,
    KINDS,
    SCENE_STRUCTURES,
    SIGNATURES,
    TYPED_IDS,
    WORLD_TOTALS,
    ModelArray,
    model_fields,
)
from simstate.scene.model_rows import UNOWNED, ModelRows, Names
from simstate.scene.placement import Placement, moves_with_placement

_ROUNDING = 1e-9
"""Relative tolerance for values that are computed in another order."""


class FileDifference(NamedTuple):
    """One value that differs between a scene and the file."""

    entity: str
    field: str
    element: str
    """The kind and the name of the element, or "" for a value of the model."""
    in_file: str
    in_scene: str


@dataclass(frozen=True)
class Requests:
    """The differences from its file that a configuration requests for an entity."""

    fields: Mapping[str, frozenset[int] | None] = field(
        default_factory=dict[str, "frozenset[int] | None"]
    )
    """Arrays that may differ, and the rows in which they may; None: in all."""
    dropped: frozenset[str] = frozenset()
    """The sizes of elements that may be missing."""
    alone: bool = False
    """True if the scene consists of this entity only, placed as in its file."""


class ArrayComparison:
    """The arrays of a model against a scene's, for all entities that use the model."""

    def __init__(
        self,
        rows: ModelRows,
        names: Names,
        requests: Requests,
        placements: Mapping[int, Placement] | None = None,
    ) -> None:
        self._rows = rows
        self._own, self._scene = rows.own, rows.scene
        self._names = names
        self._requests = requests
        self._placements = placements or {}
        self.compared = 0
        """Number of arrays that were compared."""

    def differences(self) -> Iterator[FileDifference]:
        """Yield the elements that are missing, then the arrays that differ."""
        missing = list(self._missing())
        yield from missing
        if missing:
            return
        for each in model_fields():
            found = self._compare(each)
            if found is not None:
                yield found

    def _missing(self) -> Iterator[FileDifference]:
        for size, kind in KINDS.items():
            if size in self._requests.dropped:
                continue
            for user, element in np.argwhere(self._rows[size] < 0):
                name = f"{kind} {self._names[size][element]!r}"
                yield FileDifference(self._entity(user), "", name, "present", "missing")

    def _entity(self, user: int) -> str:
        return self._rows.prefixes[user].removesuffix("/")

    def _compare(self, each: ModelArray) -> FileDifference | None:
        """Return the first difference of an array; None if it has none."""
        own = _array(self._own, each.name)
        if not own.size or (each.rows not in self._rows and not self._requests.alone):
            return None
        if each.name in SCENE_STRUCTURES and not self._requests.alone:
            return None
        allowed = self._requests.fields.get(each.name, frozenset())
        if allowed is None:
            return None
        self.compared += 1
        scene = _array(self._scene, each.name)
        if each.rows not in self._rows:
            return None if _equal(own, scene) else self._scalar(each, own, scene)
        if not scene.size:
            return None  # all of its elements are dropped
        expected = self._translated(each.name, own)
        if self._consecutive(each, expected, scene):
            return None
        return self._by_rows(each, expected, scene, allowed)

    def _consecutive(
        self, each: ModelArray, expected: np.ndarray, scene: np.ndarray
    ) -> bool:
        """Return True if an entity's rows are consecutive and equal bit for bit."""
        start = None if each.columns else self._rows.start(each.rows)
        if start is None or expected.shape[2:] != scene.shape[1:]:
            return False
        return _equal(expected[0], scene[start : start + expected.shape[1]])

    def _by_rows(
        self,
        each: ModelArray,
        expected: np.ndarray,
        scene: np.ndarray,
        allowed: frozenset[int],
    ) -> FileDifference | None:
        """Compare row by row, except for rows that may differ."""
        rows = self._rows[each.rows]
        found = self._looked_up(each, rows, scene)
        if expected.ndim == 3:
            found = found[:, :, : expected.shape[2]]  # user data may be wider
        expected = np.broadcast_to(expected, found.shape)
        same = self._same(each, expected, found)
        ignored = rows < 0 if self._requests.dropped else rows == UNOWNED
        same &= _as_columns(rows >= 0, same)
        same |= _as_columns(ignored, same)
        if allowed:
            same[:, sorted(allowed)] = True
        if each.name in WORLD_TOTALS and not self._requests.alone:
            same[:, self._of_world(each)] = True
        if same.all():
            return None
        for user, placement in self._placements.items():
            if moves_with_placement(each.name) and not same[user].all():
                same[user] |= placement.explains(
                    each.name, self._own, expected[user], found[user]
                )
        if same.all():
            return None
        user, row = np.argwhere(~same)[0][:2]
        return FileDifference(
            self._entity(user),
            each.name,
            self._owner(each.rows, int(row)),
            str(expected[user, row]),
            str(found[user, row]),
        )

    def _looked_up(
        self, each: ModelArray, rows: np.ndarray, scene: np.ndarray
    ) -> np.ndarray:
        """Return the scene's values of all rows; shape (entities, rows, …)."""
        found = scene[rows]
        if not each.columns:
            return found
        columns = self._rows[each.columns]
        if each.width > 1:
            columns = columns[..., None] * each.width + np.arange(each.width)
            columns = columns.reshape(len(columns), -1)
        picked = np.take_along_axis(found, columns[:, None, :], 2)
        own = _array(self._own, each.name)[None]
        return np.where(columns[:, None, :] < 0, own, picked)

    def _same(
        self, each: ModelArray, expected: np.ndarray, found: np.ndarray
    ) -> np.ndarray:
        if each.name in ADDRESSES and not self._requests.alone:
            return (expected < 0) == (found < 0)
        # A zero may change its sign when MuJoCo composes frames.
        same = (_bits(expected) == _bits(found)) | (expected == found)
        if each.name in AT_START and not self._requests.alone:
            same |= np.isclose(expected, found, rtol=_ROUNDING, atol=0.0)
        return same

    def _translated(self, name: str, own: np.ndarray) -> np.ndarray:
        """Return a model's values with the scene's ids; (entities or 1, rows, …)."""
        if name in IDS and name not in ADDRESSES:
            return _to_scene(own, self._rows[IDS[name]])
        if name in SIGNATURES:
            bodies = self._rows["nbody"]
            first, second = _to_scene(own >> 16, bodies), _to_scene(own & 65535, bodies)
            return (first << 16) | second
        if name == "bvh_nodeid":
            return self._translated_leaves(own)
        if name not in TYPED_IDS:
            return own[None]
        kinds, sizes = TYPED_IDS[name]
        types = (
            getattr(self._own, kinds) if isinstance(kinds, str) else kinds(self._own)
        )
        values = np.repeat(own[None], len(self._rows.prefixes), axis=0)
        for kind in np.unique(types):
            size = sizes.get(int(kind))
            if size is not None:
                at = types == kind
                values[:, at] = _to_scene(own[at].astype(int), self._rows[size])
        return values

    def _translated_leaves(self, own: np.ndarray) -> np.ndarray:
        """Return the leaves of bounding volume trees; those of bodies are geoms."""
        values = np.repeat(own[None], len(self._rows.prefixes), axis=0)
        of_bodies = self._owners("nbvh", 0) >= 0
        values[:, of_bodies] = _to_scene(own[of_bodies], self._rows["ngeom"])
        return values

    def _of_world(self, each: ModelArray) -> np.ndarray:
        """Return which rows of an array belong to the world body."""
        if each.rows == "nbody":
            return np.arange(int(getattr(self._own, each.rows))) == 0
        if each.rows in ("ncam", "nlight"):
            return getattr(self._own, f"{each.rows[1:]}_bodyid") == 0
        return self._owners(each.rows, 0) == 0

    def _owners(self, size: str, k: int) -> np.ndarray:
        """Return the element that owns each row by a block; −1: of another block."""
        block = BLOCKS[size][k]
        owners = np.full(int(getattr(self._own, size)), -1)
        addresses = np.asarray(getattr(self._own, block.address))
        counts = self._rows.counts(block, len(owners))
        for element in np.flatnonzero((addresses >= 0) & (counts > 0)):
            first = addresses[element]
            owners[first : first + counts[element]] = element
        return owners

    def _owner(self, size: str, row: int) -> str:
        """Return the kind and the name of the element that a row belongs to."""
        if size in KINDS:
            return f"{KINDS[size]} {self._names[size][row]!r}"
        if size in BLOCKS:
            for k, block in enumerate(BLOCKS[size]):
                owner = int(self._owners(size, k)[row])
                if owner >= 0:
                    return self._owner(block.owner, owner)
        if size == "nv":
            return self._owner("njnt", int(self._own.dof_jntid[row]))
        if size == "nq":
            joint = np.searchsorted(self._own.jnt_qposadr, row, "right") - 1
            return self._owner("njnt", int(joint))
        return f"row {row}"

    def _scalar(
        self, each: ModelArray, own: np.ndarray, scene: np.ndarray
    ) -> FileDifference:
        return FileDifference(
            self._entity(0), each.name, "", _shown(own), _shown(scene)
        )


def _array(model: Any, name: str) -> np.ndarray:
    value = getattr(model, name)
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    return np.asarray(value)


def _bits(values: np.ndarray) -> np.ndarray:
    """Return floating-point values as integers, to compare them bit for bit."""
    if values.dtype.kind != "f":
        return values
    return np.ascontiguousarray(values).view(f"u{values.itemsize}")


def _equal(one: np.ndarray, two: np.ndarray) -> bool:
    """Return True if two arrays are equal bit for bit."""
    if one.shape != two.shape:
        return False
    if one.dtype != two.dtype:
        return bool((one == two).all())
    if one.nbytes < 4096:
        return one.tobytes() == two.tobytes()
    one, two = (np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in (one, two))
    whole = len(one) // 8 * 8
    same = (one[:whole].view(np.uint64) == two[:whole].view(np.uint64)).all()
    return bool(same) and one[whole:].tobytes() == two[whole:].tobytes()


def _to_scene(ids: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the scene's ids of a model's ids; negative ones are unchanged."""
    if not rows.shape[1]:
        return ids[None]
    return np.where(ids < 0, ids, rows[:, np.clip(ids, 0, rows.shape[1] - 1)])


def _as_columns(rows: np.ndarray, like: np.ndarray) -> np.ndarray:
    return rows.reshape(rows.shape + (1,) * (like.ndim - rows.ndim))


def _shown(values: np.ndarray) -> str:
    return str(values.tolist()) if values.size <= 8 else f"{values.size} values"
