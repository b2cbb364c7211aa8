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
    what: str
    """What both do, and the unit of the figure; more is better."""
    script: str
    is_large: bool = False


PEERS = (
    Peer(
        "Ptera Software",
        "pterasoftware==5.1.0",
        "one free body: loads, step, state [steps/s]",
        "free_body",
    ),
    Peer("Basilisk", "bsk==2.12.1", "a tumbling body, RK4 [steps/s]", "tumbling"),
    Peer(
        "mjlab",
        "mjlab==1.6.0",
        "Go1, 64 worlds, on the CPU [world-steps/s]",
        "worlds",
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
            ours, theirs = compare(peer)
        except NotInstallableError as error:
            table.add_row(peer.name, f"not installable here: {error}", "", "", "")
        else:
            ratio = f"{ours / theirs:.2f}"
            table.add_row(peer.name, peer.what, f"{ours:,.0f}", f"{theirs:,.0f}", ratio)
    Console(width=150, markup=False).print(table)


def compare(peer: Peer) -> tuple[float, float]:
    """Our figure and the peer's, each the median of its rounds."""
    with tempfile.TemporaryDirectory(prefix="simstate-peer-") as folder:
        python = install(peer, Path(folder))
        ours, theirs = [], []
        for _ in range(ROUNDS):
            theirs.append(figure(python, peer.script, "peer", Path(folder)))
            ours.append(figure(sys.executable, peer.script, "simstate", Path(folder)))
        return statistics.median(ours), statistics.median(theirs)


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
