"""What it costs that the model's constants follow their parameters by themselves."""

from __future__ import annotations

from rich.table import Table

from simstate import EntityCfg, SceneCfg, Simulation
from timing import interleaved

NUM_ENVS = 1024


def following(table: Table, results: dict[str, float]) -> None:
    """A step after masses were written in some worlds, against one after none."""
    scene = SceneCfg(entities={"robot": EntityCfg(model="quadruped")}, timestep=0.005)
    sim = Simulation(scene, NUM_ENVS)
    trunk = sim.scene["robot"].index.root_body_id
    mass = float(sim.model.body_mass[trunk])
    sim.expand("body_mass")

    def heavier(count: int) -> None:
        sim.write_parameter("body_mass", [[1.1 * mass]], [trunk], range(count))

    counts = (1, 16, NUM_ENVS)
    calls = {"none": sim.step} | {str(count): sim.step for count in counts}
    prepare = {str(count): lambda count=count: heavier(count) for count in counts}
    found = interleaved(calls, 15, prepare | {"none": lambda: None})
    plain = found["none"].median
    for count in counts:
        timing = found[str(count)]
        results[f"constants_follow_{count}"] = timing.median / plain
        table.add_row(
            f"a step after masses changed in {count} of {NUM_ENVS} worlds, quadruped",
            f"{1e3 * timing.median:.1f} ms",
            f"{1e3 * plain:.1f} ms (none changed)",
            f"{timing.median / plain:.2f}",
            timing.spread_text,
        )
