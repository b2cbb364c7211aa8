"""What of a step makes the host wait for the device: one read, and no other."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
import torch
import warp as wp
from torch.utils._python_dispatch import TorchDispatchMode

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.env import Env, tasks

WAITS = ("_local_scalar_dense", "nonzero", "is_nonzero", "aten.equal", "unique",
         "masked_select", "aten.item")  # fmt: skip


def by_mask(func, args):
    """Whether rows are chosen by booleans, which a GPU counts before it goes on."""
    if not str(func).startswith("aten.index"):
        return False
    chosen = args[1] if isinstance(args[1], (list, tuple)) else [args[1]]
    return any(getattr(each, "dtype", None) == torch.bool for each in chosen)


class HostReads(TorchDispatchMode):
    """Notes the operations whose result the host needs before it can go on."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(name in str(func) for name in WAITS) or by_mask(func, args):
            frames = [f for f in traceback.extract_stack() if "simstate" in f.filename]
            where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "here"
            self.found.append(f"{func} in {where}")
        return func(*args, **(kwargs or {}))


def test_the_counter_counts():
    with HostReads() as reads:
        x = torch.ones(3)
        bool(x.any())
        float(x.sum())
        x.nonzero()
        x[x > 0.5]
        x[x > 0.5] = 2.0
        x[torch.tensor([0, 2])] += 1.0
    assert len(reads.found) == 5


@pytest.mark.parametrize("name", tasks.NAMES)
def test_a_step_of_an_environment_reads_nothing_one_by_one(name):
    """The one read is a copy to the host, which on the CPU is no operation at all."""
    env = Env(tasks.make_cfg(name), num_envs=5, seed=1)
    action = torch.zeros(5, env.action_dim)
    for _ in range(3):
        env.step(action)
    with HostReads() as reads:
        env.step(action)
    assert reads.found == []


@pytest.fixture
def copies(monkeypatch):
    """Where a tensor or an array of Warp's is brought to the host, from now on.

    On the CPU these copies are none, and no operation of torch's tells of them.
    """
    found: list[str] = []
    for kind, names in (
        (torch.Tensor, ("cpu", "numpy", "tolist")),
        (wp.array, ("numpy", "list")),
    ):
        for name in names:
            monkeypatch.setattr(kind, name, noting(getattr(kind, name), found))
    return found


def noting(method, found):
    def call(self, *args, **kwargs):
        frame = traceback.extract_stack(limit=2)[0]
        found.append(Path(frame.filename).name)
        return method(self, *args, **kwargs)

    return call


ON_THE_HOST = {"random.py", "memory.py", "targets.py", "ledger.py",
               "elementwise.py"}  # fmt: skip
"""Where memory is taken as NumPy has it, if the device is the CPU."""


def test_a_step_on_warp_reads_twice(copies):
    """What the terms need, and whether contacts were dropped in any substep."""
    env = Env(tasks.make_cfg("Quadruped-Velocity"), num_envs=3, engine="warp")
    action = torch.zeros(3, env.action_dim)
    env.step(action)
    copies.clear()
    with HostReads() as reads:
        env.step(action)
    assert reads.found == []
    assert set(copies) - ON_THE_HOST == {"backend.py", "warp_room.py"}
    once = ["warp_room.py", "warp_room.py"]  # tensor.cpu().numpy()
    assert [name for name in copies if name == "warp_room.py"] == once
    copies.clear()
    env.sim.step(6)
    assert [name for name in copies if name not in ON_THE_HOST] == once


@pytest.mark.parametrize("on_divergence", ["raise", "mask"])
def test_a_step_of_a_simulation(engine, on_divergence):
    scene = SceneCfg(entities={"robot": EntityCfg(model="quadruped")})
    sim = Simulation(scene, 3, engine=engine, on_divergence=on_divergence)
    sim.step(2)
    with HostReads() as reads:
        sim.step(2)
    # An error can only be raised by a host that has looked.
    allowed = 1 if engine == "warp" and on_divergence == "raise" else 0
    assert len(reads.found) == allowed, reads.found
