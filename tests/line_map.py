"""The tests that run each line, recorded once: a plugin of pytest, and its reader.

    pip install coverage
    LINE_MAP=build/lines/NAME.json pytest -p tests.line_map -k 'not warp' tests/…

Several runs may record into one folder, each its own file. `tests.mutants --map` reads
all of them.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "simstate"


class Recorder:
    """Records the lines of the package that each test runs, and its CPU time."""

    def __init__(self, path: str) -> None:
        import coverage

        self._path = path
        self._seconds: dict[str, float] = defaultdict(float)
        self._coverage = coverage.Coverage(
            data_file=None, source_pkgs=["simstate"], config_file=False
        )

    def pytest_sessionstart(self) -> None:
        """Start to record, before any module is imported."""
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Record what a test and its fixtures run under the test's name."""
        self._coverage.switch_context(item.nodeid)
        self._seconds[item.nodeid] -= cpu_seconds()
        result = yield
        self._seconds[item.nodeid] += cpu_seconds()
        self._coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out a test that does not pass."""
        self._seconds[report.nodeid] += 0.0 if report.passed else 1e9

    def pytest_sessionfinish(self) -> None:
        """Write the map: for each test its seconds and its lines by file."""
        self._coverage.stop()
        data = self._coverage.get_data()
        lines: dict[str, dict[str, list[int]]] = defaultdict(dict)
        for file in data.measured_files():
            path, by_test = Path(file).resolve(), defaultdict(list)
            if not path.is_relative_to(PACKAGE):
                continue
            name = str(path.relative_to(PACKAGE))
            for line, tests in data.contexts_by_lineno(file).items():
                for test in filter(None, tests):
                    by_test[test].append(line)
            for test, found in by_test.items():
                lines[test][name] = found
        found = {test: [self._seconds[test], lines[test]] for test in lines}
        Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        Path(self._path).write_text(json.dumps(found))


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def pytest_configure(config: pytest.Config) -> None:
    """Record into the file that LINE_MAP names."""
    config.pluginmanager.register(Recorder(os.environ["LINE_MAP"]))


class LineMap:
    """Tests by the lines that they run."""

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = {}
        self._by_line: dict[tuple[str, int], list[str]] = defaultdict(list)
        self._by_file: dict[str, list[str]] = defaultdict(list)
        for path in sorted(folder.glob("*.json")):
            tests: dict[str, Any] = json.loads(path.read_text())
            for test, (seconds, files) in tests.items():
                self.seconds[test] = seconds
                for file, lines in files.items():
                    self._by_file[file].append(test)
                    for line in lines:
                        self._by_line[file, line].append(test)

    def of_lines(self, file: str, lines: range) -> set[str]:
        """Return the tests that run one of some lines."""
        return {test for line in lines for test in self._by_line[file, line]}

    def of_file(self, file: str) -> list[str]:
        """Return all tests that run a function of a file."""
        return list(self._by_file[file])

    def spread(self, file: str, tests: Iterable[str], limit: float) -> list[str]:
        """Return tests in turn from each test file, short ones first.

        Those in the folder of the file's package come before others.
        """
        own = f"tests/{file.partition('/')[0]}/"
        turns, order = defaultdict[str, int](int), list[tuple[bool, int, float, str]]()
        for test in sorted(tests, key=lambda test: self.seconds[test]):
            if self.seconds[test] < limit:
                where = test.partition("::")[0]
                is_far = not where.startswith(own)
                order.append((is_far, turns[where], self.seconds[test], test))
                turns[where] += 1
        chosen, total = list[str](), 0.0
        for _, _, seconds, test in sorted(order):
            if total + seconds <= limit:
                chosen.append(test)
                total += seconds + 0.02
        return chosen
