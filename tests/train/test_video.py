"""Films: as many pictures as the time asks for, whatever the step."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.raised import raises

from simstate.base.errors import InvalidInputError
from simstate.sensors.watch_camera import VIEW
from simstate.train.video import Mp4, check_video, film


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
    written = Mp4(tmp_path / "none" / "a.mp4", (32, 20), 30)
    with pytest.raises(OSError, match="No such file"):
        add_pictures(written)
    written.close()  # again, without another error


def add_pictures(film: Mp4) -> None:
    """Add more than fits into the pipe to the encoder, and end the film."""
    for _ in range(2000):
        film.add(np.zeros((20, 32, 3), np.uint8))
    film.close()
