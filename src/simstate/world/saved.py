"""Values that were saved: whether they fit the slots that are here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, SnapshotError, listed
from simstate.world.layout import all_finite
from simstate.world.registry import Registry
from simstate.world.slot import Owner, Slot

_NUMPY_FLOATS = (torch.float64, torch.float32)


def check_saved(
    registry: Registry,
    values: Mapping[str, Tensor],
    owners: Sequence[Owner],
    count: int,
) -> None:
    """Raise unless `put` can write these values, with `count` rows each."""
    unknown = [name for name in values if name not in registry.slots]
    missing = [
        slot.name
        for slot in registry.of(owners)
        if slot.name not in values and not slot.optional
    ]
    for what, names in (
        ("has slots that do not exist here", unknown),
        ("lacks slots that exist here", missing),
    ):
        if names:
            raise SnapshotError(
                f"The snapshot {what}: {listed(names)}. Use the same task, terms, "
                "integrator and processes, and create the same memory. Nothing was "
                "written.",
                name=names[0],
            )
    for name, value in values.items():
        slot = registry.slots[name]
        want = slot.shape if slot.shared else (count, *slot.shape)
        if tuple(value.shape) != want:
            raise SnapshotError(
                f"{name!r} was saved with shape {tuple(value.shape)}, here it is "
                f"{want}. Nothing was written.",
                name=name,
            )
        if _family(value.dtype) != _family(slot.tensor.dtype):
            raise SnapshotError(
                f"{name!r} was saved as {value.dtype}, here it is "
                f"{slot.tensor.dtype}. Nothing was written.",
                name=name,
            )
    for name, value in values.items():
        slot = registry.slots[name]
        _check_finite(slot, value, values.get("diverged"))
        _check_holds(slot, value)
        if slot.check is not None:
            try:
                slot.check(value, None, None)
            except InvalidInputError as error:
                raise SnapshotError(
                    f"{name!r} was saved with a value that it cannot have: {error} "
                    "Nothing was written.",
                    name=name,
                ) from error


def _check_finite(slot: Slot, value: Tensor, diverged: Tensor | None) -> None:
    """Raise at a number that no world can have, unless it is marked diverged."""
    if slot.shared or slot.kind == "memory" or not value.dtype.is_floating_point:
        return
    if value.dtype in (torch.float64, torch.float32) and all_finite(
        value.detach().cpu().numpy()
    ):
        return
    fine = ~value.isnan() if slot.kind == "parameter" else value.isfinite()
    if bool(fine.all()):
        return
    bad = ~fine.flatten(1).all(dim=1) if fine.ndim > 1 else ~fine
    if diverged is not None:
        bad &= ~diverged
    if bool(bad.any()):
        raise SnapshotError(
            f"{slot.name!r} was saved with a number that is not finite, in row "
            f"{int(bad.nonzero()[0])}, whose world is not marked as diverged. "
            "Nothing was written.",
            name=slot.name,
        )


def _check_holds(slot: Slot, value: Tensor) -> None:
    """Raise at a number that is too great for the slot's dtype."""
    dtype = slot.tensor.dtype
    if dtype == value.dtype:
        return
    there = value.to(dtype)
    if value.dtype.is_floating_point:
        lost = value.isfinite() & ~there.isfinite()
    else:
        lost = there.to(value.dtype) != value
    if bool(lost.any()):
        raise SnapshotError(
            f"{slot.name!r} was saved with {value[lost][0].item():g}, which "
            f"{dtype} cannot hold. Nothing was written.",
            name=slot.name,
        )


def _family(dtype: torch.dtype) -> str:
    if dtype == torch.bool or dtype.is_complex:
        return str(dtype)
    return "float" if dtype.is_floating_point else "int"
