"""`simstate contacts`: the contacts of a model and the weight that they support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table

from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.console import escaped
from simstate.cli.model_scene import ENTITY, scene_of
from simstate.cli.options import AnswerCommand, Engine, Model

if TYPE_CHECKING:
    import torch

    from simstate.sensors.contact_table import ContactTable


@dataclass
class ContactsCommand(AnswerCommand):
    """List the contacts of a model in one state: geoms, forces and positions.

    Example: simstate contacts quadruped --seconds 1
    """

    model: Model
    seconds: float = 0.0
    """Time to simulate first [s], with the initial controls."""
    engine: Engine = "native"

    def execute(self) -> Answer:
        """Run the command; return the contacts."""
        from simstate.base.checks import number
        from simstate.sensors.contact_table import weight_of
        from simstate.simulation import Simulation
        from simstate.world.worlds import worlds_of  # loads torch

        number("--seconds", self.seconds, at_least=0)
        sim = Simulation(scene_of(self.model), engine=self.engine)
        steps = round(self.seconds / sim.timestep)
        if steps:
            sim.step(steps)
        table = sim.contact_table()
        static = [k for k, (first, second) in enumerate(table.body_names)
                  if "world" in (first, second)]  # fmt: skip
        ground = sum(
            (_on_the_moving_side(table, k) for k in static), table.pos_w.new_zeros(3)
        )
        weight = weight_of(worlds_of(sim))[0]
        facts = {
            "time": float(sim.time[0]),
            "contacts": list(table),
            "force_of_the_world": [float(x) for x in ground],
            "weight": [float(x) for x in weight],
        }
        title = f"Contacts of {self.model} at t = {float(sim.time[0]):g} s"
        return Answer(facts, [_table(table, title), _sum_line(ground, weight)])


def _on_the_moving_side(table: ContactTable, k: int) -> torch.Tensor:
    """Return the force of contact k on its moving body, world axes [N]; (3,)."""
    return table.force_w[k] if table.body_names[k][0] == "world" else -table.force_w[k]


def _table(table: ContactTable, title: str) -> Table:
    from simstate.math.vector import norm

    found = new_table(
        title, "this", "pushes this", "with, world axes [N]", "normal", "friction",
        ">distance [mm]", "at [m]",
    )  # fmt: skip
    for k in range(len(table)):
        force, normal = table.force_w[k], float(table.normal_force[k])
        across = float(norm(force - normal * table.frame_w[k, 0]))
        first, second = table.geom_names[k]
        found.add_row(
            escaped(first.removeprefix(f"{ENTITY}/")),
            escaped(second.removeprefix(f"{ENTITY}/")),
            _vector(force, 2),
            f"{normal:.2f} N",
            f"{across:.2f} N",
            _vector(1e3 * table.distance[k : k + 1], 3),
            _vector(table.pos_w[k], 3),
        )
    return found


def _vector(values: torch.Tensor, digits: int) -> str:
    rounded = (round(float(x), digits) + 0.0 for x in values)  # without "-0.00"
    return " ".join(f"{x:.{digits}f}" for x in rounded)


def _sum_line(ground: torch.Tensor, weight: torch.Tensor) -> str:
    size = float(weight.square().sum().sqrt())
    line = (
        f"The total contact force of the world is {_vector(ground, 2)} N; the weight "
        f"of all moving bodies is {_vector(weight, 2)} N"
    )
    if size == 0.0:
        return f"{line}."
    share = -float((ground * weight).sum()) / size**2
    return f"{line}: {100 * share:.1f} % of it is supported."
