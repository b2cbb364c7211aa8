"""Observation groups: terms side by side; noise, clip, scale, delay and history."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from simstate.base.contract import Contract
from simstate.base.errors import InvalidInputError, ShapeError
from simstate.base.places import remember_place, written_at
from simstate.env.backend import backend_of
from simstate.env.contracts import contracts_of
from simstate.env.env_cfg import (
    ObservationGroupCfg,
    ObservationTermCfg,
    is_number,
    is_whole,
)
from simstate.env.observation_noise import NoiseMemory, ObservationNoise, UniformNoise
from simstate.env.term_plan import TermPlan
from simstate.env.terms import Term
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env

Observations = dict[str, Tensor]


class ObservationGroups:
    """The observation groups of an environment, and what they saw last.

    Each function is called once for all groups that have it.
    """

    def __init__(
        self, env: Env, cfgs: Mapping[str, ObservationGroupCfg], shipped: ModuleType
    ) -> None:
        self._env = env
        self._backend = backend_of(env)
        self._ledger = worlds_of(env.sim).ledger
        self.groups = [
            ObservationGroup(env, name, cfg, shipped) for name, cfg in cfgs.items()
        ]
        self.terms = [term for group in self.groups for term in group.terms]
        unique = {term.key: term for term in reversed(self.terms)}
        keys = list(dict.fromkeys(term.key for term in self.terms))
        self._plan = TermPlan(env, [unique[key] for key in keys], 2)
        self._places = [
            [keys.index(term.key) for term in group.terms] for group in self.groups
        ]
        """The values of each group's terms among those of the plan."""
        self._may_change: tuple[int, list[str]] = (0, [])
        """How many slots there were, and which of them terms may change."""
        self.latest: Observations = {}
        """What was seen last, by group, live; shape (num_envs, k)."""
        self._latest: dict[str, Any] = {}

    def observe(self, env_ids: Tensor | None = None) -> Observations:
        """What all worlds see now, by group; of `env_ids` at the start of an episode.

        It is kept as the latest.
        """
        kept = {} if env_ids is None else self._others_memory()
        found, seen = self._plan.run(), Observations()
        tensor, rows = self._backend.tensor, slice(None)
        if env_ids is not None:
            rows = self._backend.array(env_ids)
            found = [value[rows] for value in found]
        for group, places in zip(self.groups, self._places, strict=True):
            values = group.compute([found[k] for k in places], env_ids)
            if group.name not in self.latest:
                self._remember(group.name, values)
            self._latest[group.name][rows] = values
            seen[group.name] = tensor(values)
        for name, values in kept.items():
            live = self._ledger[name].tensor
            values[env_ids] = live[env_ids]
            live.copy_(values)
        return seen

    def _remember(self, name: str, values: Any) -> None:
        slot = self._ledger.memory(
            f"env/observation/{name}", tuple(values.shape[1:]), self._env.dtype,
            reset=None, owner="env",
        )  # fmt: skip
        self.latest[name] = slot.tensor
        self._latest[name] = self._backend.array(slot.tensor)

    def _others_memory(self) -> dict[str, Tensor]:
        """What observation terms may change in all worlds: memory and random streams.

        A term is computed for all of them, also where some have just been reset: then
        it has looked once more at the others, which must not change what it remembers.
        """
        slots = self._ledger.slots
        if self._may_change[0] != len(slots):
            scopes = tuple(f"env/{term.scope}/" for term in self.terms)
            names = [
                slot.name
                for slot in slots.values()
                if slot.name.startswith((*scopes, "memory/", "random/count"))
                and not slot.shared
            ]
            self._may_change = (len(slots), names)
        return {name: slots[name].tensor.clone() for name in self._may_change[1]}


class ObservationGroup:
    """The terms of one group, computed together into one array."""

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
        self._env = env
        self._backend = backend_of(env)
        self._diverged = self._backend.array(env.sim.diverged)[:, None]
        self._width = 0
        """The number of columns; 0: not computed yet."""
        self._blocks: list[ColumnBlock] = []

    def compute(self, found: Sequence[Any], env_ids: Tensor | None) -> Any:
        """The observations of what its terms have returned; shape (n, k).

        Of all worlds, or of `env_ids`, which have just been reset.
        """
        env, backend = self._env, self._backend
        if not self._width:
            self._divide(found)
        values = backend.empty((len(found[0]), self._width), env.dtype)
        for block in self._blocks:
            block.write(found, values, env_ids)
        excused = self._diverged
        if env_ids is not None:
            excused = excused[backend.array(env_ids)]
        backend.check_finite(
            values, excused, lambda bad: self._error(values, bad, env_ids)
        )
        return values

    def _divide(self, found: Sequence[Any]) -> None:
        """Divide the columns into blocks, once widths are known.

        Adjacent terms whose processing depends on the column only are one block: a few
        calls do it for all of them, and worlds draw the same numbers as term by term.
        """
        first, blocks = 0, list[list[ObservationTerm]]()
        for term, value in zip(self.terms, found, strict=True):
            first = term.take_columns(first, value)
            if blocks and blocks[-1][-1].is_plain and term.is_plain:
                blocks[-1].append(term)
            else:
                blocks.append([term])
        place = {term: k for k, term in enumerate(self.terms)}
        self._blocks = [
            ColumnBlock(self._env, block, [place[term] for term in block])
            for block in blocks
        ]
        self._width = first

    def _error(
        self, values: Any, invalid: Any, env_ids: Tensor | None
    ) -> InvalidInputError:
        """The error of the first term that has a value which is not finite."""
        term = next(term for term in self.terms if invalid[:, term.at].any())
        where = self._backend.xp.where(invalid[:, term.at])
        row, column = (int(axis[0]) for axis in where)
        world = row if env_ids is None else int(env_ids[row])
        return term.not_finite_error(float(values[row, term.at][column]), world)

    def column_names(self) -> list[str]:
        """A readable name for each column."""
        return [name for term in self.terms for name in term.names()]

    def contracts(self) -> list[Contract]:
        """Unit, axes and point of each column."""
        return [contract for term in self.terms for contract in term.contracts()]


class ColumnBlock:
    """Adjacent columns of a group, written and processed together.

    Either those of one term, or of terms with at most uniform noise, clip and scale.
    """

    def __init__(
        self, env: Env, terms: Sequence[ObservationTerm], places: Sequence[int]
    ) -> None:
        self._env = env
        self._terms = list(zip(places, terms, strict=True))
        self._alone = None if terms[0].is_plain else terms[0]
        self._at = slice(terms[0].at.start, terms[-1].at.stop)
        self._backend = backend_of(env)
        constant = self._backend.constant
        spans, clips, scales = list[Any](), list[Any](), list[Any]()
        self._noisy: list[tuple[slice, slice]] = []
        """Columns with noise, and where their noise is among the numbers drawn."""
        for term in terms:
            width, first = term.width, term.at.start
            if isinstance(term.noise, UniformNoise):
                drawn = slice(len(spans), len(spans) + width)
                if self._noisy and self._noisy[-1][0].stop == first:
                    at, of = self._noisy.pop()
                    first, drawn = at.start, slice(of.start, drawn.stop)
                self._noisy.append((slice(first, term.at.stop), drawn))
                spans += [(term.noise.low, term.noise.high)] * width
            clips += [term.clip or (-math.inf, math.inf)] * width
            scale = 1.0 if term.scale is None else term.scale
            scales += scale if isinstance(scale, tuple) else [scale] * width
        self._noise = [constant([s[i] for s in spans], torch.float64) for i in (0, 1)]
        has_clip = any(term.clip is not None for term in terms)
        self._clip = [
            constant([c[i] for c in clips], env.dtype) for i in (0, 1) if has_clip
        ]
        has_scale = any(term.scale is not None for term in terms)
        self._scale = constant(scales, env.dtype) if has_scale else None

    def write(self, found: Sequence[Any], out: Any, env_ids: Tensor | None) -> None:
        """Write its columns of the observations of some worlds; None: all."""
        if self._alone is not None:
            at, term = self._terms[0][0], self._alone
            term.check_width(found[at])
            raw = self._backend.empty((len(out), term.width), self._env.dtype)
            raw[:] = found[at]
            seen = term.processed(self._backend.tensor(raw), env_ids)
            out[:, term.at] = self._backend.array(seen)
            return
        for place, term in self._terms:
            value = found[place]
            if value.shape[1] != term.width:
                term.check_width(value)
            out[:, term.at] = value
        if self._noisy:
            backend = self._backend
            drawn = backend.uniform(self._env.rng, env_ids, *self._noise)
            drawn = backend.cast(drawn, self._env.dtype)
            for at, of in self._noisy:
                out[:, at] += drawn[:, of]
        own = out[:, self._at]
        if self._clip:
            self._backend.xp.clip(own, *self._clip, out=own)
        if self._scale is not None:
            own *= self._scale


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
        self.clip, self.scale, self.history = cfg.clip, cfg.scale, cfg.history
        self.delay = _range_of(cfg.delay)
        with written_at(self.place):
            self._check(cfg)
        self.width = 0
        """The number of columns that the function returns; 0: not called yet."""
        self.at = slice(0, 0)
        """Its columns in the group."""
        self._memory: dict[str, Tensor] = {}

    @property
    def is_plain(self) -> bool:
        """Whether noise, clip and scale depend on nothing but the column."""
        even = self.noise is None or type(self.noise) is UniformNoise
        return even and self.history == 1 and self.delay[1] == 0

    def take_columns(self, first: int, value: Any) -> int:
        """Take the columns from `first` on; return the first that is free then."""
        self.width = value.shape[1]
        if isinstance(self.scale, tuple) and len(self.scale) != self.width:
            raise self._shape_error(
                f"has {len(self.scale)} scales for {self.width} numbers: give one for "
                "each, or a single one",
                value,
            )
        self.at = slice(first, first + self.width * self.history)
        return self.at.stop

    def check_width(self, value: Any) -> None:
        """Raise unless the function returns as many columns as before."""
        if value.shape[1] != self.width:
            raise self._shape_error(
                f"returned {value.shape[1]} columns, and {self.width} before: their "
                "number must stay",
                value,
            )

    def _shape_error(self, what: str, value: Any) -> ShapeError:
        error = ShapeError(
            f"The {self.label} {what}.", name=self.label, shape=value.shape
        )
        remember_place(error, self.place)
        return error

    def processed(self, value: Tensor, env_ids: Tensor | None) -> Tensor:
        """The value with all that is done to it; (n, k), then (n, history · k)."""
        env, restart = self._env, env_ids is not None
        rows = slice(None) if env_ids is None else env_ids
        if self.noise is not None:
            shape = (self.noise.remembers, self.width)
            memory = NoiseMemory(self._slot("noise", shape), restart, env.step_dt)
            value = self.noise.measure(value, env.rng, rows, memory)
        if self.clip is not None:
            value = value.clamp(*self.clip)
        if self.scale is not None:
            value = value * torch.tensor(self.scale, dtype=value.dtype).to(value)
        if self.history == 1 and self.delay[1] == 0:
            return value
        return self._recalled(rows, value, restart)

    def _recalled(self, rows: Any, value: Tensor, restart: bool) -> Tensor:
        """Take note of a value, and return the last `history` ones as seen late."""
        low, high = self.delay
        length = high + self.history
        kept = self._slot("delay/past", (length, self.width))
        lag = self._slot("delay/lag", (), torch.int64)
        if restart:
            past = value[:, None].expand(-1, length, -1)
            spread = self._env.rng.uniform(rows, 1, low, high + 1)[:, 0]
            lag[rows] = spread.to(torch.int64).clamp(max=high)
        else:
            past = torch.cat([kept[rows][:, 1:], value[:, None]], dim=1)
        kept[rows] = past
        if high == 0:
            return past.flatten(1)
        first = (high - lag[rows])[:, None]
        steps = first + torch.arange(self.history, device=value.device)
        seen = past.gather(1, steps[..., None].expand(-1, -1, value.shape[1]))
        return seen.flatten(1)

    def _slot(
        self, name: str, shape: tuple[int, ...], dtype: torch.dtype | None = None
    ) -> Tensor:
        """What it remembers of each world; live, shape (num_envs, …)."""
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
        """A readable name for each column; of a history, with its age in steps."""
        names = self.column_names(self.width)
        if len(names) != self.width:
            raise ShapeError(
                f"The {self.label} has {self.width} columns, but names for "
                f"{len(names)}.",
                name=self.label,
                shape=[self.width],
            )
        if self.history == 1:
            return names
        ages = range(self.history - 1, -1, -1)
        return [f"{name}@-{age}" if age else name for age in ages for name in names]

    def contracts(self) -> list[Contract]:
        """Unit, axes and point of each column, as it is scaled."""
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
                "UniformNoise, a GaussianNoise or a SensorNoise."
            )
        delay = self.delay
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
