"""TermPlan: bound calls of terms; rewards and ends of episodes, computed by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from simstate.base.checks import one_of
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.base.ids import int_list
from simstate.base.places import written_at
from simstate.env.backend import backend_of
from simstate.env.env_cfg import (
    END_KINDS,
    EndKind,
    RewardTermCfg,
    TerminationTermCfg,
    is_number,
)
from simstate.env.terms import Term
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env

DIVERGED = "diverged"
"""The termination that every environment has: a world that diverged has ended."""


class TermPlan:
    """Calls of terms with everything resolved, which a step runs in a loop.

    Args:
        env: the environment.
        terms: the terms, in the order of their calls.
        ndim: the minimum number of dimensions of their values, a row for each world.
        most: the maximum number of dimensions; None: `ndim`.
    """

    def __init__(
        self, env: Env, terms: Sequence[Term], ndim: int, most: float | None = None
    ) -> None:
        worlds = worlds_of(env.sim)
        self._terms = list(terms)
        self._ledger, self._fresh = worlds.ledger, worlds.fresh
        self._backend = backend_of(env)
        self._num_envs, self._ndim = env.num_envs, ndim
        self._most = ndim if most is None else most
        self._device = env.device
        self._diverged = self._backend.array(env.sim.diverged)
        self._calls: list[tuple[str, Any, bool, bool]] = []
        before = False
        for term in terms:
            settles = term.is_either and not before
            self._calls.append((term.scope, term.bound, term.is_either, settles))
            before = term.is_either

    def run(self) -> list[Any]:
        """Return the value of each term, as arrays of the backend."""
        ledger, fresh, kind = self._ledger, self._fresh, self._backend.kind
        count, least, most = self._num_envs, self._ndim, self._most
        real = self._backend.real
        found: list[Any] = []
        try:
            for scope, call, is_either, settles in self._calls:
                ledger.scope = scope
                if settles:  # the following terms do not write raw fields
                    fresh.settle()
                elif not is_either:
                    fresh.unsettle()
                value = call()
                if (
                    type(value) is not kind
                    or kind is Tensor
                    or not least <= value.ndim <= most
                    or len(value) != count
                ):
                    value = self._shaped(value, self._terms[len(found)])
                if value.dtype not in real:
                    value = self._real(value, self._terms[len(found)])
                found.append(value)
        except Exception as error:
            self._terms[len(found)].annotate(error)
            raise
        finally:
            ledger.scope = ""
            fresh.unsettle()
        return found

    def checked(self, value: Any, term: Term) -> Any:
        """Return the value of a term as an array; raise for a wrong shape or dtype."""
        value = self._shaped(value, term)
        is_common = value.dtype in self._backend.real
        return value if is_common else self._real(value, term)

    def rows(self, dtype: torch.dtype) -> Any:
        """Return the values of the terms as rows, all finite; (terms, num_envs)."""
        parts = self._backend.empty((len(self._terms), self._num_envs), dtype)
        for k, value in enumerate(self.run()):
            parts[k] = value
        self.check_finite(parts)
        return parts

    def check_finite(self, parts: Any) -> None:
        """Raise for the first term with a value that is not finite in its row."""

        def error(invalid: Any) -> InvalidInputError:
            term, world = (int(axis[0]) for axis in self._backend.xp.where(invalid))
            return self._terms[term].not_finite_error(float(parts[term, world]), world)

        self._backend.check_finite(parts, self._diverged, error)

    def _shaped(self, value: Any, term: Term) -> Any:
        """Return the value of a term as an array, if it has the right shape."""
        backend = self._backend
        if isinstance(value, Tensor):
            if value.device.type != self._device.type:
                raise term.error(
                    f"returned a tensor on the device {str(value.device)!r}, and the "
                    f"environment is on {str(self._device)!r}: create it with "
                    "device=env.device"
                )
            value = backend.array(value)  # without the graph, which results would keep
        fits = isinstance(value, backend.kind)
        fits = fits and self._ndim <= value.ndim <= self._most
        if fits and len(value) == self._num_envs:
            return value
        count = self._num_envs
        want = f"({count},)" if self._ndim == 1 else f"({count}, k)"
        if self._most > self._ndim:
            want += f" or ({count}, …, k)"
        shape = getattr(value, "shape", None)
        got = type(value).__name__ if shape is None else tuple(shape)
        hint = self._hint(value)
        raise term.error(f"must return shape {want}, got {got}{hint}", shape=shape)

    def _hint(self, value: Any) -> str:
        """Return a hint for a value of a frequent wrong shape; else ""."""
        shape = tuple(getattr(value, "shape", ()))
        if value is None:
            return ": is a return statement missing?"
        if self._ndim == 2 and shape == (self._num_envs,):
            return ": add [:, None]"
        if self._ndim == 1 and shape == (self._num_envs, 1):
            return ": use [:, 0]"
        return ""

    def _real(self, value: Any, term: Term) -> Any:
        """Return values of a less frequent dtype as float64, if they are real.

        Pictures keep theirs.
        """
        name = str(value.dtype).removeprefix("torch.")
        if not name.startswith(("float", "bfloat", "int", "uint")):
            raise term.error(f"must return real numbers or booleans, got {name}")
        if value.ndim > 2:
            return value
        return self._backend.cast(value, torch.float64)


class RewardSum:
    """The reward terms with their weights, and the sum of each in the episode."""

    def __init__(
        self, env: Env, cfgs: dict[str, RewardTermCfg], shipped: ModuleType
    ) -> None:
        self.terms = [
            Term("reward", name, cfg, shipped, env) for name, cfg in cfgs.items()
        ]
        self.names = [term.name for term in self.terms]
        weights = [_weight_of(name, cfg) for name, cfg in cfgs.items()]
        ledger, backend = worlds_of(env.sim).ledger, backend_of(env)
        self._weights = ledger.shared(
            "env/reward/weights", torch.tensor(weights, dtype=torch.float64)
        ).tensor
        """The weights, which curricula may change; shape (terms,)."""
        self._sums = ledger.memory(
            "env/reward/sums", (len(self.terms),), env.dtype, owner="env"
        ).tensor
        """Weighted sum of each term in the episode; shape (num_envs, terms)."""
        self.infos: dict[str, Any] = {}
        """The parts of the last reward, if it is one function that returns them."""
        self._env, self._backend = env, backend
        self._arrays = backend.array(self._weights), backend.array(self._sums)
        self._plan = TermPlan(env, self.terms, 1)

    def compute(self) -> Any:
        """Return the reward of this step and add it to the episode; (num_envs,)."""
        env, backend = self._env, self._backend
        if not self.terms:
            return backend.constant([0.0] * env.num_envs, env.dtype)
        parts = self._plan.rows(env.dtype)
        weights, sums = self._arrays
        parts *= backend.cast(weights * env.step_dt, env.dtype)[:, None]
        sums += parts.T
        return backend.ordered_sum(parts)

    def episode_sum(self, name: str) -> Tensor:
        """Return the weighted sum of a term since the last reset; shape (num_envs,)."""
        return self._sums[:, self._index(name)]

    def episode_sums(self, env_ids: Tensor) -> dict[str, Tensor]:
        """Return the weighted sums of the terms in some worlds' episodes; (n,)."""
        sums = self._sums[env_ids].clone()
        return dict(zip(self.names, sums.unbind(1), strict=True))

    def weight(self, name: str) -> float:
        """Return the weight of a term."""
        return float(self._weights[self._index(name)])

    def set_weight(self, name: str, weight: float) -> None:
        """Change the weight of a term from the next step on."""
        self._weights[self._index(name)] = _weight(name, weight)

    def log(self, env_ids: Tensor, episode_length_s: float) -> dict[str, float]:
        """Return the mean sum of each term per second of a full episode."""
        means = self._sums[env_ids].mean(0) / episode_length_s
        return dict(zip(self.names, means.tolist(), strict=True))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise unknown_name("reward term", name, self.names)
        return self.names.index(name)


def _weight_of(name: str, cfg: RewardTermCfg) -> float:
    with written_at(cfg.place):
        return _weight(name, cfg.weight)


def _weight(name: str, weight: float) -> float:
    if not is_number(weight):
        raise InvalidInputError(
            f"The weight of the reward term {name!r} must be a finite number, got "
            f"{weight!r}.",
            name="weight",
        )
    return float(weight)


def _check_kind(name: str, cfg: TerminationTermCfg) -> None:
    with written_at(cfg.place):
        if cfg.kind is not None:
            one_of(f"kind of the termination {name!r}", cfg.kind, END_KINDS)
        if cfg.kind == "time_out" and not cfg.time_out:
            raise InvalidInputError(
                f"The termination {name!r} has kind='time_out' but does not truncate "
                "the episode: give it time_out=True.",
                name="time_out",
            )


class EpisodeEnd:
    """The termination terms; a world that is terminated is not truncated as well."""

    def __init__(
        self, env: Env, cfgs: dict[str, TerminationTermCfg], shipped: ModuleType
    ) -> None:
        if DIVERGED in cfgs:
            raise InvalidInputError(
                f"The name {DIVERGED!r} is taken: every environment terminates "
                "diverged worlds. Give the termination term another name.",
                name=DIVERGED,
            )
        self.terms = [
            Term("termination", name, cfg, shipped, env) for name, cfg in cfgs.items()
        ]
        for name, cfg in cfgs.items():
            _check_kind(name, cfg)
        self._is_time_out = [cfg.time_out for cfg in cfgs.values()]
        self._time_outs = [k for k, is_one in enumerate(self._is_time_out) if is_one]
        self.kinds: list[EndKind] = [*(x.meaning for x in cfgs.values()), "failure"]
        """Kind of an end by each of `names`."""
        self.names = [*(term.name for term in self.terms), DIVERGED]
        memory, backend = worlds_of(env.sim).ledger.memory, backend_of(env)
        self.reasons = memory(
            "env/end/reasons", (len(self.names),), torch.bool, reset=None, owner="env"
        ).tensor
        """Terms that ended a world in the last step; bool, (num_envs, terms)."""
        self.terminated = memory(
            "env/end/terminated", (), torch.bool, reset=None, owner="env"
        ).tensor
        """Worlds that were terminated in the last step; shape (num_envs,)."""
        self.truncated = memory(
            "env/end/truncated", (), torch.bool, reset=None, owner="env"
        ).tensor
        """Worlds that were truncated in the last step; shape (num_envs,)."""
        self._backend, self._bool = backend, backend.bool
        slots = self.reasons, self.terminated, self.truncated, env.sim.diverged
        self._arrays = [backend.array(slot) for slot in slots]
        self._plan = TermPlan(env, self.terms, 1)

    def compute(self) -> tuple[Any, Any]:
        """Return the worlds that are terminated and truncated in this step."""
        reasons, terminated, truncated, diverged = self._arrays
        found = self._plan.run()
        terminated[:] = reasons[:, -1] = diverged
        truncated[:] = False
        for k, ended in enumerate(found):
            if ended.dtype != self._bool:
                raise self.terms[k].error(f"must return booleans, got {ended.dtype}")
            reasons[:, k] = ended
            kind = truncated if self._is_time_out[k] else terminated
            kind |= ended
        truncated &= ~terminated
        return terminated, truncated

    def timed_out(self) -> Any:
        """Return the worlds that timed out in the last step, terminated or not.

        A new array of the backend; shape (num_envs,).
        """
        if not self._time_outs:
            return self._backend.xp.zeros_like(self._arrays[1])
        return self._arrays[0][:, self._time_outs].any(1)

    def clear(self, env_ids: Tensor) -> None:
        """Mark these worlds as not ended."""
        for slot in (self.reasons, self.terminated, self.truncated):
            slot[env_ids] = False

    def ended_by(self, kind: EndKind) -> Tensor:
        """Return the worlds that an end of this kind ended in the last step; bool.

        A world that was terminated is not also timed out. Shape (num_envs,).
        """
        columns = [k for k, one in enumerate(self.kinds) if one == kind]
        found = self.reasons[:, columns].any(dim=1)
        return found & ~self.terminated if kind == "time_out" else found

    def log(self, env_ids: Tensor) -> dict[str, int]:
        """Return the number of these worlds that each term ended."""
        counts = int_list(self.reasons[env_ids].sum(0))
        return dict(zip(self.names, counts, strict=True))


@dataclass(frozen=True, kw_only=True)
class EndedEpisodes:
    """Rewards, metrics and reasons of the episodes that ended in a step.

    Every tensor has one entry for each of the n worlds in `env_ids`.
    """

    env_ids: Tensor
    """The worlds, ascending, int64; shape (n,)."""
    length: Tensor
    """Environment steps of the episode, int64; shape (n,)."""
    returns: Tensor
    """Sum of the rewards; shape (n,)."""
    rewards: dict[str, Tensor]
    """Weighted sum of each reward term; shape (n,) each."""
    metrics: dict[str, Tensor]
    """Value of each metric; shape (n,) each."""
    reasons: dict[str, Tensor]
    """True where a termination term ended the world; bool, shape (n,) each."""
    kinds: dict[EndKind, Tensor]
    """True where the end was a failure, a success, …; bool, shape (n,) each."""

    def reason(self, row: int) -> str:
        """Return the names of the terms that ended a world, joined by commas."""
        return ",".join(name for name, ended in self.reasons.items() if ended[row])
