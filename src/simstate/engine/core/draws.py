"""Random numbers of all worlds in one C pass, as in `simstate.world.random`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simstate.base import compiled_core

Array = NDArray[Any]
_compiled = cache(compiled_core.module)


def uniform(
    streams: tuple[Array, Array, Array],
    rows: Array | None,
    columns: int,
    low: float,
    high: float,
) -> NDArray[np.float64]:
    """Return uniform random numbers in [low, high); shape (n, columns).

    `streams` are seed, world and count of each world, int64; the count is written.
    `rows` are int64 ids of the worlds that draw, without repetition; None: all.
    """
    count = len(streams[0]) if rows is None else len(rows)
    out = np.empty((count, columns))
    scale = (high - low) * 2.0**-53
    _compiled().uniform(*streams, rows, columns, scale, low, out)
    return out
