"""A data set of ours, and LeRobot's own loader on it: `lerobot_loader.py write|read`.

The two run in different environments: see `make test-datasets`.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path


def write(folder: Path) -> None:
    import torch

    from simstate.datasets import write_lerobot
    from simstate.env import Env, tasks

    cfg = tasks.make_cfg("Arm-Reach")
    cfg.episode_length_s = 0.5
    env = Env(cfg, 5, seed=3)
    recording = folder.with_suffix(".simrec")
    with env.record(recording, quantities=["robot.joint_pos"], task="Arm-Reach"):
        for _ in range(60):
            env.step(0.2 * torch.randn(5, env.action_dim))
    shutil.rmtree(folder, ignore_errors=True)
    print(write_lerobot(recording, folder, task="reach the point"), "episodes")


def read(folder: Path) -> None:
    import torch

    # torchvision is imported for its image transforms; its compiled operators, which
    # are not used, come for torch with CUDA alone.
    operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor a, Tensor b, float c) -> Tensor")
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    info = json.loads((folder / "meta/info.json").read_text())
    step = 1 / info["fps"]
    found = LeRobotDataset(
        "simstate/reach", root=folder, delta_timestamps={"action": [0.0, step]}
    )
    assert found.num_episodes == info["total_episodes"]
    assert found.num_frames == info["total_frames"] == len(found)
    frame = found[3]
    assert frame["task"] == "reach the point"
    assert frame["action"].shape == (2, *info["features"]["action"]["shape"])
    later = found[4]["action"]
    torch.testing.assert_close(frame["action"][1], later[0])
    assert abs(float(frame["timestamp"]) - 3 * step) < 1e-6
    assert found.meta.names["observation.robot.joint_pos"][0] == "joint1"
    loader = torch.utils.data.DataLoader(found, batch_size=16, shuffle=True)
    seen = sum(len(batch["observation.state"]) for batch in loader)
    assert seen == len(found)
    print(f"LeRobot iterates {seen} frames of {found.num_episodes} episodes")


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](Path(sys.argv[2]))
