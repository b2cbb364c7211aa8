"""Cost of an environment step for few worlds: CPU µs per env-step, on one thread.

HalfCheetah next to Gymnasium's own: the bit-identical one behind Gymnasium's interface,
and a task with terms in torch and in NumPy. The quadruped task next to its physics.
Each runs in a process of its own; blocks of steps alternate, so that a noisy machine
hits all alike. `--before PATH` adds another source tree of simstate, such as that of an
earlier commit, to the same run:

    git worktree add /tmp/before f126322
    (cd /tmp/before && python setup.py build_ext --inplace)
    taskset -c 1 python benchmarks/few_worlds.py --before /tmp/before/src
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

BLOCK_S = 0.15
"""CPU time of a block [s], about."""
HERE = Path(__file__).resolve()
ROWS = {
    "Quadruped-Velocity": (("physics", "quadruped"), (1, 16, 64, 1024)),
    "HalfCheetah": (
        ("gymnasium", "interface", "cheetah torch", "cheetah"),
        (1, 16, 64),
    ),
}


def assets() -> Path:
    """Return the folder of Gymnasium's model files."""
    found = find_spec("gymnasium")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "envs" / "mujoco" / "assets"


def gymnasium(worlds: int, name: str = "HalfCheetah-v5") -> Callable[[], object]:
    """Gymnasium's HalfCheetah, or its vector of them."""
    import gymnasium
    import numpy as np

    if worlds == 1:
        env = gymnasium.make(name).unwrapped
        env.reset(seed=0)
        action = np.full(6, 0.2, np.float32)
    else:
        own = {} if "/" in name else {"vectorization_mode": "sync"}
        env = gymnasium.make_vec(name, worlds, **own)
        env.reset(seed=0)
        action = np.full((worlds, 6), 0.2, np.float32)
    return lambda: env.step(action)


def interface(worlds: int) -> Callable[[], object]:
    """Simstate's HalfCheetah-v5 behind Gymnasium's interface."""
    import simstate.interop.gymnasium  # noqa: F401  (registers the tasks)

    return gymnasium(worlds, "simstate/HalfCheetah-v5")


def quadruped(worlds: int) -> Callable[[], object]:
    """Return a step of the quadruped task."""
    import torch

    from simstate import NativeCfg
    from simstate.env import Env, tasks

    cfg = tasks.make_cfg("Quadruped-Velocity")
    env = Env(cfg, worlds, engine=NativeCfg(num_threads=1))
    env.episode_length_buf = torch.arange(worlds) * env.max_episode_length // worlds
    action = torch.full((worlds, env.action_dim), 0.05)
    return lambda: env.step(action)


def physics(worlds: int) -> Callable[[], object]:
    """Return the time steps of the quadruped task without the task."""
    from simstate import NativeCfg, Simulation
    from simstate.env import tasks

    cfg = tasks.make_cfg("Quadruped-Velocity")
    sim = Simulation(cfg.scene, worlds, engine=NativeCfg(num_threads=1))
    sim.step(50)
    return lambda: sim.step(cfg.decimation)


def cheetah(worlds: int, with_torch: bool = False) -> Callable[[], object]:
    """Return a step of HalfCheetah-v5 as a task: seven terms."""
    import torch

    from simstate import EntityCfg, NativeCfg, SceneCfg
    from simstate.env import (
        ControlActionCfg,
        Env,
        EnvCfg,
        ObservationGroupCfg,
        ObservationTermCfg,
        RewardTermCfg,
        TerminationTermCfg,
        rewards,
        terminations,
    )

    class Forward:
        """Velocity along x since the last step [m/s]."""

        def __init__(self, cfg: Any, env: Any) -> None:
            self.last = env.memory("x", dtype=torch.float64, reset=None)

        def reset(self, env_ids: Any) -> None:
            pass

        def __call__(self, env: Any) -> Any:
            now = env.sim.data.qpos[:, 0]
            moved = (now - self.last) / env.step_dt
            self.last[:] = now
            return moved

    def position(env: Any) -> Any:
        return env.sim.data.qpos[:, 1:]

    def velocity(env: Any) -> Any:
        return env.sim.data.qvel

    def effort(env: Any) -> Any:
        return (env.action * env.action).sum(-1)

    def unhealthy(env: Any) -> Any:
        return env.sim.data.qpos[:, 1] < -10.0

    mark: Callable[[Any], Any] = lambda term: term  # noqa: E731
    if not with_torch:
        from simstate.env import either

        mark = either
    seen = {"position": mark(position), "velocity": mark(velocity)}
    terms = {name: ObservationTermCfg(term) for name, term in seen.items()}
    cfg = EnvCfg(
        scene=SceneCfg(
            entities={"robot": EntityCfg(model=assets() / "half_cheetah.xml")}
        ),
        decimation=5,
        episode_length_s=50.0,
        actions={"motors": ControlActionCfg()},
        observations={"policy": ObservationGroupCfg(terms)},
        rewards={
            "forward": RewardTermCfg(mark(Forward), weight=20.0),
            "effort": RewardTermCfg(mark(effort), weight=-2.0),
            "alive": RewardTermCfg(rewards.is_alive, weight=0.0),
        },
        terminations={
            "time_out": TerminationTermCfg(terminations.time_out, time_out=True),
            "unhealthy": TerminationTermCfg(mark(unhealthy)),
        },
    )
    env = Env(cfg, worlds, engine=NativeCfg(num_threads=1))
    action = torch.full((worlds, 6), 0.2)
    return lambda: env.step(action)


def cheetah_torch(worlds: int) -> Callable[[], object]:
    """Return the same with terms that read tensors."""
    return cheetah(worlds, with_torch=True)


def work(name: str, worlds: int) -> None:
    """Run a block of steps for each line that comes in; answer µs per env-step."""
    step = globals()[name.replace(" ", "_")](worlds)
    for _ in range(20):
        step()
    start = time.process_time()
    for _ in range(20):
        step()
    count = max(5, int(BLOCK_S / max((time.process_time() - start) / 20, 1e-7)))
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.process_time()
        for _ in range(count):
            step()
        print((time.process_time() - start) / count / worlds * 1e6, flush=True)


def start(name: str, worlds: int, source: str | None) -> subprocess.Popen[str]:
    """Start a process that measures."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    if source is not None:
        env["PYTHONPATH"] = source
    return subprocess.Popen(
        [sys.executable, str(HERE), "--work", name, "--worlds", str(worlds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env=env,
    )  # fmt: skip


def measure(
    jobs: dict[str, subprocess.Popen[str]], blocks: int
) -> dict[str, list[float]]:
    """Return µs per env-step of each process, in alternating blocks."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        assert job.stdout is not None
        assert job.stdout.readline().strip() == "ready"
    for _ in range(blocks):
        for name, job in jobs.items():
            assert job.stdin is not None
            assert job.stdout is not None
            job.stdin.write("\n")
            job.stdin.flush()
            found[name].append(float(job.stdout.readline()))
    for job in jobs.values():
        assert job.stdin is not None
        job.stdin.close()
        job.wait()
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", help="another source tree, such as /tmp/before/src")
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--rows", default="", help="rows whose name contains this")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--worlds", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work, given.worlds)
        return
    print("CPU µs per env-step, one thread: median (minimum) of alternating blocks")
    for row, (names, sizes) in ROWS.items():
        if given.rows not in row:
            continue
        for worlds in sizes:
            jobs = {name: start(name, worlds, None) for name in names}
            if given.before:
                old = {"quadruped": "quadruped", "cheetah": "cheetah torch"}
                jobs["before"] = start(old[names[-1]], worlds, given.before)
            found = measure(jobs, given.blocks)
            first = statistics.median(found[names[0]])
            parts = [
                f"{name} {statistics.median(x):.1f} ({min(x):.1f}), "
                f"{statistics.median(x) / first:.2f} ×"
                for name, x in found.items()
            ]
            print(f"{row}, {worlds} worlds: " + " | ".join(parts), flush=True)


if __name__ == "__main__":
    main()
