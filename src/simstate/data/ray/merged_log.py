"""Logs of workers, merged into the log of a single Env."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from simstate.env.divergence_log import DIVERGENCES
from simstate.state import Snapshot

_COUNTED = "Episode_Termination/"
"""Prefix of counts of worlds, which are summed."""
_CURRICULUM = "Curriculum/"
"""Prefix of a curriculum's values for all worlds of its worker."""
_DIVERGED = "Divergence/count"
"""Running total over all worlds."""


@dataclass(frozen=True)
class WorkerLog:
    """The log of one worker's step."""

    log: dict[str, Any]
    """Log of the Env; empty if no episode has ended."""
    episodes: int
    """Number of ended episodes."""
    divergences: int
    """Number of divergences of its worlds so far."""


class JoinedLog:
    """The logs of all workers as one.

    Means are weighted by the number of ended episodes. A curriculum reports a value for
    all worlds of its worker, when an episode ends there: the last value of each worker
    is used, weighted by its number of worlds.

    Args:
        worlds: number of worlds of each worker.
    """

    def __init__(self, worlds: Sequence[int]) -> None:
        self._worlds = list(worlds)
        self._reported: list[dict[str, float]] = [{} for _ in worlds]

    def forget(self) -> None:
        """Discard the last values of curricula, after worlds were restored."""
        self._reported = [{} for _ in self._worlds]

    def joined(self, reports: Sequence[WorkerLog]) -> dict[str, Any]:
        """Return the log of this step as of a single Env with all worlds."""
        for last, one in zip(self._reported, reports, strict=True):
            last |= {k: x for k, x in one.log.items() if k.startswith(_CURRICULUM)}
        names = dict.fromkeys(name for one in reports for name in one.log)
        return {name: self._value(name, reports) for name in names}

    def _value(self, name: str, reports: Sequence[WorkerLog]) -> float:
        if name == _DIVERGED:
            return sum(one.divergences for one in reports)
        if name.startswith(_CURRICULUM):
            pairs = zip(self._reported, self._worlds, strict=True)
            return _mean([(last[name], n) for last, n in pairs if name in last])
        values = [(one.log[name], one.episodes) for one in reports if name in one.log]
        if name.startswith(_COUNTED):
            return sum(value for value, _ in values)
        return _mean(values)


def _mean(weighted: Sequence[tuple[float, int]]) -> float:
    """Return the weighted mean of pairs of value and weight."""
    total = sum(weight for _, weight in weighted)
    return sum(float(value) * weight for value, weight in weighted) / total


def joined_snapshot(parts: Sequence[Snapshot]) -> Snapshot:
    """Return the snapshot of all workers' worlds, in their order.

    Slots that the worlds of a worker share are the first worker's; counts are summed.
    """
    contracts = parts[0].header["slots"]
    slots = {
        name: value
        if contracts[name]["shared"]
        else torch.cat([part.slots[name] for part in parts])
        for name, value in parts[0].slots.items()
    }
    slots[DIVERGENCES] = sum(
        (part.slots[DIVERGENCES] for part in parts[1:]), slots[DIVERGENCES]
    )
    return replace(parts[0], slots=slots)


def split_snapshot(
    snapshot: Snapshot, rows: Sequence[tuple[int, int]]
) -> list[Snapshot]:
    """Return the snapshot of each worker's worlds; the first has all counts."""
    contracts: dict[str, Any] = snapshot.header.get("slots", {})
    shared = {name for name, contract in contracts.items() if contract.get("shared")}
    parts: list[Snapshot] = []
    for first, end in rows:
        slots = {
            name: value if name in shared else value[first:end]
            for name, value in snapshot.slots.items()
        }
        if parts and DIVERGENCES in slots:
            slots[DIVERGENCES] = torch.zeros_like(slots[DIVERGENCES])
        parts.append(replace(snapshot, slots=slots))
    return parts
