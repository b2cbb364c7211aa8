"""Observation groups: terms concatenated, or by name if their shapes do not fit."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from simstate.base.contract import Contract
from simstate.base.errors import InvalidInputError
from simstate.env.backend import backend_of
from simstate.env.env_cfg import ObservationGroupCfg
from simstate.env.observation_noise import UniformNoise
from simstate.env.observation_term import ObservationSpec, ObservationTerm
from simstate.env.term_plan import TermPlan
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env

Observations = dict[str, Any]
"""A tensor (num_envs, …) for each group, or a dictionary of them by term."""


def flat(groups: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of groups by "group", or "group/term" of dictionaries."""
    found: dict[str, Any] = {}
    for name, value in groups.items():
        if isinstance(value, dict):
            terms = cast("dict[str, Any]", value)
            found |= {f"{name}/{key}": one for key, one in terms.items()}
        else:
            found[name] = value
    return found


def nested(values: Mapping[str, Any], like: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inverse of `flat`, with dictionaries where `like` has them."""
    found: dict[str, Any] = {}
    for name, one in like.items():
        if isinstance(one, dict):
            keys = cast("dict[str, Any]", one)
            found[name] = {key: values[f"{name}/{key}"] for key in keys}
        else:
            found[name] = values[name]
    return found


class ObservationGroups:
    """The observation groups of an environment, and their latest observations.

    A function that several groups have is called once for all of them.
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
        unique: dict[Hashable, ObservationTerm] = {}
        for term in self.terms:
            unique.setdefault(term.key, term)
        self._plan = TermPlan(env, list(unique.values()), 2, math.inf)
        index = {key: k for k, key in enumerate(unique)}
        self._places = [
            [index[term.key] for term in group.terms] for group in self.groups
        ]
        """Index of the value of each group's terms among those of the plan."""
        self._may_change: tuple[int, list[str]] = (0, [])
        """Number of slots, and names of the slots that terms may change."""
        self._latest: dict[str, tuple[Tensor, Any]] = {}
        """Last observation of each part, live: as a tensor and as an array."""
        self._structure: dict[str, dict[str, None] | None] = {}
        """By group: its terms if it is a dictionary, else None."""

    @property
    def parts(self) -> dict[str, Columns | Arrays]:
        """The tensors of all groups, by "group" or "group/term"."""
        return {part.name: part for group in self.groups for part in group.parts}

    def latest(self) -> Observations:
        """Return a copy of the latest observations, by group."""
        seen = {name: slot.clone() for name, (slot, _) in self._latest.items()}
        return nested(seen, self._structure)

    def specs(self) -> dict[str, Any]:
        """Return shape, dtype and bounds of each group, or of each of its terms."""
        specs = {name: part.spec for name, part in self.parts.items()}
        return nested(specs, self._structure)

    def observe(self, env_ids: Tensor | None = None) -> Observations:
        """Return the observations by group, and keep them as the latest.

        `env_ids` are the worlds that start an episode; None: a step of all worlds.
        """
        kept = {} if env_ids is None else self._others_memory()
        found, seen = self._plan.run(), dict[str, Tensor]()
        tensor, rows = self._backend.tensor, slice(None)
        if env_ids is not None:
            rows = self._backend.array(env_ids)
            found = [value[rows] for value in found]
        for group, places in zip(self.groups, self._places, strict=True):
            for part in group.divided([found[k] for k in places]):
                values = part.compute([found[places[k]] for k in part.places], env_ids)
                if part.name not in self._latest:
                    self._remember(part.name, tensor(values))
                self._latest[part.name][1][rows] = values
                seen[part.name] = tensor(values)
        for name, values in kept.items():
            live = self._ledger[name].tensor
            values[env_ids] = live[env_ids]
            live.copy_(values)
        if not self._structure:
            self._structure = {group.name: group.keys() for group in self.groups}
        return nested(seen, self._structure)

    def _remember(self, name: str, values: Tensor) -> None:
        slot = self._ledger.memory(
            f"env/observation/{name}", tuple(values.shape[1:]), values.dtype,
            reset=None, owner="env",
        )  # fmt: skip
        self._latest[name] = slot.tensor, self._backend.array(slot.tensor)

    def _others_memory(self) -> dict[str, Tensor]:
        """Return memory that observation terms may change: slots and random streams.

        A term is computed for all worlds, even if only some were reset. That additional
        call must not change its memory of the other worlds.
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
    """The terms of one group: one tensor if their shapes fit, else one for each."""

    def __init__(
        self, env: Env, name: str, cfg: ObservationGroupCfg, shipped: ModuleType
    ) -> None:
        if not cfg.terms:
            raise InvalidInputError(
                f"The observation group {name!r} has no terms.", name=name
            )
        self.name = name
        self.terms = [
            ObservationTerm(env, name, key, term, shipped, cfg.noise)
            for key, term in cfg.terms.items()
        ]
        self.parts: list[Columns | Arrays] = []
        """Its tensors; none before the first observation."""
        self._env = env

    def keys(self) -> dict[str, None] | None:
        """Return the names of its terms if it is a dictionary, else None."""
        return {part.key: None for part in self.parts} if self.parts[0].key else None

    def divided(self, found: Sequence[Any]) -> list[Columns | Arrays]:
        """Return its parts, which the first values of its terms determine.

        Columns are concatenated, and so are arrays of one dtype whose shapes differ
        only in the last axis.
        """
        if self.parts:
            return self.parts
        for term, value in zip(self.terms, found, strict=True):
            term.learn_shape(value)
        kinds = {(term.dtype, term.shape[:-1]) for term in self.terms}
        if len(kinds) == 1:
            self.parts = [self._part("", range(len(self.terms)))]
        else:
            self.parts = [self._part(t.name, [k]) for k, t in enumerate(self.terms)]
        return self.parts

    def _part(self, key: str, places: Sequence[int]) -> Columns | Arrays:
        terms = [self.terms[k] for k in places]
        kind = Arrays if terms[0].is_array else Columns
        name = f"{self.name}/{key}" if key else self.name
        return kind(self._env, name, key, terms, places)


class _Part:
    """One tensor of a group: terms concatenated along the last axis.

    Args:
        env: the environment.
        name: "group", or "group/term" in a dictionary.
        key: the term's name in a dictionary, or "".
        terms: its terms.
        places: their positions in the group.
    """

    def __init__(
        self,
        env: Env,
        name: str,
        key: str,
        terms: Sequence[ObservationTerm],
        places: Sequence[int],
    ) -> None:
        self.name, self.key, self.places = name, key, places
        self._env = env
        self.terms = terms
        """Its terms, in the order of the last axis."""
        self._backend = backend_of(env)
        self._diverged = self._backend.array(env.sim.diverged)
        self._width = 0
        for term in terms:
            self._width = term.place_at(self._width)

    @property
    def spec(self) -> ObservationSpec:
        """Shape, dtype and bounds of an observation of one world."""
        each = [term.spec for term in self.terms]
        low, high = min(one.low for one in each), max(one.high for one in each)
        return each[0]._replace(
            shape=(*each[0].shape[:-1], self._width), low=low, high=high
        )

    def _check_finite(self, values: Any, env_ids: Tensor | None) -> None:
        excused = self._diverged
        if env_ids is not None:
            excused = excused[self._backend.array(env_ids)]
        excused = excused.reshape(-1, *[1] * (values.ndim - 1))
        self._backend.check_finite(
            values, excused, lambda bad: self._error(values, bad, env_ids)
        )

    def _error(
        self, values: Any, invalid: Any, env_ids: Tensor | None
    ) -> InvalidInputError:
        """Return the error of the first term that has a value which is not finite."""
        term = next(term for term in self.terms if invalid[..., term.at].any())
        where = tuple(
            int(axis[0]) for axis in self._backend.xp.where(invalid[..., term.at])
        )
        world = where[0] if env_ids is None else int(env_ids[where[0]])
        return term.not_finite_error(float(values[..., term.at][where]), world)


class Arrays(_Part):
    """Arrays of one dtype, such as pictures, concatenated along the last axis."""

    def compute(self, found: Sequence[Any], env_ids: Tensor | None) -> Any:
        """Return the observations for the values of its terms; shape (n, …).

        They belong to all worlds, or to `env_ids`, which have just been reset.
        """
        each = [
            term.observed(value, env_ids)
            for term, value in zip(self.terms, found, strict=True)
        ]
        values = self._backend.array(each[0] if len(each) == 1 else torch.cat(each, -1))
        if each[0].dtype.is_floating_point:
            self._check_finite(values, env_ids)
        return values


class Columns(_Part):
    """Columns of terms, concatenated; shape (n, k)."""

    @cached_property
    def _blocks(self) -> list[ColumnBlock]:
        """Blocks of adjacent terms that are processed together.

        Their processing depends only on the column. The draws are those of single
        terms.
        """
        blocks: list[dict[int, ObservationTerm]] = []
        is_open = False
        for k, term in enumerate(self.terms):
            if is_open and term.is_plain:
                blocks[-1][k] = term
            else:
                blocks.append({k: term})
            is_open = term.is_plain
        return [ColumnBlock(self._env, block) for block in blocks]

    def compute(self, found: Sequence[Any], env_ids: Tensor | None) -> Any:
        """Return the observations for the values of its terms; shape (n, k).

        They belong to all worlds, or to `env_ids`, which have just been reset.
        """
        values = self._backend.empty((len(found[0]), self._width), self._env.dtype)
        for block in self._blocks:
            block.write(found, values, env_ids)
        self._check_finite(values, env_ids)
        return values

    def column_names(self) -> list[str]:
        """Return a readable name for each column."""
        return [name for term in self.terms for name in term.names()]

    def contracts(self) -> list[Contract]:
        """Unit, axes and point of each column."""
        return [contract for term in self.terms for contract in term.contracts()]


class ColumnBlock:
    """Adjacent columns of a group, written and processed together.

    It has one term, or several with no more than uniform noise, clip and scale.
    """

    def __init__(self, env: Env, block: Mapping[int, ObservationTerm]) -> None:
        self._env = env
        self._terms, terms = list(block.items()), list(block.values())
        self._alone = None if terms[0].is_plain else terms[0]
        self._at = slice(terms[0].at.start, terms[-1].at.stop)
        self._backend = backend_of(env)
        constant = self._backend.constant
        spans, clips, scales = list[Any](), list[Any](), list[Any]()
        self._noisy: list[tuple[slice, slice]] = []
        """Columns with noise, and the columns of the draws that they get."""
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
            term.check_shape(found[at])
            raw = self._backend.empty((len(out), term.width), self._env.dtype)
            raw[:] = found[at]
            seen = term.processed(self._backend.tensor(raw), env_ids)
            out[:, term.at] = self._backend.array(seen)
            return
        for place, term in self._terms:
            value = found[place]
            if value.shape[1] != term.width:
                term.check_shape(value)
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
