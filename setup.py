"""The compiled extensions, all optional.

The core fits one version of MuJoCo, whose number is in its name: `_core_3017000`. It is
built against the headers of the installed MuJoCo and, for a wheel that fits several
versions, those of further folders in SIMSTATE_MUJOCO_HEADERS. The bracket, which makes
public calls atomic, fits any MuJoCo. Without a compiler the install warns and succeeds,
and the library runs without them.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import sys
from pathlib import Path

from setuptools import Extension, setup

PACKAGE = Path("src/simstate")
MORE_FLAGS = shlex.split(os.environ.get("SIMSTATE_CFLAGS", ""))
"""Flags of the compiler for checks, such as sanitizers: see `make sanitize`."""


def mujoco_headers() -> dict[str, Path]:
    """Return the include folders of all versions to build for, by their numbers."""
    found = os.environ.get("SIMSTATE_MUJOCO_HEADERS", "").split(os.pathsep)
    folders = [Path(folder) for folder in found if folder]
    spec = importlib.util.find_spec("mujoco")  # which does not import it
    if spec is not None and spec.origin is not None:
        folders.append(Path(spec.origin).parent / "include")
    return {header_version(folder): folder for folder in folders}


def header_version(folder: Path) -> str:
    """Return the number of the MuJoCo whose headers are in a folder."""
    text = (folder / "mujoco/mujoco.h").read_text(encoding="utf-8")
    (number,) = re.findall(r"^#define mjVERSION_HEADER (\d+)", text, re.MULTILINE)
    return number


def extension(
    name: str, sources: Path, include_dirs: list[str], *macros: tuple[str, str]
) -> Extension:
    """Return an extension of all C files in a folder, for the limited API of 3.11."""
    return Extension(
        name,
        sources=sorted(str(path) for path in sources.glob("*.c")),
        depends=sorted(str(path) for path in sources.rglob("*.h")),
        include_dirs=include_dirs,
        define_macros=[("Py_LIMITED_API", "0x030B0000"), *macros],
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
        *(
            extension(
                f"simstate.engine.core._core_{number}",
                PACKAGE / "engine/core",
                [str(folder)],
                ("CORE_INIT", f"PyInit__core_{number}"),
            )
            for number, folder in mujoco_headers().items()
        ),
        extension("simstate.world._bracket", PACKAGE / "world", []),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
