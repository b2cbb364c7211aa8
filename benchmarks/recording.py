"""What recording, replaying and collecting cost on top of the steps themselves."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.table import Table

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation
from simstate.data.datasets import collect
from simstate.data.replay import replay
from simstate.env import Env, tasks
from timing import interleaved

WORLDS = 1024
REPEATS = 40
SUBSTEPS = 4
QUANTITIES = (
    "root_link_pos_w", "root_link_quat_w", "root_link_lin_vel_b",
    "root_link_ang_vel_b", "projected_gravity_b", "joint_pos", "joint_vel",
    "joint_pos_target", "actuator_force", "root_com_lin_vel_w",
)  # fmt: skip


def stepping(table: Table, results: dict[str, float]) -> None:
    """`sim.step(4)` with new targets, recorded and not, on the same states.

    Each call has a simulation of its own, which does the same steps.
    """
    home = InitialStateCfg(keyframe="home")
    scene = SceneCfg(entities={"robot": EntityCfg(model="quadruped", init_state=home)})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.simrec"
        sims = [Simulation(scene, WORLDS) for _ in range(2)]
        targets = [torch.Generator().manual_seed(0) for _ in sims]
        recorder = sims[1].record(file, quantities=QUANTITIES)

        def step(k: int) -> None:
            robot = sims[k].scene["robot"]
            noise = torch.randn(WORLDS, 12, generator=targets[k], dtype=torch.float64)
            robot.set_joint_position_target(robot.data.default_joint_pos + 0.2 * noise)
            sims[k].step(SUBSTEPS)

        timing = interleaved(
            {"steps": lambda: step(0), "recorded": lambda: step(1)}, REPEATS
        )
        work = interleaved(
            {"steps": lambda: step(0), "recorded": lambda: step(1)},
            REPEATS,
            clock=time.process_time,
        )
        recorder.close()
        assert torch.equal(sims[0].state, sims[1].state)
        raw = sum(
            sims[1].scene["robot"].data.read(name).nbytes for name in QUANTITIES
        ) * (2 * REPEATS + 3)
        share = file.stat().st_size / raw
    ours, bare = timing["recorded"], timing["steps"]
    ratio = ours.median / bare.median
    results["recording_ratio"] = ratio
    results["recording_size_share"] = share
    table.add_row(
        f"step({SUBSTEPS}), {WORLDS} quadrupeds, {len(QUANTITIES)} quantities recorded",
        f"{1e3 * ours.median:.1f} ms",
        f"{1e3 * bare.median:.1f} ms not recorded",
        f"{ratio:.3f}; file {100 * share:.0f} % of the numbers",
        ours.spread_text,
    )
    share = work["recorded"].median / work["steps"].median
    results["recording_cpu_ratio"] = share
    table.add_row(
        "  … CPU time of all threads, with compressing and writing",
        f"{1e3 * work['recorded'].median:.1f} ms",
        f"{1e3 * work['steps'].median:.1f} ms not recorded",
        f"{share:.3f}",
        work["recorded"].spread_text,
    )


TASK, STEPS = "Quadruped-Velocity", 20


def again(table: Table, results: dict[str, float]) -> None:
    """Steps of a task by hand, recorded and replayed; and a collection of them."""
    cfg = tasks.make_cfg(TASK)
    cfg.episode_length_s = STEPS * cfg.decimation * Env(cfg).sim.timestep
    with tempfile.TemporaryDirectory() as folder:
        file, count = Path(folder) / "env.simrec", iter(range(1000))
        env, other = Env(cfg, WORLDS // 4, seed=1), Env(cfg, WORLDS // 4)

        def steps() -> None:
            for _ in range(STEPS):
                env.step(torch.zeros(env.num_envs, env.action_dim))

        with env.record(file, task=TASK):
            steps()
        found = replay(file, other)
        assert found.is_same

        def collected() -> None:
            collect(cfg, _still, Path(folder) / str(next(count)),
                    episodes=1, envs=env.num_envs)  # fmt: skip

        timing = interleaved(
            {"steps": steps, "replay": lambda: replay(file, other),
             "collect": collected, "made": lambda: Env(cfg, env.num_envs)},
            REPEATS // 4,
        )  # fmt: skip
    bare = timing["steps"].median
    for name, what in (
        (
            "replay",
            f"replay of {STEPS} steps of {TASK}, {WORLDS // 4} worlds, compared",
        ),
        ("collect", "  … collect: a part of as many steps, with a new Env"),
        ("made", "  … of which making the Env"),
    ):
        ratio = timing[name].median / bare
        results[f"{name}_ratio"] = ratio
        table.add_row(
            what,
            f"{1e3 * timing[name].median:.0f} ms",
            f"{1e3 * bare:.0f} ms stepped by hand",
            f"{ratio:.2f} of its time",
            timing[name].spread_text,
        )


def _still(env: Env) -> Callable[[dict[str, torch.Tensor]], torch.Tensor]:
    """A policy that does nothing."""
    return lambda seen: torch.zeros(env.num_envs, env.action_dim)
