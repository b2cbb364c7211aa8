"""The compiled core: optional, built against the headers that MuJoCo's wheel brings.

Without a compiler the install warns and succeeds, and the library runs without it.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from setuptools import Extension, setup

SOURCES = Path("src/simstate/engine/core")


def mujoco_headers() -> str:
    """MuJoCo's include folder, found without importing it."""
    spec = importlib.util.find_spec("mujoco")
    if spec is None or spec.origin is None:
        return ""  # the compiler then finds no header, and the core is left out
    return str(Path(spec.origin).parent / "include")


core = Extension(
    "simstate.engine.core._core",
    sources=sorted(str(path) for path in SOURCES.glob("*.c")),
    depends=sorted(str(path) for path in SOURCES.glob("*.h")),
    include_dirs=[mujoco_headers()],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    # No contraction to fused operations: the bits are the same on every machine.
    extra_compile_args=(
        []
        if sys.platform == "win32"
        else ["-std=c11", "-O3", "-g0", "-ffp-contract=off"]
    ),
    py_limited_api=True,
    optional=True,
)

setup(ext_modules=[core], options={"bdist_wheel": {"py_limited_api": "cp311"}})
