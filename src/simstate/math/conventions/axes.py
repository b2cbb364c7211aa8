"""Axes named by their directions: ENU and NED worlds, FLU and FRD bodies."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Literal

import torch
from torch import Tensor

from simstate.base.checks import one_of
from simstate.math import quaternion

Kind = Literal["world", "body"]

_DIRECTIONS: dict[Kind, str] = {"world": "EWNSUD", "body": "FALRUD"}
"""Pairs of opposite directions, right-handed in the order of the pairs: east and
west, north and south, up and down; forward and aft, left and right, up and down."""

Z_UP = "Z_UP"
"""World axes of which only "up" is known. The x axis is assumed to point east, as in
ENU; use `world="NWU"` if it points north."""


def _column(letter: str, kind: Kind) -> list[int]:
    index = _DIRECTIONS[kind].index(letter)
    column = [0, 0, 0]
    column[index // 2] = 1 if index % 2 == 0 else -1
    return column


def _is_right_handed(axes: str, kind: Kind) -> bool:
    """Return True if the third direction is the cross product of the first two."""
    (a, b, c), (d, e, f), third = (_column(letter, kind) for letter in axes)
    return [b * f - c * e, c * d - a * f, a * e - b * d] == third


def _directions(axes: str, kind: Kind) -> Tensor:
    """Return the matrix whose columns are the axes in ENU or FLU; shape (3, 3)."""
    letters = "ENU" if axes == Z_UP else axes
    return torch.tensor([_column(a, kind) for a in letters], dtype=torch.float64).T


@lru_cache
def known(kind: Kind) -> tuple[str, ...]:
    """Return the ids of all right-handed axes of the kind."""
    found: list[str] = [Z_UP] if kind == "world" else []
    for letters in product(_DIRECTIONS[kind], repeat=3):
        axes = "".join(letters)
        if _is_right_handed(axes, kind):
            found.append(axes)
    return tuple(found)


def check(axes: object, kind: Kind) -> None:
    """Raise unless `axes` is the id of right-handed axes of the kind."""
    one_of(f"{kind} axes (three directions, right-handed)", axes, known(kind))


@lru_cache
def rotation(target: str, source: str, kind: Kind) -> Tensor:
    """Return the matrix from source to target components, ±1 and 0, float64; (3, 3)."""
    return _directions(target, kind).T @ _directions(source, kind)


@lru_cache
def quaternion_between(target: str, source: str, kind: Kind) -> Tensor:
    """Return `rotation` as a quaternion wxyz: rotate(q, vec_source) = vec_target."""
    return quaternion.from_matrix(rotation(target, source, kind))


def components(vec: Tensor, target: str, source: str, kind: Kind) -> Tensor:
    """Return the components of `vec` along the target's axes; shape (..., 3)."""
    if target == source:
        return vec
    return vec @ rotation(target, source, kind).to(vec).mT
