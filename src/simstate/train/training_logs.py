"""Progress of a run, and its logs: a file, TensorBoard or Weights & Biases."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from simstate.base.files import naming_errors, write_atomically

LogKind = Literal["tensorboard", "wandb", "none"]
PROGRESS = "progress.jsonl"
"""File with a line of JSON for each update."""


class TrainingLog(ABC):
    """A log of values and videos of a run, by update."""

    @abstractmethod
    def write(self, iteration: int, values: Mapping[str, float]) -> None:
        """Log the values of an update."""

    def write_video(self, iteration: int, path: Path) -> None:
        """Log a video; the file is not moved."""
        del iteration, path

    def close(self) -> None:
        """Flush and close the log."""
        return


class ProgressFile(TrainingLog):
    """A line of JSON for each update; `simstate runs` reads it."""

    def __init__(self, run_dir: Path, begin: int) -> None:
        self._path = run_dir / PROGRESS
        kept = [line for line in read_progress(run_dir) if line["iteration"] <= begin]
        lines = "".join(f"{json.dumps(line)}\n" for line in kept)
        write_atomically(self._path, lines.encode())

    def write(self, iteration: int, values: Mapping[str, float]) -> None:
        """Add a line."""
        line = json.dumps({"iteration": iteration, **values}) + "\n"
        with (
            naming_errors(self._path, "write"),
            self._path.open("a", encoding="utf-8") as file,
        ):
            file.write(line)


class TensorBoardLog(TrainingLog):
    """TensorBoard's event files in the folder of the run."""

    def __init__(self, run_dir: Path, begin: int) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter

        # Values that a killed run logged after its checkpoint are logged again.
        purge = begin + 1 if begin else None
        self._writer: Any = SummaryWriter(
            os.fspath(run_dir), purge_step=purge, flush_secs=10
        )

    def write(self, iteration: int, values: Mapping[str, float]) -> None:
        """Add a point to each curve."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, iteration)

    def write_video(self, iteration: int, path: Path) -> None:
        """Log a GIF as an image."""
        if path.suffix != ".gif":
            return
        from PIL import Image

        proto: Any = import_module("tensorboard.compat.proto.summary_pb2")
        with Image.open(path) as picture:
            width, height = picture.size
        image = proto.Summary.Image(
            height=height,
            width=width,
            colorspace=3,
            encoded_image_string=path.read_bytes(),
        )
        value = proto.Summary.Value(tag="policy", image=image)
        summary = proto.Summary(value=[value])
        self._writer.file_writer.add_summary(summary, iteration)

    def close(self) -> None:
        """Flush and close the log."""
        self._writer.close()


class WandbLog(TrainingLog):
    """Weights & Biases; offline unless WANDB_MODE or WANDB_API_KEY is set."""

    def __init__(self, run_dir: Path, settings: Mapping[str, Any]) -> None:
        import wandb  # pyright: ignore[reportMissingImports]

        self._wandb: Any = wandb
        has_key = "WANDB_API_KEY" in os.environ
        mode = os.environ.get("WANDB_MODE", "online" if has_key else "offline")
        self._run: Any = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", "simstate"),
            name=run_dir.name,
            dir=os.fspath(run_dir),
            config=dict(settings),
            mode=mode,
            settings=self._wandb.Settings(silent=True, console="off"),
        )

    def write(self, iteration: int, values: Mapping[str, float]) -> None:
        """Add a point to each curve."""
        self._run.log(dict(values), step=iteration)

    def write_video(self, iteration: int, path: Path) -> None:
        """Upload a video."""
        self._run.log({"policy": self._wandb.Video(os.fspath(path))}, step=iteration)

    def close(self) -> None:
        """Flush and close the log."""
        self._run.finish()


def open_logs(
    kind: LogKind, run_dir: Path, begin: int, settings: Mapping[str, Any]
) -> list[TrainingLog]:
    """Return the logs of a run that continues after `begin` updates."""
    logs: list[TrainingLog] = [ProgressFile(run_dir, begin)]
    if kind == "tensorboard":
        logs.append(TensorBoardLog(run_dir, begin))
    elif kind == "wandb":
        logs.append(WandbLog(run_dir, settings))
    return logs


def read_progress(run_dir: Path) -> list[dict[str, float]]:
    """Return the lines of a run's progress.jsonl, oldest first, up to a torn one."""
    path = run_dir / PROGRESS
    lines: list[dict[str, float]] = []
    if not path.is_file():
        return lines
    with naming_errors(path, "read"):
        content = path.read_text(encoding="utf-8")
    for text in content.splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            break
    return lines


@dataclass(frozen=True)
class Progress:
    """State of a run after an update."""

    iteration: int
    """Number of updates."""
    reward: float | None
    """Mean return of the last hundred episodes; None if none has ended."""
    episode_length_s: float | None
    """Mean length of these episodes [s]."""
    steps_per_second: float
    """Environment steps of all worlds per second, including the time of learning."""
    values: Mapping[str, float] = field(default_factory=dict[str, float])
    """All logged values of the update, by name: losses, speeds, and of the episodes
    that ended in it "Episode_Reward/…", "Episode_Termination/…" and "Metrics/…"."""

    def of(self, section: str) -> dict[str, float]:
        """Return the values of names "section/…", by the rest of the name."""
        start = f"{section}/"
        return {
            name.removeprefix(start): value
            for name, value in self.values.items()
            if name.startswith(start)
        }


Report = Callable[[Progress], None]


def no_report(progress: Progress) -> None:
    """Ignore the progress."""
    del progress
