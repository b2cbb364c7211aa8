"""Another simulator's physics under our worlds, to play a policy or inputs in it.

    env = Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=8, auto_reset=False)
    with borrowed_physics(env, "drake"):
        print(evaluate(env, OnnxPolicy(path, env), seconds=10.0))

Observations, rewards, commands, events and ends of episodes stay those of the task:
after each step its simulation is put where the other simulator's worlds are.
Accelerations and contact forces, where a task looks at them, are those of MuJoCo at
these states. Parameters that a task makes differ by world, and forces that it applies
to bodies, are not known to the other simulator.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import Tensor

from simstate.engine import Stage
from simstate.env import Env
from simstate.errors import DivergenceError, InvalidInputError
from simstate.ids import int_list
from simstate.physics import Physics
from simstate.simulators.base import AdaptedSimulator
from simstate.simulators.declared import info
from simstate.simulators.making import make
from simstate.worlds import Worlds


@contextmanager
def borrowed_physics(
    env: Env | Worlds, simulator: str | AdaptedSimulator
) -> Generator[AdaptedSimulator]:
    """While it is entered, `env` steps in another simulator, which it gives.

    A world that the simulator cannot advance has diverged, as in a simulation.

    Args:
        env: an environment or a simulation on the native engine, with MuJoCo's own
            stepper.
        simulator: a name that `simulators.make` knows, or one that was made of the same
            scene with as many worlds.
    """
    made = simulator
    sim = env.sim if isinstance(env, Env) else env
    if isinstance(made, str):
        if info(made).simulator is None:
            raise InvalidInputError(
                f"{made!r} is an engine of simstate, and no other simulator: make the "
                f"worlds with engine={made!r} (--engine {made} on the command line)."
            )
        scene = env.cfg.scene if isinstance(env, Env) else sim.model
        made = make(made, scene, env.num_envs)
    if not isinstance(made, AdaptedSimulator):
        raise InvalidInputError(
            f"{type(made).__name__} is none of the simulators behind an adapter: give "
            "a name that simulators.make knows, or what it made."
        )
    if made.num_envs != env.num_envs:
        raise InvalidInputError(
            f"The simulator has {made.num_envs} worlds, and {env.num_envs} are to move."
        )
    physics = sim.internals
    if sim.engine_name != "native" or not physics.steps_plainly:
        raise InvalidInputError(
            "Another simulator takes the place of MuJoCo's own stepper on the native "
            'engine: make it with engine="native", without an integrator, force '
            "models and processes."
        )
    own = physics.advance
    physics.advance = _Borrowed(physics, made).advance
    try:
        yield made
    finally:
        physics.advance = own


class _Borrowed:
    """Advances worlds of ours in another simulator."""

    def __init__(self, physics: Physics, simulator: AdaptedSimulator) -> None:
        self._physics, self._simulator = physics, simulator

    def advance(self, n: int, env_ids: Tensor | None) -> Tensor | None:
        """Advance worlds by n time steps: what `env.sim.step` does meanwhile."""
        physics, simulator = self._physics, self._simulator
        rows = torch.arange(physics.num_envs) if env_ids is None else env_ids
        ids = int_list(rows)
        self._hand_over(ids)
        simulator.ctrl.copy_(physics.engine.field("ctrl"))
        bad = torch.zeros(physics.num_envs, dtype=torch.bool)
        try:
            simulator.step(n, ids)
        except DivergenceError as error:
            bad[list(error.env_ids)] = True
        self._take_back(ids)
        physics.engine.field("time")[ids] += n * simulator.timestep
        physics.fresh.write(Stage.POSITION, env_ids, f"a step in {simulator.name}")
        return bad

    def _hand_over(self, ids: list[int]) -> None:
        """Give the simulator those worlds that are elsewhere: after a reset, say."""
        qpos, qvel, act = self._fields()
        there, held = self._simulator.read(ids), self._simulator.reference.data.act
        same = (qpos[ids] == torch.as_tensor(there.qpos)).all(1)
        same &= (qvel[ids] == torch.as_tensor(there.qvel)).all(1)
        same &= (act[ids] == held[ids]).all(1)
        changed = [i for i, fine in zip(ids, same, strict=True) if not fine]
        if changed:
            held[changed] = act[changed]
            self._simulator.write(qpos[changed].numpy(), qvel[changed].numpy(), changed)

    def _take_back(self, ids: list[int]) -> None:
        """Put the environment's worlds where the simulator's are."""
        qpos, qvel, act = self._fields()
        motion = self._simulator.read(ids)
        qpos[ids] = torch.as_tensor(motion.qpos)
        qvel[ids] = torch.as_tensor(motion.qvel)
        act[ids] = self._simulator.reference.data.act[ids]

    def _fields(self) -> tuple[Tensor, Tensor, Tensor]:
        engine = self._physics.engine
        return engine.field("qpos"), engine.field("qvel"), engine.field("act")
