"""Snapshot: everything that worlds need to continue exactly as they would have."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import torch
from torch import Tensor

from simstate.base.archive import (
    archive_bytes,
    archive_from,
    read_archive,
    write_archive,
)
from simstate.base.checks import as_path
from simstate.base.errors import (
    InvalidInputError,
    ShapeError,
    SimStateError,
    SnapshotError,
    listed,
    warn,
)
from simstate.base.ids import Selection
from simstate.base.notebook import html_summary
from simstate.engine import STATE_FIELDS
from simstate.state.fingerprint import (
    check_fingerprint,
    differences,
    simulated_fingerprint,
)
from simstate.world import Owner, Packed, adopt
from simstate.world.calls import Scope
from simstate.world.invalid_values import DESCRIBED_FIELDS, describe_element
from simstate.world.worlds import Worlds

FORMAT = "simstate snapshot 2"
_WRONG = (KeyError, IndexError, TypeError, AttributeError, ValueError)
"""Exceptions raised by contents of another kind than simstate writes."""


@dataclass(frozen=True)
class _Taken:
    """Source of a snapshot, from which header and slots are created when read."""

    values: Packed
    model: mujoco.MjModel
    columns: Mapping[str, slice]
    """The columns of each field of the state."""
    engine: str
    dtype: str
    timestep: float

    def header(self) -> dict[str, Any]:
        """Return the header, which shares nothing with those of other snapshots."""
        contracts = copy.deepcopy(dict(self.values.layout.contracts))
        for name, columns in self.columns.items():
            if name in DESCRIBED_FIELDS:
                contracts[name]["elements"] = [
                    describe_element(self.model, name, i)
                    for i in range(columns.stop - columns.start)
                ]
        return {
            "format": FORMAT,
            "engine": self.engine,
            "dtype": self.dtype,
            "mujoco": mujoco.__version__,
            "timestep": self.timestep,
            "slots": contracts,
            "model": copy.deepcopy(simulated_fingerprint(self.model)),
        }


@dataclass(frozen=True, repr=False)
class Snapshot:
    """The slots of n worlds, on the host, with a header that says what they are.

    One that was just taken holds whole chunks of memory. Its header and slots are made
    when they are first read, and from then on it is the same as one that was loaded.
    """

    header: dict[str, Any]
    """Format, engine, versions, time step, the contract of each slot, the model's
    fingerprint."""
    slots: dict[str, Tensor]
    """The values of each slot by name; shape (n, …), or that of a shared one."""

    @staticmethod
    def _take(taken: _Taken) -> Snapshot:
        """Return a snapshot whose header and slots are made when they are read."""
        snapshot = object.__new__(Snapshot)
        snapshot.__dict__["_taken"] = taken
        return snapshot

    @property
    def _packed(self) -> Packed | None:
        """The packed values, until header or slots are read."""
        taken: _Taken | None = self.__dict__.get("_taken")
        return None if taken is None else taken.values

    def __getattr__(self, name: str) -> Any:
        taken: _Taken | None = self.__dict__.get("_taken")
        if taken is None or name not in ("header", "slots"):
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        self.__dict__.update(header=taken.header(), slots=taken.values.unpack())
        self.__dict__.pop("_taken", None)
        return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        return {"header": self.header, "slots": self.slots}

    def __repr__(self) -> str:
        worlds = f"{self.num_envs} world{'s' * (self.num_envs != 1)}"
        at = "none"
        if self.time.numel():
            first, last = float(self.time.min()), float(self.time.max())
            at = f"{first:g}" if first == last else f"{first:g} to {last:g}"
        return (
            f"Snapshot({worlds}, time {at} s, {len(self.slots)} slots, "
            f"engine={self.header['engine']!r}, mujoco {self.header['mujoco']})"
        )

    def _repr_html_(self) -> str:
        contracts = self.header["slots"]
        rows = [
            (name, contracts[name]["owner"], "×".join(map(str, values.shape)),
             contracts[name]["unit"], str(values.dtype).removeprefix("torch."))
            for name, values in self.slots.items()
        ]  # fmt: skip
        head = ("slot", "owner", "shape", "unit", "dtype")
        return html_summary(repr(self), head, rows)

    @property
    def num_envs(self) -> int:
        """The number of worlds."""
        if self._packed is not None:
            return self._packed.count
        shape = self.slots["qpos"].shape
        return shape[0] if len(shape) else 0

    @property
    def time(self) -> Tensor:
        """Simulation time of each world [s]; shape (n,)."""
        return self.slots["time"]

    @property
    def state(self) -> Tensor:
        """State of the physics as rows of `sim.state`, a copy; shape (n, nstate)."""
        parts = [self.slots[name] for name in STATE_FIELDS]
        return torch.cat([part.reshape(self.num_envs, -1) for part in parts], dim=1)

    def save(self, path: str | Path) -> None:
        """Write one file, as a whole or not at all: a crash leaves the old one."""
        write_archive(as_path("path", path), self.header, self.slots)

    @staticmethod
    def load(path: str | Path) -> Snapshot:
        """Read a file that `save` wrote; one that is cut or altered is refused."""
        return Snapshot._of(path, *read_archive(as_path("path", path), (FORMAT,)))

    def to_bytes(self) -> bytes:
        """Return the bytes that `save` would write."""
        return bytes(archive_bytes(self.header, self.slots))

    @staticmethod
    def from_bytes(data: bytes, label: object = "a snapshot") -> Snapshot:
        """Return the snapshot of `to_bytes`; one that is altered is refused."""
        found = archive_from(io.BytesIO(data), label, (FORMAT,))
        return Snapshot._of(label, *found)

    @staticmethod
    def _of(path: object, header: dict[str, Any], slots: dict[str, Tensor]) -> Snapshot:
        """Return the snapshot of an archive, if all of it is there."""
        try:
            _add_later_fields(header, slots)
            _check_whole(header, slots)
        except _WRONG as error:
            raise SnapshotError(
                f"{str(path)!r} is not a snapshot as simstate writes them: {error!r}.",
                name=str(path),
            ) from error
        return Snapshot(header, slots)


_LATER = {"plastic": (0,)}
"""Fields of the state that earlier versions had none of, and their shape there."""


def _add_later_fields(header: dict[str, Any], slots: dict[str, Tensor]) -> None:
    """Add fields that did not exist when a snapshot was saved; they are empty."""
    for name, shape in _LATER.items():
        if name not in slots:
            slots[name] = slots["qpos"].new_empty((len(slots["qpos"]), *shape))
            header["slots"][name] = {"owner": "sim"}


def _check_whole(header: dict[str, Any], slots: dict[str, Tensor]) -> None:
    """Raise unless all is there that the use of a snapshot relies on."""
    for key in ("engine", "dtype", "mujoco", "timestep", "model"):
        header[key]
    check_fingerprint(header["model"])
    contracts: dict[str, Any] = header["slots"]
    unlike = [*(slots.keys() ^ contracts.keys()), *(set(STATE_FIELDS) - slots.keys())]
    if unlike:
        raise ValueError(
            f"header and contents disagree about {listed(sorted(map(str, unlike)))}"
        )
    count = len(slots["qpos"])
    for name, value in slots.items():
        if not isinstance(value, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            kind = type(value).__name__
            raise TypeError(f"{name} is of type {kind}, where a tensor belongs")
        contract = contracts[name]
        contract["owner"]
        labels = contract.get("elements")
        by_world = contract.get("shared") is not True
        if by_world and value.shape[:1] != (count,):
            raise ValueError(f"{name} has the shape {tuple(value.shape)}")
        if labels is not None and len(labels) != math.prod(value.shape[1:]):
            raise ValueError(
                f"{name} has the shape {tuple(value.shape)}, and names for "
                f"{len(labels)} elements of a world"
            )


def take_snapshot(
    worlds: Worlds, rows: Selection, owners: Sequence[Owner] = ("sim",)
) -> Snapshot:
    """Return a snapshot of the selected worlds: of the slots of some owners."""
    model = worlds.model
    simulated_fingerprint(model)  # of the model as it is now
    return Snapshot._take(  # pyright: ignore[reportPrivateUsage]
        _Taken(
            worlds.ledger.copies.copy(rows, owners),
            model,
            worlds.engine.columns,
            worlds.engine.name,
            str(worlds.dtype).removeprefix("torch."),
            float(model.opt.timestep),
        )
    )


def restore_snapshot(
    worlds: Worlds,
    snapshot: Snapshot,
    rows: Selection,
    owners: Sequence[Owner] = ("sim",),
    scopes: Sequence[str] = (),
) -> None:
    """Restore the selected worlds to a snapshot of the same model.

    `scopes` are what the names of slots begin with whose owners may not have asked for
    them yet: they are made as the snapshot describes them.
    """
    ledger = worlds.ledger
    packed = _packed(snapshot)
    if packed is not None and ledger.copies.can_put(packed, owners):
        _check_count(packed.count, rows)
        is_all = rows.count == worlds.num_envs
        put = ledger.copies.put_packed
        ledger.run(_scope(owners), "a restore", put, packed, rows, owners, is_all)
        return
    values = {
        name: value
        for name, value in _values_of(snapshot, owners).items()
        if not _is_of_absent_sensor(worlds, name)
    }
    _check_model(worlds, snapshot)
    _check_count(snapshot.num_envs, rows)
    contracts = snapshot.header["slots"]
    asked_later = [
        name
        for name in values
        if name not in ledger
        and name.startswith(tuple(scopes))
        and contracts[name].get("reset") is not None
    ]
    made_below = {
        *asked_later,
        *(name for name in values if _is_parameter(name) and name not in ledger),
    }
    here = {name: x for name, x in values.items() if name not in made_below}
    ledger.copies.check(here, owners, snapshot.num_envs)
    if made_below:
        _expand_parameters(worlds, values)
        for name in asked_later:
            adopt(ledger, name, contracts[name], values[name])
        ledger.copies.check(values, owners, snapshot.num_envs)
    is_all = rows.count == worlds.num_envs
    ledger.run(
        _scope(owners), "a restore", ledger.copies.put, values, rows, owners, is_all
    )


def _packed(snapshot: Snapshot) -> Packed | None:
    """Return what a snapshot holds that was taken and not looked at since."""
    if not isinstance(snapshot, Snapshot):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError(
            "restore takes what snapshot() gave, or Snapshot.load(path); got "
            f"{type(snapshot).__name__}."
        )
    return snapshot._packed  # pyright: ignore[reportPrivateUsage]


def _scope(owners: Sequence[Owner]) -> Scope:
    return "env" if "env" in owners else "sim"


def _check_count(count: int, rows: Selection) -> None:
    """Raise unless a snapshot of this many worlds fits the selected ones."""
    if count not in (rows.count, 1):
        raise ShapeError(
            f"The snapshot has {count} worlds, {rows.count} are selected: "
            "select as many, or restore a snapshot of one world into all of them. "
            "Nothing was written.",
            name="snapshot",
            shape=[count],
        )


def _is_of_absent_sensor(worlds: Worlds, name: str) -> bool:
    """Return True if a slot is the memory of a contact sensor not declared here.

    Sensors watch: no motion depends on what they remember.
    """
    parts = name.split("/")
    if parts[0] != "contacts" or len(parts) != 3:
        return False
    return "/".join([*parts[:2], "air_time"]) not in worlds.ledger


def _values_of(snapshot: Snapshot, owners: Sequence[Owner]) -> dict[str, Tensor]:
    """The slots of some owners; all that belongs to a simulation must be there."""
    try:
        _check_whole(snapshot.header, snapshot.slots)
    except _WRONG as error:
        raise SnapshotError(
            f"The snapshot is not whole: {error}. Nothing was written.", name="slots"
        ) from error
    return {
        name: value
        for name, value in snapshot.slots.items()
        if snapshot.header["slots"][name]["owner"] in owners
    }


def _check_model(worlds: Worlds, snapshot: Snapshot) -> None:
    """Raise unless the snapshot is one of this model."""
    different = differences(
        simulated_fingerprint(worlds.model), snapshot.header["model"]
    )
    if different:
        raise SnapshotError(
            "The snapshot is of another model. What differs: "
            + "; ".join(different)
            + ". Nothing was written.",
            name="model",
        )
    if snapshot.header["mujoco"] != mujoco.__version__:
        warn(
            f"The snapshot was taken with MuJoCo {snapshot.header['mujoco']}, this is "
            f"{mujoco.__version__}: what follows may differ in the last bits."
        )


def _is_parameter(name: str) -> bool:
    return name.startswith(("model/", "by_hand/"))


def _expand_parameters(worlds: Worlds, values: dict[str, Tensor]) -> None:
    """Expand the parameters that differ by world in the snapshot; values are kept.

    Constants of another engine, which this one does not have, are left to it.
    """
    for name in [name for name in values if name not in worlds.ledger]:
        if not _is_parameter(name):
            continue
        rest = name.partition("/")[2]
        try:
            worlds.parameters.expand(rest)
        except SimStateError as error:
            if rest not in worlds.engine.all_constants:
                raise SnapshotError(
                    f"The snapshot has {rest!r} by world, which this engine cannot: "
                    f"{error} Nothing was written.",
                    name=rest,
                ) from error
        if name not in worlds.ledger:
            del values[name]
