"""SimulatorStepper: steps a simulation's worlds in another simulator.

    env = Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=8, auto_reset=False)
    with borrowed_stepper(env, "drake"):
        print(evaluate(env, OnnxPolicy(path, env), seconds=10.0))

Observations, rewards, commands, events and terminations are those of the task: after
each step its simulation takes over the states of the other simulator. Accelerations and
contact forces that a task reads are MuJoCo's at these states. The other simulator
ignores parameters that differ by world, and forces that the task applies to bodies.
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

    A world that the simulator cannot advance counts as diverged, as in a simulation.

    Args:
        env: an environment or a simulation on the native engine, with MuJoCo's own
            stepper.
        simulator: a name that `simulators.make` accepts, or an adapter of the same
            scene with the same number of worlds.
    """
    made = simulator
    sim = env.sim if isinstance(env, Env) else env
    if isinstance(made, str):
        if info(made).simulator is None:
            raise InvalidInputError(
                f"{made!r} is an engine of simstate, not another simulator: create the "
                f"worlds with engine={made!r} (--engine {made} on the command line).",
                name=made,
            )
        scene = env.cfg.scene if isinstance(env, Env) else sim.model
        made = make(made, scene, env.num_envs)
    if not isinstance(made, AdaptedSimulator):
        raise InvalidInputError(
            f"simulator must be a name or an AdaptedSimulator, as simulators.make "
            f"accepts and returns them; got {type(made).__name__}.",
            name="simulator",
        )
    if made.num_envs != env.num_envs:
        raise InvalidInputError(
            f"The simulator has {made.num_envs} worlds and must have {env.num_envs}.",
            name="num_envs",
        )
    is_plain = isinstance(stepper_of(sim), MujocoStepper) and not forcing_of(sim).models
    if sim.engine_name != "native" or not is_plain:
        raise InvalidInputError(
            "Another simulator replaces MuJoCo's own stepper on the native engine: "
            'create the simulation with engine="native", without integrator, force '
            "models and processes.",
            name="engine",
        )
    with sim.stepping(SimulatorStepper(worlds_of(sim), made)):
        yield made


class SimulatorStepper:
    """Advances worlds in another simulator by complete time steps."""

    scope: Scope = "step"
    current_through = Stage.CONSTANT
    can_cut = False
    chooses_steps = False
    has_dense_output = False
    settles = False
    evaluations: Tensor | None = None

    def __init__(self, worlds: Worlds, simulator: AdaptedSimulator) -> None:
        self._worlds, self._simulator = worlds, simulator
        self._diverged: Tensor | None = None

    def advance(self, n: int, rows: Tensor | None) -> int:
        """Advance worlds by n time steps; None: all. Return flags of `Seen`."""
        worlds, simulator = self._worlds, self._simulator
        ids = list(range(worlds.num_envs)) if rows is None else int_list(rows)
        self._hand_over(ids)
        simulator.ctrl.copy_(worlds.engine.field("ctrl"))
        diverged = torch.zeros(worlds.num_envs, dtype=torch.bool)
        try:
            simulator.step(n, ids)
        except DivergenceError as error:
            diverged[list(error.env_ids)] = True
        self._take_back(ids)
        worlds.engine.field("time")[ids] += n * simulator.timestep
        worlds.fresh.mark_current(Stage.CONSTANT, rows, evaluated=False)
        self._diverged = diverged
        return Seen.BAD if bool(diverged.any()) else 0

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Raise: a simulator takes complete time steps."""
        raise self._refusal()

    def move(self, h: Tensor, rows: Tensor) -> None:
        """Raise: a simulator takes complete time steps."""
        raise self._refusal()

    def timesteps(self) -> Tensor:
        """Return the time step of each world [s], float64; (num_envs,)."""
        shape, step = (self._worlds.num_envs,), self._simulator.timestep
        return torch.full(shape, step, dtype=torch.float64)

    def bad(self) -> Tensor | None:
        """Return the mask of worlds that the simulator could not advance."""
        return self._diverged

    def _refusal(self) -> InvalidInputError:
        return InvalidInputError(
            f"{self._simulator.name} takes complete time steps: events, tasks and "
            "sim.run, which divide them, need MuJoCo's or simstate's steppers."
        )

    def _hand_over(self, ids: list[int]) -> None:
        """Write worlds that differ to the simulator, such as after a reset."""
        qpos, qvel, act = self._fields()
        theirs, their_act = (
            self._simulator.read(ids),
            self._simulator.reference.data.act,
        )
        same = (qpos[ids] == torch.as_tensor(theirs.qpos)).all(1)
        same &= (qvel[ids] == torch.as_tensor(theirs.qvel)).all(1)
        same &= (act[ids] == their_act[ids]).all(1)
        changed = [i for i, is_same in zip(ids, same, strict=True) if not is_same]
        if changed:
            their_act[changed] = act[changed]
            self._simulator.write(qpos[changed].numpy(), qvel[changed].numpy(), changed)

    def _take_back(self, ids: list[int]) -> None:
        """Set the worlds to the states of the simulator."""
        qpos, qvel, act = self._fields()
        motion = self._simulator.read(ids)
        qpos[ids] = torch.as_tensor(motion.qpos)
        qvel[ids] = torch.as_tensor(motion.qvel)
        act[ids] = self._simulator.reference.data.act[ids]

    def _fields(self) -> tuple[Tensor, Tensor, Tensor]:
        engine = self._worlds.engine
        return engine.field("qpos"), engine.field("qvel"), engine.field("act")
