"""The wording of the errors of `interop`: what to install or call."""

from __future__ import annotations

import sys
from importlib import import_module

import numpy as np
import pytest
from tests.raised import says

from simstate import InvalidInputError
from simstate.env import tasks
from simstate.interop.gymnasium import GymnasiumEnv, GymnasiumVectorEnv


@pytest.mark.parametrize(
    ("module", "missing", "line"),
    [
        ("skrl", "skrl", "pip install skrl"),
        ("torchrl", "torchrl", r"pip install torchrl==0\.14\.1 'tensordict<0\.15'"),
        ("torchrl", "tensordict", r"pip install torchrl==0\.14\.1 'tensordict<0\.15'"),
    ],
)
def test_how_to_get_it_is_said(monkeypatch, module, missing, line):
    for name in [n for n in sys.modules if n.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, f"simstate.interop.{module}", raising=False)
    with pytest.raises(InvalidInputError, match=rf"needs {missing}.*{line}"):
        import_module(f"simstate.interop.{module}")


def test_a_step_after_the_end_of_an_episode_names_the_reset_to_call():
    cfg = tasks.make_cfg("Cartpole-Balance")
    cfg.episode_length_s = cfg.decimation * cfg.scene.timestep
    one = GymnasiumEnv(cfg)
    two = GymnasiumVectorEnv(cfg, num_envs=2, autoreset_mode="Disabled")
    for env, action, remedy in (
        (one, np.zeros(1), "The episode has ended: start a new one by reset()."),
        (two, np.zeros((2, 1)), "worlds [0, 1] have ended: start new ones by reset(op"),
    ):
        env.reset(seed=1)
        env.step(action)
        with says(InvalidInputError, remedy):
            env.step(action)
