"""What recording costs on top of the steps that are recorded."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from rich.table import Table

from simstate import EntityCfg, InitialStateCfg, SceneCfg, Simulation
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
        recorder.close()
        assert torch.equal(sims[0].state, sims[1].state)
        raw = sum(
            sims[1].scene["robot"].data.read(name).nbytes for name in QUANTITIES
        ) * (REPEATS + 2)
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
