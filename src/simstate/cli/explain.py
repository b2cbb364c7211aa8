"""`simstate explain`: what each number of a model's state and inputs means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import tyro
from rich.table import Table

from simstate.cli.answer import Answer
from simstate.cli.console import escaped
from simstate.cli.options import Debug, Json, Model

if TYPE_CHECKING:
    from simstate.entity.explanation import ElementInfo, Explanation


@dataclass
class ExplainCommand:
    """Say what each element of qpos, qvel, act, ctrl and xfrc_applied means.

    Example: simstate explain humanoid "qvel[4]"
    """

    model: Model
    element: tyro.conf.Positional[str | None] = None
    """A field, an element or a range: qvel, "qvel[4]", "qvel[3:6]"."""
    json: Json = False
    debug: Debug = False

    def execute(self) -> Answer:
        """Run the command; what it found."""
        from simstate.entity.explanation import explain

        found = explain(self.model)
        if self.element is not None:
            found = found.select(self.element)
        whole = card(found[0]) if len(found) == 1 else element_table(found, self.model)
        return Answer([one.to_dict() for one in found], [whole])


def card(element: ElementInfo) -> str:
    """One element in full."""
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


def element_table(elements: Explanation, model: str) -> Table:
    """Several elements, one in a row."""
    table = Table(title=f"What the numbers of {model} mean", title_justify="left")
    columns = ("element", "of", "meaning", "point", "axes", "unit", "usual mistake")
    for header in columns:
        table.add_column(header, no_wrap=header in ("element", "unit"))
    for one in elements:
        values = (one.name, one.element, one.meaning, one.point, one.axes, one.unit,
                  one.mistake)  # fmt: skip
        table.add_row(*(escaped(value) for value in values))
    return table
