"""Run the comparisons of verification.md, and keep their results in a table.

    python docs/verification.py                  # all commands; hours, with downloads
    python docs/verification.py parity ptera     # some, by the name of their row
    python docs/generate.py                      # writes the table into the page

A row keeps the result of its last run, with the date and the versions. A command that
fails is kept as "failed", and the end of its output is printed.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).with_suffix(".json")


@dataclass(frozen=True)
class Row:
    """A guarantee, what it is compared with, and the command that compares."""

    guarantee: str
    oracle: str
    command: str
    figure: str = r"\d+ passed.*? in "
    """Pattern of the result in the command's output; the last match counts."""
    every: bool = False
    """True to keep all matches."""


_PYTEST = "pytest -q -k 'not warp' "
ROWS = {
    "laws": Row(
        "positions, velocities, accelerations and forces of the shipped models",
        "MuJoCo's C functions; finite differences",
        _PYTEST + "tests/laws/test_oracles.py",
    ),
    "parity": Row(
        "a batch of worlds, bit for bit",
        "a plain loop of `mj_step`",
        _PYTEST + "tests/parity",
    ),
    "models": Row(
        "models of Gymnasium and dm_control: compiled arrays, 300 steps, laws, states",
        "MuJoCo on the file alone",
        _PYTEST + "tests/laws/test_foreign_models.py tests/scene/test_file_match.py",
    ),
    "classics": Row(
        "Gymnasium's eleven MuJoCo environments, bit for bit",
        "Gymnasium",
        _PYTEST + "tests/env/test_classics.py",
    ),
    "integrators": Row(
        "orders, dense output and adaptive steps of the integrators",
        "SciPy's DOP853, closed forms",
        _PYTEST + "tests/step/test_against_mujoco.py tests/step/test_orders.py "
        "tests/step/test_adaptive.py",
    ),
    "conventions": Row(
        "conversion between conventions of states",
        "SciPy's rotations, closed forms; energy and momentum are invariant",
        _PYTEST + "tests/math/conventions",
    ),
    "snapshots": Row(
        "a restored run continues with the same bits",
        "the run that was not interrupted",
        _PYTEST + "tests/state",
    ),
    "flight": Row(
        "aircraft, atmosphere and orbits",
        "NASA's check cases, U.S. Standard Atmosphere, closed forms",
        _PYTEST + "tests/flight tests/space",
    ),
    "faults": Row(
        "files and simulations after Ctrl-C, kill −9, a full disk and other faults",
        "the same job without faults",
        "python -m tests.faults --seconds 60 --seeds 10000",
        r"\d+ histor[^\n]*",
    ),
    "corpus": Row(
        "model files of ten public wheels: arrays, 200 steps, velocities, sensors and "
        "a restored snapshot, bit for bit",
        "MuJoCo on the file alone",
        "make test-models",
        r"[^\n]*identical[^\n]*",
        every=True,
    ),
    "mujoco4": Row(
        "all tests on MuJoCo 4.0.1, then some without the compiled core",
        "as above",
        "make test-mujoco4",
        every=True,
    ),
    "simulators": Row(
        "Drake, MJX and Newton behind the unified state",
        "MuJoCo's C functions, closed forms, each other",
        "make test-simulators",
    ),
    "peers": Row(
        "orbits, aircraft and attitude",
        "Basilisk, JSBSim, brahe, ambiance, DE421",
        "make test-peers",
        r"\d+ comparisons[^\n]*",
    ),
    "ptera": Row(
        "free flight",
        "Ptera Software's own MuJoCo class",
        "make test-ptera",
        r"(?:position|rates) differs? by [^\n]+",
        every=True,
    ),
    "datasets": Row(
        "exported data sets",
        "LeRobot's loader",
        "make test-datasets",
        r"LeRobot[^\n]+",
        every=True,
    ),
    "ray": Row(
        "workers on a Ray cluster",
        "the same work here",
        "make test-ray",
        r"[^\n]+: the same [^\n]+",
        every=True,
    ),
    "adapters": Row(
        "environments in skrl and TorchRL",
        "these libraries",
        "make test-adapters",
        r"(?:TorchRL|skrl): [^\n]+",
        every=True,
    ),
    "dynamics": Row(
        "mass matrix, Jacobians, momenta; URDF files",
        "Pinocchio",
        "make test-dynamics",
        r"\w+: largest relative error[^\n]+|\d+ passed.*? in ",
        every=True,
    ),
}


def run(row: Row) -> str:
    """Run the command of a row; return its figure."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        row.command,
        shell=True,
        cwd=ROOT,
        env={**os.environ, "PATH": path, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lines = [*done.stdout.splitlines()[-100:], *done.stderr.splitlines()[-100:]]
        print(*lines, sep="\n", file=sys.stderr)
    found = re.findall(row.figure, done.stdout)
    found = [text.removesuffix(" in ").strip() for text in found]
    figure = "; ".join(found if row.every else found[-1:]) or "no figure"
    figure = figure.replace("|", "\\|")
    return figure if done.returncode == 0 else f"failed: {figure}"


def table() -> str:
    """Return the rows with the result and date of their last run, as Markdown."""
    kept = json.loads(RESULTS.read_text())
    lines = ["| guarantee | compared with | command | result | date |"]
    lines.append("|---|---|---|---|---|")
    for name, row in ROWS.items():
        last = kept.get(name, {"figure": "not run with this version", "date": ""})
        cells = (row.guarantee, row.oracle, f"`{row.command}`", last["figure"],
                 last["date"])  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    for extra in kept.get("other", ()):
        lines.append(f"| {' | '.join(extra)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the named rows, or all, and keep each result as it comes."""
    wanted = sys.argv[1:] or list(ROWS)
    unknown = sorted(set(wanted) - set(ROWS))
    if unknown:
        sys.exit(
            f"There is no row {', '.join(unknown)}: choose from {', '.join(ROWS)}."
        )
    for name in wanted:
        figure = run(ROWS[name])
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        versions = ", ".join(f"{p} {metadata.version(p)}" for p in ("mujoco", "torch"))
        today = datetime.date.today().isoformat()
        kept[name] = {"figure": figure, "date": today, "versions": versions}
        RESULTS.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        print(f"{name}: {figure}", flush=True)


if __name__ == "__main__":
    main()
