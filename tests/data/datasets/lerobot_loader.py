"""A data set of ours, and LeRobot's own loader on it: `lerobot_loader.py write|read`.

The two run in different environments: see `make test-datasets`.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np

CAMERA = "observation.images.view"


def write(folder: Path) -> None:
    import torch

    from simstate.data.datasets import episodes_of, write_lerobot
    from simstate.data.datasets.collection import with_cameras
    from simstate.env import Env, tasks

    cfg = with_cameras(tasks.make_cfg("Arm-Reach"), ["view"], (96, 64))
    cfg.episode_length_s = 0.5
    env = Env(cfg, 5, seed=3)
    recording = folder.with_suffix(".simrec")
    kept = ["robot.joint_pos", "camera/view"]
    with env.record(recording, quantities=kept, task="Arm-Reach"):
        for _ in range(60):
            env.step(0.2 * torch.randn(5, env.action_dim))
    shutil.rmtree(folder, ignore_errors=True)
    print(write_lerobot(recording, folder, task="reach the point"), "episodes")
    pictures = [e.columns["camera/view"] for e in episodes_of(recording)]
    np.save(folder.with_suffix(".npy"), np.concatenate(pictures))


def read(folder: Path) -> None:
    import torch

    # torchvision is imported for its image transforms and its reader by PyAV; its
    # compiled operators, which are not used, come for another torch.
    operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor a, Tensor b, float c) -> Tensor")
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    info = json.loads((folder / "meta/info.json").read_text())
    step = 1 / info["fps"]
    found = LeRobotDataset(
        "simstate/reach",
        root=folder,
        delta_timestamps={"action": [0.0, step], CAMERA: [-step, 0.0]},
        video_backend="pyav",
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
    assert found.meta.video_keys == [CAMERA]
    check_pictures(found, np.load(folder.with_suffix(".npy")))
    loader = torch.utils.data.DataLoader(found, batch_size=16, shuffle=True)
    seen = sum(len(batch["observation.state"]) for batch in loader)
    assert seen == len(found)
    print(f"LeRobot iterates {seen} frames of {found.num_episodes} episodes")


def check_pictures(found, pictures: np.ndarray) -> None:
    """Each frame has its own picture: none of another moment is nearer."""
    stats = found.meta.stats[CAMERA]
    mean = pictures.reshape(-1, 3).mean(0) / 255
    np.testing.assert_allclose(stats["mean"].ravel(), mean, rtol=1e-9)
    for index in range(0, len(found), 7):
        before, now = (255 * found[index][CAMERA]).permute(0, 2, 3, 1).numpy()
        first = int(found[index]["frame_index"]) == 0
        for picture, at in ((before, index - (not first)), (now, index)):
            gaps = np.abs(pictures - picture).mean((1, 2, 3))
            assert gaps[at] < 3, (index, gaps[at])
            assert gaps[at] <= gaps.min() + 0.2, (index, at, gaps.argmin())
    print(f"LeRobot's pictures are those that were recorded, {len(pictures)} of them")


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](Path(sys.argv[2]))
