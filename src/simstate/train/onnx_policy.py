"""A policy from an ONNX file, matched to an environment by names."""

# ONNX Runtime comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.base.errors import InvalidInputError, listed
from simstate.base.onnx_file import onnx_session
from simstate.env import Env
from simstate.env.groups import Observations, flat
from simstate.env.observation_term import ObservationSpec
from simstate.train.passport_columns import check_fit, check_rate
from simstate.train.policy_passport import KEY, passport_of

_OUT = {"h_in": "h_out", "c_in": "c_out"}
"""The output that becomes each memory input of a recurrent network."""


class OnnxPolicy:
    """The network of an ONNX file of `simstate train`; calling it returns actions.

    Columns of observations and actions are matched by the names in the file's
    metadata, so that an environment may have its joints in another order.

    Args:
        path: the file.
        env: the environment.
        group: the observation group of the network.
    """

    def __init__(self, path: str | Path, env: Env, group: str = "policy") -> None:
        self._session = onnx_session(Path(path))
        self.metadata = read_metadata(self._session)
        """Metadata of the file."""
        self.group = group
        specs = flat({group: env.observation_specs[group]})
        self._keys = [key for key in specs if key in env.observation_names]
        """The tensors of the group that have columns, in order."""
        here = [name for key in self._keys for name in env.observation_names[key]]
        self._env = env
        self._memory = _memory(self._session, env.num_envs)
        """Memory of a recurrent network by input; (layers, num_envs, size)."""
        self._pictures = _pictures(self._session, specs, str(path))
        self._columns = _order(
            self.metadata["observation_names"], here, "observations", str(path)
        )
        """The environment's column of each of the network's inputs."""
        self._back = _order(
            env.action_names, self.metadata["action_names"], "actions", str(path)
        )
        """The network's output of each of the environment's columns."""
        check_rate(float(self.metadata["step_dt"]), env, str(path))
        if KEY in self.metadata:
            check_fit(passport_of(self._session, str(path)), env, group, str(path))

    @property
    def task(self) -> str:
        """The task of its training."""
        return str(self.metadata["task"])

    def __call__(self, observations: Observations) -> Tensor:
        """Return actions for observations, float32; shape (num_envs, action_dim)."""
        seen = flat({self.group: observations[self.group]})
        inputs: dict[str, Any] = {
            key: seen[key].cpu().numpy() for key in self._pictures
        }
        if self._keys:
            columns = torch.cat([seen[key] for key in self._keys], dim=1)
            columns = columns[:, self._columns].cpu().numpy()
            inputs["obs"] = columns.astype(np.float32)
        if self._memory:  # clear the memory of new episodes
            is_new = (self._env.episode_length_buf == 0).cpu().numpy()
            for values in self._memory.values():
                values[:, is_new] = 0.0
        names = ["actions", *(_OUT[name] for name in self._memory)]
        actions, *memory = self._session.run(names, inputs | self._memory)
        self._memory = dict(zip(self._memory, memory, strict=True))
        return torch.as_tensor(np.ascontiguousarray(actions[:, self._back]))


def task_of(path: str | Path) -> str:
    """Return the task of an ONNX policy's training."""
    return str(metadata_of(path)["task"])


def metadata_of(path: str | Path) -> dict[str, Any]:
    """Return the metadata of an ONNX policy."""
    return read_metadata(onnx_session(Path(path)))


def read_metadata(session: Any) -> dict[str, Any]:
    """Return the decoded metadata of a policy; raise if simstate did not export it."""
    text = session.get_modelmeta().custom_metadata_map
    needed = ("task", "step_dt", "observation_names", "action_names")
    missing = [key for key in needed if key not in text]
    if missing:
        raise InvalidInputError(
            f"The ONNX file does not state its {', '.join(missing)}: it is not a "
            "policy that simstate exported."
        )
    return {key: json.loads(value) for key, value in text.items()}


def _memory(session: Any, num_envs: int) -> dict[str, Any]:
    """Return the initial memory of a recurrent network, by input; {} without one."""
    shapes = {x.name: x.shape for x in session.get_inputs() if x.name in _OUT}
    return {
        name: np.zeros((layers, num_envs, size), np.float32)
        for name, (layers, _, size) in shapes.items()
    }


def _pictures(session: Any, specs: dict[str, ObservationSpec], path: str) -> list[str]:
    """Return the names of a network's pictures; raise if the environment's differ."""
    wanted = {x.name: tuple(x.shape[1:]) for x in session.get_inputs()}
    for name in ("obs", *_OUT):
        wanted.pop(name, None)
    here = {key: spec.shape for key, spec in specs.items() if len(spec.shape) > 1}
    if wanted != here:
        raise InvalidInputError(
            f"The pictures of {path!r} are not this environment's: the file has "
            f"{wanted}, the environment {here}.",
            name="pictures",
        )
    return list(here)


def _order(wanted: list[str], have: list[str], what: str, path: str) -> list[int]:
    """Return the index of each wanted name; raise if the two lists differ."""
    only_there = [name for name in wanted if name not in have]
    only_here = [name for name in have if name not in wanted]
    if only_there or only_here or len(wanted) != len(have):
        raise InvalidInputError(
            f"The {what} of {path!r} are not this environment's. Only wanted: "
            f"{listed(only_there)}. Only available: {listed(only_here)}.",
            name=what,
        )
    return [have.index(name) for name in wanted]
