"""The C code compiles without warnings, also of conversions that may lose a value."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path

import mujoco
import pytest

SOURCE = Path(__file__).parents[2] / "src/simstate"
CC = shlex.split(sysconfig.get_config_var("CC") or "cc")[0]
FLAGS = ["-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Werror"]


@pytest.mark.skipif(shutil.which(CC) is None, reason=f"there is no compiler {CC}")
@pytest.mark.parametrize("folder", ["engine/core", "world"])
def test_no_warnings(folder):
    headers = [sysconfig.get_path("include"), Path(mujoco.__file__).parent / "include"]
    command = [CC, *FLAGS, "-DPy_LIMITED_API=0x030B0000"]
    command += [part for path in headers for part in ("-isystem", str(path))]
    files = [str(path) for path in sorted((SOURCE / folder).glob("*.c"))]
    assert files
    done = subprocess.run([*command, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
