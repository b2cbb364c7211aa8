"""Checks of the installed MuJoCo, and the command that repairs an installation.

Nothing here imports MuJoCo: the import may fail if two versions share a folder.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from simstate.base.errors import SimStateError

TESTED = "3.17.0"
"""The version that `constraints.txt` pins, of MuJoCo and MuJoCo Warp."""
OLDEST = 3017000
"""First version with `mujoco.batch`, 3.17.0, as `mj_version` returns it."""
DEFECTIVE = {4000000: "its sparse Cholesky factorisation is wrong"}
"""Versions that compute wrong results, and the reason."""
REPAIR = (
    "python -m pip uninstall -y mujoco mujoco-core mujoco-warp && "
    f"python -m pip install mujoco=={TESTED} mujoco-warp=={TESTED}"
)
"""Command that installs the tested version over any other."""


def rejection(number: int, name: str) -> str | None:
    """Return why a version of MuJoCo cannot be used, with the remedy, or None."""
    if number < OLDEST:
        reason = "it has no mujoco.batch"
    elif number in DEFECTIVE:
        reason = DEFECTIVE[number]
    else:
        return None
    return (
        f"MuJoCo {name} cannot be used: {reason}. Install the tested version: {REPAIR}."
    )


def installation_fault() -> str | None:
    """Return how the installation of MuJoCo is damaged, with the remedy; or None.

    Since 4.0, MuJoCo itself is `mujoco-core`, in the folder that `mujoco` used before.
    pip treats them as different packages, and lets one overwrite the other.
    """
    fault = _fault(_installed("mujoco"), _installed("mujoco-core"), _folder())
    if fault is None:
        return None
    return f"The installation of MuJoCo is damaged: {fault}. Repair it: {REPAIR}."


def check_installation(number: int, name: str) -> None:
    """Raise if the installed MuJoCo is damaged, or a version that cannot be used."""
    fault = installation_fault() or rejection(number, name)
    if fault is not None:
        raise SimStateError(fault, name="mujoco")


def check_warp(number: int) -> None:
    """Raise unless MuJoCo Warp has the major version of MuJoCo."""
    engine, warp = number // 1000000, _installed("mujoco-warp")
    if warp is None or _release(warp)[0] == engine:
        return
    fitting = {3: TESTED, 4: "4.0.0"}.get(engine, f"{engine}.*")
    raise SimStateError(
        f"mujoco-warp {warp} is not for MuJoCo {engine}: the two must have the same "
        "major version. Install a matching one: python -m pip install --no-deps "
        f"'mujoco-warp=={fitting}'.",
        name="mujoco-warp",
    )


def _fault(mujoco: str | None, core: str | None, folder: Path | None) -> str | None:
    """Return the conflict between two packages and the folder they share, or None."""
    if mujoco is not None and core is not None and _release(mujoco)[0] < 4:
        return f"mujoco {mujoco} and mujoco-core {core} share one folder"
    package = "mujoco" if core is None else "mujoco-core"
    wanted = core or mujoco
    if wanted is None:
        return None  # not installed, or not by pip
    if folder is None:
        return f"the files of {package} {wanted} are missing"
    found = {
        file.name: match[0]
        for file in folder.iterdir()
        if file.name.startswith(("libmujoco.so.", "libmujoco."))
        if (match := re.search(r"\d+\.\d+\.\d+", file.name)) is not None
    }
    if len(found) > 1:
        return f"{folder} has {' and '.join(sorted(found))}"
    for name, release in found.items():
        if _release(release) != _release(wanted):
            return f"{package} is {wanted}, but its folder contains {name}"
    return None


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _folder() -> Path | None:
    """Return the folder of the module `mujoco`; None if it has no __init__."""
    spec = find_spec("mujoco")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent


def _release(text: str) -> tuple[int, ...]:
    """Return the first three numbers of a version."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


LIBRARIES = ("simstate", "mujoco", "mujoco-core", "mujoco-warp", "torch", "numpy")
"""Libraries on which the exact results of a run depend. Since 4.0, MuJoCo itself is
`mujoco-core`, whose version is used for `mujoco` if that package is not installed."""


def installed_versions(libraries: Iterable[str] = LIBRARIES) -> dict[str, str]:
    """Return the versions of Python and of the installed ones of these libraries."""
    found = {"python": platform.python_version()}
    for name in libraries:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    if "mujoco-core" in found:
        found.setdefault("mujoco", found["mujoco-core"])
    return found
