"""Other simulators, each in an environment that is made for it and thrown away.

    make bench-peers                              # all of them
    python benchmarks/peers.py --only scipy bsk   # some of them

A peer's script in peers/ runs in turns with the same job on simstate, each on one
thread, with one world and with many. The environment lies under build/ and sees the
packages of this one, so that torch and the like are not installed again; what the peer
needs in another version goes into its own. What cannot be installed is one line.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "peers"
KEPT = Path(__file__).parent / "peers.json"
INSTALL_SECONDS, RUN_SECONDS, ROUNDS = 1200, 900, 3
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


class NotInstallableError(Exception):
    """Why a peer could not be installed, or did not run."""


@dataclass(frozen=True)
class Peer:
    """A simulator to compare with."""

    name: str
    requirement: str
    what: str
    """What both do, on which model, and the unit of the rate."""
    script: str
    argument: str = ""
    """The script's third, if it has several peers."""
    worlds: tuple[int, ...] = (1, 64)
    many: bool = True
    """Whether the peer runs more than one world; else its one stands beside ours."""


PEERS = (
    Peer(
        "Gymnasium",
        "gymnasium[mujoco]==1.4.0",
        "HalfCheetah, complete environments [env-steps]",
        "cheetah",
        "gymnasium",
        worlds=(1, 16, 64),
    ),
    Peer(
        "EnvPool",
        "envpool==1.2.5",
        "HalfCheetah, complete environments [env-steps]",
        "cheetah",
        "envpool",
        worlds=(1, 16, 64),
    ),
    Peer(
        "scipy",
        "scipy==1.17.1",
        "torque-free body, 10 s by DOP853 at 1e-10 [runs]",
        "accurate",
    ),
    Peer(
        "Basilisk",
        "bsk==2.12.1",
        "tumbling body by RK4 [steps]",
        "tumbling",
        worlds=(1, 1024),
        many=False,
    ),
    Peer(
        "Ptera Software",
        "pterasoftware==5.1.0",
        "free body: loads, step by RK4, state [steps]",
        "free_body",
        worlds=(1, 1024),
        many=False,
    ),
    Peer(
        "mjlab",
        "mjlab==1.6.0",
        "mjlab's Go1, fresh step [world-steps]",
        "worlds",
        "mjlab",
    ),
    Peer(
        "MJX",
        "mujoco-mjx==3.17.0",
        "simstate's quadruped on a plane, fresh step [world-steps]",
        "worlds",
        "mjx",
    ),
)


@dataclass(frozen=True)
class Row:
    """What was measured of one job: rates per CPU second on one thread."""

    peer: str
    version: str
    what: str
    worlds: int
    """simstate's, and the peer's if it has as many."""
    peer_worlds: int
    simstate: float
    other: float
    reason: str = ""
    """Why nothing was measured."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [peer.requirement.partition("==")[0].partition("[")[0] for peer in PEERS]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--json", type=Path, default=KEPT)
    given = parser.parse_args()
    for name, peer in zip(names, PEERS, strict=True):
        if name not in given.only:
            continue
        try:
            rows = compare(peer)
        except NotInstallableError as error:
            rows = [Row(peer.name, "", peer.what, 0, 0, 0.0, 0.0, str(error))]
        show(rows)
        keep(given.json, peer, rows)


def keep(path: Path, peer: Peer, rows: list[Row]) -> None:
    """Put the peer's rows into the file, in place of its last."""
    kept: dict[str, Any] = {"rows": []}
    if path.exists():
        kept = json.loads(path.read_text())
    others = [row for row in kept["rows"] if row["peer"] != peer.name]
    places = [each.name for each in PEERS]
    measured = sorted(
        [*others, *(asdict(row) for row in rows)],
        key=lambda row: places.index(row["peer"]),
    )
    whole = {"machine": machine(), "rows": measured}
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")


def machine() -> dict[str, object]:
    """What it was measured on."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpus": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
    }


def compare(peer: Peer) -> list[Row]:
    """Our rates and the peer's, each the median of its rounds, for each size."""
    (ROOT / "build").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-peer-", dir=ROOT / "build"))
    try:
        python = install(peer, folder)
        return [measure(peer, worlds, python, folder) for worlds in peer.worlds]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(peer: Peer, worlds: int, python: str, folder: Path) -> Row:
    """One size, in turns."""
    theirs: list[float] = []
    ours: list[float] = []
    version = ""
    for _ in range(ROUNDS):
        said = figure(peer, python, "peer", worlds, folder)
        version = said["version"]
        theirs.append(said["rate"])
        ours.append(figure(peer, sys.executable, "simstate", worlds, folder)["rate"])
    return Row(
        peer.name,
        version,
        peer.what,
        worlds,
        worlds if peer.many else 1,
        statistics.median(ours),
        statistics.median(theirs),
    )


def show(rows: list[Row]) -> None:
    """Print the rows."""
    table = Table(title="per CPU second on one thread; medians of runs in turns")
    for header in ("peer", "what", "worlds", "simstate", "peer's", "ratio"):
        table.add_column(header)
    for row in rows:
        if row.reason:
            table.add_row(row.peer, f"not measured here: {row.reason}", "", "", "", "")
            continue
        table.add_row(
            f"{row.peer} {row.version}",
            row.what,
            f"{row.worlds} / {row.peer_worlds}",
            f"{row.simstate:,.0f}",
            f"{row.other:,.0f}",
            f"{row.simstate / row.other:.2f}",
        )
    Console(width=150, markup=False).print(table)


def install(peer: Peer, folder: Path) -> str:
    """The Python of a new environment that has the peer."""
    home = folder / "env"
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    libraries = run([python, "-c", _SITE], folder, RUN_SECONDS)
    here = sysconfig.get_paths()["purelib"]
    Path(libraries, "packages_of_simstate.pth").write_text(here + "\n")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pins = ["--prefer-binary", "-c", str(ROOT / "constraints.txt")]
    try:
        run([*pip, *pins, peer.requirement], folder, INSTALL_SECONDS)
    except NotInstallableError:  # it wants other versions than ours
        run([*pip, pins[0], peer.requirement], folder, INSTALL_SECONDS)
    return python


_SITE = "import sysconfig; print(sysconfig.get_paths()['purelib'])"


def figure(
    peer: Peer, python: str, side: str, worlds: int, folder: Path
) -> dict[str, Any]:
    """The rate and the version that a script prints for one side."""
    path = FOLDER / f"{peer.script}.py"
    command = [python, str(path), side, str(worlds), peer.argument]
    return json.loads(run(command, folder, RUN_SECONDS).splitlines()[-1])


def run(command: list[str], folder: Path, seconds: int) -> str:
    """What a command prints; an error says the last line of its complaint."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=seconds,
            env={**os.environ, **ONE_THREAD},
        )
    except subprocess.TimeoutExpired as error:
        raise NotInstallableError(f"took more than {seconds} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise NotInstallableError(lines[-1] if lines else f"exit {done.returncode}")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
