"""Files that were written before the modules had their present places."""

from __future__ import annotations

import dataclasses
import lzma
from pathlib import Path

import pytest
from tests.mujoco_versions import IS_4
from tests.raised import raises

from simstate import RecordingError
from simstate.data.replay import replay
from simstate.env import EventTermCfg, events, tasks
from simstate.train.run_file import read_run_file

FILES = Path(__file__).parent / "before_0_2"


def env_cfg():
    cfg = tasks.make_cfg("Satellite-Slew")
    params = {"field": "site_quat", "angle_range": {"roll": (-0.1, 0.1)}}
    term = EventTermCfg(events.randomize_orientation, mode="startup", params=params)
    return dataclasses.replace(cfg, events={**cfg.events, "mounting": term})


def test_a_recording_replays_to_the_same_bits(tmp_path):
    path = tmp_path / "cartpole.simrec"
    path.write_bytes(lzma.decompress((FILES / "cartpole.simrec.xz").read_bytes()))
    if IS_4:  # a compiled model is of one version
        with raises(RecordingError, name="model"):
            replay(path, task="Cartpole-Balance")
        return
    found = replay(path, task="Cartpole-Balance")
    assert found.settings == []
    assert found.is_same


@pytest.mark.filterwarnings("ignore:The file of task")
def test_a_run_file_finds_its_functions():
    """They are stored as "module:function"."""
    tasks.register("Mounted-Slew", env_cfg, replace=True)
    run = read_run_file(FILES / "run.json")
    assert run.env_cfg().events["mounting"].func is events.randomize_orientation
