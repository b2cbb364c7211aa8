"""Fetch the headers of a second MuJoCo, for a wheel with a compiled core for each.

    python .ci/mujoco_headers.py build/headers

Build with SIMSTATE_MUJOCO_HEADERS=build/headers/mujoco/include.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGE = "mujoco-core==4.0.1"


def main() -> None:
    """Download the package without its dependencies, and unpack its headers."""
    folder = Path(sys.argv[1])
    command = (
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        folder,
        PACKAGE,
    )
    subprocess.run([sys.executable, *map(str, command)], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        headers = [n for n in archive.namelist() if n.startswith("mujoco/include/")]
        archive.extractall(folder, headers)


if __name__ == "__main__":
    main()
