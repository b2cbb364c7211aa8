"""Films: as many pictures as the time asks for, whatever the step."""

from __future__ import annotations

import os
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from tests.films import read_film
from tests.raised import raises

from simstate.base.errors import InvalidInputError
from simstate.sensors.watch_camera import VIEW
from simstate.train.video import Mp4, VideoFile, check_video, film, write_video

PICTURE = np.zeros((20, 32, 3), np.uint8)


class Counting:
    """An environment whose picture shows the steps since the last reset."""

    def __init__(self, step_dt: float, limit: int = 1000) -> None:
        self.step_dt = step_dt
        self.limit = limit
        self.steps = 0
        self.rendered = 0

    @property
    def sim(self):
        self.rendered += 1
        picture = torch.full((1, 2, 2, 3), self.steps, dtype=torch.uint8)
        return SimpleNamespace(cameras={VIEW: SimpleNamespace(rgb=picture)})

    def reset(self, env_ids=None):
        self.steps = 0
        return {}, {}

    def step(self, action):
        self.steps += 1
        late = torch.tensor([self.steps >= self.limit])
        return {}, torch.zeros(1), torch.zeros_like(late), late, {}


def shown(env: Counting, seconds: float, fps: float) -> list[int]:
    return [int(frame.max()) for frame in film(env, lambda seen: seen, seconds, fps)]


def test_a_second_of_the_film_is_a_second_of_the_simulation():
    slow = Counting(0.2)
    assert shown(slow, 1.0, 10.0) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert slow.rendered == 5
    assert shown(Counting(0.02), 0.2, 25.0) == [0, 2, 4, 6, 8]
    assert shown(Counting(0.04), 0.2, 25.0) == [0, 1, 2, 3, 4]
    assert len(shown(Counting(0.02), 2.0, 30.0)) == 60


def test_a_world_whose_time_is_up_is_reset():
    assert shown(Counting(0.1, limit=3), 0.8, 10.0) == [0, 1, 2, 0, 1, 2, 0, 1]


@pytest.mark.parametrize("fps", [0.0, -5.0, float("nan"), float("inf")])
def test_a_rate_of_no_pictures_is_refused(tmp_path, fps):
    with raises(InvalidInputError, name="fps"):
        check_video(tmp_path / "film.gif", fps)


def test_a_film_that_cannot_be_written_says_why(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        Mp4(tmp_path / "none" / "a.mp4", (32, 20), 30)
    written = Mp4(tmp_path / "a.mp4", (32, 20), 30, ("-crf", "much"))
    with pytest.raises(OSError, match="Invalid argument"):
        add_pictures(written)
    written.close()  # again, without another error
    assert list(tmp_path.iterdir()) == []


def add_pictures(film: Mp4) -> None:
    """Add more than fits into the pipe to the encoder, and end the film."""
    for _ in range(2000):
        film.add(PICTURE)
    film.close()


@pytest.fixture(params=["a.mp4", "a.gif"])
def earlier(request, tmp_path):
    """A file from before, which a film replaces."""
    path = tmp_path / request.param
    path.write_bytes(b"earlier")
    return path


def test_an_error_between_pictures_leaves_a_film_of_those_before(earlier):
    with pytest.raises(KeyboardInterrupt):
        write_video(earlier, interrupted(3), 30.0)
    assert len(read_film(earlier).frames) == 3
    assert list(earlier.parent.iterdir()) == [earlier]


def interrupted(count: int):
    """Yield some pictures, then Ctrl-C."""
    for k in range(count):
        yield PICTURE + np.uint8(80 * k)
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["communicate", "fsync"])
def test_ctrl_c_while_a_film_ends_leaves_the_file_from_before(
    earlier, name, monkeypatch
):
    def interrupt(*_: object, **__: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    film = VideoFile(earlier, 30.0)
    film.add(PICTURE)
    place = subprocess.Popen if name == "communicate" else os
    if earlier.suffix == ".gif" and name == "communicate":
        place, name = Image.Image, "save"
    monkeypatch.setattr(place, name, interrupt)
    with pytest.raises(KeyboardInterrupt):
        film.close()
    assert earlier.read_bytes() == b"earlier"
    assert list(earlier.parent.iterdir()) == [earlier]
    film.close()  # again, without an error


def test_ctrl_c_within_a_picture_leaves_the_file_from_before(tmp_path, monkeypatch):
    path = tmp_path / "a.mp4"
    path.write_bytes(b"earlier")
    film = Mp4(path, (32, 20), 30)

    def interrupt(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "ascontiguousarray", interrupt)
    with pytest.raises(KeyboardInterrupt), film:
        film.add(PICTURE)
    assert path.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [path]
