"""Installs simstate from a wheel and from an sdist in clean environments, and runs it.

    make dist-check

With this Python: the wheel, the sdist with a compiler, the sdist without one. With the
others that are found (python3.11 … python3.13): the same wheel, as far as it goes
without torch, whose builds are large.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PINS = ["-c", str(ROOT / "constraints.txt")]
PYTHONS = ("python3.11", "python3.12", "python3.13")
WITH_CORE, WITHOUT = "native engine: compiled core", "native engine: mujoco.batch"


def run(*command: object, env: dict[str, str] | None = None) -> str:
    """Run a command away from the source tree; its output, or the end with it."""
    words = [str(word) for word in command]
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            words, cwd=elsewhere, env={**os.environ, **(env or {})},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def environment(folder: Path, python: str = sys.executable) -> Path:
    """A clean environment; its Python."""
    run(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def install(python: Path, *what: object, env: dict[str, str] | None = None) -> None:
    """Install packages with the pins."""
    run(python, "-m", "pip", "install", "--quiet", *PINS, *what, env=env)


def check(label: str, condition: bool, said: str) -> None:
    """Print what holds; the end where it does not."""
    print(f"{'ok  ' if condition else 'FAIL'} {label}", flush=True)
    if not condition:
        sys.exit(said)


def check_runs(python: Path, label: str, core: str) -> None:
    """The commands of a first user, and which path they take."""
    said = run(python, "-m", "simstate", "--version")
    check(f"{label}: {core}", core in said, said)
    said = run(python, "-m", "simstate", "run", "cube", "--envs", 4, "--seconds", 0.1)
    check(f"{label}: simstate run", "cube" in said, said)
    place = run(python, "-c", "import simstate; print(simstate.__file__)")
    check(f"{label}: what is installed is used", str(ROOT) not in place, place)


def main() -> None:
    """Build, install, run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        builder = environment(folder / "builder")
        install(builder, "build")
        run(builder, "-m", "build", "--outdir", folder / "dist", ROOT)
        (wheel,), (sdist,) = (
            list((folder / "dist").glob(pattern)) for pattern in ("*.whl", "*.tar.gz")
        )
        check(f"{wheel.name} is for every Python from 3.11", "-cp311-abi3-" in
              wheel.name, wheel.name)  # fmt: skip
        own = environment(folder / "own")
        install(own, wheel)
        check_runs(own, "wheel", WITH_CORE)
        again = ("--no-deps", "--force-reinstall", "--no-cache-dir", sdist)
        install(own, *again)
        check_runs(own, "sdist with a compiler", WITH_CORE)
        install(own, *again, env={"CC": "no-compiler", "CXX": "no-compiler"})
        check_runs(own, "sdist without a compiler", WITHOUT)
        this = sysconfig.get_python_version()
        for python in PYTHONS:
            found = shutil.which(python)
            if python.endswith(this):
                continue
            if found is None or subprocess.call(
                [found, "-V"], stderr=subprocess.DEVNULL
            ):
                print(f"     {python} is not here")
                continue
            other = environment(folder / python, found)
            install(other, "mujoco==3.17.0", "numpy", "tyro", "rich")
            install(other, "--no-deps", wheel)
            said = run(other, "-m", "simstate", "--help")
            check(f"{python}: the same wheel starts", "usage: simstate" in said, said)
            said = run(other, "-c", "from simstate.base import compiled_core as core; "
                       "print(core.description())")  # fmt: skip
            check(f"{python}: with its core", "compiled core" in said, said)


if __name__ == "__main__":
    main()
