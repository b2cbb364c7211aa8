"""Films as ffmpeg decodes them.

`imageio_ffmpeg.read_frames` copies the process by a fork, which the system refuses to a
process that has most of the memory. `subprocess` starts ffmpeg without one.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import imageio_ffmpeg
import numpy as np


class Film(NamedTuple):
    """The pictures of a film, (n, height, width, 3), and their rate [1/s]."""

    frames: np.ndarray
    fps: float


def read_film(path: Path) -> Film:
    """Return the pictures of a film and their rate."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path)]
    command += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(command, capture_output=True, check=True)
    about = done.stderr.decode().partition("Output #0")[0]
    size = re.search(r"Video: .*?, (\d+)x(\d+)[ ,]", about)
    fps = re.search(r"([\d.]+) fps", about)
    assert size is not None, about
    assert fps is not None, about
    shape = (-1, int(size[2]), int(size[1]), 3)
    return Film(np.frombuffer(done.stdout, np.uint8).reshape(shape), float(fps[1]))
