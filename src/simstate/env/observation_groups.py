"""Observation groups: terms side by side; noise, clip, scale, delay and history."""

from __future__ import annotations

from collections.abc import Hashable
from types import ModuleType
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.base.contract import Contract
from simstate.base.errors import InvalidInputError, ShapeError
from simstate.base.ids import Index
from simstate.base.places import written_at
from simstate.env.contracts import contracts_of
from simstate.env.env_cfg import (
    ObservationGroupCfg,
    ObservationTermCfg,
    is_number,
    is_whole,
)
from simstate.env.host_read import host_read_of
from simstate.env.observation_columns import Columns
from simstate.env.observation_noise import NoiseMemory, ObservationNoise, UniformNoise
from simstate.env.terms import Term, clear_diverged, not_finite_error
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env


Computed = dict[Hashable, Tensor]
"""What functions have returned for some worlds, by function and parameters."""


class ObservationGroup:
    """The terms of one group, computed together into one float32 tensor."""

    def __init__(
        self, env: Env, name: str, cfg: ObservationGroupCfg, shipped: ModuleType
    ) -> None:
        if not cfg.terms:
            raise InvalidInputError(f"The observation group {name!r} has no terms.")
        self.name = name
        self.terms = [
            ObservationTerm(env, f"{name}/{key}", term, shipped, cfg.noise)
            for key, term in cfg.terms.items()
        ]
        self._together = all(term.is_plain for term in self.terms)
        """Whether what is done to the terms can be done to all at once."""
        self._columns: Columns | None = None

    def compute(
        self, env: Env, rows: Index, restart: bool, values_of: Computed
    ) -> Tensor:
        """The observations of some worlds, float32; shape (n, k).

        `restart` says that these worlds have just been reset; `values_of` has what
        other groups have computed of the same state.
        """
        if self._together:
            parts = [term.raw(env, rows, values_of) for term in self.terms]
            values = self._processed(env, rows, parts)
        else:
            parts = [term.compute(env, rows, restart, values_of) for term in self.terms]
            values = torch.cat(parts, dim=1)
        bad = clear_diverged(values, env.sim.diverged[rows, None])
        worlds = env.all_ids[rows]
        host_read_of(env).raise_if(
            bad, lambda: self._not_finite(values, parts, worlds, env)
        )
        return values

    def _processed(self, env: Env, rows: Index, parts: list[Tensor]) -> Tensor:
        """Noise, clip and scale of all terms in a few calls, as each would have them.

        The worlds draw the same numbers: one after the other, term by term.
        """
        values = torch.cat(parts, dim=1)
        if self._columns is None:
            widths = [part.shape[1] for part in parts]
            self._columns = Columns.of(self.terms, widths, values.device)
        columns = self._columns
        if columns.noisy:
            low, high = columns.noise_low, columns.noise_high
            drawn = env.rng.uniform(rows, len(low), low, high).to(values.dtype)
            for at, of in columns.noisy:
                values[:, at] += drawn[:, of]
        if columns.clip is not None:
            values = values.clamp(*columns.clip)
        return values if columns.scale is None else values.mul_(columns.scale)

    def column_names(self, env: Env) -> list[str]:
        """A readable name for each column."""
        return [name for term in self.terms for name in term.column_names(env)]

    def contracts(self, env: Env) -> list[Contract]:
        """Unit, axes and point of each column."""
        return [contract for term in self.terms for contract in term.contracts(env)]

    def _not_finite(
        self, values: Tensor, parts: list[Tensor], worlds: Tensor, env: Env
    ) -> InvalidInputError:
        """The error for the first term that gave a bad number.

        `parts` are as wide as the terms' columns of `values`.
        """
        fine, first = env.sim.diverged[worlds, None], 0
        for term, part in zip(self.terms, parts, strict=True):
            own = values[:, first : first + part.shape[1]].masked_fill(fine, 0.0)
            if not bool(own.isfinite().all()):
                return not_finite_error(term, own, worlds)
            first += part.shape[1]
        raise AssertionError("a term was not finite")


class ObservationTerm(Term):
    """One term of a group, and what it remembers for delay and history."""

    def __init__(
        self,
        env: Env,
        name: str,
        cfg: ObservationTermCfg,
        shipped: ModuleType,
        noise: bool,
    ) -> None:
        super().__init__("observation", name, cfg, shipped, env)
        self.name = name.rpartition("/")[2]
        self.key = _key(self)
        """Terms with the same key have the same value in the same state."""
        self.noise = cfg.noise if noise else None
        self.clip = cfg.clip
        with written_at(self.place):
            self._check(cfg)
        self.scale: float | Tensor | None = None
        if isinstance(cfg.scale, tuple):
            self.scale = torch.tensor(cfg.scale, device=env.device)
        else:
            self.scale = cfg.scale
        self.history = cfg.history
        self.delay = _range_of(cfg.delay)
        self._remembered: Tensor | None = None
        """What the noise remembers; shape (num_envs, remembers, k)."""
        self._width = 0
        """The number of columns that the function returns; 0: not called yet."""
        self._past: Tensor | None = None
        """The last values, newest last; shape (num_envs, delay + history, k)."""
        self._lag: Tensor | None = None
        """By how many steps each world sees it late; shape (num_envs,)."""

    def compute(
        self, env: Env, rows: Index, restart: bool, values_of: Computed
    ) -> Tensor:
        """The term in some worlds, float32, with all that is done to it; (n, k)."""
        value = self.raw(env, rows, values_of)
        if self.noise is not None:
            memory = self._noise_memory(env, self.noise, value.shape[1], restart)
            value = self.noise.measure(value, env.rng, rows, memory)
        if self.clip is not None:
            value = value.clamp(*self.clip)
        if self.scale is not None:
            value = value * self.scale
        if self.history == 1 and self.delay[1] == 0:
            return value
        return self._recalled(env, rows, value, restart)

    @property
    def is_plain(self) -> bool:
        """Whether noise, clip and scale depend on nothing but the column."""
        even = self.noise is None or type(self.noise) is UniformNoise
        return even and self.history == 1 and self.delay[1] == 0

    def raw(self, env: Env, rows: Index, values_of: Computed) -> Tensor:
        """What the function returns for some worlds, float32; (n, k)."""
        value = values_of.get(self.key)
        if value is None:
            value = self.tensor(env, 2)[rows].to(torch.float32)
            values_of[self.key] = value
        self._check_width(value)
        self._check_scale(value)
        return value

    def _noise_memory(
        self, env: Env, noise: ObservationNoise, columns: int, restart: bool
    ) -> NoiseMemory:
        """What the noise of this term remembers."""
        if self._remembered is None:
            shape = (noise.remembers, columns)
            if noise.remembers:
                self._remembered = worlds_of(env.sim).ledger.memory(
                    f"env/{self.scope}/noise", shape, torch.float32, reset=None,
                    owner="env",
                ).tensor  # fmt: skip
            else:
                self._remembered = torch.zeros(0, device=env.device)
        return NoiseMemory(self._remembered, restart, env.step_dt)

    def column_names(self, env: Env, count: int = 0) -> list[str]:
        """A readable name for each column; of a history, with its age in steps."""
        count = count or self._width or self.tensor(env, 2).shape[1]
        names = super().column_names(env, count)
        if len(names) != count:
            raise ShapeError(
                f"The {self.label} has {count} columns, but names for {len(names)}.",
                name=self.label,
                shape=[count],
            )
        if self.history == 1:
            return names
        ages = range(self.history - 1, -1, -1)
        return [f"{name}@-{age}" if age else name for age in ages for name in names]

    def contracts(self, env: Env) -> list[Contract]:
        """Unit, axes and point of each column, as it is scaled."""
        count = self._width or self.tensor(env, 2).shape[1]
        with written_at(self.place):
            found = contracts_of(self.label, self.function, env, self.params, count)
        scale = 1.0 if self.scale is None else self.scale
        each = zip(found, torch.as_tensor(scale).expand(count), strict=True)
        scaled = [one.scaled(1.0 / float(k)) if k else one for one, k in each]
        return scaled * self.history

    def _recalled(self, env: Env, rows: Index, value: Tensor, restart: bool) -> Tensor:
        """Take note of a value, and return the last `history` ones as seen late."""
        length = self.delay[1] + self.history
        if self._past is None or self._lag is None:
            place, shape = f"env/{self.scope}", (length, value.shape[1])
            memory = worlds_of(env.sim).ledger.memory
            self._past = memory(
                f"{place}/delay/past", shape, torch.float32, reset=None, owner="env"
            ).tensor
            self._lag = memory(
                f"{place}/delay/lag", (), torch.int64, reset=None, owner="env"
            ).tensor
        if restart:
            past = value[:, None].expand(-1, length, -1)
            low, high = self.delay
            spread = env.rng.uniform(rows, 1, low, high + 1)[:, 0]
            self._lag[rows] = spread.to(torch.int64).clamp(max=high)
        else:
            past = torch.cat([self._past[rows][:, 1:], value[:, None]], dim=1)
        self._past[rows] = past
        if self.delay[1] == 0:
            return past.flatten(1)
        first = (self.delay[1] - self._lag[rows])[:, None]
        steps = first + torch.arange(self.history, device=value.device)
        seen = past.gather(1, steps[..., None].expand(-1, -1, value.shape[1]))
        return seen.flatten(1)

    def _check(self, cfg: ObservationTermCfg) -> None:
        if not isinstance(self.noise, ObservationNoise | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                f"The {self.label} has noise {self.noise!r}: it must be a "
                "UniformNoise, a GaussianNoise or a SensorNoise."
            )
        delay = _range_of(cfg.delay)
        is_range = len(delay) == 2 and all(is_whole(steps, 0) for steps in delay)
        if not is_range or delay[0] > delay[1]:
            raise InvalidInputError(
                f"The {self.label} has delay {cfg.delay!r}: it must be a whole number "
                "of steps ≥ 0, or a range (least, greatest)."
            )
        if not is_whole(cfg.history, least=1):
            raise InvalidInputError(
                f"The {self.label} has history {cfg.history!r}: it must be a whole "
                "number ≥ 1."
            )
        scales = cfg.scale if isinstance(cfg.scale, tuple) else (cfg.scale or 0.0,)
        if not all(is_number(scale) for scale in scales):
            raise InvalidInputError(
                f"The {self.label} has scale {cfg.scale!r}: it must be a number, or a "
                "tuple with one for each column."
            )
        if self.clip is not None and not self.clip[0] <= self.clip[1]:
            raise InvalidInputError(
                f"The {self.label} has clip {self.clip}: it must be (least, greatest)."
            )

    def _check_width(self, value: Tensor) -> None:
        self._width = self._width or value.shape[1]
        if value.shape[1] != self._width:
            with written_at(self.place):
                raise ShapeError(
                    f"The {self.label} returned {value.shape[1]} columns, and "
                    f"{self._width} before: their number must stay.",
                    name=self.label,
                    shape=value.shape,
                )

    def _check_scale(self, value: Tensor) -> None:
        if isinstance(self.scale, Tensor) and self.scale.shape[0] != value.shape[1]:
            with written_at(self.place):
                raise ShapeError(
                    f"The {self.label} has {self.scale.shape[0]} scales for "
                    f"{value.shape[1]} numbers: give one for each, or a single one.",
                    name=self.label,
                    shape=value.shape,
                )


def _range_of(delay: int | tuple[int, int]) -> tuple[int, int]:
    """A delay as a range."""
    return delay if isinstance(delay, tuple) else (delay, delay)


def _key(term: Term) -> Hashable:
    """What tells a term's value from another's: the function and its parameters."""
    key = (term.function, tuple(term.params.items()))
    try:
        hash(key)
    except TypeError:  # a list or the like: it is not shared
        return object()
    return key
