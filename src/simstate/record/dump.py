"""A recording that ends where a world diverged: one snapshot and one step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from simstate.record.changes import Step, steps_to_bytes
from simstate.record.columns import columns_of
from simstate.record.container import Block, ContainerWriter
from simstate.record.header import (
    END,
    HEADER,
    MODEL,
    STEP,
    STEPS,
    TIME,
    describe_worlds,
    header_bytes,
    model_bytes,
)
from simstate.record.recorder import STEP_CONTRACT, TIME_CONTRACT
from simstate.state import Snapshot
from simstate.step.stepping_host import SteppingHost
from simstate.world.invalid_values import DESCRIBED_FIELDS

_FIELDS = [name for name in DESCRIBED_FIELDS if name != TIME]


def write_dump(
    path: Path, sim: SteppingHost, before: Snapshot, n: int, element: str
) -> None:
    """Write the state of one world before a step of n time steps, and that step.

    Args:
        path: the file.
        sim: the simulation that the world is of.
        before: the world's snapshot, with the controls of the step.
        n: the time steps of the call.
        element: the first bad number that it led to, in words.
    """
    columns: dict[str, Any] = {TIME: TIME_CONTRACT, STEP: STEP_CONTRACT}
    arrays = {TIME: before.time[None].double().numpy(), STEP: np.zeros(1, np.int64)}
    for column in columns_of(sim, (), _FIELDS):
        values = before.slots[column.name]
        columns[column.name] = column.describe(values)
        arrays[column.name] = values[None].numpy()
    worlds = describe_worlds(sim) | {"num_envs": 1, "on_divergence": "mask"}
    worlds["first_world"] = int(before.slots["random/world"][0])
    about = {"inputs": True, "every": None}
    step = Step([], {"n": n, "diverged": {"0": element}})
    place = {"block": 0, "first_sample": 0, "samples": 1, "first_step": 0, "steps": 1}
    writer = ContainerWriter(
        path,
        [*columns, STEPS],
        {
            HEADER: header_bytes("sim", worlds, columns, [0], about),
            MODEL: model_bytes(sim.model),
            "snapshot/0": before.to_bytes(),
        },
    )
    steps = {STEPS: lambda: steps_to_bytes([step])}
    writer.write(Block(arrays, steps, json.dumps(place).encode(), lambda: None))
    end = {"blocks": 1, "samples": 1, "steps": 1}
    writer.attach(END, json.dumps(end).encode())
    writer.close()
