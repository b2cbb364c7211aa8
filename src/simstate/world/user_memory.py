"""Memory of user code: what `sim.memory` and `env.memory` return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from simstate.base.checks import one_of, whole_number
from simstate.base.errors import InvalidInputError, SnapshotError
from simstate.engine import Stage
from simstate.world.ledger import Ledger
from simstate.world.registry import reset_rule
from simstate.world.slot import Owner, Reset, Slot, rows_for

DTYPES = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
)
"""Dtypes of a slot: those that NumPy also has."""
StageName: TypeAlias = Literal["position", "velocity", "acceleration"]
"""The first stage that depends on a value."""


def user_memory(
    ledger: Ledger,
    owner: Owner,
    place: str,
    name: str,
    shape: Sequence[int],
    dtype: torch.dtype,
    reset: Reset,
    stage_name: StageName | None,
    unit: str,
    axes: str,
    shared: bool,
) -> Tensor:
    """Return the tensor of the slot `place/name`, made by the first call."""
    stage = None
    if stage_name is not None:
        one_of("stage", stage_name, get_args(StageName))
        stage = Stage[stage_name.upper()]
    if ledger.open:
        ledger.calls.recover()
    size = _check(name, shape, dtype)
    full = f"{place}/{name}"
    if full not in ledger:
        if shared:
            return _make_shared(ledger, owner, full, size, dtype, reset, unit).tensor
        return ledger.memory(
            full, size, dtype, reset, owner=owner, stage=stage, moves=owner == "sim",
            optional=bool(ledger.open), users_own=True, unit=unit, axes=axes,
        ).tensor  # fmt: skip
    slot = ledger[full]
    known = (slot.shape, slot.tensor.dtype, slot.stage, slot.shared)
    if known != (size, dtype, stage, shared):
        where, then = "There is a memory {} already", "Give it another name."
        if slot.from_snapshot:
            where = "The snapshot that was restored has a memory {}"
            then = "It is of another version of this code: make a new environment."
        raise InvalidInputError(
            f"{where.format(repr(name))}, with shape {slot.shape} and "
            f"{slot.tensor.dtype}; asked for is shape {size} and {dtype}, or another "
            f"stage or sharing. {then}",
            name=name,
            shape=size,
        )
    if slot.from_snapshot:
        _declare(ledger, slot, reset, unit, axes)
    if slot.tensor.requires_grad:  # a slot holds numbers
        slot.tensor.detach_()
    return slot.tensor


def adopt(
    ledger: Ledger, name: str, contract: Mapping[str, object], value: Tensor
) -> Slot:
    """Return a slot for a value of a snapshot that its owner has not requested yet.

    A function that asks for memory in every step has none before the first. The size
    is the value's own, whatever the contract says of it.
    """
    shared = contract.get("shared") is True
    if value.dtype not in DTYPES or (value.ndim < 1 and not shared):
        raise SnapshotError(
            f"{name!r} was saved as {value.dtype} of shape {tuple(value.shape)}, which "
            "no memory has. Nothing was written.",
            name=name,
        )
    if shared:
        zeros = torch.zeros_like(value, device="cpu")
        slot = ledger.shared(name, zeros, optional=True, users_own=True)
    else:
        slot = ledger.memory(
            name, tuple(value.shape[1:]), value.dtype, _saved_reset(name, contract),
            owner="env", optional=True, users_own=True,
        )  # fmt: skip
    slot.from_snapshot = True
    return slot


def _saved_reset(name: str, contract: Mapping[str, object]) -> Reset:
    """Return the values that a reset writes by a contract, or None."""
    reset = contract["reset"]
    if isinstance(reset, str):
        return None
    try:
        return torch.tensor(reset)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise SnapshotError(
            f"{name!r} has {str(reset)[:60]} as its value at reset, which are no "
            "numbers. Nothing was written.",
            name=name,
        ) from error


def _declare(ledger: Ledger, slot: Slot, reset: Reset, unit: str, axes: str) -> None:
    """Give a slot that a snapshot brought the contract that its owner states."""
    slot.unit, slot.axes, slot.from_snapshot = unit, axes, False
    if slot.shared:
        return
    start = 0.0 if reset is None or callable(reset) else reset
    slot.initial = rows_for(
        slot.name, start, ledger.num_envs, slot.shape, slot.tensor.dtype, ledger.device
    )
    slot.reset = reset_rule(reset)


def _make_shared(
    ledger: Ledger,
    owner: Owner,
    name: str,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    reset: Reset,
    unit: str,
) -> Slot:
    if callable(reset):
        raise InvalidInputError(
            f"The memory {name!r} is shared by all worlds, so no reset changes it: "
            "give reset= a value to start with, not a function.",
            name="reset",
        )
    value = 0.0 if reset is None else reset
    start = rows_for(name, value, 1, shape, dtype, torch.device("cpu"))
    return ledger.shared(
        name, start[0], owner=owner, optional=bool(ledger.open), moves=owner == "sim",
        users_own=True, unit=unit,
    )  # fmt: skip


def _check(name: object, shape: object, dtype: object) -> tuple[int, ...]:
    """Return the shape, if name, shape and dtype make a slot."""
    if not isinstance(name, str) or not name or "/" in name:
        raise InvalidInputError(
            f'The name of a memory must be words without "/", got {name!r}.',
            name="name",
        )
    if dtype not in DTYPES:
        raise InvalidInputError(
            f"The dtype of memory {name!r} must be one of torch's that NumPy has, too "
            f"(float64 … bool), got {dtype!r}.",
            name="dtype",
        )
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise InvalidInputError(
            f"The shape of memory {name!r} is that of one world's numbers, such as () "
            f"or (3,); got {shape!r}.",
            name="shape",
        )
    sizes: Sequence[object] = shape  # pyright: ignore[reportUnknownVariableType]
    return tuple(whole_number(f"shape of memory {name!r}", n, 0) for n in sizes)
