"""Env: a simulation with actions, observations, rewards and episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import whole_number
from simstate.base.errors import InvalidInputError, listed
from simstate.base.ids import Ids
from simstate.base.notebook import html_summary
from simstate.engine import EngineCfg, OneTorchThread
from simstate.env import (
    curricula,
    events,
    observations,
    rewards,
    terminations,
)
from simstate.env.divergence_log import DivergenceLog
from simstate.env.drivers import ActionTerms, CommandTerms, EventSchedule
from simstate.env.ended_episodes import EndedEpisodes
from simstate.env.env_cfg import END_KINDS, EnvCfg
from simstate.env.env_recorder import EnvRecorder
from simstate.env.env_worlds import EnvWorlds
from simstate.env.groups import Columns, ObservationGroups, Observations
from simstate.env.memory_check import Parts
from simstate.env.metrics import Metrics
from simstate.env.symmetry import Symmetry
from simstate.env.task_course import Act, TaskCourse
from simstate.env.term_plan import EpisodeEnd, RewardSum
from simstate.env.terms import Term
from simstate.env.whole_reward import InfoTerms, WholeReward
from simstate.state.apply import States, check_states
from simstate.step import Integrator
from simstate.step.history import Recorded
from simstate.view import start_viewer, thumbnail
from simstate.world.last_evaluation import evaluation_of
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.view.viewer import Viewer

Extras = dict[str, Any]


class Env(EnvWorlds):
    """`num_envs` worlds of one task, stepped together.

    A step: actions, physics, clocks, ends, rewards, commands, events, observations, and
    resets of what has ended. Every term reads one state, the one after the physics:
    positions, velocities and joints are of the same instant, and what an event or a
    reset changed is seen by all that comes after it. Rewards are of the state before a
    reset; "final_observation" has what was seen then. A world that diverges keeps its
    state from before, and its episode is terminated.

    Calls are atomic, as those of Simulation, and include the task's memory: clocks,
    sums, histories, commands, delays, random streams, `memory(…)`. Random numbers come
    from a stream for each world, so what happens in a world does not depend on the
    others, unless a curriculum makes it so.

    Args:
        cfg: the task.
        num_envs: the number of worlds.
        engine: "native" or "warp", or a NativeCfg or WarpCfg, as in Simulation.
        device: where the tensors are; "cuda" needs the warp engine.
        seed: the seed of all that is random.
        auto_reset: whether `step` resets worlds whose episode has ended; if not, they
            continue until `reset(env_ids=…)` or `step(action, reset_ids=…)`.
        integrator: how the worlds are stepped, as in Simulation.
        first_world: the global id of the first world, as in Simulation.
    """

    def __init__(
        self,
        cfg: EnvCfg,
        num_envs: int = 1,
        *,
        engine: EngineCfg = "native",
        device: str | torch.device = "cpu",
        seed: int = 0,
        auto_reset: bool = True,
        integrator: Integrator | None = None,
        first_world: int = 0,
    ) -> None:
        super().__init__(
            cfg, num_envs, engine, device, seed, integrator, first_world, auto_reset
        )
        # Buffers are written to later on, which inference mode would forbid.
        with torch.inference_mode(False), OneTorchThread():
            self._make_terms()
            self.events.startup(self, self.all_ids)
            self._begin(self.all_ids)
            self._backend.check()
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
        self._parts = Parts(self)
        self._is_made = True

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

    def record(
        self,
        path: str | Path,
        *,
        quantities: Recorded = (),
        fields: Sequence[str] = (),
        worlds: Ids = None,
        inputs: bool = True,
        snapshot_every: float | None = 10.0,
        task: str | None = None,
    ) -> EnvRecorder:
        """Write every step to a file from now on, until `close()`.

        A sample is a step: the observations of each group and the quantities from
        before it, the action, reward, ends and events; final observations of worlds
        that were reset. It also holds what is needed to take the steps again.

        Args:
            path: the file, which is replaced.
            quantities: what else to keep, as in `sim.record`.
            fields: raw fields of `sim.data`.
            worlds: those whose samples are kept; None: all.
            inputs: whether it holds what a replay needs: snapshots, actions, and what
                was written between steps (resets by hand, too), of all worlds.
            snapshot_every: simulated time between two snapshots [s], from which a
                replay can begin; None: only the first.
            task: the task that `cfg` is of, as `tasks.find` takes it, so that
                `simstate replay` finds it; the settings are kept in any case.
        """
        self._begin_call()
        return EnvRecorder(
            self, path, quantities, fields, worlds, inputs, snapshot_every, task
        )

    def step(
        self, action: Tensor, reset_ids: Ids = ()
    ) -> tuple[Observations, Tensor, Tensor, Tensor, Extras]:
        """Apply an action and advance by `step_dt`; shape (num_envs, action_dim).

        Worlds of `reset_ids` begin an episode instead, without auto_reset: they do not
        move, their action is ignored, their reward is zero and nothing ends them.

        Returns observations by group (as `observations`), reward, terminated and
        truncated (never both in a world), and extras:

        - "final_observation": the observations of all worlds before any reset; they
          differ from those returned where "final_mask" is true;
        - "final_mask": the worlds that were reset in this step;
        - "log": means over the worlds that were reset in this step, by name: rewards by
          term, ends by term and kind, metrics;
        - "episodes": the episodes that ended in this step, world by world; an
          `EndedEpisodes`, or None;
        - "info": the infos of all worlds before any reset (`EnvCfg.info`, and the parts
          of `EnvCfg.reward`), arrays on the host; "reset_info" has those afterwards,
          where a world was reset.
        """
        self._begin_call()
        renewed = self._check_reset_ids(reset_ids)
        checked = self.actions.check(action, renewed)
        recorders = self._recorders
        for recorder in recorders:
            recorder.begin(self._backend.tensor(checked), renewed)
        with OneTorchThread(), np.errstate(all="ignore"):
            result = self._ledger.run("env", "env.step()", self._step, checked, renewed)
        for recorder in recorders:
            recorder.end(result[1], result[4])
        return result

    def _step_ahead(
        self, action: Tensor
    ) -> tuple[Observations, Tensor, Tensor, Tensor, Extras]:
        """Take a step within an open call, without recorders."""
        with OneTorchThread(), np.errstate(all="ignore"):
            return self._step(self.actions.check(action, None), None)

    def _step(
        self, action: Any, renewed: Tensor | None
    ) -> tuple[Observations, Tensor, Tensor, Tensor, Extras]:
        """The sequence of one step, in which `renewed` worlds are reset at its end.

        It computes with the backend's arrays; tensors go in and out.
        """
        log = {} if renewed is None else self._end(renewed)
        tensor, copy = self._backend.tensor, self._backend.copy
        # 1. The action becomes targets and wrenches, which hold for all substeps.
        self.actions.apply(action)
        # 2. Physics. Positions and velocities are then those of the new state. A world
        #    that diverges keeps the state from before.
        self._advance(action, self._others(renewed))
        # 3. Clocks.
        for clock in self._clocks:
            clock += 1
        # 4. Which episodes have ended, then the reward, which may depend on it.
        terminated, truncated = self.ends.compute()
        reward = self.rewards.compute()
        if renewed is not None:
            self.ends.clear(renewed)
            reward[self._backend.array(renewed)] = 0.0
        self.metrics.compute()
        ended = terminated | truncated
        due = self._read_on_host(ended)
        episodes = self._episodes(due["ended"]) if len(due["ended"]) else None
        # 5. The world continues: commands for the next step, pushes and the like.
        self.commands.advance(due)
        self.events.interval(self, due)
        # 6. What all worlds see, whether they have ended or not.
        seen = final = self._groups.observe()
        info, reset_info = self.infos.compute(self._reward_parts()), {}
        result = tensor(reward), tensor(copy(terminated)), tensor(copy(truncated))
        # 7. Worlds that have ended are reset; the others are not touched.
        reset = due["ended"] if self.auto_reset else renewed
        if reset is None or not len(reset) or not self.auto_reset:
            ended[:] = False
        if reset is not None and len(reset):
            log = self._end(reset) if self.auto_reset else log
            self._begin(reset)
            seen, reset_info = self.observations, self.infos.compute({})
        self._backend.check()
        extras: Extras = {
            "final_observation": final,
            "final_mask": tensor(ended),
            "log": log,
            "episodes": episodes,
            "info": info,
            "reset_info": reset_info,
        }
        return seen, *result, extras

    def _reward_parts(self) -> dict[str, Any]:
        return self.rewards.infos if isinstance(self.rewards, WholeReward) else {}

    def _episodes(self, env_ids: Tensor) -> EndedEpisodes:
        """Describe the episodes that end in these worlds, before they are reset."""
        rewards, ends = self.rewards.episode_sums(env_ids), self.ends
        nothing = torch.zeros(len(env_ids), dtype=self.dtype, device=self.device)
        return EndedEpisodes(
            env_ids=env_ids.clone(),
            length=self._episode_length[env_ids].clone(),
            returns=sum(rewards.values(), nothing),
            rewards=rewards,
            metrics=self.metrics.of(env_ids),
            reasons={
                name: column[env_ids].clone()
                for name, column in zip(ends.names, ends.reasons.unbind(1), strict=True)
            },
            kinds={kind: ends.ended_by(kind)[env_ids] for kind in END_KINDS},
        )

    def _read_on_host(self, ended: Any) -> dict[str, Tensor]:
        """The worlds that are due for commands and events, and those that have ended.

        The only time in a step that the host waits for the device.
        """
        masks = self.commands.due(self.step_dt) | self.events.due(self.step_dt)
        masks["ended"], masks["diverged"] = ended, self._newly_diverged
        due = self._backend.ids(masks)
        if len(due["diverged"]):
            self.divergence.record(due["diverged"])
        return due

    def reset(
        self,
        seed: int | Sequence[int] | None = None,
        env_ids: Ids = None,
        init_states: States | None = None,
    ) -> tuple[Observations, Extras]:
        """Begin an episode in some worlds, None: all; the others are not touched.

        Args:
            seed: reseeds the random streams of these worlds, and runs their
                "startup" events again: what follows depends on the seed alone, and on
                what curricula have changed. A sequence has the seed of each of these
                worlds; world i of one seed has the NumPy stream of `seed + i`.
            env_ids: the worlds.
            init_states: unified states, one for each of these worlds or one for all, as
                in `sim.set_states`; they go on top of what the events have done.

        Returns the observations of all worlds, and extras with "log" and "info".
        """
        self._begin_call()
        rows = worlds_of(self.sim).select(env_ids)
        if seed is not None:
            seed = _checked_seed(seed, rows.count)
        if not rows.count:
            return self.observations, {"log": {}, "info": {}}
        ids = rows.tensor(self.device).clone()
        if init_states is not None:  # while nothing has changed yet
            check_states(self.sim, init_states, rows)
        with OneTorchThread():
            return self._ledger.run(
                "env", "env.reset()", self._reset, seed, ids, init_states
            )

    def _reset(
        self,
        seed: int | Sequence[int] | None,
        ids: Tensor,
        init_states: States | None,
    ) -> tuple[Observations, Extras]:
        log = self._end(ids)
        if seed is not None:
            self._seed(seed, ids)
            self.events.startup(self, ids)
        self._begin(ids, init_states)
        self._backend.check()
        return self.observations, {"log": log, "info": self.infos.compute({})}

    def _seed(self, seed: int | Sequence[int], ids: Tensor) -> None:
        """Start the random streams of these worlds again."""
        if isinstance(seed, int):
            self.rng.seed(seed, ids)
        else:
            for k, value in enumerate(seed):
                self.rng.seed(value, ids[k : k + 1])
        if "random/pcg64" in self._ledger:
            self.sim.numpy_rng.seed(seed, ids)

    def symmetry(self) -> Symmetry:
        """Return the mirror image of the task: of observation groups and the action.

        Raise if a term does not state how it is mirrored, or if the model's physics is
        not symmetric; `EnvCfg.symmetry` has the plane.
        """
        found = Symmetry(self, self._groups.groups)
        found.check_physics()
        return found

    def view(
        self,
        act: Act | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        token: str | None = None,
        worlds: int | None = None,
        playing: bool = True,
    ) -> Viewer:
        """Show the worlds in a browser, as `sim.view` does, with the task's numbers.

        `viewer.run()` steps the task with the policy `act(observations)`; without one,
        actions are what sliders say. A loop of your own calls `viewer.sync()` after
        each step.
        """
        course = TaskCourse(self, act)
        return start_viewer(course, host, port, token, worlds, playing)

    @property
    def observations(self) -> Observations:
        """A copy of the latest observations by group.

        A group is a tensor, (num_envs, k) in the environment's dtype or an array such
        as a picture; where its terms do not fit together, a dictionary of tensors.
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
        """Worlds whose time was up in the last step; bool, (num_envs,)."""
        self._recover()
        return self.ends.truncated

    def _make_terms(self) -> None:
        """Resolve every term of the configuration."""
        cfg = self.cfg
        self.actions = ActionTerms(self, cfg.actions)
        """The action terms by name; an action has their columns side by side."""
        self.action = self.actions.last
        """The last action as it was given, zero after a reset; float32."""
        self.previous_action = self.actions.previous
        """The one before; zero after a reset; float32."""
        self.commands = CommandTerms(self, cfg.commands)
        """The commands by name."""
        self.rewards = (
            RewardSum(self, cfg.rewards, rewards)
            if cfg.reward is None
            else WholeReward(self, cfg.reward, rewards)
        )
        """The reward terms: weights, and sums over the episode."""
        self.infos = InfoTerms(self, cfg.info, observations)
        """The function that gives infos."""
        self.ends = EpisodeEnd(self, cfg.terminations, terminations)
        """The termination terms, and which of them ended what."""
        self.metrics = Metrics(self, cfg.metrics, rewards)
        """The metric terms, and their values in the episode."""
        self.events = EventSchedule(self, cfg.events, events)
        """The events, and when each is due."""
        self.divergence = DivergenceLog(
            self.sim,
            cfg.divergence_dump_dir,
            cfg.max_divergence_dumps,
            1 if self.actions.acting else cfg.decimation,
        )
        """Worlds that diverged: how many, and their snapshots."""
        self._curricula = [
            Term("curriculum", name, term, curricula, self, leading=2)
            for name, term in cfg.curricula.items()
        ]
        self._groups = ObservationGroups(self, cfg.observations, observations)
        slots = self._step_count, self._episode_length
        self._clocks = [self._backend.array(slot) for slot in slots]
        self._newly_diverged = self._backend.array(self.sim.divergence.new)

    def _scopes(self) -> list[str]:
        parts = [("action", name) for name in self.actions]
        parts += [("command", name) for name in self.commands]
        return [*(f"{kind}/{n}" for kind, n in parts), *(t.scope for t in self.terms)]

    def _check_parts(self) -> None:
        self._parts.check()

    def _advance(self, action: Any, moving: Tensor | None) -> None:
        """Advance by the physics steps of one environment step.

        Where an action acts in every substep, the host looks after each of them whether
        a world has diverged.
        """
        decimation = self.cfg.decimation
        acting = self.actions.acting
        if not acting:
            self.sim.step(decimation, moving)
            return
        self.sim.step(1, moving)
        for _ in range(decimation - 1):
            self.divergence.record(self.sim.divergence.new.nonzero())
            self.actions.write(action, acting)
            self.sim.step(1, moving)

    def _end(self, env_ids: Tensor) -> dict[str, Any]:
        """The log of the episodes that end in these worlds, where one had begun."""
        env_ids = env_ids[self._episode_length[env_ids] > 0]
        log: dict[str, Any] = {}
        if not env_ids.numel():
            return log
        for curriculum in self._curricula:
            value = curriculum(env_ids)
            label = f"Curriculum/{curriculum.name}"
            if isinstance(value, Mapping):
                found = cast("Mapping[str, Any]", value)
                log |= {f"{label}/{key}": float(x) for key, x in found.items()}
            elif value is not None:
                log[label] = float(value)
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

    def _begin(self, env_ids: Tensor, init_states: States | None = None) -> None:
        """Reset these worlds and observe them; the others are not touched."""
        self.sim.reset(env_ids)
        self._ledger.reset(worlds_of(self.sim).select(env_ids), ("env",))
        for term in self.terms:
            term.reset(env_ids)
        self.events.reset(self, env_ids)
        if init_states is not None:
            self.sim.set_states(init_states, env_ids)
        self.commands.reset(env_ids)
        self.actions.reset(env_ids)
        evaluation_of(self.sim).begin_episode(env_ids)
        self._groups.observe(env_ids)

    @property
    def terms(self) -> list[Term]:
        """All terms that are functions or class terms."""
        rewards, ends = self.rewards.terms, self.ends.terms
        seen = [*self.metrics.terms, *self._groups.terms]
        others = [*self.events.terms, *self._curricula, *self.infos.terms]
        return [*rewards, *ends, *others, *seen]


def _checked_seed(seed: int | Sequence[int], count: int) -> int | list[int]:
    """Return the seed of all worlds, or one for each of `count` worlds."""
    if not isinstance(seed, Sequence):
        return whole_number("seed", seed, 0)
    if len(seed) != count:
        raise InvalidInputError(
            f"seed must be one number, or one for each of the {count} worlds that are "
            f"reset; got {len(seed)}.",
            name="seed",
        )
    return [whole_number("A seed", value, 0) for value in seed]
