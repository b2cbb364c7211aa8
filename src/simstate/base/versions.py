"""The versions of what computes."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

LIBRARIES = ("simstate", "mujoco", "mujoco-core", "mujoco-warp", "torch", "numpy")
"""Libraries that determine the bits of a run. Since 4.0 MuJoCo itself is `mujoco-core`,
whose version is that of `mujoco` if there is no such package."""


def installed_versions(libraries: Iterable[str] = LIBRARIES) -> dict[str, str]:
    """Python's version, and that of each of these libraries that is installed."""
    found = {"python": platform.python_version()}
    for name in libraries:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    if "mujoco-core" in found:
        found.setdefault("mujoco", found["mujoco-core"])
    return found
