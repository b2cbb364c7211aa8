"""Assembly: create the worlds of a simulation from a compiled scene."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import torch
from torch import Tensor

from simstate.base.ids import everything
from simstate.engine import FIELDS, Engine, Stage
from simstate.engine.engine import moving_columns
from simstate.entity import Entity
from simstate.entity.state_writes import default_writes
from simstate.step.forcing import Forcing
from simstate.world import Chunk, Ledger, Slot, Write
from simstate.world.freshness import Freshness, Mode
from simstate.world.parameters import ModelParameters
from simstate.world.random import WorldRandom
from simstate.world.state_rows import StateRows
from simstate.world.worlds import Worlds


def make_worlds(
    engine: Engine,
    start: mujoco.MjData,
    mode: Mode,
    rng: tuple[int, int],
    sim: Any,
) -> tuple[Worlds, Forcing]:
    """Return the worlds on an engine, and their forcing.

    Args:
        engine: holds the worlds' memory.
        start: the state at reset, without the entities' defaults.
        mode: the effect of reading a stale quantity.
        rng: the seed, and the global id of the first world.
        sim: the simulation, which force models are called with.
    """

    def compute(env_ids: Tensor | None, stage: Stage) -> None:
        worlds.compute(env_ids, stage)

    ledger = Ledger(engine.num_envs, engine.device)
    fresh = Freshness(engine, ledger, mode, compute)
    row = _row_of(engine.model, start).to(engine.device, engine.dtype)
    initial = {name: value[0] for name, value in engine.split(row).items()}
    _add_state_fields(engine, ledger, initial)
    forcing = Forcing(engine, ledger, fresh, sim)
    worlds = Worlds(
        engine=engine,
        ledger=ledger,
        fresh=fresh,
        parameters=ModelParameters(engine, ledger),
        rng=WorldRandom(ledger, *rng),
        everywhere=everything(engine.num_envs),
        rows=StateRows(engine, ledger),
        loads=forcing,
    )
    return worlds, forcing


def write_first_state(worlds: Worlds, entities: Sequence[Entity]) -> None:
    """Write the entities' defaults, which become the state at reset.

    They are equal in all worlds, so they are computed for one.
    """
    ledger, first = worlds.ledger, worlds.select(0)
    slots = [ledger[name] for name in worlds.engine.columns]
    ledger.write(
        *[Write(slot.name, first, None, slot.initial_row[None]) for slot in slots],
        *default_writes(entities, first),
    )
    for slot in slots:
        slot.initial = slot.tensor[:1].clone()
    ledger.reset(worlds.everywhere, ("sim",))
    worlds.forward(None)


def _row_of(model: mujoco.MjModel, data: mujoco.MjData) -> Tensor:
    """Return the state of an MjData as one row; shape (1, nstate)."""
    spec = mujoco.mjtState.mjSTATE_INTEGRATION.value
    row = torch.zeros(mujoco.mj_stateSize(model, spec), dtype=torch.float64)
    mujoco.mj_getState(model, data, row.numpy(), spec)
    return row[None]


def _add_state_fields(
    engine: Engine, ledger: Ledger, initial: Mapping[str, Tensor]
) -> None:
    """Register the engine's state; on native, its rows are one block of memory.

    `initial` is the state of one world at reset, by field, without leading dimension.
    """
    for names, memory in engine.state_memory():
        has_all = len(names) > 1
        first = FIELDS[names[0]]
        is_input = not first.moves and first.stage == Stage.ACCELERATION
        chunk = Chunk(
            memory,
            "sim",
            moving_columns(engine) if has_all else _all_if(first.moves),
            _input_columns(engine) if has_all else _all_if(is_input),
            stage=Stage.POSITION if has_all else first.stage,
        )
        for name in names:
            declared = FIELDS[name]
            slot = Slot(
                name=name,
                kind="state" if declared.moves else "input",
                tensor=engine.field(name),
                stage=declared.stage,
                moves=declared.moves,
                initial=initial[name][None],
                reset="initial",
                unit=declared.unit,
                axes=declared.axes,
            )
            ledger.add(slot, chunk)


def _input_columns(engine: Engine) -> slice:
    return slice(engine.columns["ctrl"].start, engine.columns["xfrc_applied"].stop)


def _all_if(condition: bool) -> slice | None:
    return slice(None) if condition else None
