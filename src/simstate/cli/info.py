"""`simstate info`: the contents of a recording."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.table import Table

from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.console import escaped
from simstate.cli.options import AnswerCommand

if TYPE_CHECKING:
    from simstate.record import Recording


@dataclass
class InfoCommand(AnswerCommand):
    """Show the contents of a recording: columns with units, worlds, versions.

    Example: simstate run cartpole --record run.simrec && simstate info run.simrec
    """

    file: Annotated[Path, tyro.conf.Positional]
    """A file written by sim.record, env.record or `simstate run --record`."""

    def execute(self) -> Answer:
        """Run the command; return the contents."""
        from simstate.record import Recording

        with Recording(self.file) as recording:
            facts, table = _facts(recording), _table(recording)
        plain = ("recording of", "whole", "missing", "samples", "steps", "blocks")
        compound = ("worlds", "time [s]", "snapshots before steps", "versions")
        lines = [f"{name}: {facts[name]}" for name in plain]
        lines += [f"{name}: {_text(facts[name])}" for name in compound]
        return Answer(facts, [*lines, table])


def _facts(recording: Recording) -> dict[str, Any]:
    header = recording.header
    sim = header["simulation"]
    what = header.get("task") or ", ".join(sim["entities"])
    time = recording.time if len(recording) else None
    return {
        "recording of": f"{recording.kind} {what}, {sim['num_envs']} worlds on "
        f"{sim['engine']}, seed {sim['seed']}, time step {sim['timestep']:g} s",
        "whole": recording.is_whole,
        "missing": recording.missing or "nothing",
        "samples": len(recording),
        "steps": recording.num_steps,
        "blocks": len(recording.blocks),
        "worlds": recording.worlds,
        "time [s]": [] if time is None else [float(time.min()), float(time.max())],
        "snapshots before steps": recording.snapshot_steps,
        "versions": header["versions"],
        "columns": {name: recording.contract(name) for name in recording.names},
        "header": {k: v for k, v in header.items() if k not in ("columns", "worlds")},
    }


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())  # pyright: ignore
    listed = [f"{item:g}" if isinstance(item, float) else str(item) for item in value]
    return ", ".join(listed[:12]) + (f" … ({len(listed)})" if len(listed) > 12 else "")


def _table(recording: Recording) -> Table:
    columns = ("column", "shape", "unit", "axes", "point", "components")
    table = new_table("", *columns)
    for name in recording.names:
        contract = recording.contract(name)
        parts = contract["names"]
        shown = ", ".join(parts[:4]) + (", …" if len(parts) > 4 else "")
        shape = "×".join(map(str, contract["shape"])) or "1"
        units = contract.get("units") or [contract["unit"]]
        unit = ", ".join(dict.fromkeys(units))
        cells = (name, shape, unit, contract["axes"], contract["point"])
        table.add_row(*(escaped(cell) for cell in (*cells, shown)))
    return table
