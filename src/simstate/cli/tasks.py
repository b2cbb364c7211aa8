"""`simstate tasks`: what can be trained."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from simstate.cli.console import console, escaped
from simstate.cli.options import Debug, Json


@dataclass
class Tasks:
    """List the tasks that ship, with what each is about.

    Example: simstate tasks --json
    """

    json: Json = False
    debug: Debug = False

    def execute(self) -> int:
        """Run the command; the exit code."""
        from simstate.env import tasks

        facts = [
            {
                "name": name,
                "description": tasks.describe(name),
                "episode_length_s": tasks.make_cfg(name).episode_length_s,
                "train": asdict(tasks.make_train_cfg(name)),
            }
            for name in tasks.NAMES
        ]
        if self.json:
            print(json.dumps(facts, indent=2))
        else:
            console().print(_table(facts))
        return 0


def _table(facts: list[dict[str, Any]]) -> Table:
    table = Table(title="Tasks: simstate train NAME", title_justify="left")
    for header in ("name", "what it is about"):
        table.add_column(header)
    for header in ("episode [s]", "worlds", "updates"):
        table.add_column(escaped(header), justify="right")
    for fact in facts:
        train = fact["train"]
        table.add_row(
            fact["name"],
            fact["description"],
            f"{fact['episode_length_s']:g}",
            str(train["num_envs"]),
            str(train["iterations"]),
        )
    return table
