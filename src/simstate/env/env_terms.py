"""EnvTerms: the terms of a task, resolved in its worlds, and their reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from simstate.base.errors import listed
from simstate.base.ids import Ids
from simstate.base.notebook import html_summary
from simstate.env import (
    curricula,
    events,
    observations,
    rewards,
    terminations,
)
from simstate.env.divergence_log import DivergenceLog
from simstate.env.drivers import ActionTerms, CommandTerms, EventSchedule
from simstate.env.env_cfg import END_KINDS
from simstate.env.env_worlds import EnvWorlds
from simstate.env.framework_names import unknown_attribute
from simstate.env.groups import Columns, ObservationGroups, Observations
from simstate.env.memory_check import Parts
from simstate.env.metrics import Metrics
from simstate.env.symmetry import Symmetry
from simstate.env.term_plan import EndedEpisodes, EpisodeEnd, RewardSum
from simstate.env.terms import Term
from simstate.env.whole_reward import InfoTerms, WholeReward
from simstate.state import Snapshot, restore_snapshot, take_snapshot
from simstate.view import thumbnail
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.env.env import Env


class EnvTerms(EnvWorlds):
    """Actions, observations, rewards, ends and events of an environment.

    They are created once, by `_make_terms`; a step calls them.
    """

    _parts: Parts

    def _make_terms(self) -> None:
        """Resolve every term of the configuration."""
        env, cfg = cast("Env", self), self.cfg
        self.actions = ActionTerms(env, cfg.actions)
        """The action terms by name; the columns of an action are in their order."""
        self.action = self.actions.last
        """The last action as it was given, zero after a reset; float32."""
        self.previous_action = self.actions.previous
        """The one before; zero after a reset; float32."""
        self.commands = CommandTerms(env, cfg.commands)
        """The commands by name."""
        self.rewards = (
            RewardSum(env, cfg.rewards, rewards)
            if cfg.reward is None
            else WholeReward(env, cfg.reward, rewards)
        )
        """The reward terms: weights, and sums over the episode."""
        self.infos = InfoTerms(env, cfg.info, observations)
        """The function that returns infos."""
        self.ends = EpisodeEnd(env, cfg.terminations, terminations)
        """The termination terms, and the worlds that each has ended."""
        self.metrics = Metrics(env, cfg.metrics, rewards)
        """The metric terms, and their values in the episode."""
        self.events = EventSchedule(env, cfg.events, events)
        """The events, and when each is due."""
        self.divergence = DivergenceLog(
            self.sim,
            cfg.divergence_dump_dir,
            cfg.max_divergence_dumps,
            1 if self.actions.acting else cfg.decimation,
        )
        """Number of worlds that diverged, and their snapshots."""
        self._curricula = [
            Term("curriculum", name, term, curricula, env, leading=2)
            for name, term in cfg.curricula.items()
        ]
        self._groups = ObservationGroups(env, cfg.observations, observations)
        slots = self._step_count, self._episode_length
        self._clocks = [self._backend.array(slot) for slot in slots]
        self._newly_diverged = self._backend.array(self.sim.divergence.new)

    def _describe_observations(self) -> None:
        """Describe each group by its first observation."""
        parts = self._groups.parts
        self.observation_specs = self._groups.specs()
        """Shape, dtype and bounds of each group, or by term where it is a dictionary;
        an `ObservationSpec` each."""
        columns = {k: part for k, part in parts.items() if isinstance(part, Columns)}
        self.observation_dims: dict[str, int] = {
            name: part.spec.shape[0] for name, part in columns.items()
        }
        """The number of columns of each group that has columns only; of a dictionary,
        those of its terms as "group/term"."""
        self.observation_names: dict[str, list[str]] = {
            name: part.column_names() for name, part in columns.items()
        }
        """A readable name for each column, by the keys of `observation_dims`."""
        self.observation_contracts = {k: x.contracts() for k, x in columns.items()}
        """Unit, axes and point of each column, by the keys of `observation_dims`."""
        self.observation_terms = {k: tuple(x.terms) for k, x in columns.items()}
        """The terms of the columns, by the keys of `observation_dims`."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):
                return object.__getattribute__(self, name)  # raises what was raised
            raise unknown_attribute(name, self)

    def __repr__(self) -> str:
        groups = ", ".join(f"{n}: {k}" for n, k in self.observation_dims.items())
        return (
            f"Env({self.num_envs} × {', '.join(self.scene)}, "
            f"observations {{{groups}}}, action_dim={self.action_dim}, "
            f"step {self.step_dt:g} s, engine={self.sim.engine_name!r})"
        )

    def _repr_html_(self) -> str:
        cfg = self.cfg
        observations = [
            f"{g}.{t}" for g in cfg.observations for t in cfg.observations[g].terms
        ]
        kinds = {
            "observations": observations, "actions": cfg.actions,
            "commands": cfg.commands, "rewards": cfg.rewards,
            "terminations": cfg.terminations, "metrics": cfg.metrics,
            "events": cfg.events,
        }  # fmt: skip
        rows = [(k, len(terms), listed(terms)) for k, terms in kinds.items() if terms]
        head = ("terms", "count", "names")
        return html_summary(repr(self), head, rows, thumbnail(self.sim.render))

    @property
    def observations(self) -> Observations:
        """A copy of the latest observations by group.

        A group is a tensor: (num_envs, k) in the environment's dtype, or an array such
        as a picture. If its terms have different kinds, it is a dictionary of tensors.
        """
        self._recover()
        return self._groups.latest()

    @property
    def action_dim(self) -> int:
        """The number of columns of an action."""
        return len(self.action_names)

    @property
    def action_names(self) -> list[str]:
        """Name of what each column of an action drives, as "term/joint"."""
        return self.actions.columns

    @property
    def terminated(self) -> Tensor:
        """Worlds whose episode was terminated in the last step; bool, (num_envs,)."""
        self._recover()
        return self.ends.terminated

    @property
    def truncated(self) -> Tensor:
        """Worlds whose episode was truncated in the last step; bool, (num_envs,)."""
        self._recover()
        return self.ends.truncated

    @property
    def terms(self) -> list[Term]:
        """All terms that are functions or class terms."""
        rewards, ends = self.rewards.terms, self.ends.terms
        seen = [*self.metrics.terms, *self._groups.terms]
        others = [*self.events.terms, *self._curricula, *self.infos.terms]
        return [*rewards, *ends, *others, *seen]

    def symmetry(self) -> Symmetry:
        """Return the mirror image of the task: of observation groups and the action.

        Raise if a term does not state how it is mirrored, or if the model's physics is
        not symmetric; `EnvCfg.symmetry` has the plane.
        """
        found = Symmetry(cast("Env", self), self._groups.groups)
        found.check_physics()
        return found

    def snapshot(self, env_ids: Ids = None) -> Snapshot:
        """Return the complete state of worlds, from which they continue exactly.

        It has the slots of the simulation and of the environment: clocks, commands,
        sums, histories, random streams, memory of terms, and changes by curricula.
        """
        self._begin_call()
        rows = worlds_of(self.sim).select(env_ids)
        self._parts.check()
        return take_snapshot(worlds_of(self.sim), rows, ("sim", "env"))

    def restore(self, snapshot: Snapshot, env_ids: Ids = None) -> None:
        """Restore worlds from a snapshot; one world's fits all.

        All of it is checked before anything is written. Values that worlds share
        (curricula, counters) are restored only together with all worlds.
        """
        self._begin_call()
        rows = worlds_of(self.sim).select(env_ids)
        scopes = [f"env/{scope}/" for scope in self._scopes()]
        restore_snapshot(worlds_of(self.sim), snapshot, rows, ("sim", "env"), scopes)

    def _scopes(self) -> list[str]:
        parts = [("action", name) for name in self.actions]
        parts += [("command", name) for name in self.commands]
        return [*(f"{kind}/{n}" for kind, n in parts), *(t.scope for t in self.terms)]

    def _end(self, env_ids: Tensor) -> dict[str, Any]:
        """Return the log of these worlds' episodes that took a step, which end."""
        env_ids = env_ids[self._episode_length[env_ids] > 0]
        log: dict[str, Any] = {}
        if not env_ids.numel():
            return log
        for curriculum in self._curricula:
            log |= _curriculum_log(curriculum, curriculum(env_ids))
        for name, mean in self.rewards.log(env_ids, self.cfg.episode_length_s).items():
            log[f"Episode_Reward/{name}"] = mean
        for name, count in self.ends.log(env_ids).items():
            log[f"Episode_Termination/{name}"] = count
        for kind in END_KINDS:
            ended = self.ends.ended_by(kind)[env_ids]
            log[f"Episode_End/{kind}"] = float(ended.float().mean())
        for name, values in self.metrics.of(env_ids).items():
            log[f"Metrics/{name}"] = float(values.mean())
        steps = self._episode_length[env_ids]
        for name, error in self.commands.end(env_ids, steps).items():
            log[f"Metrics/{name}/error"] = error
        log["Divergence/count"] = self.divergence.count
        return log

    def _episodes(self, env_ids: Tensor) -> EndedEpisodes:
        """Describe the episodes that end in these worlds, before they are reset."""
        rewards, ends = self.rewards.episode_sums(env_ids), self.ends
        nothing = torch.zeros(len(env_ids), dtype=self.dtype, device=self.device)
        return EndedEpisodes(
            env_ids=env_ids.clone(),
            length=self._episode_length[env_ids],
            returns=sum(rewards.values(), nothing),
            rewards=rewards,
            metrics=self.metrics.of(env_ids),
            reasons={
                name: column[env_ids]
                for name, column in zip(ends.names, ends.reasons.unbind(1), strict=True)
            },
            kinds={kind: ends.ended_by(kind)[env_ids] for kind in END_KINDS},
        )


def _curriculum_log(term: Term, value: Any) -> dict[str, float]:
    """Return the log of the value that a curriculum has returned."""
    label = f"Curriculum/{term.name}"
    if value is None:
        return {}
    found = {label: value}
    if isinstance(value, Mapping):
        named = cast("Mapping[str, Any]", value)
        found = {f"{label}/{key}": each for key, each in named.items()}
    try:
        return {key: float(each) for key, each in found.items()}
    except (TypeError, ValueError, RuntimeError) as error:
        raise term.error(
            "must return a number, a dictionary of numbers by name, or None; got "
            f"{value!r}"
        ) from error
