"""Film: videos of a few worlds during training."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from simstate.env import Env
from simstate.env.groups import Observations
from simstate.interop.rsl_rl import grouped
from simstate.sensors.watch_camera import with_view
from simstate.train.run_cfg import RunCfg
from simstate.train.video import film, write_video

SIZE = (160, 120)
"""Width and height of each world's picture [px]."""
FPS = 20.0
FOLDER = "videos"


class Film:
    """Worlds of a task with a camera, separate from those of the training."""

    def __init__(self, cfg: RunCfg) -> None:
        self._seconds = cfg.output.video_seconds
        self._seed = cfg.seed + 1
        task = cfg.env_cfg()
        self.env = Env(
            dataclasses.replace(task, scene=with_view(task.scene, *SIZE)),
            cfg.output.video_envs,
            engine=cfg.engine,
            device=cfg.device,
            seed=self._seed,
            auto_reset=False,
        )

    def write(self, network: Any, run_dir: Path, iteration: int) -> Path:
        """Film a network, from the same initial states each time; return the path."""

        def act(seen: Observations) -> Tensor:
            with torch.inference_mode():
                tensors = grouped(seen, self.env.num_envs)
                return network(tensors).to(self.env.device)

        folder = run_dir / FOLDER
        folder.mkdir(exist_ok=True)
        path = folder / f"update_{iteration}.gif"
        self.env.reset(seed=self._seed)
        memory = network.get_hidden_state()  # of the worlds of the training
        network.reset()
        write_video(path, film(self.env, act, self._seconds, FPS), FPS)
        network.reset(hidden_state=memory)
        return path
