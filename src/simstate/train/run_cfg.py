"""RunCfg: what a training run is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simstate.env import TrainCfg
from simstate.errors import InvalidInputError, SnapshotError
from simstate.train.checkpoint import Content


@dataclass(frozen=True, kw_only=True)
class RunCfg:
    """A task and its settings; on native they decide the policy, bit for bit."""

    task: str
    train: TrainCfg
    seed: int = 0
    engine: Literal["native", "warp"] = "native"
    device: str = "cpu"

    def __post_init__(self) -> None:
        train = self.train
        for name in ("num_envs", "iterations", "steps_per_env", "save_interval"):
            value = getattr(train, name)
            if value < 1:
                raise InvalidInputError(f"{name} must be ≥ 1, got {value}.")
        if train.num_envs * train.steps_per_env < train.num_mini_batches:
            raise InvalidInputError(
                f"{train.num_envs} worlds × {train.steps_per_env} steps are too few "
                f"for {train.num_mini_batches} mini-batches: use more worlds."
            )

    @staticmethod
    def of(content: Content) -> RunCfg:
        """The settings of the run that wrote a checkpoint."""
        try:
            settings = dict(content["run"])
            settings["train"] = TrainCfg(**settings["train"])
            return RunCfg(**settings)
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(
                f"The checkpoint does not say what run it is of: {error!r}."
            ) from error
