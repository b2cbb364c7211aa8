"""The tests that run each line of C, recorded once: as `tests.line_map` for Python.

    python -m tests.c_line_map build/marked
    PYTHONPATH=build/marked/src LINE_MAP=build/lines/c.json \
        pytest -p tests.c_line_map -k 'not warp' tests/…

The first command compiles a copy of the package in which every block of the C code
marks that it ran. It needs GCC 12 and objdump.
"""

from __future__ import annotations

import bisect
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.line_map import cpu_seconds

ROOT = Path(__file__).parent.parent
FLAGS = "-O0 -g -fsanitize-coverage=trace-pc"
FOLDERS = ("engine/core", "world")


def build(folder: Path) -> None:
    """Compile a copy of the package whose C code marks the blocks that run."""
    package = folder / "src" / "simstate"
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "src" / "simstate", package, ignore=ignored)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    for name in FOLDERS:
        shutil.copy(ROOT / "tests" / "c_lines.c", package / name / "c_lines.c")
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder, env={**os.environ, "SIMSTATE_CFLAGS": FLAGS}, check=True,
    )  # fmt: skip


class Library:
    """A compiled library whose blocks mark that they ran."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        size = 1 << 21
        marks = (ctypes.c_ubyte * size).in_dll(library, "simstate_blocks")
        self._marks = np.frombuffer(marks, np.uint8)
        self._lines = _lines_of_blocks(path)

    def clear(self) -> None:
        """Forget the blocks that ran."""
        self._marks[:] = 0

    def lines(self) -> dict[str, list[int]]:
        """Return the lines that ran, by file."""
        found = defaultdict[str, set[int]](set)
        for start in np.flatnonzero(self._marks).tolist():
            for file, line in self._lines[start]:
                found[file].add(line)
        return {file: sorted(lines) for file, lines in found.items()}


def _lines_of_blocks(path: Path) -> dict[int, set[tuple[str, int]]]:
    """Return the lines of each block, by the address after the call that marks it."""

    def output(*options: str) -> str:
        command = ["objdump", *options, str(path)]
        return subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout

    starts, is_next = list[int](), False
    for line in output("-d", "--no-show-raw-insn").splitlines():
        if found := re.match(r" *([0-9a-f]+):\t(.*)", line):
            if is_next:
                starts.append(int(found[1], 16))
            is_next = "call" in found[2] and "trace_pc" in found[2]
    lines, names = defaultdict[int, set[tuple[str, int]]](set), _names(path)
    row = re.compile(r"^(\S+)\s+(\d+)\s+0x([0-9a-f]+)", re.MULTILINE)
    for name, line, address in row.findall(output("--dwarf=decodedline")):
        k = bisect.bisect_right(starts, int(address, 16)) - 1
        if k >= 0 and name in names:
            lines[starts[k]].add((names[name], int(line)))
    return lines


def _names(path: Path) -> dict[str, str]:
    """Return the files of a library in the package, by their own names."""
    package = next(folder for folder in path.parents if folder.name == "simstate")
    found = [*path.parent.rglob("*.c"), *path.parent.rglob("*.h")]
    names = {file.name: str(file.relative_to(package)) for file in found}
    return {name: file for name, file in names.items() if name != "c_lines.c"}


class Recorder:
    """Records the lines of C that each test runs, and its CPU time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: dict[str, tuple[float, dict[str, list[int]]]] = {}
        self._seconds = defaultdict[str, float](float)
        self._libraries: list[Library] = []

    def pytest_sessionstart(self) -> None:
        """Open the libraries of the package in use."""
        import simstate

        package = Path(simstate.__file__).parent
        for name in FOLDERS:
            for path in (package / name).glob("*.so"):
                self._libraries.append(Library(path))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Record what a test and its fixtures run under the test's name."""
        for library in self._libraries:
            library.clear()
        self._seconds[item.nodeid] -= cpu_seconds()
        result = yield
        self._seconds[item.nodeid] += cpu_seconds()
        lines = {
            f: lines for one in self._libraries for f, lines in one.lines().items()
        }
        self._found[item.nodeid] = self._seconds[item.nodeid], lines
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out a test that does not pass."""
        self._seconds[report.nodeid] += 0.0 if report.passed else 1e9

    def pytest_sessionfinish(self) -> None:
        """Write the map: for each test its seconds and its lines by file."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self._found))


def pytest_configure(config: pytest.Config) -> None:
    """Record into the file that LINE_MAP names."""
    config.pluginmanager.register(Recorder(Path(os.environ["LINE_MAP"])))


if __name__ == "__main__":
    build(Path(sys.argv[1]))
