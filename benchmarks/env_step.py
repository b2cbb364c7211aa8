"""What an environment costs on top of the physics that it contains."""

from __future__ import annotations

import os

import mujoco
import numpy as np
import torch
from mujoco import batch
from rich.table import Table

from inside import batch_of
from simstate.env import Env, tasks
from timing import interleaved, rest

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
        rest()
        np.copyto(bare.state, batch_of(env.sim).state)

    def new_actions() -> None:
        rest()
        actions.normal_(generator=generator).mul_(0.5)

    for _ in range(30):
        step()
    n = env.cfg.decimation
    timing = interleaved(
        {
            "env": step,
            "physics": lambda: bare.step(nstep=n, stage=VEL),
            "steps alone": lambda: bare.step(nstep=n),
        },
        REPEATS,
        {"env": new_actions, "physics": same_state, "steps alone": same_state},
    )
    ours = timing["env"].median
    label = f"Env.step of {TASK}, {WORLDS} worlds, {np.mean(ended):.1f} end in a step"
    for other, what in (
        ("physics", label),
        ("steps alone", "  … against steps that leave positions and velocities stale"),
    ):
        ratio = ours / timing[other].median
        results[f"Env.step / {other}, quadruped {WORLDS}"] = ratio
        table.add_row(
            what,
            f"{ours * 1e3:.1f} ms",
            f"{timing[other].median * 1e3:.1f} ms (mujoco.batch)",
            f"{ratio:.2f} of its time",
            timing[other].spread_text,
        )
    results[f"env-steps/s, quadruped {WORLDS}"] = WORLDS / ours
    table.add_row("  … env-steps per second", f"{WORLDS / ours:,.0f}", "", "", "")
