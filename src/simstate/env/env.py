"""Env: a simulation with actions, observations, rewards and episodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import whole_number
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Ids
from simstate.engine import EngineCfg, OneTorchThread
from simstate.env.env_cfg import EnvCfg
from simstate.env.env_recorder import EnvRecorder
from simstate.env.env_terms import EnvTerms
from simstate.env.groups import Observations
from simstate.env.memory_check import Parts
from simstate.env.task_course import Act, TaskCourse
from simstate.state.apply import States, check_states
from simstate.step import Integrator
from simstate.step.history import Recorded
from simstate.view import start_viewer
from simstate.world.last_evaluation import evaluation_of
from simstate.world.worlds import worlds_of

if TYPE_CHECKING:
    from simstate.view.viewer import Viewer

Extras = dict[str, Any]


class Env(EnvTerms):
    """`num_envs` worlds of one task, stepped together.

    A step runs actions, physics, clocks, terminations, rewards, commands, events,
    observations, and resets of worlds whose episode has ended, in this order. All terms
    read the state after the physics, in which positions, velocities and joints belong
    to the same instant. Changes by an event or a reset are visible to all later terms.
    Rewards are computed before a reset; "final_observation" has the observations from
    then. A world that diverges keeps its previous state, and its episode is terminated.

    Calls are atomic, as those of Simulation, and include the task's memory: clocks,
    sums, histories, commands, delays, random streams, `memory(…)`. Each world has its
    random stream, so its course does not depend on other worlds, unless a curriculum
    couples them.

    Args:
        cfg: the task.
        num_envs: the number of worlds.
        engine: "native" or "warp", or a NativeCfg or WarpCfg, as in Simulation.
        device: the device of the tensors; "cuda" needs the warp engine.
        seed: the seed of all random numbers.
        auto_reset: True if `step` resets worlds whose episode has ended; else they
            continue until `reset(env_ids=…)` or `step(action, reset_ids=…)`.
        integrator: the integrator of the physics, as in Simulation.
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
            self.commands.check_errors()
        self._describe_observations()
        self._parts = Parts(self)
        self._is_made = True

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

        A sample describes one step: the observations of each group and the quantities
        before it, the action, reward, ends and events, and the final observations of
        worlds that were reset. The file also holds the inputs of a replay.

        Args:
            path: the file, which is replaced.
            quantities: further quantities to record, as in `sim.record`.
            fields: raw fields of `sim.data`.
            worlds: the worlds whose samples are recorded; None: all.
            inputs: True to record the inputs of a replay: snapshots, actions, and
                writes between steps (also resets by hand), of all worlds.
            snapshot_every: simulated time between two snapshots [s], from which a
                replay can start; None: only the first.
            task: a reference to the task that `cfg` belongs to, as in `tasks.find`, by
                which `simstate replay` finds it; the settings are always recorded.
        """
        self._begin_call()
        return EnvRecorder(
            self, path, quantities, fields, worlds, inputs, snapshot_every, task
        )

    def step(
        self, action: Tensor, reset_ids: Ids = ()
    ) -> tuple[Observations, Tensor, Tensor, Tensor, Extras]:
        """Apply an action and advance by `step_dt`; shape (num_envs, action_dim).

        Without auto_reset, worlds of `reset_ids` start an episode instead: they do not
        move, their action is ignored, their reward is zero and no term ends them.

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
        """Take one step, at the end of which the `renewed` worlds are reset.

        It computes with the backend's arrays, and returns tensors.
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
        # 6. Observations of all worlds, ended or not.
        seen = final = self._groups.observe()
        info, reset_info = self.infos.compute(self.rewards.infos), {}
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

    def _read_on_host(self, ended: Any) -> dict[str, Tensor]:
        """Return the worlds due for commands and events, and those that have ended.

        Only here a step makes the host wait for the device.
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
        """Start an episode in some worlds; None: all. The others are unchanged.

        Args:
            seed: reseeds the random streams of these worlds, and runs their "startup"
                events again: the rest depends only on the seed and on changes by
                curricula. A sequence has a seed for each of these worlds; with one seed
                for all, world i has the NumPy stream of `seed + i`.
            env_ids: the worlds.
            init_states: unified states, one for each of these worlds or one for all, as
                in `sim.set_states`; they are written after the events.

        Returns the observations of all worlds, and extras with "log" and "info".
        """
        self._begin_call()
        rows = worlds_of(self.sim).select(env_ids)
        if seed is not None:
            seed = _checked_seed(seed, rows.count)
        if not rows.count:
            return self.observations, {"log": {}, "info": {}}
        ids = rows.tensor(self.device).clone()
        if init_states is not None:  # before anything is changed
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
        """Reseed the random streams of these worlds."""
        if isinstance(seed, int):
            self.rng.seed(seed, ids)
        else:
            for k, value in enumerate(seed):
                self.rng.seed(value, ids[k : k + 1])
        if "random/pcg64" in self._ledger:
            self.sim.numpy_rng.seed(seed, ids)

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
        """Show the worlds in a browser, as `sim.view` does, with the task's values.

        `viewer.run()` steps the task with the policy `act(observations)`; without one,
        sliders set the actions. Your own loop calls `viewer.sync()` after each step.
        """
        course = TaskCourse(self, act)
        return start_viewer(course, host, port, token, worlds, playing)

    def _advance(self, action: Any, moving: Tensor | None) -> None:
        """Advance by the physics steps of one environment step.

        Where an action acts in every substep, divergence is checked after each of them.
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

    def _begin(self, env_ids: Tensor, init_states: States | None = None) -> None:
        """Reset these worlds and observe them; the others are unchanged."""
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
    return [whole_number("seed", value, 0) for value in seed]
