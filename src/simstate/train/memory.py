"""What an environment remembers: saved and put back, it goes on bit for bit.

The simulation's part is its snapshot. The environment's own is every tensor and number
of its parts: random streams, clocks, commands, sums of rewards, delayed observations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from torch import Tensor

from simstate.env import Env
from simstate.env.actions import Action
from simstate.env.commands import Command
from simstate.env.divergence_log import DivergenceLog
from simstate.env.episode_end import EpisodeEnd
from simstate.env.event_schedule import EventSchedule
from simstate.env.observation_groups import ObservationGroup, ObservationTerm
from simstate.env.random import WorldRandom
from simstate.env.reward_sum import RewardSum
from simstate.errors import SnapshotError
from simstate.state import Snapshot

_PARTS = (
    Env,
    Action,
    Command,
    DivergenceLog,
    EpisodeEnd,
    EventSchedule,
    ObservationGroup,
    ObservationTerm,
    RewardSum,
    WorldRandom,
)
"""The classes whose attributes are remembered."""

Memory = dict[str, Any]


def remember(env: Env) -> Memory:
    """A copy of all that the environment needs to go on exactly as it would have."""
    own = {path: _copied(holder[key]) for path, holder, key in _slots(env)}
    return {"simulation": vars(env.sim.snapshot()).copy(), "environment": own}


def recall(env: Env, memory: Memory) -> None:
    """Bring an environment of the same task and size to where another one was."""
    own: dict[str, Any] = memory["environment"]
    worlds = own["/num_envs"]
    if worlds != env.num_envs:
        raise SnapshotError(
            f"The memory is of {worlds} worlds, the environment has {env.num_envs}. "
            "Nothing was changed."
        )
    slots = {path: (holder, key) for path, holder, key in _slots(env)}
    unknown = sorted(own.keys() ^ slots.keys())
    if unknown:
        raise SnapshotError(
            f"The memory is of another task; what differs: {', '.join(unknown[:5])}. "
            "Nothing was changed."
        )
    env.sim.restore(Snapshot(**memory["simulation"]))
    for path, (holder, key) in slots.items():
        value = own[path]
        present = holder[key]
        if isinstance(present, Tensor) and isinstance(value, Tensor):
            holder[key] = value.to(present).clone()
        else:
            holder[key] = value


def _slots(env: Env) -> Iterator[tuple[str, dict[Any, Any], Any]]:
    """Path, holder and key of everything that is remembered."""
    seen: set[int] = set()

    def walk(path: str, holder: dict[Any, Any]) -> Iterator[tuple[str, Any, Any]]:
        for key, value in holder.items():
            here = f"{path}/{key}"
            if _is_plain(value):
                yield here, holder, key
            elif id(value) in seen:
                continue
            elif isinstance(value, _PARTS):
                seen.add(id(value))
                yield from walk(here, vars(value))
            elif isinstance(value, Mapping):
                yield from walk(here, cast("dict[Any, Any]", value))
            elif isinstance(value, list):
                items = cast("list[Any]", value)
                yield from walk(here, _Items(enumerate(items), items))

    seen.add(id(env))
    yield from walk("", vars(env))


class _Items(dict[Any, Any]):
    """The items of a list by position; what is set here is set in the list."""

    def __init__(self, items: Iterator[tuple[int, Any]], source: list[Any]) -> None:
        super().__init__(items)
        self._source = source

    def __setitem__(self, key: int, value: Any) -> None:
        super().__setitem__(key, value)
        self._source[key] = value


def _is_plain(value: object) -> bool:
    """Whether it is a tensor, a number, None, or a tuple of such."""
    if isinstance(value, tuple):
        return all(_is_plain(item) for item in cast("tuple[object, ...]", value))
    return isinstance(value, Tensor | int | float | None)


def _copied(value: Any) -> Any:
    return value.detach().clone().cpu() if isinstance(value, Tensor) else value
