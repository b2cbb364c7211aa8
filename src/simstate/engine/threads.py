"""The number of threads that step the worlds, and limits on torch's threads.

The threads of mujoco.batch keep spinning for about 50 ms after a call. A torch
operation that is split over threads then waits at each barrier for a core that a
spinning thread occupies: milliseconds instead of microseconds.
"""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from types import TracebackType

import mujoco
import torch

from simstate.base.mujoco_warnings import silenced

_AS_IS = nullcontext()
_WORK = 1.25e-4
"""Work per step, without contacts, for which waking one thread pays off [s]."""


def threads_by_work(model: mujoco.MjModel, num_envs: int) -> int:
    """Return the number of threads for a step of n worlds, at most one per CPU.

    Waking a thread and waiting for it takes tens of microseconds, or milliseconds if
    other programs use the cores, so that the caller alone is faster for few worlds.
    Results do not depend on the number.
    """
    cpus = min(available_cpus(), num_envs)
    return max(1, min(cpus, int(num_envs * step_seconds(model) / _WORK)))


def step_seconds(model: mujoco.MjModel) -> float:
    """Return the approximate time of one step of one world [s].

    A model that MuJoCo cannot evaluate counts as slow: its first step raises the error.
    """
    data = mujoco.MjData(model)
    shortest, begun = 1.0, time.perf_counter()
    with silenced(), suppress(mujoco.FatalError):
        for _ in range(5):
            start = time.perf_counter()
            mujoco.mj_forward(model, data)
            shortest = min(shortest, time.perf_counter() - start)
            if time.perf_counter() - begun > 0.01:
                break
    is_rk4 = model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4.value
    return 4 * shortest if is_rk4 else shortest


def available_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS, Windows


def lasting() -> AbstractContextManager[object]:
    """Return a context in which new tensors can be used outside inference mode.

    Outside inference mode, it costs a tenth of torch.inference_mode(False).
    """
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else _AS_IS


class OneTorchThread:
    """Context in which torch uses only the calling thread."""

    def __enter__(self) -> None:
        self._threads = torch.get_num_threads()
        if self._threads > 1:
            torch.set_num_threads(1)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._threads > 1:
            torch.set_num_threads(self._threads)
