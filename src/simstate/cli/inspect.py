"""`simstate inspect`: show the elements of a model, or one of them by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tyro
from rich.table import Table

from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.console import escaped
from simstate.cli.model_scene import scene_of
from simstate.cli.options import AnswerCommand, Model

if TYPE_CHECKING:
    from simstate.cli.inspection import Fact
    from simstate.entity.explanation import ElementInfo


@dataclass
class InspectCommand(AnswerCommand):
    """Show a model's links, joints, actuators and state layout, or one element.

    Example: simstate inspect humanoid "qvel[4]"
    """

    model: Model
    name: tyro.conf.Positional[str | None] = None
    """The name of a joint, body, actuator, site, geom or other element; or a field, an
    entry or a range of it: qvel, "qvel[4]", "qvel[3:6]". By default all elements."""

    def execute(self) -> Answer:
        """Run the command; return what it found."""
        from simstate.cli.inspection import inspect_scene

        if self.name is not None:
            return self._one(self.name)
        found = inspect_scene(scene_of(self.model))
        tables = [
            fact_table(title, found[key]) for key, title in TITLES.items() if found[key]
        ]
        shown = [summary(self.model, found), *tables]
        return Answer({"model": self.model, **found}, shown)

    def _one(self, name: str) -> Answer:
        """Return the meaning of entries of a field, or the facts about an element."""
        from simstate.cli.element_facts import facts_about
        from simstate.entity.explanation import FIELDS, explain
        from simstate.scene.load import compile_spec, load_spec

        if name.removeprefix("data.").partition("[")[0].strip() in FIELDS:
            found = explain(self.model).select(name)
            single = len(found) == 1
            one = card(found[0]) if single else element_table(found, self.model)
            return Answer([each.to_dict() for each in found], [one])
        model = compile_spec(load_spec(self.model), "The model")
        elements = facts_about(model, name)
        entries = [
            one
            for one in explain(model)
            if one.field != "xfrc_applied" and one.element.endswith(repr(name))
        ]
        shown: list[str | Table] = [fact_card(facts) for facts in elements]
        if entries:
            shown.append(element_table(entries, name))
        facts = {"elements": elements, "entries": [one.to_dict() for one in entries]}
        return Answer(facts, shown)


TITLES = {
    "links": "Links, in the order of data.body_…",
    "joints": "Joints, and their columns in sim.state",
    "controls": "Controls, in the order of data.ctrl, in sim.state",
    "targets": "Joint targets, and the control that receives each (–: none)",
    "sensors": "Sensors, columns of sensordata",
    "state": "State layout: columns of sim.state",
}

HEADERS = {"mass": "mass [kg]", "com": "COM, link's axes [m]"}
"""Column headers that differ from the facts' keys."""


def summary(model: str, found: dict[str, Any]) -> str:
    """Return a model's sizes and options, in a few lines."""
    sizes, options = found["sizes"], found["options"]
    counts = ", ".join(f"{kind} {count}" for kind, count in sizes.items() if count)
    base = "no link" if found["base"] == "none" else f"{found['base']} base"
    gravity = ", ".join(f"{g:g}" for g in options["gravity"])
    lines = [
        f"{model}: {base}, {found['mass']:.4g} kg",
        f"  has        {counts}",
        f"  steps      {options['timestep']:g} s, {options['integrator']}, "
        f"gravity ({gravity}) m/s², world axes",
        f"  state      {found['nstate']} values per world, "
        f"{8 * found['nstate'] / 1024:.1f} KiB in float64",
    ]
    for kind in ("sites", "tendons", "equalities", "keyframes", "cameras"):
        if found[kind]:
            lines.append(f"  {kind:<10} {', '.join(found[kind])}")
    return "\n".join(lines)


def fact_table(title: str, facts: list[Fact]) -> Table:
    """Return a table with one row for each fact, and a column for each key."""
    table = new_table(title)
    for key in facts[0]:
        header = HEADERS.get(key, key.replace("_", " "))
        table.add_column(escaped(header), overflow="fold")
    for fact in facts:
        table.add_row(*(escaped(_cell(key, value)) for key, value in fact.items()))
    return table


def _cell(key: str, value: Any) -> str:
    """Return a value as text for a table; a range of columns as in an index."""
    if value is None:
        return "–"
    if key.endswith("columns"):
        start, stop = value
        return str(start) if stop == start + 1 else f"{start}:{stop}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str | int):
        return str(value) or "–"
    return ", ".join(x if isinstance(x, str) else f"{x:.4g}" for x in value) or "–"


def fact_card(facts: dict[str, Any]) -> str:
    """Return the facts about one element, one in a line."""
    width = max(map(len, facts))
    head = f"{facts['kind']} {facts['name']}"
    lines = [
        f"  {key:<{width}}  {_cell(key, value)}"
        for key, value in facts.items()
        if key not in ("kind", "name")
    ]
    return "\n".join([head, *lines])


def card(element: ElementInfo) -> str:
    """Return the meaning of one entry of a field, one property in a line."""
    lines = (
        (element.name, element.meaning),
        ("of", element.element + (f", entity {element.entity}" * bool(element.entity))),
        ("point", element.point),
        ("axes", element.axes),
        ("unit", element.unit),
        ("usual mistake", element.mistake),
    )
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label:<{width}}  {text}" for label, text in lines)


def element_table(elements: Iterable[ElementInfo], model: str) -> Table:
    """Return the meanings of several entries, one in a row."""
    table = new_table(f"Entries of the state and inputs: {model}")
    columns = ("element", "of", "meaning", "point", "axes", "unit", "usual mistake")
    for header in columns:
        table.add_column(header, no_wrap=header in ("element", "unit"))
    for one in elements:
        values = (one.name, one.element, one.meaning, one.point, one.axes, one.unit,
                  one.mistake)  # fmt: skip
        table.add_row(*(escaped(value) for value in values))
    return table
