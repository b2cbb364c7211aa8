"""Rows of one_world.py that have many worlds, entities or names.

All run on one thread. By hand is a copy of the same memory or the same assignment in
NumPy, or mujoco.batch.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import torch
from mujoco import batch

from entity_data import KEYFRAMES, NINE, make
from rows import Call, Result, Timed, alone, ratio, row
from simstate import EntityCfg, InitialStateCfg, NativeCfg, SceneCfg, Simulation

WORLDS = 1024
MEMORY_WORLDS = 8192
IDS = list(range(3, WORLDS, 95))
"""Eleven worlds: one in a hundred."""
ONE_THREAD = NativeCfg(num_threads=1)
VELOCITY = mujoco.mjtStage.mjSTAGE_VEL.value
CONSTANTS = ("joint_pos_limits", "body_inertia", "soft_joint_pos_limits")
FIELDS = (
    *("qacc", "qacc_smooth", "act_dot", "actuator_force", "qfrc_actuator"),
    *("qfrc_smooth", "qfrc_constraint", "sensordata", "xpos", "xquat"),
    *("subtree_com", "cvel", "site_xpos", "geom_xpos"),
)
"""The fields that a step of a simulation fills once its nine quantities were read."""


@functools.cache
def worlds(model: str, num_envs: int = WORLDS) -> Simulation:
    """Return worlds of a robot in motion, shared by rows."""
    return make(model, num_envs, ONE_THREAD)


def memcpy(size: int) -> Timed:
    """Time a copy of as many bytes."""
    source, target = np.ones(size, np.uint8), np.ones(size, np.uint8)
    return Timed(lambda: np.copyto(target, source), loops=20)


def size_of_snapshot(sim: Simulation) -> int:
    """Return the bytes of the slots of all worlds."""
    slots = sim.snapshot().slots.values()
    return sum(slot.numel() * slot.element_size() for slot in slots)


@row("snapshot of 1024 quadrupeds; by hand memcpy", "≤ 400")
def _snapshot() -> Result:
    sim = worlds("quadruped")
    hand = memcpy(size_of_snapshot(sim))
    return ratio(ours=Timed(sim.snapshot, loops=3), hand=hand)


@row("snapshot of one world", "≤ 50")
def _snapshot_of_one() -> Result:
    sim = worlds("quadruped", 1)
    hand = memcpy(size_of_snapshot(sim))
    return ratio(ours=Timed(sim.snapshot, loops=10), hand=hand)


Calls = Callable[[Simulation], tuple[Call, Call]]


def changing(label: str, target: str) -> Callable[[Calls], Calls]:
    """Register two rows of a call that changes worlds: after a step, and repeated.

    The function returns the call and its counterpart by hand. A step of all worlds
    leaves little of their memory in the caches; the target is for repeated calls.
    """

    def register(function: Calls) -> Calls:
        def after_a_step() -> Result:
            sim = worlds("quadruped")
            ours, hand = function(sim)
            return ratio(ours=Timed(ours, sim.step), hand=Timed(hand, sim.step))

        def repeated() -> Result:
            ours, hand = function(worlds("quadruped"))
            return ratio(ours=Timed(ours, loops=5), hand=Timed(hand, loops=5))

        row(f"{label}, after a step", "")(after_a_step)
        row(f"{label}, repeated", target)(repeated)
        return function

    return register


@changing("restore of 1024 quadrupeds; by hand memcpy", "≤ 600")
def _restore(sim: Simulation) -> tuple[Call, Call]:
    kept = sim.snapshot()
    return (lambda: sim.restore(kept)), memcpy(size_of_snapshot(sim)).call


@changing("reset of 1 % of 1024 worlds", "≤ 80")
def _reset(sim: Simulation) -> tuple[Call, Call]:
    ids, rows = torch.tensor(IDS), np.array(IDS)
    slots = [slot.numpy() for slot in sim.snapshot().slots.values() if slot.numel()]
    pairs = [(slot, slot[rows]) for slot in slots]

    def hand() -> None:
        for slot, first in pairs:
            slot[rows] = first

    return (lambda: sim.reset(ids)), hand


@changing("write_root_link_pose_to_sim of 11 worlds", "≤ 40")
def _write_pose(sim: Simulation) -> tuple[Call, Call]:
    robot, ids, rows = sim.scene["robot"], torch.tensor(IDS), np.array(IDS)
    pose = robot.data.root_link_pose_w[ids].clone()
    qpos, values = sim.data.qpos.numpy().copy(), pose.numpy()

    def hand() -> None:
        qpos[rows, :7] = values

    return (lambda: robot.write_root_link_pose_to_sim(pose, env_ids=ids)), hand


@changing("set_joint_position_target, 1024 worlds", "≤ 50")
def _set_target(sim: Simulation) -> tuple[Call, Call]:
    robot, columns = sim.scene["robot"], np.arange(sim.model.nu)
    target = robot.data.joint_pos_target.clone()
    ctrl, values = sim.data.ctrl.numpy().copy(), target.numpy()

    def hand() -> None:
        ctrl[:, columns] = values

    return (lambda: robot.set_joint_position_target(target)), hand


@row("nine reads × 1024 humanoids after a step; by hand memcpy", "≤ 400")
def _nine_reads() -> Result:
    sim = worlds("humanoid")
    data = sim.scene["robot"].data
    values = [data.read(name) for name in NINE]
    hand = memcpy(sum(value.numel() * value.element_size() for value in values))
    del values

    def read() -> None:
        for name in NINE:
            getattr(data, name)

    return ratio(15, ours=Timed(read, sim.step), hand=hand)


@row("three constants after a step, 1024 quadrupeds; by hand again", "1 ×")
def _constants() -> Result:
    sim = worlds("quadruped")
    data = sim.scene["robot"].data

    def read() -> None:
        for name in CONSTANTS:
            getattr(data, name)

    def read_once() -> None:
        sim.step()
        read()

    return ratio(ours=Timed(read, sim.step), hand=Timed(read, read_once))


@row("memory per quadruped world [KiB]; by hand mujoco.batch", "≤ 8 KiB")
def _memory() -> Result:
    out = subprocess.run(
        [sys.executable, "-c", "import many_worlds; many_worlds.print_memory()"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    hand, ours = (float(number) / 1024 / MEMORY_WORLDS for number in out)
    figures = {"ours [KiB]": ours, "hand [KiB]": hand}
    return Result(f"{ours:.1f}", f"{hand:.1f}", f"{ours / hand:.2f} ×", figures)


def print_memory() -> None:
    """Print how many bytes mujoco.batch and a simulation add to this process."""
    small = make("quadruped", 1, ONE_THREAD)
    held: list[object] = []
    for make_worlds in (_bare_worlds, _read_worlds):
        make_worlds(small.model, 16)
        before = _resident()
        held.append(make_worlds(small.model, MEMORY_WORLDS))
        print(_resident() - before)


def _bare_worlds(model: mujoco.MjModel, num: int) -> batch.Batch:
    """Worlds of mujoco.batch that have taken a step."""
    bare = batch.Batch(model, num, 1)
    for name in FIELDS:
        bare.bind(name)
    bare.step(stage=VELOCITY)
    return bare


def _read_worlds(_: mujoco.MjModel, num: int) -> Simulation:
    """Worlds of a simulation whose nine quantities were read, then reset."""
    sim = make("quadruped", num, ONE_THREAD)
    for name in NINE:
        getattr(sim.scene["robot"].data, name)
    sim.reset(list(range(0, num, 100)))
    return sim


def _resident() -> int:
    """The resident memory of this process [bytes]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def cubes(count: int, num_envs: int = 1) -> Simulation:
    """Return cubes 1 m apart on a ground."""
    entities = {
        f"cube{i}": EntityCfg(model="cube", init_state=InitialStateCfg(pos=(i, 0, 0.5)))
        for i in range(count)
    }
    return Simulation(SceneCfg(entities=entities), num_envs, engine=ONE_THREAD)


@row("construct 100 / 300 cubes 1 m apart, one world", "≤ 80,000 / 250,000")
def _construct() -> Result:
    return alone(3, few=Timed(lambda: cubes(100)), many=Timed(lambda: cubes(300)))


@row("get_states / set_states of 100 cubes", "≤ 2,000 / 8,000")
def _states_of_cubes() -> Result:
    sim = cubes(100)
    states = sim.get_states()
    get = Timed(sim.get_states, sim.get_states)
    return alone(11, get=get, set=Timed(lambda: sim.set_states(states)))


@functools.cache
def joints(count: int) -> Simulation:
    """Return one entity that has many hinges."""
    spec = mujoco.MjSpec()
    for i in range(count):
        body = spec.worldbody.add_body(name=f"body{i}", pos=(i % 40, i // 40, 1))
        body.add_joint(name=f"joint{i}", axis=(0, 1, 0))
        body.add_geom(size=(0.1, 0, 0), contype=0, conaffinity=0)
    return Simulation(spec.compile(), engine=ONE_THREAD)


@row("set_states of 500 / 1,000 joints", "linear")
def _states_of_joints() -> Result:
    calls = {
        f"joints{count}": functools.partial(sim.set_states, sim.get_states())
        for count in (500, 1000)
        for sim in (joints(count),)
    }
    return alone(5, **{name: Timed(call) for name, call in calls.items()})


@row("find_joints of 1,000 names", "≤ 2,000")
def _find_joints() -> Result:
    entity = joints(1000).scene["model"]
    names = list(entity.joint_names)
    return alone(5, ours=Timed(lambda: entity.find_joints(names)))


@row("a quantity of each of 300 entities after a write to another; by hand once", "1 ×")
def _quantities_after_writes() -> Result:
    sim = cubes(300, 64)
    entities = [sim.scene[name] for name in sim.scene]
    poses = [entity.data.root_link_pose_w.clone() for entity in entities]

    def call() -> None:
        for entity, other, pose in zip(
            entities, entities[-1:] + entities, poses[-1:] + poses, strict=False
        ):
            other.write_root_link_pose_to_sim(pose)
            _ = entity.data.root_link_lin_vel_b

    def once() -> None:
        sim.data.qpos[0, 0] += 1e-9
        _ = entities[0].data.root_link_lin_vel_b

    return ratio(2, ours=Timed(call), hand=Timed(once, loops=3))


def fresh(model: str, n: int) -> Result:
    """Return the row of `n` steps of 1024 worlds, next to mujoco.batch."""
    sim = worlds(model)
    bare = batch.Batch(sim.model, WORLDS, 1)
    for name in FIELDS:
        bare.bind(name)
    start = sim.state.clone()
    rows = start.numpy()

    def at_start() -> None:
        bare.state[:] = rows

    return ratio(
        5,
        ours=Timed(lambda: sim.step(n), lambda: sim.write_state(start)),
        hand=Timed(lambda: bare.step(None, n, VELOCITY), at_start),
    )


for _model in KEYFRAMES:
    for _n in (1, 4):
        _label = f"fresh step({_n}) of 1024 × {_model}; by hand mujoco.batch"
        row(_label, "≤ 1 ×")(functools.partial(fresh, _model, _n))
