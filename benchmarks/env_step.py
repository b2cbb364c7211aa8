"""What an environment costs on top of the physics that it contains."""

from __future__ import annotations

import os

import mujoco
import numpy as np
import torch
from mujoco import batch
from rich.table import Table

from simstate.env import Env, tasks
from timing import interleaved

WORLDS = 1024
REPEATS = 40
TASK = "Quadruped-Velocity"
VEL = mujoco.mjtStage.mjSTAGE_VEL.value


def stepping(table: Table, results: dict[str, float]) -> None:
    """A whole step of the quadruped task against mujoco.batch from the same states.

    The bare batch starts each of its calls in the states and with the controls that the
    environment has, so both simulate the same motion. Episodes end all the time, as in
    training: their ages are spread evenly.
    """
    env = Env(tasks.make_cfg(TASK), num_envs=WORLDS)
    generator = torch.Generator().manual_seed(0)
    env.episode_length_buf = torch.arange(WORLDS) * env.max_episode_length // WORLDS
    bare = batch.Batch(env.sim.model, WORLDS, len(os.sched_getaffinity(0)))
    actions = torch.randn(WORLDS, env.action_dim, generator=generator) * 0.5
    ended: list[int] = []

    def step() -> None:
        _, _, terminated, truncated, _ = env.step(actions)
        ended.append(int((terminated | truncated).sum()))

    def same_state() -> None:
        np.copyto(bare.state, env.sim.engine.batch.state)

    def new_actions() -> None:
        actions.normal_(generator=generator).mul_(0.5)

    for _ in range(30):
        step()
    timing = interleaved(
        {
            "env": step,
            "bare": lambda: bare.step(nstep=env.cfg.decimation),
            "fresh": lambda: bare.step(nstep=env.cfg.decimation, stage=VEL),
        },
        REPEATS,
        {"env": new_actions, "bare": same_state, "fresh": same_state},
    )
    ratio = timing["env"].median / timing["bare"].median
    rate = WORLDS / timing["env"].median
    results["Env.step / bare physics, quadruped 1024"] = ratio
    results["env-steps/s, quadruped 1024"] = rate
    table.add_row(
        f"Env.step of {TASK}, {WORLDS} worlds, {np.mean(ended):.1f} end in a step",
        f"{timing['env'].median * 1e3:.1f} ms",
        f"{timing['bare'].median * 1e3:.1f} ms (mujoco.batch)",
        f"{ratio:.2f} of its time",
        timing["env"].spread_text,
    )
    fresh = timing["env"].median / timing["fresh"].median
    results["Env.step / physics with fresh positions, quadruped 1024"] = fresh
    table.add_row(
        "  … against physics that leaves positions and velocities fresh, too",
        "",
        f"{timing['fresh'].median * 1e3:.1f} ms (mujoco.batch)",
        f"{fresh:.2f} of its time",
        timing["fresh"].spread_text,
    )
    table.add_row("  … env-steps per second", f"{rate:,.0f}", "", "", "")
