"""The constraints that are active in the worlds of a simulation."""

from __future__ import annotations

import copy
from typing import Any
from weakref import WeakKeyDictionary

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.engine import Engine
from simstate.engine.engine import model_value
from simstate.simulation import Simulation
from simstate.step.stepping_host import forcing_of
from simstate.world.worlds import worlds_of


def constraint_signatures(sim: Simulation) -> Tensor:
    """Return a hash of the active constraints of each world; int64, (num_envs,).

    It differs if the set of contacts, limits, friction states or saturated actuators
    differs.
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


_hosts: WeakKeyDictionary[Engine, tuple[mujoco.MjModel, mujoco.MjData]]
_hosts = WeakKeyDictionary()
"""MjData for evaluations without the core, kept because creating one is costly."""


def _signature(engine: Engine, world: int) -> int:
    """Return a hash of the same data as in the compiled core, for one world."""
    host = _hosts.get(engine)
    if host is None:
        model = copy.copy(engine.model)
        host = _hosts[engine] = (model, mujoco.MjData(model))
    model, data = host
    for name in engine.expanded:
        model_value(model, name)[:] = engine.parameter(name)[world].cpu().numpy()
    kind = mujoco.mjtState.mjSTATE_INTEGRATION.value
    mujoco.mj_setState(model, data, engine.state[world].double().numpy(), kind)
    mujoco.mj_forward(model, data)
    contact: Any = data.contact
    parts = [contact.geom, contact.elem, contact.vert, contact.exclude]
    parts += [data.efc_type, data.efc_id]
    by_island = data.nisland and model.opt.solver != mujoco.mjtSolver.mjSOL_PGS.value
    parts.append(data.iefc_state if by_island else data.efc_state)
    of = np.repeat(np.arange(model.nactuator), model.actuator_outnum)
    limited = np.asarray(model.actuator_forcelimited, bool)[of]
    if limited.any():
        low, high = np.asarray(model.actuator_forcerange)[of].T
        force = np.asarray(data.actuator_force)
        parts.append(limited * ((force >= high) - 1 * (force <= low)))
    return hash(tuple(np.asarray(part).tobytes() for part in parts))
