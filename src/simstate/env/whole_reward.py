"""WholeReward: a reward that is one function, with its parts as infos."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from simstate.base.errors import InvalidInputError
from simstate.env.backend import backend_of
from simstate.env.env_cfg import RewardTermCfg, TermCfg
from simstate.env.term_plan import RewardSum
from simstate.env.terms import Term

if TYPE_CHECKING:
    from simstate.env.env import Env

Infos = dict[str, Any]
"""Values by name, a row for each world."""


class WholeReward(RewardSum):
    """A function that returns the reward of a step, as `EnvCfg.reward` declares it."""

    def __init__(self, env: Env, cfg: TermCfg, shipped: ModuleType) -> None:
        term = RewardTermCfg(cfg.func, params=cfg.params, weight=1.0)
        term.place = cfg.place
        super().__init__(env, {"reward": term}, shipped)

    def compute(self) -> Any:
        """Return the reward of this step and add it to the episode; (num_envs,)."""
        (term,), env, backend = self.terms, self._env, self._backend
        found: Any = term()
        value: Any = found
        self.infos = {}
        if isinstance(found, tuple) and len(cast("tuple[Any, ...]", found)) == 2:
            value, parts = cast("tuple[Any, Any]", found)
            self.infos = _named(term, parts)
        reward = backend.empty((1, env.num_envs), env.dtype)
        reward[0] = self._plan.checked(value, term)
        self._plan.check_finite(reward)
        self._arrays[1][:] += reward.T
        return reward[0]

    def set_weight(self, name: str, weight: float) -> None:
        """Raise an error, because a single function has no weights."""
        del weight
        raise InvalidInputError(
            f"The reward is one function (EnvCfg.reward), so {name!r} has no weight: "
            "give the function a parameter.",
            name=name,
        )


class InfoTerms:
    """The infos of an environment: those of `EnvCfg.info`, and parts of the reward."""

    def __init__(self, env: Env, cfg: TermCfg | None, shipped: ModuleType) -> None:
        self.terms = [] if cfg is None else [Term("info", "info", cfg, shipped, env)]
        self._backend, self._num_envs = backend_of(env), env.num_envs

    def compute(self, parts: Infos) -> Infos:
        """Return copies of the infos of all worlds, with further `parts`."""
        found = dict(parts)
        for term in self.terms:
            found |= _named(term, term())
        for name, values in found.items():
            array = self._backend.as_array(values)
            if array is None or array.ndim < 1 or len(array) != self._num_envs:
                raise InvalidInputError(
                    f"The info {name!r} must have a row for each of the "
                    f"{self._num_envs} worlds, got {values!r}.",
                    name=name,
                )
            found[name] = self._backend.copy(array)
        return found


def _named(term: Term, infos: object) -> Infos:
    """Return the infos of a term, or raise unless they are a dictionary by name."""
    if not isinstance(infos, Mapping):
        got = type(infos).__name__
        raise term.error(f"must return infos as a dictionary by name, got {got}")
    return dict(cast("Mapping[str, Any]", infos))
