"""Install simstate from a wheel and an sdist in clean environments, and run it.

    make dist-check                                        # python3.11, 3.12 and 3.13
    make dist-check PYTHONS="/opt/3.12/bin/python3 …"      # others, by path

With this Python: the sdist with a compiler, and without one. With each of PYTHONS: the
wheel with its extras `train` and `view`, a step and a snapshot (`wheel_check.py`),
`simstate check quadruped`, one update of training, and the time of an import.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from subprocess import DEVNULL

ROOT = Path(__file__).parent.parent
PINS = ["-c", str(ROOT / "constraints.txt")]
PYTHONS = os.environ.get("PYTHONS") or "python3.11 python3.12 python3.13"
WITH_CORE, WITHOUT = "native engine: compiled core", "native engine: mujoco.batch"


def run(*command: object, env: dict[str, str] | None = None) -> str:
    """Run a command outside the source tree; return its output, or exit with it."""
    words = [str(word) for word in command]
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            words, cwd=elsewhere, env={**inherited, **(env or {})},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def interpreter(name: str) -> str | None:
    """Return the path of a Python that runs, also one that pyenv only installed."""
    installed = sorted(Path.home().glob(f".pyenv/versions/*/bin/{name}"))
    for path in (shutil.which(name), *map(str, installed)):
        if path and not subprocess.call([path, "-V"], stdout=DEVNULL, stderr=DEVNULL):
            return path
    return None


def environment(folder: Path, python: str = sys.executable) -> Path:
    """Create a clean environment; return its Python."""
    run(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def install(python: Path, *what: object, env: dict[str, str] | None = None) -> None:
    """Install packages with the pins."""
    run(python, "-m", "pip", "install", "--quiet", *PINS, *what, env=env)


def check(label: str, condition: bool, said: str) -> None:
    """Print a condition; exit unless it holds."""
    print(f"{'ok  ' if condition else 'FAIL'} {label}", flush=True)
    if not condition:
        sys.exit(said)


def check_runs(python: Path, label: str, core: str) -> None:
    """Run the first commands of a user, and check which engine they use."""
    said = run(python, "-m", "simstate", "--version")
    check(f"{label}: {core}", core in said, said)
    said = run(python, "-m", "simstate", "run", "cube", "--envs", 4, "--seconds", 0.1)
    check(f"{label}: simstate run", "cube" in said, said)
    place = run(python, "-c", "import simstate; print(simstate.__file__)")
    check(f"{label}: what is installed is used", str(python.parent.parent) in place,
          place)  # fmt: skip


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
        install(own, sdist)
        check_runs(own, "sdist with a compiler", WITH_CORE)
        again = ("--no-deps", "--force-reinstall", "--no-cache-dir", sdist)
        install(own, *again, env={"CC": "no-compiler", "CXX": "no-compiler"})
        check_runs(own, "sdist without a compiler", WITHOUT)
        checked = 0
        for number, name in enumerate(PYTHONS.split()):
            found = interpreter(name)
            if found is None:
                print(f"     {name} is not here")
                continue
            checked += 1
            python = environment(folder / f"wheel-{number}", found)
            install(python, f"{wheel}[train,view]")
            check_wheel(python, Path(name).name)
        check(f"the wheel on {checked} versions of Python", checked > 0, PYTHONS)


def check_wheel(python: Path, label: str) -> None:
    """Run what a user of the wheel and its extras runs first."""
    check_runs(python, f"{label}, wheel", WITH_CORE)
    said = run(python, ROOT / "tests" / "wheel_check.py")
    check(f"{label}: a step and a snapshot", "ok" in said, said)
    said = run(python, "-m", "simstate", "check", "quadruped")
    check(f"{label}: simstate check quadruped", "FAIL" not in said, said)
    updates = ("--iterations", 1, "--envs", 16)
    said = run(python, "-m", "simstate", "train", "Cartpole-Balance", *updates)
    check(f"{label}: an update of training", "Traceback" not in said, said)
    said = run(python, "-c", "import simstate.view.server, viser; print('ok')")
    check(f"{label}: the viewer's modules", "ok" in said, said)
    for name, command in (("import", ["-c", "import simstate"]),
                          ("--help", ["-m", "simstate", "--help"])):  # fmt: skip
        print(
            f"     {label}: {name} takes {cpu_seconds(python, *command):.2f} s of CPU"
        )


def cpu_seconds(*command: object) -> float:
    """Return the least CPU time of three runs [s]."""
    spent = list[float]()
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(*command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        )
    return min(spent)


if __name__ == "__main__":
    main()
