"""`simstate inspect`: what a model holds, and where it is in the state tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from simstate.cli.answer import Answer
from simstate.cli.console import escaped
from simstate.cli.model_scene import scene_of
from simstate.cli.options import Debug, Json, Model

if TYPE_CHECKING:
    from simstate.cli.inspection import Fact


@dataclass
class InspectCommand:
    """Show a model's links, joints, actuators, sensors, sizes and state layout.

    Example: simstate inspect quadruped
    """

    model: Model
    json: Json = False
    debug: Debug = False

    def execute(self) -> Answer:
        """Run the command; what it found."""
        from simstate.cli.inspection import inspect_scene

        found = inspect_scene(scene_of(self.model))
        tables = [
            fact_table(title, found[key]) for key, title in TITLES.items() if found[key]
        ]
        shown = [summary(self.model, found), *tables]
        return Answer({"model": self.model, **found}, shown)


TITLES = {
    "links": "Links, in the order of data.body_…",
    "joints": "Joints, and their columns in sim.state",
    "controls": "Controls, in the order of data.ctrl, in sim.state",
    "targets": "Targets of joints: the control that takes each (–: kept beside)",
    "sensors": "Sensors, columns of sensordata",
    "state": "State layout: columns of sim.state",
}

HEADERS = {"mass": "mass [kg]", "com": "COM, link's axes [m]"}
"""Headers of columns that say more than the facts' own keys."""


def summary(model: str, found: dict[str, Any]) -> str:
    """The sizes and the options in a few lines."""
    sizes, options = found["sizes"], found["options"]
    counts = ", ".join(f"{kind} {count}" for kind, count in sizes.items() if count)
    base = "no link" if found["base"] == "none" else f"{found['base']} base"
    gravity = ", ".join(f"{g:g}" for g in options["gravity"])
    lines = [
        f"{model}: {base}, {found['mass']:.4g} kg",
        f"  has      {counts}",
        f"  steps    {options['timestep']:g} s, {options['integrator']}, "
        f"gravity ({gravity}) m/s², world axes",
        f"  state    {found['nstate']} numbers a world, "
        f"{8 * found['nstate'] / 1024:.1f} KiB in float64",
    ]
    for kind in ("sites", "tendons", "equalities", "keyframes", "cameras"):
        if found[kind]:
            lines.append(f"  {kind:<10} {', '.join(found[kind])}")
    return "\n".join(lines)


def fact_table(title: str, facts: list[Fact]) -> Table:
    """A table with one row for each fact, and a column for each key."""
    table = Table(title=title, title_justify="left")
    for key in facts[0]:
        header = HEADERS.get(key, key.replace("_", " "))
        table.add_column(escaped(header), overflow="fold")
    for fact in facts:
        table.add_row(*(escaped(_cell(key, value)) for key, value in fact.items()))
    return table


def _cell(key: str, value: Any) -> str:
    """A value as it stands in a table; columns as they stand in an index."""
    if value is None:
        return "–"
    if key.endswith("columns"):
        start, stop = value
        return str(start) if stop == start + 1 else f"{start}:{stop}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str | int):
        return str(value) or "–"
    return ", ".join(f"{number:.4g}" for number in value)
