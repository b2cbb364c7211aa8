"""Calls that are interrupted at two lines are atomic.

The first exception is raised somewhere in a call, the second while the first one is
handled, or in the public call that follows. The tracer stays active in between.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import torch
from tests.inside import all_slots
from tests.soak import SOAK
from tests.tracer import lines_of, traced
from tests.world.test_transactions import ROBOT, Leak
from torch import Tensor

from simstate import EntityCfg, SceneCfg, Simulation, integrate
from simstate.state import Snapshot

NEAR = 300
"""Largest distance of sampled lines: the undo and its recovery come first."""

READ = ("body_link_pose_w", "body_link_vel_w", "joint_pos_target", "body_mass",
        "root_com_lin_vel_b")  # fmt: skip


def push(t: Tensor, sim: Simulation) -> None:
    """A force in the world's axes that depends on time and velocity."""
    velocity = sim.data.qvel[:, :3]
    sim.data.xfrc_applied[:, 1, :3] += torch.cos(t)[:, None] - 0.3 * velocity


def make(scheme: integrate.Explicit | None, *, with_mass: bool = False) -> Simulation:
    """Three unlike worlds that have taken a few steps."""
    robot = EntityCfg(model=ROBOT)
    scene = SceneCfg(entities={"robot": robot}, ground=False, timestep=0.004)
    sim = Simulation(scene, 3, integrator=scheme, on_divergence="mask")
    sim.data.qvel[:] = torch.linspace(-1, 1, 21, dtype=sim.dtype).reshape(3, 7)
    sim.expand("body_mass")[:, 1] *= torch.tensor([0.8, 1.1, 1.3], dtype=sim.dtype)
    sim.memory("mine", (2,), reset=3.0)[:] = torch.tensor([[4.0, 5], [6, 7], [8, 9]])
    if scheme is not None:
        sim.add_force(push)
    if with_mass:
        tank = Leak("tank", [1.0])
        sim.add_process(tank)
        sim.mass_rate[:, 2] = -0.1

        def burn(t: Tensor, sim: Simulation) -> None:
            sim.data.xfrc_applied[:, 1, 1] += tank.value[:, 0]
            sim.mass_rate[:, 1] -= 0.05

        sim.add_force(burn)
    sim.step(3)
    return sim


@dataclass
class Case:
    """A call, and the simulation that it changes."""

    sim: Simulation
    call: Callable[[], object]


def plain_step() -> Case:
    sim = make(None)
    return Case(sim, lambda: sim.step(2))


def step_with_force() -> Case:
    sim = make(integrate.RK4())
    return Case(sim, sim.step)


def step_with_mass_flow() -> Case:
    sim = make(integrate.RK4(), with_mass=True)
    return Case(sim, sim.step)


def reset() -> Case:
    sim = make(None)
    sim.scene["robot"].data.default_joint_pos[2] += 0.4
    return Case(sim, lambda: sim.reset([2, 0]))


def restore() -> Case:
    sim = make(None)
    other = sim.snapshot([1])
    sim.step(2)
    return Case(sim, lambda: sim.restore(other, [2, 0]))


def write() -> Case:
    sim = make(None)
    rows = torch.linspace(0.5, 2.0, 26, dtype=sim.dtype).reshape(2, 13)
    robot = sim.scene["robot"]
    return Case(sim, lambda: robot.write_root_state_to_sim(rows, env_ids=[2, 0]))


PAIRS = {
    plain_step: 20,
    step_with_force: 80,
    step_with_mass_flow: 40,
    reset: 20,
    restore: 8,  # most of its lines check the snapshot, and nothing runs after them
    write: 20,
}
"""Number of pairs of lines to sample for each call, times SIMSTATE_SOAK.

A soak test takes all pairs of lines within the call, and samples those with the second
one in the public call that follows, of which there are millions.
"""


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Return True if all tensors are equal."""
    return one.keys() == other.keys() and all(
        torch.equal(one[name], other[name]) for name in one
    )


class Undisturbed:
    """A twin in one state: its slots, its quantities, and its slots after a step."""

    def __init__(self, twin: Simulation, state: Snapshot) -> None:
        twin.restore(state)
        self.reads = read(twin)
        self.slots = all_slots(twin)
        twin.step()
        self.later = all_slots(twin)


def read(sim: Simulation) -> dict[str, Tensor]:
    """Return copies of some quantities of each stage."""
    data = sim.scene["robot"].data
    return {name: data.read(name).clone() for name in READ}


def pairs(
    attempt: Callable[[], object],
    restore: Callable[[], object],
    total: int,
    most: int | None,
) -> Iterator[tuple[int, int]]:
    """Yield pairs of lines: one of the call, and one that runs after the exception.

    `most` of them are sampled; None: all are taken.
    """
    draw, left = random.Random(7), most
    for first in draw.sample(range(total), total):
        restore()
        seconds = range(first + 1, traced(attempt, first).count)
        if left is None:
            yield from ((first, second) for second in seconds)
        elif seconds:
            yield first, draw.choice(seconds[:NEAR])
            left -= 1
        if left == 0:
            return


@pytest.mark.parametrize("follow", [None, read, Simulation.snapshot])
@pytest.mark.parametrize(
    "make_case",
    [
        plain_step,
        step_with_force,
        step_with_mass_flow,
        reset,
        restore,
        write,
    ],
)
def test_two_interruptions_leave_the_worlds_before_or_after_the_call(
    make_case: Callable[[], Case], follow: Callable[[Simulation], object] | None
) -> None:
    """`follow` is a public call that comes next and may be interrupted as well."""
    case, other = make_case(), make_case()
    sim, call = case.sim, case.call
    start = sim.snapshot()
    call()
    states = {
        "before": Undisturbed(other.sim, start),
        "after": Undisturbed(other.sim, sim.snapshot()),
    }
    assert not same(states["before"].slots, states["after"].slots)

    def attempt() -> None:
        try:
            call()
        except KeyboardInterrupt:
            if follow is None:
                raise
            follow(sim)

    def restore() -> None:
        sim.restore(start)
        read(sim)  # so that each attempt starts with the same quantities up to date

    restore()
    total = lines_of(call)
    restore()
    seen: set[str] = set()
    twice = 0
    most = None if SOAK > 1 and follow is None else PAIRS[make_case] * SOAK
    for pair in pairs(attempt, restore, total, most):
        restore()
        places = traced(attempt, *pair).places
        twice += len(places) == 2
        got = read(sim)
        slots = all_slots(sim)
        found = [name for name, want in states.items() if same(slots, want.slots)]
        assert found, (places, differences(slots, states["before"].slots))
        want = states[found[0]]
        assert same(got, want.reads), (places, differences(got, want.reads))
        sim.step()
        later = all_slots(sim)
        assert same(later, want.later), (places, differences(later, want.later))
        seen.add(found[0])
    assert "before" in seen
    assert twice >= PAIRS[make_case] // 2


def differences(one: dict[str, Tensor], other: dict[str, Tensor]) -> list[str]:
    """Return the names of tensors that differ or are missing."""
    names = sorted(one.keys() | other.keys())
    return [
        name
        for name in names
        if name not in one
        or name not in other
        or not torch.equal(one[name], other[name])
    ]
