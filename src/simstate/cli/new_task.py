"""`simstate new-task`: write a runnable task file to start from."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from simstate.base.errors import InvalidInputError
from simstate.base.files import write_atomically
from simstate.cli.answer import Answer
from simstate.cli.options import AnswerCommand, Model


@dataclass
class NewTaskCommand(AnswerCommand):
    """Write a task file for a model: commented, and ready to train.

    Example: simstate new-task walk.py quadruped
    """

    file: Annotated[
        Path,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="FILE", help="The .py file to write."),
    ]
    model: Model
    force: bool = False
    """Overwrite an existing file."""

    def execute(self) -> Answer:
        """Run the command; return the name of the file."""
        from simstate.cli.task_text import task_text

        if self.file.suffix != ".py":
            raise InvalidInputError(
                f"A task is a Python file, which ends in .py; got {str(self.file)!r}."
            )
        if self.file.exists() and not self.force:
            raise InvalidInputError(
                f"{str(self.file)!r} exists: choose another name, or give --force."
            )
        if not self.file.absolute().parent.is_dir():
            raise InvalidInputError(
                f"The folder {str(self.file.absolute().parent)!r} does not exist."
            )
        text = task_text(self.file.name, self.model, self._model_code())
        write_atomically(self.file, text.encode())
        train = f"  simstate train {shlex.quote(str(self.file))}"
        lines = [f"Wrote {self.file}. Next:", f"{train} --iterations 20"]
        return Answer({"file": str(self.file)}, [*lines, f"{train} --help"])

    def _model_code(self) -> str:
        """Return the code for the model: a path relative to the file, or a name."""
        path = Path(self.model)
        if not path.is_file():
            return json.dumps(self.model)
        try:
            relative = os.path.relpath(path, self.file.absolute().parent)
        except ValueError:  # another drive
            return f"Path({json.dumps(str(path.absolute()))})"
        parts = Path(relative).parts
        if parts.count("..") > 2:  # an absolute path is more robust and readable
            return f"Path({json.dumps(str(path.absolute()))})"
        return f"Path(__file__).parent / {json.dumps(Path(relative).as_posix())}"
