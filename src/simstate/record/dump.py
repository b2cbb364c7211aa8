"""A recording that ends where a world diverged: one snapshot and one step."""

from __future__ import annotations

import queue
from pathlib import Path
from typing import Any

import numpy as np
import torch

from simstate.record.block import Block, Kept
from simstate.record.changes import Step
from simstate.record.columns import columns_of
from simstate.record.container import SNAPSHOT
from simstate.record.container_writer import ContainerWriter
from simstate.record.header import (
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
    block = Block({n: torch.as_tensor(x) for n, x in arrays.items()}, Kept())
    block.kept.append(Kept(step, 1, 1))
    ContainerWriter(
        path,
        [*columns, STEPS],
        {
            HEADER: header_bytes("sim", worlds, columns, [0], about),
            MODEL: model_bytes(sim.model),
            f"{SNAPSHOT}0": before.to_bytes(),
        },
        block,
        queue.SimpleQueue(),
    ).close()
