"""The results that shipped tasks state belong to the settings that were trained."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import pytest

from simstate.env import tasks
from simstate.env.settings import described_settings

pytestmark = pytest.mark.fast

TRAINED_WITH: dict[str, int] = {
    "Cartpole-Balance": 818463809,
    "Cartpole-SwingUp": 1206933865,
    "Quadruped-Velocity": 278439898,
    "Quadruped-Velocity-Rough": 2899435337,
    "Humanoid-Velocity": 1279910242,
    "Arm-Reach": 3718879243,
    "Cartpole-Pixels": 4235724848,
    "Arm-Reach-Pixels": 1213450341,
    "Cube-Lift": 1401458111,
    "Satellite-Slew": 149236527,
    "Glider-Heading": 4183645050,
}
"""Checksums of the settings, without functions, with which TRAINED was measured."""


def checksum(name: str) -> int:
    """Checksum of all numbers, texts and switches of a task and its training."""
    found: Mapping[str, object] = described_settings(tasks.make_cfg(name), "env")
    found |= described_settings(tasks.make_train_cfg(name), "train")
    lines = [f"{k}={v!r}" for k, v in found.items() if not k.endswith(".func")]
    return zlib.crc32("\n".join(sorted(lines)).encode())


@pytest.mark.parametrize("name", tasks.NAMES)
def test_a_stated_result_is_that_of_these_settings(name):
    """If a setting changes: train again, correct TRAINED, then the checksum here."""
    assert checksum(name) == TRAINED_WITH[name]
