"""Cost of events and tasks on MuJoCo's own stepper, as ratios to the plain step.

CPU time of one `sim.step()`, 3 worlds, medians of interleaved repeats. Nothing happens
in these steps except for the task, which runs every 0.02 s. Target: at most 3.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import mujoco

import simstate
from simstate import Simulation

BALL = """<mujoco><worldbody><body pos="0 0 1"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""
QUADRUPED = Path(simstate.__file__).parent / "scene/models/quadruped.xml"
REPEATS, STEPS = 9, 60


def make(model: mujoco.MjModel, event: bool, task: bool) -> Simulation:
    """Return 3 worlds, with an event that does not happen and a task that is empty."""
    sim = Simulation(model, 3)
    if event:
        sim.add_event(lambda sim: sim.data.qpos[:, 2] + 1e6, "falling")
    if task:
        sim.add_task(lambda sim, env_ids: None, 0.02)
    sim.step()
    return sim


def cost(sim: Simulation) -> float:
    """Return the CPU time of a step [µs]."""
    start = time.process_time()
    for _ in range(STEPS):
        sim.step()
    return (time.process_time() - start) / STEPS * 1e6


def main() -> None:
    """Print a row for each model."""
    models = {
        "free body": mujoco.MjModel.from_xml_string(BALL),
        "quadruped": mujoco.MjModel.from_xml_path(str(QUADRUPED)),
    }
    kinds = {"plain": (0, 0), "event": (1, 0), "task": (0, 1), "both": (1, 1)}
    for name, model in models.items():
        sims = {kind: make(model, *map(bool, has)) for kind, has in kinds.items()}
        found: dict[str, list[float]] = {kind: [] for kind in sims}
        for _ in range(REPEATS):
            for kind, sim in sims.items():
                found[kind].append(cost(sim))
        medians = {kind: statistics.median(times) for kind, times in found.items()}
        row = [
            f"{k} {t:.1f} µs ({t / medians['plain']:.2f}×)" for k, t in medians.items()
        ]
        print(f"{name}: {', '.join(row)}")


if __name__ == "__main__":
    main()
