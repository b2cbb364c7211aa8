"""Other simulators, each in an environment that is made for it and thrown away.

    make bench-peers                   # Basilisk, Ptera Software
    BENCH_LARGE=1 make bench-peers     # and mjlab

A peer's script in peers/ prints one figure; it runs in turns with the same job on
simstate. The environment sees the packages of this one, so that torch and the like are
not installed again; what the peer needs in another version goes into its own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

FOLDER = Path(__file__).parent / "peers"
INSTALL_SECONDS, RUN_SECONDS, ROUNDS = 600, 300, 3


class NotInstallableError(Exception):
    """Why a peer could not be installed, or did not run."""


@dataclass(frozen=True)
class Peer:
    """A simulator to compare with."""

    name: str
    requirement: str
    jobs: dict[str, str]
    """What both do, with the unit of the figure, and the script that does it."""
    is_large: bool = False


PEERS = (
    Peer(
        "Ptera Software",
        "pterasoftware==5.1.0",
        {
            "one free body: loads, step, state [steps/s]": "free_body",
            "free bodies, theirs one, ours 1024 [steps/s]": "free_bodies",
        },
    ),
    Peer(
        "Basilisk",
        "bsk==2.12.1",
        {"tumbling bodies by RK4, theirs one, ours 1024 [steps/s]": "tumbling"},
    ),
    Peer(
        "mjlab",
        "mjlab==1.6.0",
        {"quadrupeds in 64 worlds on the CPU [world-steps/s]": "worlds"},
        is_large=True,
    ),
)


def main() -> None:
    table = Table(title="Other simulators; medians of runs in turns, more is better")
    for header in ("peer", "what", "simstate", "peer's", "ratio"):
        table.add_column(header)
    for peer in PEERS:
        if peer.is_large and not os.environ.get("BENCH_LARGE"):
            reason = "left out: gigabytes to install; BENCH_LARGE=1 measures it"
            table.add_row(peer.name, reason, "", "", "")
            continue
        try:
            compare(peer, table)
        except NotInstallableError as error:
            table.add_row(peer.name, f"not measured here: {error}", "", "", "")
    Console(width=150, markup=False).print(table)


def compare(peer: Peer, table: Table) -> None:
    """Rows with our figure and the peer's, each the median of its rounds."""
    with tempfile.TemporaryDirectory(prefix="simstate-peer-") as name:
        folder = Path(name)
        python = install(peer, folder)
        for what, script in peer.jobs.items():
            theirs, ours = [], []
            for _ in range(ROUNDS):
                theirs.append(figure(python, script, "peer", folder))
                ours.append(figure(sys.executable, script, "simstate", folder))
            table.add_row(
                peer.name,
                what,
                _spread(ours),
                _spread(theirs),
                f"{statistics.median(ours) / statistics.median(theirs):.2f}",
            )


def _spread(figures: list[float]) -> str:
    """The median, and the least and the greatest."""
    middle = statistics.median(figures)
    return f"{middle:,.0f} ({min(figures):,.0f} … {max(figures):,.0f})"


def install(peer: Peer, folder: Path) -> str:
    """The Python of a new environment that has the peer."""
    home = folder / "env"
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    libraries = run([python, "-c", _SITE], folder, RUN_SECONDS)
    here = sysconfig.get_paths()["purelib"]
    Path(libraries, "packages_of_simstate.pth").write_text(here + "\n")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--prefer-binary", peer.requirement], folder, INSTALL_SECONDS)
    return python


_SITE = "import sysconfig; print(sysconfig.get_paths()['purelib'])"


def figure(python: str, script: str, side: str, folder: Path) -> float:
    """What a script prints for one side."""
    path = FOLDER / f"{script}.py"
    out = run([python, str(path), side], folder, RUN_SECONDS)
    return float(out.splitlines()[-1])


def run(command: list[str], folder: Path, seconds: int) -> str:
    """What a command prints; an error says the last line of its complaint."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired as error:
        raise NotInstallableError(f"took more than {seconds} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise NotInstallableError(lines[-1] if lines else f"exit {done.returncode}")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
