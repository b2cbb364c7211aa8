"""EnvRecorder: what `env.record(path)` returns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from simstate.base.contract import PURE
from simstate.base.errors import InvalidInputError
from simstate.base.ids import Ids
from simstate.env.groups import flat
from simstate.env.settings import described_settings
from simstate.record import Column, Recorder, columns_of
from simstate.record.changes import Step
from simstate.step.history import Recorded

if TYPE_CHECKING:
    from simstate.env.env import Env

OBSERVATION, ACTION, REWARD = "observation/", "action", "reward"
TERMINATED, TRUNCATED, ENDED, EVENT = "terminated", "truncated", "ended", "event"
FINAL = "final/"
"""Prefix of arrays of final observations, by group, next to "final_ids"."""


class EnvRecorder(Recorder):
    """Records observations, actions and results of each step.

    A sample is a step: observations and quantities before it, the action, then reward
    and ends. Final observations of worlds that were reset are recorded, too.
    """

    def __init__(
        self,
        env: Env,
        path: str | Path,
        quantities: Recorded,
        fields: Sequence[str],
        worlds: Ids,
        inputs: bool,
        snapshot_every: float | None,
        task: str | None,
    ) -> None:
        self._env = env
        mine = env_columns(env)
        known = {column.name for column in mine} | flat(env.observation_specs).keys()
        asked = columns_of(env.sim, quantities, fields)
        for column in asked:
            if column.name in known:
                raise InvalidInputError(
                    f"{column.name!r} is recorded by itself: give yours another name.",
                    name=column.name,
                )
        about: dict[str, Any] = {
            "task": task,
            "settings": described_settings(env.cfg, "env"),
            "auto_reset": env.auto_reset,
            "step_dt": env.step_dt,
            "every": None,
        }
        super().__init__(
            env.sim, path, "env", [*mine, *asked], ("sim", "env"), worlds=worlds,
            inputs=inputs, snapshot_every=snapshot_every, about=about,
            detach=lambda: env.detach(self),
        )  # fmt: skip
        self._before = [c for c in (*mine, *asked) if c.name not in AFTER]
        self._step: Step | None = None
        self._sample: dict[str, Tensor] = {}
        env.attach(self)

    def begin(self, action: Tensor, reset_ids: Tensor | None) -> None:
        """Record the inputs of a step before it is taken."""
        self._step = self.begin_step()
        self._step.arrays[ACTION] = action.cpu().numpy().copy()
        if reset_ids is not None:
            self._step.arrays["reset_ids"] = reset_ids.cpu().numpy().copy()
        self._sample = {c.name: c.checked(self._env.num_envs) for c in self._before}
        self._sample = {name: x.clone() for name, x in self._sample.items()}
        self._sample["time"] = self._env.sim.time.clone()
        self._sample[ACTION] = action

    def end(self, reward: Tensor, extras: dict[str, Any]) -> None:
        """Record the results of the step that was taken."""
        assert self._step is not None
        step, self._step = self._step, None
        env = self._env
        self._sample |= {
            REWARD: reward,
            TERMINATED: env.terminated,
            TRUNCATED: env.truncated,
            ENDED: env.ends.reasons,
            EVENT: env.events.happened,
        }
        reset = extras["final_mask"].nonzero().flatten()
        if len(reset):
            step.arrays["final_ids"] = reset.cpu().numpy()
            for group, values in flat(extras["final_observation"]).items():
                step.arrays[f"{FINAL}{group}"] = values[reset].cpu().numpy()
        wanted = {name: self._sample[name] for name in self._kinds if name != "step"}
        self.keep(step, env.step_dt, wanted, is_before=True)
        self.write_if_due()


AFTER = (ACTION, REWARD, TERMINATED, TRUNCATED, ENDED, EVENT)
"""Columns that are known after a step; the others are from before it."""


def env_columns(env: Env) -> list[Column]:
    """Return the columns that are recorded of every environment."""
    columns = [
        Column(
            f"{OBSERVATION}{group}",
            lambda group=group: flat(env.observations)[group],
            names=env.observation_names.get(group, ()),
            doc="What was seen before the step, with noise, clip, scale and delay.",
            each=env.observation_contracts.get(group, ()),
        )
        for group in flat(env.observation_specs)
    ]
    columns += [
        Column(ACTION, lambda: env.action, names=env.action_names,
               doc="The action, as it was given.", each=env.actions.contracts),
        Column(REWARD, lambda: torch.zeros(env.num_envs, device=env.device), PURE,
               doc="Of the step: all terms, times their weights and its duration."),
        Column(TERMINATED, lambda: env.terminated, PURE,
               doc="Whether the step ended the episode: failure or success."),
        Column(TRUNCATED, lambda: env.truncated, PURE,
               doc="Whether time was up after the step."),
        Column(ENDED, lambda: env.ends.reasons, PURE, env.ends.names,
               doc="Which terms ended the episode."),
        Column(EVENT, lambda: env.events.happened, PURE, env.events.interval_names,
               doc="Which interval events happened after the step."),
    ]  # fmt: skip
    return columns
