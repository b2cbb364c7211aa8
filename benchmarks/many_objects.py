"""Costs that grow with the number of objects, and memory per world.

    python benchmarks/many_objects.py            # all rows
    python benchmarks/many_objects.py --no-memory

CPU time, medians. Compare two versions by running it with each on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import torch

from entity_data import NINE
from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation

FEW, MANY = 256, 4096
"""Worlds between which memory is compared."""
MOMENTS = ("created", "after a step", "after nine reads", "after a reset of 1 %")


def cubes(count: int) -> SceneCfg:
    """Free cubes 1 m apart."""
    entities = {
        f"cube{k}": EntityCfg(
            model="cube",
            init_state=InitialStateCfg(pos=(float(k % 20), float(k // 20), 1.0)),
        )
        for k in range(count)
    }
    return SceneCfg(entities=entities, timestep=0.002)


def hinges(count: int) -> SceneCfg:
    """One entity with many joints."""
    bodies = "".join(
        f'<body name="body_{k}" pos="{k} 0 1"><joint name="joint_{k}" axis="0 1 0"/>'
        '<geom size=".1" contype="0" conaffinity="0"/></body>'
        for k in range(count)
    )
    xml = f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"
    return SceneCfg(entities={"r": EntityCfg(model=xml)}, timestep=0.002, ground=False)


def milliseconds(call: Callable[[], object], repeats: int = 9) -> float:
    """The median CPU time of a call, garbage collected before it."""
    times: list[float] = []
    call()
    for _ in range(repeats):
        gc.collect()
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e3 * statistics.median(times)


def row(what: str, number: float, unit: str = "ms") -> None:
    """Print one line of the table."""
    print(f"{what:58s}{number:10.2f} {unit}", flush=True)


def construction() -> None:
    """Simulations of 30, 100 and 300 cubes."""
    for count in (30, 100, 300):
        scene = cubes(count)
        row(
            f"construct {count} cubes",
            milliseconds(lambda s=scene: Simulation(s, 1), 5),
        )


def states() -> None:
    """States of many objects, and of many joints."""
    sim = Simulation(cubes(100), 1)
    made = sim.get_states(mode="dict")
    row("get_states of 100 cubes", milliseconds(lambda: sim.get_states(mode="dict")))
    row("set_states of 100 cubes", milliseconds(lambda: sim.set_states(made)))
    for count in (500, 1000):
        jointed = Simulation(hinges(count), 1)
        whole = jointed.get_states(mode="dict")
        dof = {"objects": {"r": {"dof_pos": dict(whole[0]["objects"]["r"]["dof_pos"])}}}
        set_dof = lambda s=jointed, d=dof: s.set_states(d)  # noqa: E731
        set_all = lambda s=jointed, w=whole: s.set_states(w)  # noqa: E731
        row(f"set_states of {count} joints, dof_pos", milliseconds(set_dof))
        row(f"set_states of {count} joints and links", milliseconds(set_all))


def names() -> None:
    """Finding 1,000 joints by name."""
    entity = Simulation(hinges(1000), 1).scene["r"]
    exact = list(entity.joint_names)[::-1]
    row("find_joints of 1,000 names", milliseconds(lambda: entity.find_joints(exact)))
    ordered = lambda: entity.find_joints(exact, preserve_order=True)  # noqa: E731
    row("the same, order preserved", milliseconds(ordered))
    row("find_joints('joint_.*')", milliseconds(lambda: entity.find_joints("joint_.*")))


def writes_and_reads() -> None:
    """A quantity of each of 300 entities, each after a write to the previous one."""
    sim = Simulation(cubes(300), 64)
    entities = list(sim.scene.values())
    poses = [entity.data.default_root_state[:, :7].clone() for entity in entities]

    def alternate() -> None:
        for k, (previous, entity) in enumerate(pairwise(entities)):
            previous.write_root_link_pose_to_sim(poses[k])
            _ = entity.data.root_link_pos_w

    start = time.process_time()
    alternate()
    row(
        "300 entities written and read in turn, 64 worlds",
        1e3 * (time.process_time() - start),
    )


def memory() -> None:
    """Resident memory that each further quadruped world takes."""
    few, many = _resident(FEW), _resident(MANY)
    for moment, one, other in zip(MOMENTS, few, many, strict=True):
        row(f"memory per world, {moment}", (other - one) / (MANY - FEW) / 1024, "KiB")


def _resident(num_envs: int) -> list[int]:
    code = f"import many_objects; many_objects.print_resident({num_envs})"
    command = [sys.executable, "-W", "ignore", "-c", code]
    here = Path(__file__).parent
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.split()]


def print_resident(num_envs: int) -> None:
    """Print the resident memory [bytes] at each of the moments."""
    state = InitialStateCfg(keyframe="home")
    robot_cfg = EntityCfg(model="quadruped", init_state=state)
    sim = Simulation(SceneCfg(entities={"robot": robot_cfg}), num_envs)
    _print_pages()
    sim.step(4)
    _print_pages()
    for name in NINE:
        sim.scene["robot"].data.read(name)
    _print_pages()
    sim.reset(torch.arange(0, num_envs, 100))
    _print_pages()


def _print_pages() -> None:
    gc.collect()
    print(int(Path("/proc/self/statm").read_text().split()[1]) * 4096)


def main() -> None:
    """Print all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-memory", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    construction()
    states()
    names()
    writes_and_reads()
    if not arguments.no_memory:
        memory()


if __name__ == "__main__":
    main()
