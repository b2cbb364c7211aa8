"""Another simulator's physics under an environment, to play a policy in it.

    env = Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=8, auto_reset=False)
    with borrowed_physics(env, "drake"):
        print(evaluate(env, OnnxPolicy(path, env), seconds=10.0))

Observations, rewards, commands, events and ends of episodes stay those of the task:
after each step its simulation is put where the other simulator's worlds are.
Accelerations and contact forces, where a task looks at them, are those of MuJoCo at
these states.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

from simstate.env import Env
from simstate.errors import DivergenceError, InvalidInputError
from simstate.ids import Ids, int_list
from simstate.simulators.base import AdaptedSimulator
from simstate.simulators.making import make


@contextmanager
def borrowed_physics(
    env: Env, simulator: str | AdaptedSimulator
) -> Generator[BorrowedPhysics]:
    """While it is entered, `env` steps in another simulator.

    Args:
        env: an environment of the native engine.
        simulator: a name that `simulators.make` knows, or one that was made of the same
            scene with as many worlds.
    """
    made = simulator
    if isinstance(made, str):
        made = make(made, env.cfg.scene, env.num_envs)
    if not isinstance(made, AdaptedSimulator):
        raise InvalidInputError(
            f"{simulator!r} is an engine of simstate: make the Env with engine=… ."
        )
    physics = BorrowedPhysics(env, made)
    sim: Any = env.sim
    sim.step = physics.step
    try:
        yield physics
    finally:
        del sim.step


class BorrowedPhysics:
    """Advances the worlds of an environment in another simulator."""

    def __init__(self, env: Env, simulator: AdaptedSimulator) -> None:
        if simulator.num_envs != env.num_envs:
            raise InvalidInputError(
                f"The simulator has {simulator.num_envs} worlds, the environment "
                f"{env.num_envs}."
            )
        self.env, self.simulator = env, simulator
        self.failed: set[int] = set()
        """Worlds that the simulator could not advance; they stay where they were."""
        data = env.sim.data
        self._qpos = torch.full_like(data.qpos, torch.nan)
        self._qvel = torch.full_like(data.qvel, torch.nan)

    def step(self, n: int = 1, env_ids: Ids = None) -> None:
        """Advance worlds by n time steps: what `env.sim.step` does meanwhile."""
        sim = self.env.sim
        rows = sim.select_envs(env_ids).tensor(sim.device)
        ids = [i for i in int_list(rows) if i not in self.failed]
        self._hand_over(ids)
        self.simulator.ctrl.copy_(sim.data.ctrl)
        try:
            self.simulator.step(n, ids)
        except DivergenceError as error:
            self.failed |= set(error.env_ids)
        self._take_back(ids)
        sim.data.time[ids] += n * sim.timestep

    def _hand_over(self, ids: list[int]) -> None:
        """Give the simulator those worlds that a reset or an event has changed."""
        data = self.env.sim.data
        same = (data.qpos == self._qpos).all(1) & (data.qvel == self._qvel).all(1)
        changed = [i for i in ids if not bool(same[i])]
        if changed:
            qpos, qvel = data.qpos[changed], data.qvel[changed]
            self.simulator.write(qpos.numpy().copy(), qvel.numpy().copy(), changed)

    def _take_back(self, ids: list[int]) -> None:
        """Put the environment's worlds where the simulator's are."""
        data, motion = self.env.sim.data, self.simulator.read(ids)
        data.qpos[ids] = torch.as_tensor(motion.qpos).to(data.qpos)
        data.qvel[ids] = torch.as_tensor(motion.qvel).to(data.qvel)
        self._qpos.copy_(data.qpos)
        self._qvel.copy_(data.qvel)
