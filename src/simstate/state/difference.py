"""diff: what differs between two states, by entity, quantity, joint and world."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, cast, overload

import torch
from rich.table import Table
from torch import Tensor

from simstate.base.errors import InvalidInputError
from simstate.base.ids import int_list
from simstate.base.table_style import as_plain_text, new_table
from simstate.math import quaternion
from simstate.state.dicts import state_dicts
from simstate.state.snapshot import Snapshot
from simstate.state.tensors import TensorState

_UNITS = {
    "pos": "m",
    "rot": "rad",
    "vel": "m/s",
    "ang_vel": "rad/s",
    "dof_pos": "rad or m",
    "dof_vel": "rad/s or m/s",
    "dof_pos_target": "rad or m",
    "dof_vel_target": "rad/s or m/s",
    "dof_effort_target": "N·m or N",
    "depth": "m",
    "look_at": "m",
    "intrinsic": "px",
    "rgb": "0 … 255",
}


@dataclass(frozen=True)
class Difference:
    """One entry that differs, in one world."""

    world: int
    entity: str
    quantity: str
    element: str
    """The joint or link; "" for the root."""
    error: float
    """Largest difference, an angle for rotations; infinite if it is undefined."""
    unit: str
    what: str = ""
    """Reason for an undefined difference: missing, not finite, another shape."""

    @property
    def path(self) -> str:
        """Path in the state, without the world."""
        parts = (self.entity, self.element, self.quantity)
        return ".".join(part for part in parts if part)


class Diff(Sequence[Difference]):
    """All differences, the largest first; prints as a table."""

    def __init__(self, differences: list[Difference], num_envs: int) -> None:
        self._all = sorted(differences, key=lambda d: (-d.error, d.world, d.path))
        self.num_envs = num_envs

    @property
    def max_error(self) -> float:
        """Largest error; 0 without differences, infinite if a value is missing."""
        return self._all[0].error if self._all else 0.0

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Difference: ...
    @overload
    def __getitem__(self, index: slice) -> list[Difference]: ...
    def __getitem__(
        self, index: SupportsIndex | slice
    ) -> Difference | list[Difference]:
        return self._all[index]

    def lines(self) -> list[tuple[Difference, int]]:
        """The worst world of each entry that differs, and in how many it does."""
        groups: dict[str, list[Difference]] = {}
        for difference in self._all:
            groups.setdefault(difference.path + difference.what, []).append(difference)
        return [(group[0], len(group)) for group in groups.values()]

    def table(self, rows: int | None = None) -> Table:
        """Return the first `rows` rows, or all, the largest differences first."""
        lines = self.lines()
        shown = lines[:rows]
        title = f"{len(self)} differences in {self.num_envs} worlds"
        if len(shown) < len(lines):
            title += f", the first {len(shown)} of {len(lines)} lines"
        table = new_table(
            title, "entity", "element", "quantity", "worst", "unit", "world", "worlds"
        )
        for worst, count in shown:
            table.add_row(
                worst.entity,
                worst.element,
                worst.quantity,
                worst.what or f"{worst.error:.3g}",
                worst.unit,
                str(worst.world),
                str(count),
            )
        return table

    def __repr__(self) -> str:
        count = f"{len(self)} differences in {self.num_envs} worlds"
        return f"Diff({count}, max_error={self.max_error:.3g})"

    def __str__(self) -> str:
        if not self._all:
            return f"no differences in {self.num_envs} worlds"
        return as_plain_text(self.table())


def diff(left: object, right: object, tolerance: float = 0.0) -> Diff:
    """Return the differences above `tolerance` between two states of the same kind.

    A state is a dictionary, a list of them, what get_states returns in either mode, or
    a Snapshot. Quaternions are compared as rotations: their sign does not matter.
    What is missing on one side, or not finite, is named and counts as infinite.
    """
    if isinstance(left, Snapshot) and isinstance(right, Snapshot):
        found = list(_snapshot_differences(left, right))
        worlds = max(left.num_envs, right.num_envs)
    else:
        lefts, rights = _as_list(left), _as_list(right)
        worlds = max(len(lefts), len(rights))
        found = [
            difference
            for world in range(worlds)
            for difference in _world_differences(world, lefts, rights)
        ]
    return Diff([d for d in found if not d.error <= tolerance], worlds)


def _as_list(states: object) -> Sequence[Any]:
    if isinstance(states, TensorState):
        return state_dicts(states)
    if isinstance(states, Mapping):
        return [cast("Mapping[str, Any]", states)]
    if isinstance(states, Sequence) and not isinstance(states, str):
        return cast("Sequence[Any]", states)
    raise InvalidInputError(
        "diff compares states (dictionaries, lists of them, tensors) or two snapshots, "
        f"got {type(states).__name__}."
    )


def _world_differences(
    world: int, lefts: Sequence[Any], rights: Sequence[Any]
) -> Iterator[Difference]:
    """Yield the differences in one world."""
    if world >= len(lefts) or world >= len(rights):
        side = "left" if world >= len(lefts) else "right"
        yield Difference(world, "", "", "", math.inf, "", f"missing on the {side}")
        return
    left = dict(_leaves(lefts[world]))
    right = dict(_leaves(rights[world]))
    for key in [*left, *(key for key in right if key not in left)]:
        entity, element, quantity = key
        error, what = _compare(left.get(key), right.get(key), quantity)
        if error != 0.0:
            unit = _UNITS.get(quantity, "")
            yield Difference(world, entity, quantity, element, error, unit, what)


def _leaves(state: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, str], Any]]:
    """Entity, element and quantity of every number or tensor in a state."""
    for group, members in _items(state, "a state"):
        for name, part in _items(members, group):
            entity = f"{group}.{name}"
            if not part:
                yield (entity, "", ""), _PRESENT
            for quantity, value in _items(part, entity):
                if quantity == "body":
                    for body, inner in _items(value, f"{entity}.body"):
                        for key, vector in _items(inner, f"{entity}.body.{body}"):
                            yield (entity, f"body.{body}", key), vector
                elif isinstance(value, Mapping):
                    for joint, number in cast("Mapping[str, Any]", value).items():
                        yield (entity, joint, quantity), number
                else:
                    yield (entity, "", quantity), value


_PRESENT = 0.0
"""Stands for an entity itself, so that one that is missing is missed."""


def _items(part: Any, where: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(part, Mapping):
        raise InvalidInputError(
            f"{where} must be a dictionary, got {type(part).__name__}."
        )
    return cast("Mapping[str, Any]", part).items()


def _compare(left: Any, right: Any, quantity: str) -> tuple[float, str]:
    """Return the largest difference of two values, or infinity and the reason."""
    if left is None or right is None:
        return math.inf, f"missing on the {'left' if left is None else 'right'}"
    if isinstance(left, float) and isinstance(right, float):
        if math.isfinite(left) and math.isfinite(right):
            return abs(left - right), ""
        return math.inf, f"not finite: {left} and {right}"
    try:
        one = torch.as_tensor(left, dtype=torch.float64)
        two = torch.as_tensor(right, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        return math.inf, f"not a number: {error}"
    if one.shape != two.shape:
        return math.inf, f"shapes {tuple(one.shape)} and {tuple(two.shape)}"
    for side, values in (("left", one), ("right", two)):
        if not bool(torch.isfinite(values).all()):
            return math.inf, f"not finite on the {side}"
    if not one.numel():
        return 0.0, ""
    if quantity == "rot" or (quantity == "dof_pos" and one.shape == (4,)):
        for side, quat in (("left", one), ("right", two)):
            if not bool((quat != 0).any()):
                return math.inf, f"a zero quaternion on the {side}"
        return _angle(one, two), ""
    return float((one - two).abs().max()), ""


def _angle(left: Tensor, right: Tensor) -> float:
    """The angle between two attitudes [rad]; exactly 0 for ±the same quaternion."""
    if torch.equal(left, right) or torch.equal(left, -right):
        return 0.0
    unit = [quaternion.normalize(quat) for quat in (left, right)]
    return float(quaternion.angle_between(*unit))


def _snapshot_differences(left: Snapshot, right: Snapshot) -> Iterator[Difference]:
    """Yield the differences of two snapshots, slot by slot."""
    count = min(left.num_envs, right.num_envs)
    for world in range(count, max(left.num_envs, right.num_envs)):
        side = "left" if world >= left.num_envs else "right"
        yield Difference(world, "", "", "", math.inf, "", f"missing on the {side}")
    contracts = {**right.header["slots"], **left.header["slots"]}
    for name, contract in contracts.items():
        one, two = left.slots.get(name), right.slots.get(name)
        if one is None or two is None:
            side = "left" if one is None else "right"
            what = f"missing on the {side}"
            yield Difference(0, *_place(name), "", math.inf, "", what)
        elif contract.get("shared", False):
            yield from _slot_differences(name, contract, one[None], two[None])
        else:
            yield from _slot_differences(name, contract, one[:count], two[:count])


def _slot_differences(
    name: str, contract: Mapping[str, Any], one: Tensor, two: Tensor
) -> Iterator[Difference]:
    """Yield the elements of one slot that differ; shape (n, …) both."""
    if one.shape[1:] != two.shape[1:]:
        what = f"shapes {tuple(one.shape[1:])} and {tuple(two.shape[1:])}"
        yield Difference(0, *_place(name), "", math.inf, "", what)
        return
    one, two = (x.reshape(x.shape[0], -1) for x in (one, two))
    unlike = one != two
    one, two = one.to(torch.float64), two.to(torch.float64)
    gap = (one - two).abs()
    gap[~unlike] = 0.0  # infinite in both, as a memory may be
    gap[unlike & (gap == 0.0)] = 1.0  # whole numbers beyond those of float64
    gap[one.isnan() & two.isnan()] = 0.0
    gap[gap.isnan()] = math.inf
    labels = contract.get("elements")
    for row, column in map(int_list, gap.nonzero()):
        error = float(gap[row, column])
        what = "" if math.isfinite(error) else "not finite"
        label = f" ({labels[column]})" if labels else ""
        element = f"[{column}]{label}" if gap.shape[1] > 1 or label else ""
        unit = contract.get("unit", "")
        yield Difference(row, *_place(name), element, error, unit, what)


def _place(name: str) -> tuple[str, str]:
    """Return the owner of a slot and the slot's name there."""
    group, _, rest = name.rpartition("/")
    return group or "state", rest
