"""`simstate quantities`: list the contracts of all quantities."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table

from simstate.base.errors import unknown_name
from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.console import escaped
from simstate.cli.options import AnswerCommand

if TYPE_CHECKING:
    from simstate.entity import Quantity

NONE = "–"
"""Text for no subject, no point or no axes; on the command line also "none"."""


@dataclass
class QuantitiesCommand(AnswerCommand):
    """List the quantities of entity.data: point, axes, unit, shape, writer.

    Example: simstate quantities --subject root --frame b --unit m/s
    """

    subject: str | None = None
    """Only those of root, body, joint, geom, site, …; none: of the entire entity."""
    point: str | None = None
    """Only those of this point: link, com, site, …"""
    frame: str | None = None
    """Only those along these axes: w (world), b (root link), none, …"""
    unit: str | None = None
    """Only those with this unit, such as m/s, N·m (or N*m) or m/s² (or m/s^2)."""
    search: str | None = None
    """Only those whose name or description contains this text."""

    def execute(self) -> Answer:
        """Run the command; return the contracts."""
        from simstate.entity import EntityData

        found = list(EntityData.quantities.values())
        found = _having("subject", self.subject, found, lambda q: [q.subject or NONE])
        found = _having("point", self.point, found, points)
        found = _having("frame", self.frame, found, lambda q: [q.axes, q.axes_text])
        unit = None if self.unit is None else plain_unit(self.unit)
        found = _having("unit", unit, found, units)
        if self.search is not None:
            text = self.search.lower()
            found = [q for q in found if text in f"{q.name} {q.doc}".lower()]
        return Answer([one.to_dict() for one in found], [quantity_table(found)])


def quantity_table(quantities: list[Quantity]) -> Table:
    """Return a table with one row for each quantity."""
    from simstate.entity import EntityData

    total = len(EntityData.quantities)
    title = f"{len(quantities)} of {total} quantities of entity.data"
    table = new_table(title)
    for header in ("quantity", "point", "axes", "unit", "shape", "written by"):
        table.add_column(header, overflow="fold")
    for q in quantities:
        row = (q.name, q.point_text, q.axes_text, q.unit, q.shape_text, q.writer)
        table.add_row(*(escaped(text or NONE) for text in row))
    return table


def points(quantity: Quantity) -> list[str]:
    """Return the names of the quantity's point: short and in full."""
    return [quantity.point or NONE, quantity.point_text]


def units(quantity: Quantity) -> list[str]:
    """Return the unit, and each part of a compound one."""
    return [quantity.unit, *re.split(r", | or ", quantity.unit)]


def plain_unit(text: str) -> str:
    """Return the declared form of a unit typed without · and superscripts."""
    for typed, declared in (("**2", "²"), ("^2", "²"), ("*", "·")):
        text = text.replace(typed, declared)
    return text


def _having(
    what: str,
    wanted: str | None,
    among: list[Quantity],
    values: Callable[[Quantity], list[str]],
) -> list[Quantity]:
    """Return the quantities with a value; raise if no quantity at all has it."""
    from simstate.entity import EntityData

    if wanted is None:
        return among
    wanted = NONE if wanted == "none" else wanted
    known = dict.fromkeys(v for q in EntityData.quantities.values() for v in values(q))
    if wanted not in known:
        # Compound units are listed by their parts.
        names = [n for n in known if n and ", " not in n and " or " not in n]
        names = ["none" if name == NONE else name for name in names]
        raise unknown_name(what, wanted, names)
    return [quantity for quantity in among if wanted in values(quantity)]
