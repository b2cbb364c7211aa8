"""SimulatorStepper: another simulator advances our worlds, to play a policy in it.

    env = Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=8, auto_reset=False)
    with borrowed_stepper(env, "drake"):
        print(evaluate(env, OnnxPolicy(path, env), seconds=10.0))

Observations, rewards, commands, events and ends of episodes stay those of the task:
after each step its simulation is moved to where the other simulator's worlds are.
Accelerations and contact forces, where a task looks at them, are those of MuJoCo at
these states. Parameters that a task makes differ by world, and forces that it applies
to bodies, are not known to the other simulator.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import Tensor

from simstate.base.errors import DivergenceError, InvalidInputError
from simstate.base.ids import int_list
from simstate.engine import Seen, Stage
from simstate.env import Env
from simstate.simulation import Simulation
from simstate.simulators.adapted_simulator import AdaptedSimulator
from simstate.simulators.catalog import info
from simstate.simulators.makers import make
from simstate.step.mujoco_stepper import MujocoStepper
from simstate.step.stepping_host import forcing_of, stepper_of
from simstate.world.calls import Scope
from simstate.world.worlds import Worlds, worlds_of


@contextmanager
def borrowed_stepper(
    env: Env | Simulation, simulator: str | AdaptedSimulator
) -> Generator[AdaptedSimulator]:
    """Step an environment or simulation in another simulator within this context.

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
                f"worlds with engine={made!r} (--engine {made} on the command line).",
                name=made,
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
            f"The simulator has {made.num_envs} worlds, and {env.num_envs} are to "
            "move.",
            name="num_envs",
        )
    is_plain = isinstance(stepper_of(sim), MujocoStepper) and not forcing_of(sim).models
    if sim.engine_name != "native" or not is_plain:
        raise InvalidInputError(
            "Another simulator takes the place of MuJoCo's own stepper on the native "
            'engine: make it with engine="native", without an integrator, force '
            "models and processes.",
            name="engine",
        )
    with sim.stepping(SimulatorStepper(worlds_of(sim), made)):
        yield made


class SimulatorStepper:
    """Advances worlds in another simulator, by its own time steps."""

    scope: Scope = "step"
    current_through = Stage.CONSTANT
    can_cut = False
    chooses_steps = False
    has_dense_output = False
    settles = False
    evaluations: Tensor | None = None

    def __init__(self, worlds: Worlds, simulator: AdaptedSimulator) -> None:
        self._worlds, self._simulator = worlds, simulator
        self._bad: Tensor | None = None

    def advance(self, n: int, rows: Tensor | None) -> int:
        """Advance worlds by n time steps; None: all. Return flags of `Seen`."""
        worlds, simulator = self._worlds, self._simulator
        ids = list(range(worlds.num_envs)) if rows is None else int_list(rows)
        self._hand_over(ids)
        simulator.ctrl.copy_(worlds.engine.field("ctrl"))
        bad = torch.zeros(worlds.num_envs, dtype=torch.bool)
        try:
            simulator.step(n, ids)
        except DivergenceError as error:
            bad[list(error.env_ids)] = True
        self._take_back(ids)
        worlds.engine.field("time")[ids] += n * simulator.timestep
        worlds.fresh.mark_current(Stage.CONSTANT, rows, evaluated=False)
        self._bad = bad
        return Seen.BAD if bool(bad.any()) else 0

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Raise: a simulator takes whole time steps."""
        raise self._refusal()

    def move(self, h: Tensor, rows: Tensor) -> None:
        """Raise: a simulator takes whole time steps."""
        raise self._refusal()

    def timesteps(self) -> Tensor:
        """Return the time step of each world [s], float64; (num_envs,)."""
        shape, step = (self._worlds.num_envs,), self._simulator.timestep
        return torch.full(shape, step, dtype=torch.float64)

    def bad(self) -> Tensor | None:
        """Return the mask of worlds that the simulator could not advance."""
        return self._bad

    def _refusal(self) -> InvalidInputError:
        return InvalidInputError(
            f"{self._simulator.name} takes whole time steps: events, tasks and "
            "sim.run, which cut them, need MuJoCo's or simstate's own steppers."
        )

    def _hand_over(self, ids: list[int]) -> None:
        """Write to the simulator those worlds that differ, such as after a reset."""
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
        """Move the worlds to where the simulator's are."""
        qpos, qvel, act = self._fields()
        motion = self._simulator.read(ids)
        qpos[ids] = torch.as_tensor(motion.qpos)
        qvel[ids] = torch.as_tensor(motion.qvel)
        act[ids] = self._simulator.reference.data.act[ids]

    def _fields(self) -> tuple[Tensor, Tensor, Tensor]:
        engine = self._worlds.engine
        return engine.field("qpos"), engine.field("qvel"), engine.field("act")
