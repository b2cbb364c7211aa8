"""Trials: calls on a simulation that are always rolled back.

A trial perturbs the worlds, steps them and reads the result. `Calls.run` then restores
every slot (states, inputs, parameters, random streams, memory), as it does for a call
that fails, so that a trial is as safe as a step that is interrupted.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.engine import Engine
from simstate.engine.engine import model_value
from simstate.simulation import Simulation
from simstate.step.stepping_host import forcing_of, stepper_of
from simstate.world.worlds import worlds_of

T = TypeVar("T")


class _Done(Exception):  # noqa: N818
    """Ends a trial, after which everything is restored; not an error."""


def rolled_back(sim: Simulation, what: str, call: Callable[[], T]) -> T:
    """Return `call()` after restoring every slot of the simulation.

    Trials may be nested if their names `what` differ: each has its own backup.
    """
    results: list[T] = []

    def run() -> None:
        results.append(call())
        raise _Done

    ledger = worlds_of(sim).ledger
    ledger.observe()  # a rollback reverts only what follows
    saved = ledger.backup("sim", what).saved
    with suppress(_Done):
        ledger.calls.run("sim", what, saved, run)
    return results[0]


def step_unrecorded(sim: Any) -> Tensor:
    """Advance all worlds by one time step without the recorders of `sim.attach`.

    Returns:
        The worlds that did not advance because they diverge or have diverged; bool,
        (num_envs,).
    """
    worlds, stepper = worlds_of(sim), stepper_of(sim)
    worlds.ledger.run(
        stepper.scope, "a trial", sim._step, stepper, 1, worlds.everywhere, None
    )
    return sim.divergence.new | sim.diverged


def active_constraints(sim: Simulation) -> Tensor:
    """Return a number for the active constraints of each world; int64, (num_envs,).

    It differs if the set of contacts, limits or friction states does, or an actuator is
    saturated in one and not in the other.
    """
    worlds = worlds_of(sim)
    engine = worlds.engine
    worlds.ledger.observe()
    worlds.fresh.refresh_constants()

    def find() -> Tensor:
        if engine.compiled is not None:
            return torch.as_tensor(engine.compiled.signatures())
        return torch.tensor([_signature(engine, k) for k in range(sim.num_envs)])

    return forcing_of(sim).with_loads(find)


def _signature(engine: Engine, world: int) -> int:
    """Return the same as the compiled core, up to the numbers, for one world."""
    model = model_of(engine, world)
    data = mujoco.MjData(model)
    kind = mujoco.mjtState.mjSTATE_INTEGRATION.value
    mujoco.mj_setState(model, data, engine.state[world].double().numpy(), kind)
    mujoco.mj_forward(model, data)
    contact: Any = data.contact
    parts = [contact.geom, contact.elem, contact.vert, contact.exclude]
    parts += [data.efc_type, data.efc_id]
    by_island = data.nisland and model.opt.solver != mujoco.mjtSolver.mjSOL_PGS.value
    parts.append(data.iefc_state if by_island else data.efc_state)
    limited = np.asarray(model.actuator_forcelimited, bool)
    if limited.any() and len(data.actuator_force) == len(limited):
        low, high = np.asarray(model.actuator_forcerange).T
        force = np.asarray(data.actuator_force)
        parts.append(limited * ((force >= high) - 1 * (force <= low)))
    return hash(tuple(np.asarray(part).tobytes() for part in parts))


def model_of(engine: Engine, world: int) -> mujoco.MjModel:
    """Return a copy of the model with the parameters of one world."""
    if engine.compiled is not None:
        return engine.compiled.get_model(world)
    model = copy.copy(engine.model)
    for name in engine.expanded:
        model_value(model, name)[:] = engine.parameter(name)[world].cpu().numpy()
    return model
