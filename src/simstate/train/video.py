"""Films of worlds as GIF or MP4 files, rendered without a display."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import numpy as np

from simstate.base.checks import number
from simstate.base.closeable import Closing
from simstate.base.errors import InvalidInputError
from simstate.base.extras import library
from simstate.base.files import replacing
from simstate.env import Env
from simstate.sensors.watch_camera import VIEW
from simstate.train.evaluate import Act
from simstate.view.grid import tiled

Frame = np.ndarray
"""Colours 0 … 255, uint8; shape (height, width, 3)."""

FORMATS = (".gif", ".mp4")


def check_video(path: Path, fps: float) -> None:
    """Raise unless a video can be written to a path at a frame rate."""
    if path.suffix.lower() not in FORMATS:
        raise InvalidInputError(
            f"A video must be a {' or '.join(FORMATS)} file, got {path.name!r}."
        )
    if not path.absolute().parent.is_dir():
        raise InvalidInputError(f"There is no folder {str(path.absolute().parent)!r}.")
    number("fps", fps, more_than=0)


def film(env: Env, act: Act, seconds: float, fps: float) -> list[Frame]:
    """Reset the worlds, run a policy, and return pictures of all worlds, side by side.

    A second of the film is a second of the simulation: if there are fewer steps than
    frames, pictures are repeated. A truncated world is reset. The scene of the
    environment needs the camera of `with_view`.
    """
    seen, _ = env.reset()
    frames: list[Frame] = []
    for step in range(round(seconds / env.step_dt)):
        due = math.ceil((step + 1) * env.step_dt * fps - 1e-6) - len(frames)
        if due > 0:
            frames += [tiled(env.sim.cameras[VIEW].rgb.cpu().numpy())] * due
        seen, _, _, truncated, _ = env.step(act(seen))
        if bool(truncated.any()):
            seen, _ = env.reset(env_ids=truncated)
    return frames


def write_video(path: Path, frames: Iterable[Frame], fps: float) -> None:
    """Write frames as a GIF or an MP4, according to the file's suffix."""
    with VideoFile(path, fps) as video:
        for frame in frames:
            video.add(frame)


class VideoFile(Closing):
    """A GIF or an MP4, according to the file's suffix, written frame by frame.

    Args:
        path: the file, which is replaced.
        fps: frames per second.
    """

    def __init__(self, path: Path, fps: float) -> None:
        self._path, self._fps = path, fps
        self._images: list[Frame] = []
        self._mp4: Mp4 | None = None

    def add(self, frame: Frame) -> None:
        """Append a frame; the first sets the size."""
        if self._path.suffix.lower() == ".gif":
            self._images.append(frame)
            return
        if self._mp4 is None:
            height, width, _ = frame.shape
            self._mp4 = Mp4(self._path, (width, height), self._fps)
        self._mp4.add(frame)

    def close(self) -> None:
        """Finish the file; without frames, none is written."""
        if self._mp4 is not None:
            self._mp4.close()
        images, self._images = self._images, []
        if images:
            _write_gif(self._path, images, self._fps)


def _write_gif(path: Path, frames: list[Frame], fps: float) -> None:
    from PIL import Image

    images = [Image.fromarray(frame) for frame in frames]
    duration = round(1000.0 / fps)
    with replacing(path) as part:
        images[0].save(
            part, format="GIF", save_all=True, append_images=images[1:],
            duration=duration, loop=0,
        )  # fmt: skip


class Mp4(Closing):
    """An H.264 film that is written picture by picture.

    The file is created by `close`. If interrupted between pictures, it has the pictures
    so far; if interrupted within one, or within `close`, an existing file is kept.

    Args:
        path: the file, which is replaced.
        size: width and height [px]; odd values are scaled to the next even one.
        fps: pictures per second; a Fraction is exact.
        options: options of ffmpeg's encoder; none: its default quality.
    """

    def __init__(
        self,
        path: Path,
        size: tuple[int, int],
        fps: float | Fraction,
        options: Sequence[str] = (),
    ) -> None:
        ffmpeg = library("imageio_ffmpeg", "play", "MP4 files")
        rate = Fraction(fps).limit_denominator(1001)
        width, height = size
        even = f"scale={width + width % 2}:{height + height % 2}"
        source = f"-f rawvideo -pix_fmt rgb24 -s {width}x{height} -r {rate} -i -"
        # Started without `preexec_fn`, which would fork: a fork copies the page tables
        # of a large process, and fails if these exceed the machine's memory. It has its
        # own process group, so that Ctrl-C does not end it within a picture.
        with ExitStack() as stack:
            part = stack.enter_context(replacing(path))
            self._process = subprocess.Popen(
                [
                    *(ffmpeg.get_ffmpeg_exe(), "-y", "-loglevel", "error"),
                    *(*source.split(), "-an", "-c:v", "libx264", "-pix_fmt", "yuv420p"),
                    *("-vf", even, *(options or ("-crf", "25")), "-f", "mp4"),
                    str(part),
                ],
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=None if sys.platform == "win32" else 0,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
            self._file = stack.pop_all()

    def add(self, picture: Frame) -> None:
        """Append a picture; uint8 (height, width, 3)."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(np.ascontiguousarray(picture).data)
        except BrokenPipeError:
            self.close()  # raises, with the encoder's message, if it failed
            raise
        except BaseException:  # a part of a picture
            with self._file:
                self._kill()
                raise

    def close(self) -> None:
        """Finish the file; raise OSError if it could not be written."""
        if self._process.returncode is not None:
            return
        with self._file:
            try:
                _, output = self._process.communicate()
            except BaseException:
                self._kill()
                raise
            if self._process.returncode:
                text = " ".join(output.decode(errors="replace").split())[-500:]
                raise OSError(text.rstrip(".") or "ffmpeg failed")

    def _kill(self) -> None:
        self._process.kill()
        self._process.communicate()
