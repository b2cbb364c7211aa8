"""Core-seconds that PPO and soft actor-critic take until an arm reaches its points.

Both learn Arm-Reach, PPO with the shipped settings, in one process and one thread. The
criterion is that of `simstate play`: the mean distance from the point in 64 new worlds
(seed 1) over 8 s, in which every world is given two points. Evaluations are not
counted.

    python benchmarks/off_policy.py --seeds 0 1
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import time
from pathlib import Path

import torch

from simstate.env import Env, TrainCfg, tasks
from simstate.interop.rsl_rl import grouped
from simstate.train.evaluate import evaluate
from simstate.train.run_cfg import OutputCfg, RunCfg
from simstate.train.training_logs import Progress
from simstate.train.training_run import TrainingRun

TASK = "Arm-Reach"
TARGETS = (0.05, 0.03, 0.025)
"""Mean distances to reach [m]."""
SAC = {
    "algorithm": "sac",
    "num_envs": 128,
    "steps_per_env": 2,
    "num_learning_epochs": 8,
    "num_mini_batches": 1,
    "batch_size": 256,
}
MOST_SECONDS = 60.0


def core_seconds(cfg: TrainCfg, every: int, seed: int) -> dict[float, float]:
    """Train until all targets are reached; return the CPU time of each [s]."""
    output = OutputCfg(save_every=10**6, logger="none")
    spent, found = 0.0, dict[float, float]()
    since = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        run = TrainingRun(
            RunCfg(task=TASK, train=cfg, seed=seed, output=output), Path(folder)
        )
        env = Env(tasks.make_cfg(TASK), 64, seed=1, auto_reset=False)

        def measure(progress: Progress) -> None:
            nonlocal spent, since
            spent += time.process_time() - since
            if progress.iteration % every == 0:
                network = run.algorithm.get_policy()
                with torch.random.fork_rng(devices=[]), torch.inference_mode():
                    env.reset(seed=1)
                    error = evaluate(
                        env, lambda seen: network(grouped(seen, 64)), 8.0
                    ).errors["point"]
                print(f"  {spent:5.1f} s  {error:.4f} m", flush=True)
                for target in TARGETS:
                    if error <= target:
                        found.setdefault(target, spent)
            since = time.process_time()

        run.learn(
            10**6,
            measure,
            lambda: len(found) == len(TARGETS) or spent > MOST_SECONDS,
        )
    return found


def main() -> None:
    """Print the core-seconds of both learners by seed and target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    seeds = parser.parse_args().seeds
    torch.set_num_threads(1)
    ppo = tasks.make_train_cfg(TASK)
    learners = {"ppo": (ppo, 3), "sac": (dataclasses.replace(ppo, **SAC), 50)}
    rows: list[str] = []
    for seed in seeds:
        for name, (cfg, every) in learners.items():
            print(f"{name}, seed {seed}")
            found = core_seconds(cfg, every, seed)
            cells = [f"{found.get(t, float('nan')):6.1f}" for t in TARGETS]
            rows.append(f"{name}  seed {seed}  {'  '.join(cells)}")
    print("core-seconds until the mean distance is", *(f"{t} m" for t in TARGETS))
    print("\n".join(rows))


if __name__ == "__main__":
    main()
