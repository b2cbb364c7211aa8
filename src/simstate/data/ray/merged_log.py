"""Logs of workers, merged as one Env would write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from simstate.env.divergence_log import DIVERGENCES
from simstate.state import Snapshot

_COUNTED = "Episode_Termination/"
"""Numbers of worlds, which add up."""
_CURRICULUM = "Curriculum/"
"""Prefix of a curriculum's values for all worlds of its worker."""
_DIVERGED = "Divergence/count"
"""A running total of all worlds."""


@dataclass(frozen=True)
class WorkerLog:
    """The log of one worker's step."""

    log: dict[str, Any]
    """As of an Env: empty where no episode has ended."""
    episodes: int
    """Number of ended episodes."""
    divergences: int
    """Number of divergences of its worlds so far."""


class JoinedLog:
    """The logs of all workers as one.

    Means are weighted with the episodes that have ended. A curriculum says something of
    all worlds of its worker, and says it when an episode ends there: each counts as it
    last said, weighted with its worlds.

    Args:
        worlds: how many each worker has.
    """

    def __init__(self, worlds: Sequence[int]) -> None:
        self._worlds = list(worlds)
        self._said: list[dict[str, float]] = [{} for _ in worlds]

    def forget(self) -> None:
        """The worlds have been put elsewhere: what curricula said is no longer so."""
        self._said = [{} for _ in self._worlds]

    def joined(self, reports: Sequence[WorkerLog]) -> dict[str, Any]:
        """Return the log of this step as one Env with all worlds would write it."""
        for said, one in zip(self._said, reports, strict=True):
            said |= {k: x for k, x in one.log.items() if k.startswith(_CURRICULUM)}
        names = dict.fromkeys(name for one in reports for name in one.log)
        return {name: self._value(name, reports) for name in names}

    def _value(self, name: str, reports: Sequence[WorkerLog]) -> float:
        if name == _DIVERGED:
            return sum(one.divergences for one in reports)
        if name.startswith(_CURRICULUM):
            pairs = zip(self._said, self._worlds, strict=True)
            return _mean([(said[name], n) for said, n in pairs if name in said])
        values = [(one.log[name], one.episodes) for one in reports if name in one.log]
        if name.startswith(_COUNTED):
            return sum(value for value, _ in values)
        return _mean(values)


def _mean(weighted: Sequence[tuple[float, int]]) -> float:
    """The mean of values, each with its weight."""
    whole = sum(weight for _, weight in weighted)
    return sum(float(value) * weight for value, weight in weighted) / whole


def joined_snapshot(parts: Sequence[Snapshot]) -> Snapshot:
    """The snapshot of all workers' worlds, in their order.

    What the worlds of a worker share is that of the first; counts add up.
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
    """The snapshot of each worker's worlds; the first has the count of all."""
    contracts: dict[str, Any] = snapshot.header.get("slots", {})
    shared = {name for name, reports in contracts.items() if reports.get("shared")}
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
