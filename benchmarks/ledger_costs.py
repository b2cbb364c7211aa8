"""Costs of snapshots, resets and writes next to the same by hand with NumPy.

`python benchmarks/ledger_costs.py [--repeats N]`: CPU time per call, medians (minima)
of interleaved repeats, in microseconds. Worlds are quadrupeds on a ground, engine
"native". By hand, memory of the same size is copied, or the same numbers are written
into a plain array.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable

import mujoco
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation
from simstate.state import Snapshot
from timing import rest

WORLDS = 1024
SEED = 5


def make(num_envs: int) -> Simulation:
    """Quadrupeds in motion, no two worlds alike."""
    state = InitialStateCfg(keyframe="home")
    scene = SceneCfg(entities={"robot": EntityCfg(model="quadruped", init_state=state)})
    sim = Simulation(scene, num_envs)
    robot = sim.scene["robot"]
    rng = np.random.default_rng(SEED)
    robot.write_joint_velocity_to_sim(0.3 * rng.standard_normal((num_envs, 12)))
    sim.step(4)
    rest()
    return sim


def measure(
    calls: dict[str, Callable[[], object]], repeats: int, in_a_row: int
) -> dict[str, tuple[float, float]]:
    """Median and minimum CPU time of each call [µs]: some in a row, interleaved."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(max(1, repeats // in_a_row)):
        for name, call in calls.items():
            call()
            call()
            for _ in range(5):
                start = time.process_time_ns()
                for _ in range(in_a_row):
                    call()
                spent = time.process_time_ns() - start
                found[name].append(spent / in_a_row / 1e3)
    return {name: (float(np.median(t)), min(t)) for name, t in found.items()}


def many_worlds(repeats: int) -> list[tuple[str, tuple[float, float], str, float]]:
    """The rows for 1024 worlds: call, time, by hand, target [µs]."""
    sim = make(WORLDS)
    robot = sim.scene["robot"]
    rng = np.random.default_rng(SEED)
    taken, loaded = sim.snapshot(), Snapshot.from_bytes(sim.snapshot().to_bytes())
    size = sum(value.nbytes for value in loaded.slots.values())
    live, kept = np.ones(size // 8), np.ones(size // 8)
    few = np.sort(rng.permutation(WORLDS)[:11])
    env_ids = torch.as_tensor(few)
    rows = np.ones((WORLDS, size // 8 // WORLDS))
    initial = np.ones(rows.shape[1])
    pose = torch.as_tensor(rng.standard_normal((11, 7)))
    targets = torch.as_tensor(rng.standard_normal((WORLDS, 12)))
    plain, ctrl = targets.numpy(), np.ones((WORLDS, 12))

    def copy_by_hand() -> None:
        kept[:] = live

    def reset_by_hand() -> None:
        rows[few] = initial

    def pose_by_hand() -> None:
        values = pose.numpy()
        rows[few, :3] = values[:, :3]
        quat = values[:, 3:]
        rows[few, 3:7] = quat / np.sqrt((quat * quat).sum(1, keepdims=True))

    def target_by_hand() -> None:
        if np.isfinite(plain).all():
            ctrl[:] = plain

    times = measure(
        {
            "memcpy": copy_by_hand,
            "reset by hand": reset_by_hand,
            "pose by hand": pose_by_hand,
            "target by hand": target_by_hand,
            "snapshot": sim.snapshot,
            "restore": lambda: sim.restore(taken),
            "restore, loaded": lambda: sim.restore(loaded),
            "snapshot of one": lambda: sim.snapshot(7),
            "reset": lambda: sim.reset(env_ids),
            "pose": lambda: robot.write_root_link_pose_to_sim(pose, env_ids),
            "target": lambda: robot.set_joint_position_target(targets),
        },
        repeats,
        in_a_row=3,
    )
    copied = f"{times['memcpy'][0]:.1f} (memcpy, {size / 1e6:.1f} MB)"
    hand = {name: f"{times[f'{name} by hand'][0]:.1f}" for name in ("reset", "pose")}
    return [
        (f"snapshot, {WORLDS} worlds", times["snapshot"], copied, 400),
        (f"restore, {WORLDS} worlds", times["restore"], copied, 600),
        ("restore of a loaded snapshot", times["restore, loaded"], copied, 600),
        (f"snapshot of one of {WORLDS} worlds", times["snapshot of one"], "–", 50),
        ("reset of 11 worlds (1 %)", times["reset"], hand["reset"], 80),
        ("write_root_link_pose, 11 worlds", times["pose"], hand["pose"], 40),
        (
            f"set_joint_position_target, {WORLDS} worlds",
            times["target"],
            f"{times['target by hand'][0]:.1f}",
            50,
        ),
    ]


def one_world(repeats: int) -> list[tuple[str, tuple[float, float], str, float]]:
    """The rows for one world; targets are what is allowed beyond mj_step [µs]."""
    sim = make(1)
    robot = sim.scene["robot"]
    model, data = sim.model, mujoco.MjData(sim.model)
    start = sim.snapshot()
    rng = np.random.default_rng(SEED)
    target = torch.as_tensor(0.1 * rng.standard_normal((1, 12)))
    row = sim.state[0].numpy()
    spec = mujoco.mjtState.mjSTATE_INTEGRATION.value

    def step_by_hand() -> None:
        mujoco.mj_step(model, data)

    def target_alone() -> None:
        robot.set_joint_position_target(target)

    def target_and_step() -> None:
        robot.set_joint_position_target(target)
        sim.step()

    def control_and_step() -> None:
        sim.data.ctrl[:] = target
        sim.step()

    calls: dict[str, Callable[[], object]] = {
        "mj_step": step_by_hand,
        "snapshot": sim.snapshot,
        "target": target_alone,
        "target, step": target_and_step,
        "ctrl, step": control_and_step,
        "step": sim.step,
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for _ in range(10):  # from the same state again and again
        sim.restore(start)
        mujoco.mj_setState(model, data, row, spec)
        for name, value in measure(calls, repeats // 2, in_a_row=20).items():
            found[name].append(value)
    times = {
        name: (float(np.median([m for m, _ in v])), min(least for _, least in v))
        for name, v in found.items()
    }
    step = times["mj_step"][0]
    hand = f"{step:.1f} (mj_step)"
    return [
        ("snapshot, one world", times["snapshot"], "–", 50),
        ("set_joint_position_target, one world", times["target"], "–", 10),
        ("set_joint_position_target; step", times["target, step"], hand, step + 16),
        ("sim.data.ctrl[:] = …; step", times["ctrl, step"], hand, step + 10),
        ("step", times["step"], hand, step + 6),
    ]


def main() -> None:
    """Print all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    repeats = parser.parse_args().repeats
    gc.disable()
    table = Table("call", "µs (min)", "by hand", "target")
    for rows in (many_worlds(repeats), one_world(repeats)):
        for name, (median, least), hand, target in rows:
            table.add_row(name, f"{median:.1f} ({least:.1f})", hand, f"{target:.0f}")
        table.add_section()
    Console().print(table)


if __name__ == "__main__":
    main()
