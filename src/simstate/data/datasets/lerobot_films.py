"""Films of a LeRobot data set: the pictures of all episodes, one after the other."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from simstate.base.closeable import Closing
from simstate.base.errors import InvalidInputError
from simstate.train.video import Mp4

VIDEO = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
FILE_MB = 200
"""Approximate size of a full file [MB]."""
MOST_BYTES = 16 * FILE_MB << 20
"""Maximum size of a file's pictures before encoding, which shrinks them to about 1/16;
beyond it the next episode starts another file."""
ENCODING = ("-crf", "18", "-g", "2")
"""Little loss, and a key frame every second frame: training reads in random order."""


class Films(Closing):
    """The films of one camera: files of episodes, one after the other.

    Args:
        root: the data set's folder.
        feature: the camera's feature, such as "observation.images.front".
        fps: pictures per second.
    """

    def __init__(self, root: Path, feature: str, fps: float) -> None:
        self._root, self._feature = root, feature
        self._fps = Fraction(fps).limit_denominator(1001)
        self._file, self._frames = -1, 0
        self._bytes = 0
        self._film: Mp4 | None = None

    def add(self, pictures: np.ndarray) -> dict[str, Any]:
        """Append an episode (frames, H, W, 3); return its row for `meta/episodes`."""
        film = self._film
        if film is None or self._bytes > MOST_BYTES:
            film = self._begin(*pictures.shape[1:3])
        self._bytes += pictures.nbytes
        start = self._frames
        for picture in pictures:
            film.add(picture)
        self._frames += len(pictures)
        return {
            f"videos/{self._feature}/chunk_index": self._file // 1000,
            f"videos/{self._feature}/file_index": self._file % 1000,
            f"videos/{self._feature}/from_timestamp": float(start / self._fps),
            f"videos/{self._feature}/to_timestamp": float(self._frames / self._fps),
        }

    def close(self) -> None:
        """Finish the last file."""
        if self._film is not None:
            self._film.close()
            self._film = None

    def described(self, shape: tuple[int, ...], of: str) -> dict[str, Any]:
        """Return the feature for `meta/info.json`, of pictures of a shape (H, W, 3)."""
        height, width, channels = shape
        return {
            "dtype": "video",
            "shape": [height, width, channels],
            "names": ["height", "width", "channels"],
            "camera": of,
            "info": {
                "video.height": height,
                "video.width": width,
                "video.codec": "h264",
                "video.pix_fmt": "yuv420p",
                "video.is_depth_map": False,
                "video.fps": float(self._fps),
                "video.channels": channels,
                "has_audio": False,
            },
        }

    def _begin(self, height: int, width: int) -> Mp4:
        """Start another file."""
        if height % 2 or width % 2:
            raise InvalidInputError(
                f"A video needs an even width and height; pictures of {self._feature} "
                f"are {width} × {height}.",
                name=self._feature,
            )
        self.close()
        self._file, self._frames, self._bytes = self._file + 1, 0, 0
        path = self._root / VIDEO.format(
            video_key=self._feature,
            chunk_index=self._file // 1000,
            file_index=self._file % 1000,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        self._film = Mp4(path, (width, height), self._fps, ENCODING)
        return self._film
