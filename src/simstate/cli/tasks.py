"""`simstate tasks`: list the tasks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import tyro
from rich.table import Table

from simstate.base.table_style import new_table
from simstate.cli.answer import Answer
from simstate.cli.console import escaped
from simstate.cli.options import AnswerCommand


@dataclass
class TasksCommand(AnswerCommand):
    """List the tasks with their descriptions; your own, too, if you name them.

    Example: simstate tasks --json
    """

    tasks: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(
            metavar="TASK",
            help="Files or functions; by default all named tasks: the bundled ones "
            "and those of installed packages.",
        ),
    ] = ()

    def execute(self) -> Answer:
        """Run the command; return the tasks."""
        from simstate.env import tasks

        facts = [_facts(name) for name in self.tasks or tasks.names()]
        return Answer(facts, [_table(facts)])


def _facts(reference: str) -> dict[str, Any]:
    from simstate.env import tasks

    task = tasks.find(reference)
    return {
        "name": task.name,
        "description": task.description,
        "trained": task.trained,
        "core_seconds": task.core_seconds,
        "command": task.command,
        "episode_length_s": task.env_cfg().episode_length_s,
        "train": asdict(task.train_cfg()),
    }


def _table(facts: list[dict[str, Any]]) -> Table:
    table = new_table("Tasks: simstate train NAME")
    for header in ("name", "description", "trained policy"):
        table.add_column(header, no_wrap=header == "name")
    for header in ("core-seconds", "episode [s]", "worlds", "updates"):
        table.add_column(escaped(header), justify="right")
    for fact in facts:
        train = fact["train"]
        table.add_row(
            fact["name"],
            fact["description"],
            fact["trained"] or "–",
            "–" if fact["core_seconds"] is None else f"{fact['core_seconds']:g}",
            f"{fact['episode_length_s']:g}",
            str(train["num_envs"]),
            str(train["iterations"]),
        )
    return table
