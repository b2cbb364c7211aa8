"""Whether constraints.txt holds on every Python that the README names.

make check-pins      # or, with uv installed, python .ci/check_pins.py uv

For each Python all extras are resolved as wheels for Linux, from the metadata of the
package index alone. That fails if a pin cannot be installed there, and so does a
package that is installed without a pin. The exceptions are what PyPI's build of torch
brings for CUDA: which of it one gets depends on the build of torch, not on simstate.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11.2", "3.12", "3.13")
"""3.11.2 is Debian 12's own; some packages ask for a later 3.11."""
PLATFORM = "x86_64-manylinux_2_36"
"""Debian 12's; Drake asks for 2.34."""
OF_TORCH = re.compile(r"nvidia-.*|cuda-.*|triton")


def normalized(name: str) -> str:
    """A package's name as an index spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """The pinned version of each package."""
    lines = (ROOT / "constraints.txt").read_text().split()
    return {normalized(name): at for name, at in (line.split("==") for line in lines)}


def resolved(uv: str, python: str) -> dict[str, str]:
    """What an installation with all extras would consist of; raises if it cannot be."""
    command = [uv, "pip", "compile", "pyproject.toml", "--all-extras", "--quiet"]
    command += ["--constraints", "constraints.txt", "--only-binary", ":all:"]
    command += ["--python-version", python, "--python-platform", PLATFORM]
    command += ["--no-header", "--no-annotate"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"Python {python}: the pins do not fit.\n{run.stderr}")
    lines = [line.split(";")[0].strip() for line in run.stdout.splitlines()]
    return {normalized(name): at for name, at in (line.split("==") for line in lines)}


def main(uv: str) -> None:
    """Resolve for each Python and print what came of it."""
    pinned = pins()
    for python in PYTHONS:
        found = resolved(uv, python)
        loose = [
            name
            for name in found
            if name not in pinned and not OF_TORCH.fullmatch(name)
        ]
        if loose:
            raise SystemExit(f"Python {python}: no pin for {', '.join(loose)}.")
        wrong = [name for name in found if pinned.get(name, found[name]) != found[name]]
        if wrong:
            raise SystemExit(f"Python {python}: not at their pins: {', '.join(wrong)}.")
        extra = sum(name not in pinned for name in found)
        print(
            f"Python {python}: {len(found) - extra} packages at their pins, torch "
            f"{found['torch']}, {extra} more that its CUDA build brings"
        )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "uv")
