"""A long run with everything that a world can do: are memory and threads flat?

    python benchmarks/soak.py --world-steps 1e8

Worlds are stepped, reset, written, snapshotted, restored and made to diverge;
resident memory and the number of threads are compared after a fifth of the run and at
its end (Linux).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.env import Env, tasks

GROWTH = 32 * 2**20
"""What memory may grow by, for caches and the allocator [bytes]."""


def simulations(world_steps: float) -> None:
    """Plain worlds of a cart-pole, whose controls, masses and states keep changing."""
    scene = SceneCfg(entities={"robot": EntityCfg(model="cartpole")})
    sim = Simulation(scene, 2048, on_divergence="mask", seed=1)
    robot = sim.scene["robot"]
    ids = torch.arange(0, sim.num_envs, 7)
    for k in range(int(world_steps / (16 * sim.num_envs))):
        sim.data.ctrl[:] = sim.rng.normal(slice(None), 1).to(sim.dtype)
        sim.step(16)
        robot.data.joint_pos.sum()
        if k % 10 == 0:
            sim.reset(ids)
            sim.write_parameter("body_mass", [[1.0 + k % 5]], [1], ids)
        if k % 50 == 0:
            sim.restore(sim.snapshot(ids), ids)
            sim.set_states(sim.get_states(mode="tensor"))
        if k % 200 == 0:
            sim.data.qvel[k % sim.num_envs, 0] = 1e12
        take_note()


def environments(env_steps: float) -> None:
    """Episodes of a task that end, diverge and are saved."""
    env = Env(tasks.make_cfg("Cartpole-Balance"), 1024, seed=2)
    for k in range(int(env_steps / env.num_envs)):
        env.step(torch.randn(env.num_envs, env.action_dim))
        if k % 50 == 0:
            env.restore(env.snapshot())
        take_note()


_MARKS: list[tuple[float, int, int]] = []


def take_note() -> None:
    """Take note of memory and threads, now and then."""
    now = time.monotonic()
    if not _MARKS or now - _MARKS[-1][0] > 0.2:
        lines = Path("/proc/self/status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        memory = 1024 * int(status["VmRSS"].split()[0])
        _MARKS.append((now, memory, int(status["Threads"])))


def verdict(name: str) -> bool:
    """Compare the middle of the run with its end, and print it."""
    first = _MARKS[len(_MARKS) // 5]
    last = _MARKS[-1]
    flat = last[1] - first[1] <= GROWTH and last[2] == first[2]
    print(
        f"{name}: {first[1] / 2**20:.0f} → {last[1] / 2**20:.0f} MiB, {first[2]} → "
        f"{last[2]} threads in {last[0] - _MARKS[0][0]:.0f} s: "
        f"{'flat' if flat else 'GROWING'}"
    )
    _MARKS.clear()
    return flat


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world-steps", type=float, default=1e8)
    args = parser.parse_args()
    simulations(args.world_steps)
    fine = verdict("simulation")
    environments(args.world_steps / 100)
    return 0 if verdict("environment") and fine else 1


if __name__ == "__main__":
    raise SystemExit(main())
