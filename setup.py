"""The compiled extensions, both optional.

The core is built against the headers in MuJoCo's wheel; the bracket, which makes public
calls atomic, needs none and fits any MuJoCo. Without a compiler the install warns and
succeeds, and the library runs without them.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from pathlib import Path

from setuptools import Extension, setup

PACKAGE = Path("src/simstate")
MORE_FLAGS = shlex.split(os.environ.get("SIMSTATE_CFLAGS", ""))
"""Flags of the compiler for checks, such as sanitizers: see `make sanitize`."""


def mujoco_headers() -> str:
    """MuJoCo's include folder, found without importing it."""
    spec = importlib.util.find_spec("mujoco")
    if spec is None or spec.origin is None:
        return ""  # the compiler then finds no header, and the core is left out
    return str(Path(spec.origin).parent / "include")


def extension(name: str, sources: Path, include_dirs: list[str]) -> Extension:
    """Return an extension of all C files in a folder, for the limited API of 3.11."""
    return Extension(
        name,
        sources=sorted(str(path) for path in sources.glob("*.c")),
        depends=sorted(str(path) for path in sources.rglob("*.h")),
        include_dirs=include_dirs,
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        # No contraction to fused operations: the bits are the same on every machine.
        extra_compile_args=(
            []
            if sys.platform == "win32"
            else ["-std=c11", "-O3", "-g0", "-ffp-contract=off", *MORE_FLAGS]
        ),
        extra_link_args=[flag for flag in MORE_FLAGS if flag.startswith("-fsanitize")],
        py_limited_api=True,
        optional=True,
    )


setup(
    ext_modules=[
        extension(
            "simstate.engine.core._core", PACKAGE / "engine/core", [mujoco_headers()]
        ),
        extension("simstate.world._bracket", PACKAGE / "world", []),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
