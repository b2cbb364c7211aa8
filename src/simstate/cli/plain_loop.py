"""A plain loop of mj_step, the baseline of `simstate bench` and `simstate run`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from simstate.base.mujoco_warnings import silenced

if TYPE_CHECKING:
    from simstate.simulation import Simulation

STEPS = 20
"""Time steps of one measurement, from the same states each time."""


class PlainLoop:
    """A loop of mj_step in plain Python, one world after the other."""

    def __init__(self, model: mujoco.MjModel, rows: np.ndarray) -> None:
        self.datas = [mujoco.MjData(model) for _ in rows]
        self._model = model
        self._rows = rows

    def rewind(self) -> None:
        """Restore every world to its initial state."""
        state = mujoco.mjtState.mjSTATE_INTEGRATION.value
        for data, row in zip(self.datas, self._rows, strict=True):
            mujoco.mj_setState(self._model, data, row, state)

    def run(self) -> None:
        """Step every world, without MuJoCo's warnings of those that diverge."""
        model, step = self._model, mujoco.mj_step
        with silenced():
            for data in self.datas:
                for _ in range(STEPS):
                    step(model, data)


def plain_rate(sim: Simulation) -> float:
    """Return the world-steps per second of a loop of mj_step from these states."""
    rows = sim.state[:64].cpu().double().numpy()
    loop = PlainLoop(sim.model, rows)
    times: list[float] = []
    for _ in range(3):
        loop.rewind()
        start = time.perf_counter()
        loop.run()
        times.append(time.perf_counter() - start)
    return len(rows) * STEPS / min(times)
