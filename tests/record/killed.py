"""Processes that record until they are killed: `killed.py FOLDER TIMES`.

Each is a fork of this one, which loads the libraries once.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch
from tests.record.conftest import drive, scene

from simstate import NativeCfg, RecordingError, Simulation
from simstate.record import Recording, recorder

PATIENCE = 240.0
"""How long a child may take to write its first blocks [s]."""


def record(path: Path, seed: int) -> None:
    torch.set_num_threads(1)
    recorder.BLOCK_SECONDS = 0.005
    sim = Simulation(scene(), 6, engine=NativeCfg(num_threads=1), seed=seed)
    sim.record(path, quantities=["arm.joint_pos"], fields=["qpos"], snapshot_every=0.5)
    end = time.monotonic() + PATIENCE
    generator = torch.Generator().manual_seed(seed)
    while time.monotonic() < end:
        drive(sim, 10, generator)


def blocks(path: Path) -> int:
    """How many whole blocks a file has that may just be written."""
    try:
        with Recording(path) as found:
            return len(found.blocks)
    except RecordingError:
        return 0


def main(folder: Path, times: int) -> None:
    chance = random.Random(0)
    for k in range(times):
        path = folder / f"{k}.simrec"
        child = os.fork()
        if not child:
            try:
                record(path, k)
            finally:
                os._exit(1)
        begun = time.monotonic()
        while time.monotonic() - begun < PATIENCE and blocks(path) < 2:
            time.sleep(0.02)
        time.sleep(chance.uniform(0.0, 0.2))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"child {k} ended by itself: {status}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
