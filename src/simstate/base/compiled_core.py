"""Locate the compiled core and link it to the libmujoco that Python uses.

It is here and not in `engine/`, so that `simstate --version` does not load torch.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import mujoco

SWITCH = "SIMSTATE_CORE"
"""Environment variable; 0 disables the core."""
_FOLDER = Path(__file__).parents[1] / "engine" / "core"
_REVISION = 10
"""Revision of the functions that the core must have, as in binding_module.c."""


def is_available() -> bool:
    """Return True if the core is built for this MuJoCo and not disabled."""
    return os.environ.get(SWITCH, "1") != "0" and _link_failure() is None


def description() -> str:
    """Return which implementation the native engine uses, and why."""
    if os.environ.get(SWITCH, "1") == "0":
        return f"native engine: mujoco.batch ({SWITCH}=0)"
    reason = _link_failure()
    if reason is not None:
        return f"native engine: mujoco.batch (no compiled core: {reason})"
    return "native engine: compiled core"


def module() -> Any:
    """Return the compiled module; raise ImportError unless `is_available`."""
    reason = _link_failure()
    if reason is not None:
        raise ImportError(f"There is no compiled core: {reason}.")
    return _loaded()


def module_name() -> str:
    """Return the name of the module for the MuJoCo in use."""
    return f"simstate.engine.core._core_{mujoco.mj_version()}"


def _loaded() -> Any:
    """Import the compiled module without importing its parent packages."""
    name = module_name()
    if name in sys.modules:
        return sys.modules[name]
    spec = PathFinder.find_spec(name, [str(_FOLDER)])
    if spec is None or spec.loader is None:
        raise ImportError(_others())
    core = module_from_spec(spec)
    spec.loader.exec_module(core)
    sys.modules[name] = core
    return core


def _others() -> str:
    """Return a text that lists the versions of MuJoCo for which a core was built."""
    files = _FOLDER.glob("_core_*")
    numbers = sorted({file.name.split(".")[0].removeprefix("_core_") for file in files})
    return f"there are cores for {', '.join(numbers) or 'no version'}"


@cache
def _link_failure() -> str | None:
    """Link the compiled module to libmujoco; return the reason if it fails."""
    try:
        core = _loaded()
    except ImportError as error:
        return f"it was not built for {mujoco.mj_version()}, or does not load: {error}"
    if getattr(core, "REVISION", 1) != _REVISION:
        return "it was built from another version of simstate: rebuild it"
    try:
        library = ctypes.CDLL(str(_library_path()))
        addresses = tuple(_address(library, name) for name in core.SYMBOLS)
        core.connect(addresses, refuse_python_callbacks, _own_timer(library))
    except (OSError, ValueError, ImportError) as error:
        return str(error)
    return None


def _library_path() -> Path:
    """Return the libmujoco that the package `mujoco` has loaded."""
    folder, version = Path(mujoco.__file__).parent, mujoco.mj_versionString()
    if sys.platform == "darwin":
        return folder / f"libmujoco.{version}.dylib"
    if sys.platform == "win32":
        return folder / "mujoco.dll"
    return folder / f"libmujoco.so.{version}"


def _address(library: ctypes.CDLL, name: str) -> int:
    """Return the address of a function or a variable."""
    return ctypes.addressof(ctypes.c_char.in_dll(library, name))


def _own_timer(library: ctypes.CDLL) -> int:
    """Return the address of libmujoco's default timer in mjcb_time; 0: unknown."""
    if mujoco.get_mjcb_time() is not None:
        return 0
    return ctypes.c_void_p.in_dll(library, "mjcb_time").value or 0


_C_FUNCTION: Any = ctypes.CFUNCTYPE(None).__base__
_CALLBACKS = (
    "mjcb_passive",
    "mjcb_control",
    "mjcb_contactfilter",
    "mjcb_sensor",
    "mjcb_time",
    "mjcb_act_dyn",
    "mjcb_act_gain",
    "mjcb_act_bias",
)


def refuse_python_callbacks() -> None:
    """Raise if a physics callback is a Python function: worlds run in C threads."""
    for name in _CALLBACKS:
        callback = getattr(mujoco, f"get_{name}")()
        if callback is not None and not isinstance(callback, _C_FUNCTION):
            raise ValueError(
                f"{name} is a Python function, but a batch of worlds accepts only C "
                f"functions: remove it with mujoco.set_{name}(None), or install a "
                "ctypes function."
            )


def get_include() -> str:
    """Return the directory of `simstate/force.h`, for a compiler's include path."""
    return str(Path(__file__).parents[1] / "engine" / "core" / "include")
