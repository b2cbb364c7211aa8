"""Compiles a copy of the package with a mistake in its C: only what it changes."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path


class Compiler:
    """Builds everything once, before a mistake is made, and then only what changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._compile: dict[Path, list[str]] = {}
        """By source file."""
        self._link: list[list[str]] = []
        self._num_made = 0
        self._build()

    def library(self, changed: Path) -> Path | None:
        """Return the library of a changed C file, in a folder of its own.

        None means that it does not compile, or to the same code as before.
        """
        self._num_made += 1
        made = self._folder / "made" / str(self._num_made)
        made.mkdir(parents=True)
        is_header = changed.suffix == ".h"
        objects: dict[str, str] = {}
        for source, command in self._compile.items():
            if source == changed or (is_header and source.parent in changed.parents):
                old = _output(command)
                objects[old] = str(made / Path(old).name)
                if not self._run([objects.get(part, part) for part in command]):
                    return None
        if all(
            self._content(old) == self._content(new) for old, new in objects.items()
        ):
            return None
        (link,) = (one for one in self._link if objects.keys() & set(one))
        library = made / Path(_output(link)).name
        objects[_output(link)] = str(library)
        return (
            library if self._run([objects.get(part, part) for part in link]) else None
        )

    def _build(self) -> None:
        """Build everything and keep the commands."""
        output = subprocess.run(
            [sys.executable, "setup.py", "build_ext", "--inplace", "--force"],
            cwd=self._folder, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        for line in output.splitlines():
            command = shlex.split(line)
            if "-shared" in command:
                self._link.append(command)
            elif "-c" in command:
                source = command[command.index("-c") + 1]
                self._compile[self._folder / source] = command

    def _run(self, command: list[str]) -> bool:
        done = subprocess.run(
            command, cwd=self._folder, capture_output=True, check=False
        )
        return done.returncode == 0

    def _content(self, path: str) -> bytes:
        return (self._folder / path).read_bytes()


def _output(command: list[str]) -> str:
    return command[command.index("-o") + 1]
