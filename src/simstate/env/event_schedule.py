"""EventSchedule: which event runs when, in which worlds."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.places import written_at
from simstate.env.backend import backend_of
from simstate.env.env_cfg import EventTermCfg
from simstate.env.terms import Term
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env

MODES = ("startup", "reset", "interval")


class EventSchedule:
    """The events by mode, and for "interval" the time that each world has left."""

    def __init__(
        self, env: Env, cfgs: dict[str, EventTermCfg], shipped: ModuleType
    ) -> None:
        self._terms: dict[str, list[Term]] = {mode: [] for mode in MODES}
        self._intervals: list[tuple[float, float]] = []
        self._shared: set[str] = set()
        for name, cfg in cfgs.items():
            with written_at(cfg.place):
                _check(name, cfg)
            term = Term("event", name, cfg, shipped, env, leading=2)
            self._shared |= {name} if cfg.shared else set()
            self._terms[cfg.mode].append(term)
            if cfg.mode == "interval":
                self._intervals.append(cfg.interval_s or (0.0, 0.0))
        self._time_left = worlds_of(env.sim).ledger.memory(
            "env/event/time_left", (len(self._intervals),), torch.float32, reset=None,
            owner="env", unit="s",
        ).tensor  # fmt: skip
        """Until the next event of each kind; shape (num_envs, intervals)."""
        self.happened = worlds_of(env.sim).ledger.memory(
            "env/event/happened", (len(self._intervals),), torch.bool, reset=None,
            owner="env", optional=True,
        ).tensor  # fmt: skip
        """Which interval events happened in the last step; (num_envs, intervals)."""
        array = backend_of(env).array
        self._arrays = array(self._time_left), array(self.happened)

    @property
    def interval_names(self) -> list[str]:
        """The names of the interval events."""
        return [term.name for term in self._terms["interval"]]

    @property
    def terms(self) -> list[Term]:
        """All events."""
        return [term for terms in self._terms.values() for term in terms]

    def startup(self, env: Env, env_ids: Tensor) -> None:
        """Run the events that happen once in a world."""
        for term in self._terms["startup"]:
            shared = term.name in self._shared
            with env.rng.alike() if shared else contextlib.nullcontext():
                term(env_ids)

    def reset(self, env: Env, env_ids: Tensor) -> None:
        """Run the events of a reset, and set the clocks of the others."""
        for term in self._terms["reset"]:
            term(env_ids)
        for k in range(len(self._intervals)):
            self._set_clock(env, k, env_ids)

    def due(self, dt: float) -> dict[str, Any]:
        """Let time run [s]; the masks of the worlds that are due, by event."""
        if not self._intervals:
            return {}
        left, happened = self._arrays
        left -= dt
        happened[:] = left <= 0.0
        return {
            term.name: happened[:, k] for k, term in enumerate(self._terms["interval"])
        }

    def interval(self, env: Env, due: Mapping[str, Tensor]) -> None:
        """Run the events in the worlds that are due."""
        for k, term in enumerate(self._terms["interval"]):
            env_ids = due[term.name]
            if env_ids.numel():
                term(env_ids)
                self._set_clock(env, k, env_ids)

    def _set_clock(self, env: Env, k: int, env_ids: Tensor) -> None:
        left = env.rng.uniform(env_ids, 1, *self._intervals[k])[:, 0]
        self._time_left[env_ids, k] = left.to(torch.float32)


def _check(name: str, cfg: EventTermCfg) -> None:
    if cfg.mode not in MODES:
        raise unknown_name(f"mode of event {name!r}:", str(cfg.mode), MODES)
    if cfg.shared and cfg.mode != "startup":
        raise InvalidInputError(
            f"The event {name!r} is shared by all worlds, which are not reset "
            "together: its mode must be 'startup'."
        )
    given = cfg.interval_s
    if cfg.mode == "interval" and (given is None or not 0.0 < given[0] <= given[1]):
        raise InvalidInputError(
            f"The event {name!r} of mode 'interval' needs interval_s = (least, "
            f"greatest) time between two of them [s], > 0; got {given}."
        )
