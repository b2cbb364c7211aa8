"""OnnxPolicy: an exported policy, run by onnxruntime, without what it was made with."""

# onnxruntime comes without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnxruntime
import torch
from torch import Tensor

from simstate.env import Env
from simstate.errors import SnapshotError
from simstate.train.played import Played
from simstate.train.run_cfg import RunCfg


class PlayedOnnx(Played):
    """A policy.onnx that `simstate train` wrote."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise SnapshotError(f"There is no file {str(path)!r}.")
        runtime: Any = onnxruntime
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # MuJoCo's threads have the cores
        try:
            self.session: Any = runtime.InferenceSession(str(path), options)
        except Exception as error:  # what a damaged file raises is without limits
            raise SnapshotError(
                f"{str(path)!r} cannot be read as ONNX: {error}"
            ) from error
        found = self.session.get_modelmeta().custom_metadata_map
        self.facts = {key: json.loads(value) for key, value in found.items()}
        """What the numbers mean: task, names, scales."""
        if "run" not in self.facts:
            raise SnapshotError(
                f"{str(path)!r} does not say which task it is for: export it anew, or "
                "play the checkpoint."
            )
        super().__init__(RunCfg.of({"run": self.facts["run"]}))

    def act_in(self, env: Env) -> OnnxPolicy:
        """The policy for an environment, which it must fit."""
        return OnnxPolicy(env, self)


class OnnxPolicy:
    """The network of an ONNX file; calling it gives the best action, without noise."""

    def __init__(self, env: Env, file: PlayedOnnx) -> None:
        for key, ours in (
            ("observation_names", env.observation_names["policy"]),
            ("action_names", env.action_names),
        ):
            theirs = file.facts[key]
            if theirs != ours:
                raise SnapshotError(
                    f"The policy has {len(theirs)} {key.replace('_', ' ')}, the "
                    f"environment {len(ours)}; the first that differs is "
                    f"{_first_difference(theirs, ours)}."
                )
        self._session: Any = file.session
        self._device = env.device

    def __call__(self, observations: dict[str, Tensor]) -> Tensor:
        """The actions for observations, float32; shape (num_envs, action_dim)."""
        seen = observations["policy"].cpu().numpy()
        (action,) = self._session.run(["actions"], {"obs": seen})
        return torch.from_numpy(action).to(self._device)


def _first_difference(theirs: list[str], ours: list[str]) -> str:
    for a, b in zip(theirs, ours, strict=False):
        if a != b:
            return f"{a!r}, here {b!r}"
    return repr((theirs + ours)[min(len(theirs), len(ours))])
