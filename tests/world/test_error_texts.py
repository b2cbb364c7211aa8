"""The wording of the errors of `world`: which write, which worlds, what to do."""

import pytest
import torch
from tests.raised import says

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.base.errors import (
    DivergenceError,
    InvalidInputError,
    SnapshotError,
    StaleReadError,
)


def make(**options) -> Simulation:
    scene = SceneCfg(entities={"cube": EntityCfg(model="cube")}, timestep=0.002)
    return Simulation(scene, 4, **options)


def stale(write) -> None:
    sim = make(freshness="strict")
    sim.expand("body_mass")
    sim.forward()
    write(sim)
    _ = sim.scene["cube"].data.root_com_pos_w


def diverged() -> None:
    sim = make()
    sim.step(2)
    sim.data.qpos[1, 2] = torch.nan
    sim.step(5)


def diverged_under_a_force() -> None:
    sim = make()
    sim.data.qfrc_applied[2, 1] = 9e9
    sim.step(3)


def of_other_memory() -> None:
    sim = make()
    sim.data.ctrl.set_(torch.zeros(4, 0, dtype=sim.dtype))
    sim.data.qvel.data = torch.zeros_like(sim.data.qvel)
    sim.step()


def stepped_by_an_event() -> None:
    sim = make()
    sim.add_event(lambda sim: sim.time - 0.003, action=lambda sim, _: sim.step())
    sim.step(3)


def of_another_task() -> None:
    sim, other = make(), make()
    sim.memory("heat", (2,))
    other.restore(sim.snapshot())


def restored(change) -> None:
    snapshot = make().snapshot()
    change(snapshot.slots)
    make().restore(snapshot)


@pytest.mark.parametrize(
    ("call", "error", "fragments"),
    [
        (
            lambda: stale(lambda sim: sim.data.qpos[:, 0].add_(0.1)),
            StaleReadError,
            ["cube.data.root_com_pos_w is stale in 4 of 4 worlds after a write to "
             "sim.data.qpos", "Call sim.forward()", 'freshness="auto"'],
        ),
        (
            lambda: stale(lambda sim: sim.reset([3, 1])),
            StaleReadError,
            ["is stale in 2 of 4 worlds after a reset"],
        ),
        (
            diverged,
            DivergenceError,
            ["1 of 4 worlds diverged within 5 steps of 0.002 s",
             "world 1, from t = 0.004 s: qpos[2] = nan",
             "from before the step: correct what wrote them", "or use on_divergence="],
        ),
        (
            diverged_under_a_force,
            DivergenceError,
            ["1 of 4 worlds diverged within 3 steps of 0.002 s", "world 2, from t = 0",
             'Use a smaller timestep, or on_divergence="mask"'],
        ),
        (
            of_other_memory,
            InvalidInputError,
            ["was given other memory, with set_() or .data =", "[:] = …"],
        ),
        (
            lambda: restored(lambda slots: slots["qvel"][3].fill_(torch.nan)),
            SnapshotError,
            ["'qvel' was saved with a number that is not finite, in row 3",
             "Nothing was written"],
        ),
        (
            stepped_by_an_event,
            InvalidInputError,
            ["sim.step was called during a step, by a force model, a process, an event "
             "or a task", "a terminal event ends a run"],
        ),
        (
            of_another_task,
            SnapshotError,
            ["has slots that do not exist here: memory/heat", "create the same memory"],
        ),
        *(
            (
                lambda dtype=dtype: make().write_state(torch.zeros(4, 1, dtype=dtype)),
                InvalidInputError,
                [f"state must be floating point, got {dtype}: pass {remedy}."],
            )
            for dtype, remedy in (
                (torch.complex64, ".real"), (torch.int64, ".double()")
            )
        ),
        (
            lambda: make().memory("a/b"),
            InvalidInputError,
            ['The name of a memory must be words without "/", got \'a/b\''],
        ),
    ],
)  # fmt: skip
def test_texts(call, error, fragments):
    with says(error, *fragments):
        call()
