"""ObservationTerm: a term of a group, with its noise, delay and history."""

# Torch's signature of from_numpy is incomplete.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Hashable
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from simstate.base.checks import check_range
from simstate.base.contract import Contract
from simstate.base.errors import InvalidInputError
from simstate.base.places import written_at
from simstate.env.contracts import contracts_of
from simstate.env.env_cfg import ObservationTermCfg, is_number
from simstate.env.observation_noise import NoiseMemory, ObservationNoise, UniformNoise
from simstate.env.terms import Term

if TYPE_CHECKING:
    from simstate.env.env import Env


_INDEXED = {
    torch.uint16: torch.int16,
    torch.uint32: torch.int32,
    torch.uint64: torch.int64,
}
"""Dtypes of which torch cannot write some rows, and those with the same bytes."""

_WIDE = (torch.int32, torch.int64, torch.uint32, torch.uint64)
"""Dtypes of integers that float32 does not have."""


class ObservationSpec(NamedTuple):
    """Shape, dtype and bounds of one observation of one world."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    low: float
    high: float


class ObservationTerm(Term):
    """A term of a group, with its memory for noise, delay and history.

    A value of shape (num_envs, k) has k columns, in the environment's dtype. A value of
    more dimensions is an array, such as a picture: integers and booleans keep their
    dtype, unless there is a `scale`.
    """

    def __init__(
        self,
        env: Env,
        group: str,
        name: str,
        cfg: ObservationTermCfg,
        shipped: ModuleType,
        noise: bool,
    ) -> None:
        super().__init__("observation", f"{group}/{name}", cfg, shipped, env)
        self.name = name
        self.key = _key(self)
        """Terms with the same key have the same value in the same state."""
        self.noise = cfg.noise if noise else None
        self.clip, self.scale, self.history = cfg.clip, cfg.scale, cfg.history
        self.delay = _range_of(cfg.delay)
        self._is_changed = any(x is not None for x in (self.noise, cfg.clip, cfg.scale))
        with written_at(self.place):
            self._check(cfg)
        self.shape: tuple[int, ...] = ()
        """Shape of the function's value for one world; (): not called yet."""
        self.width = 0
        """Length of its last axis: columns or channels."""
        self._source: Any = None
        """Dtype of the function's value."""
        self.dtype = env.dtype
        """Dtype of the observation."""
        self.at = slice(0, 0)
        """Its part of the last axis of the group's tensor."""
        self._memory: dict[str, Tensor] = {}

    @property
    def is_array(self) -> bool:
        """True if its value has more axes than worlds and columns."""
        return len(self.shape) > 1

    @property
    def is_plain(self) -> bool:
        """True if noise, clip and scale depend only on the column."""
        even = self.noise is None or type(self.noise) is UniformNoise
        return even and self.history == 1 and self.delay[1] == 0

    @property
    def spec(self) -> ObservationSpec:
        """Shape, dtype and bounds of the observation of one world."""
        low, high = -math.inf, math.inf
        if not self.dtype.is_floating_point:
            info = None if self.dtype == torch.bool else torch.iinfo(self.dtype)
            low, high = (0, 1) if info is None else (info.min, info.max)
        elif self.is_array and self.clip and not isinstance(self.scale, tuple):
            scale = 1.0 if self.scale is None else self.scale
            low, high = sorted(limit * scale for limit in self.clip)
        shape = (*self.shape[:-1], self.width * self.history)
        return ObservationSpec(shape, self.dtype, low, high)

    def learn_shape(self, value: Any) -> None:
        """Store shape and dtype of the first value."""
        self.shape, self._source = tuple(value.shape[1:]), value.dtype
        self.width = self.shape[-1]
        if isinstance(self.scale, tuple) and len(self.scale) != self.width:
            raise self.error(
                f"has {len(self.scale)} scales for {self.width} columns: give one for "
                "each, or a single one",
                shape=value.shape,
            )
        if self.is_array:
            source = self._tensor(value[:0]).dtype
            if not source.is_floating_point and self.scale is None:
                self.dtype = source

    def place_at(self, first: int) -> int:
        """Occupy the last axis from `first` on; return the first free index."""
        self.at = slice(first, first + self.width * self.history)
        return self.at.stop

    def check_shape(self, value: Any) -> None:
        """Raise unless the function returns the same shape, and dtype, as before."""
        if value.shape[1:] != self.shape:
            was, now = (f"(num_envs, {', '.join(map(str, s))})"
                        for s in (self.shape, value.shape[1:]))  # fmt: skip
            raise self.error(
                f"returned shape {now}, and {was} before: it must stay the same",
                shape=value.shape,
            )
        if self.is_array and value.dtype != self._source:
            raise self.error(
                f"returned {value.dtype}, and {self._source} before: it must stay the "
                "same",
                shape=value.shape,
            )

    def _tensor(self, value: Any) -> Tensor:
        """Return the function's value as a tensor."""
        if isinstance(value, Tensor):
            return value
        return torch.from_numpy(value if value.flags.c_contiguous else value.copy())

    def observed(self, value: Any, env_ids: Tensor | None) -> Tensor:
        """Return the observation for an array of some worlds, in new memory."""
        self.check_shape(value)
        seen = self._tensor(value)
        if self._is_changed or self.history > 1 or self.delay[1] > 0:
            return self.processed(seen, env_ids)
        return seen.to(self.dtype, copy=True)

    def processed(self, value: Tensor, env_ids: Tensor | None) -> Tensor:
        """Return the processed value; shape (n, …, history · k)."""
        env, restart = self._env, env_ids is not None
        rows = slice(None) if env_ids is None else env_ids
        if self._is_changed:
            value = value.to(torch.float64 if value.dtype in _WIDE else env.dtype)
        if self.noise is not None:
            flat = value.flatten(1)
            shape = (self.noise.remembers, flat.shape[1])
            memory = NoiseMemory(self._slot("noise", shape), restart, env.step_dt)
            value = self.noise.measure(flat, env.rng, rows, memory).view(value.shape)
        if self.clip is not None:
            value = value.clamp(*self.clip)
        if self.scale is not None:
            value = value * torch.tensor(self.scale, dtype=value.dtype).to(value)
        if value.dtype.is_floating_point and not self.dtype.is_floating_point:
            low, high = self.spec.low, self.spec.high
            if float(high) > high:  # 2⁶³ − 1 is no float64
                high = math.nextafter(high, 0.0)
            value = value.round().clamp(low, high)
        value = value.to(self.dtype)
        if self.history == 1 and self.delay[1] == 0:
            return value
        return self._recalled(rows, value, restart)

    def _recalled(self, rows: Any, value: Tensor, restart: bool) -> Tensor:
        """Store a value, and return the last `history` values with their delay.

        They are concatenated along the last axis, oldest first.
        """
        low, high = self.delay
        length = high + self.history
        value = value.view(_INDEXED.get(self.dtype, self.dtype))
        kept = self._slot("delay/past", (length, *self.shape), value.dtype)
        lag = self._slot("delay/lag", (), torch.int64)
        if restart:
            past = value[:, None].expand(-1, length, *self.shape)
            spread = self._env.rng.uniform(rows, 1, low, high + 1)[:, 0]
            lag[rows] = spread.to(torch.int64).clamp(max=high)
        else:
            past = torch.cat([kept[rows][:, 1:], value[:, None]], dim=1)
        kept[rows] = past
        if high:
            first = (high - lag[rows])[:, None]
            steps = first + torch.arange(self.history, device=value.device)
            past = past[torch.arange(len(value), device=value.device)[:, None], steps]
        return past.movedim(1, -2).flatten(-2).view(self.dtype)

    def _slot(
        self, name: str, shape: tuple[int, ...], dtype: torch.dtype | None = None
    ) -> Tensor:
        """Return memory for each world; live, shape (num_envs, …)."""
        if name not in self._memory:
            made = torch.zeros(0, device=self._env.device)
            if 0 not in shape:
                made = self._ledger.memory(
                    f"env/{self.scope}/{name}", shape, dtype or self._env.dtype,
                    reset=None, owner="env",
                ).tensor  # fmt: skip
            self._memory[name] = made
        return self._memory[name]

    def names(self) -> list[str]:
        """Return a name for each column; in a history, with the age in steps."""
        names = self.column_names(self.width)
        if len(names) != self.width:
            raise self.error(
                f"has {self.width} columns, but names for {len(names)}",
                shape=[self.width],
            )
        if self.history == 1:
            return names
        ages = range(self.history - 1, -1, -1)
        return [f"{name}@-{age}" if age else name for age in ages for name in names]

    def contracts(self) -> list[Contract]:
        """Return unit, axes and point of each column, as scaled."""
        with written_at(self.place):
            found = contracts_of(
                self.label, self.function, self._env, self.params, self.width
            )
        scale = 1.0 if self.scale is None else self.scale
        each = zip(found, torch.as_tensor(scale).expand(self.width), strict=True)
        scaled = [one.scaled(1.0 / float(k)) if k else one for one, k in each]
        return scaled * self.history

    def _check(self, cfg: ObservationTermCfg) -> None:
        if not isinstance(self.noise, ObservationNoise | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                f"The {self.label} has noise {self.noise!r}: it must be a "
                "UniformNoise, a GaussianNoise or a SensorNoise.",
                name="noise",
            )
        delay = self.delay
        is_range = len(delay) == 2 and all(_is_integer(steps, 0) for steps in delay)
        if not is_range or delay[0] > delay[1]:
            raise InvalidInputError(
                f"The {self.label} has delay {cfg.delay!r}: it must be an integer "
                "number of steps ≥ 0, or a tuple (minimum, maximum) of them.",
                name="delay",
            )
        if not _is_integer(cfg.history, least=1):
            raise InvalidInputError(
                f"The {self.label} has history {cfg.history!r}: it must be an integer "
                "≥ 1.",
                name="history",
            )
        scales = cfg.scale if isinstance(cfg.scale, tuple) else (cfg.scale,)
        if cfg.scale is not None and not all(is_number(scale) for scale in scales):
            raise InvalidInputError(
                f"The {self.label} has scale {cfg.scale!r}: it must be a number, or a "
                "tuple with one for each column.",
                name="scale",
            )
        check_range(self.label, "clip", cfg.clip, finite=False)


def _is_integer(value: object, least: int) -> bool:
    """Return True for an int, not a bool, of at least `least`."""
    return type(value) is int and value >= least


def _range_of(delay: int | tuple[int, int]) -> tuple[int, int]:
    """Return a delay as a range."""
    return delay if isinstance(delay, tuple) else (delay, delay)


def _key(term: Term) -> Hashable:
    """Return a key that identifies a term's value: the function and its parameters."""
    key = (term.function, tuple(term.params.items()))
    try:
        hash(key)
    except TypeError:  # a list or the like: the value is not shared
        return object()
    return key
