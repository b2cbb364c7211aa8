"""The memory of a batch of worlds: estimated before it is allocated, freed in time."""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Iterable
from pathlib import Path

import mujoco
import torch

from simstate.base.errors import InvalidInputError
from simstate.engine.field_layout import field_shape
from simstate.engine.fields import EVALUATED_FIELDS, FIELDS, STATE_FIELDS

_COLLECTED = 2**29
"""Memory of new engines after which garbage is collected [bytes]."""
_new = [0]
"""Memory of the engines that were created since then [bytes]."""


def collect_garbage(model: mujoco.MjModel, size: int) -> None:
    """Free engines that are no longer used, before one with worlds of `size` bytes.

    Simulations are reference cycles, which Python collects by the number of objects and
    not by their memory: dozens of unused models with meshes would remain.
    """
    _new[0] += 3 * int(model.nbuffer) + size  # the engine has copies of the model
    if _new[0] > _COLLECTED and gc.isenabled():
        _new[0] = 0
        gc.collect()


def check_memory(num_envs: int, per_world: int, device: torch.device) -> None:
    """Raise if worlds of this many bytes each do not fit into free memory."""
    needed, free = num_envs * per_world, free_memory(device)
    if free is None or needed <= free:
        return
    raise InvalidInputError(
        f"num_envs={num_envs} worlds of this model need about {readable(needed)} "
        f"({readable(per_world)} each), but {readable(free)} are free on "
        f"{str(device)!r}: use at most {max(1, free // per_world)}. Nothing was "
        "allocated.",
        name="num_envs",
    )


def native_bytes(model: mujoco.MjModel) -> int:
    """Return the approximate memory of a native world: its row, copies, bound fields.

    Measured: 1.7 kB for a free cube, 6.5 kB for a quadruped.
    """
    state, evaluated = (_numbers(model, x) for x in (STATE_FIELDS, EVALUATED_FIELDS))
    return 500 + 8 * (3 * state + 2 * evaluated)


def warp_bytes(model: mujoco.MjModel) -> int:
    """Return the approximate memory of a warp world, which stores every field.

    Measured: 20 kB for a free cube, 42 kB for a quadruped.
    """
    return 15_000 + 4 * 4 * _numbers(model, FIELDS)


def _numbers(model: mujoco.MjModel, names: Iterable[str]) -> int:
    """Return the number of values that these fields have in one world."""
    return sum(math.prod(field_shape(model, FIELDS[name].shape)) for name in names)


def free_memory(device: torch.device) -> int | None:
    """Return the bytes that are free on a device; None: unknown."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] if torch.cuda.is_available() else None
    known = [x for x in (_free_of_machine(), _free_of_container()) if x is not None]
    return min(known, default=None)


def _free_of_machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:  # not on Linux
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not on every system
        return None


def _free_of_container() -> int | None:
    folder = Path("/sys/fs/cgroup")
    try:
        most = (folder / "memory.max").read_text().strip()
        used = (folder / "memory.current").read_text().strip()
        return max(0, int(most) - int(used)) if most != "max" else None
    except (OSError, ValueError):
        return None


def readable(size: float) -> str:
    """Return a number of bytes as text with a unit: 3.2 GB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
