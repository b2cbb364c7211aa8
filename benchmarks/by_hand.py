"""RK4 of one world by hand, with MuJoCo's functions and NumPy."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

from simstate import Simulation

FULL = mujoco.mjtState.mjSTATE_INTEGRATION.value
WEIGHTS = np.array([1, 2, 2, 1]) / 6
"""The weights of the four evaluations of a step."""
Load = Callable[[mujoco.MjData], None]


class RungeKutta:
    """RK4 of the free body with a load, written by hand with mj_forward and NumPy."""

    def __init__(self, sim: Simulation, load: Load) -> None:
        self.load = load
        self.model = model = sim.model
        self.data = mujoco.MjData(model)
        self.start = sim.state[0].numpy().copy()
        self.qpos = np.zeros(model.nq)
        self.qvel = np.zeros(model.nv)
        self.speeds, self.rates = np.zeros((2, 4, model.nv))

    def prepare(self) -> None:
        """Return to the start."""
        mujoco.mj_setState(self.model, self.data, self.start, FULL)
        self.step()

    def step(self) -> None:
        """Advance by one time step; the load is set at each of four evaluations."""
        model, data, h = self.model, self.data, self.model.opt.timestep
        start = data.time
        self.qpos[:], self.qvel[:] = data.qpos, data.qvel
        for stage, share in enumerate((0.0, 0.5, 0.5, 1.0)):
            if stage:
                self.displace(h * share, self.speeds[stage - 1], self.rates[stage - 1])
            data.time = start + share * h
            self.load(data)
            mujoco.mj_forward(model, data)
            self.speeds[stage], self.rates[stage] = data.qvel, data.qacc
        self.displace(h, WEIGHTS @ self.speeds, WEIGHTS @ self.rates)
        data.time = start + h

    def displace(self, h: float, speed: np.ndarray, rate: np.ndarray) -> None:
        """Set the state to that of the start, moved at a velocity for a time h."""
        data = self.data
        data.qpos[:] = self.qpos
        mujoco.mj_integratePos(self.model, data.qpos, speed, h)
        data.qvel[:] = self.qvel + h * rate
