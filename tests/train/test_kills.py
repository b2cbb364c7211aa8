"""Training that is killed or interrupted at random moments, with terms that remember.

Each try is a process of its own, forked so that it starts at once.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

import pytest
import torch
from tests.env.stateful import stateful_cfg
from tests.train.test_run import weights

from simstate.env import TrainCfg, tasks
from simstate.train.run_cfg import OutputCfg, RunCfg
from simstate.train.training_run import TrainingRun

ITERATIONS = 6
KILLS = int(os.environ.get("SIMSTATE_KILLS", "200"))


def train(folder: Path) -> None:
    """Train, or go on."""
    settings = TrainCfg(num_envs=8, iterations=ITERATIONS)
    tasks.register("Stateful", stateful_cfg, lambda: settings)
    if any(folder.glob("model_*.npz")):
        run = TrainingRun.resume(folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)  # killed before the first update
        output = OutputCfg(save_every=1)
        cfg = RunCfg(task="Stateful", train=settings, seed=3, output=output)
        run = TrainingRun(cfg, folder)
    run.learn(ITERATIONS, lambda progress: None)


def child(folder: Path) -> int:
    """A process that trains; its id."""
    number = os.fork()
    if number:
        return number
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        train(folder)
        os._exit(0)
    except KeyboardInterrupt:
        os._exit(130)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


@pytest.mark.soak
def test_every_resume_is_bit_for_bit(tmp_path):
    whole = tmp_path / "whole"
    began = time.monotonic()
    assert os.waitpid(child(whole), 0)[1] == 0
    length = time.monotonic() - began
    expected = weights(whole)
    draw = random.Random(1)
    kills = runs = 0
    while kills < KILLS:
        folder = tmp_path / f"run {runs}"
        status = -1
        while status != 0:
            number = child(folder)
            time.sleep(draw.uniform(0.2, 0.9) * length)
            os.kill(number, draw.choice([signal.SIGKILL, signal.SIGINT]))
            status = os.waitpid(number, 0)[1]
            assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) in (0, 130)
            kills += status != 0
        runs += 1
        found = weights(folder)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert torch.equal(found[name], value), (runs, kills, name)
    print(f"{kills} kills, {runs} runs")
