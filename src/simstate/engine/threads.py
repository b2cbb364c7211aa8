"""Number of threads that step the worlds, and torch's threads out of MuJoCo's way.

The threads of mujoco.batch keep spinning for some fifty milliseconds after a call. A
torch operation that is split over threads then waits for a core that a spinning thread
holds, at every one of its barriers: milliseconds instead of microseconds.
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
_WORK = 2e-4
"""The work in one step of all worlds that is worth waking a thread for [s]."""


def threads_by_work(model: mujoco.MjModel, num_envs: int) -> int:
    """Return the number of threads for a step of n worlds, at most one per CPU.

    Waking a thread and waiting for it costs tens of microseconds, and milliseconds
    where other programs want the cores: few worlds are done sooner by the caller.
    Results do not depend on it.
    """
    cpus = min(available_cpus(), num_envs)
    return max(1, min(cpus, int(num_envs * step_seconds(model) / _WORK)))


def step_seconds(model: mujoco.MjModel) -> float:
    """Return the approximate time of one step of one world [s]: the minimum of a few.

    A model that MuJoCo cannot evaluate counts as slow: its first step says why.
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
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS, Windows


def lasting() -> AbstractContextManager[object]:
    """While it is entered, tensors that are made outlive a caller's inference mode.

    Outside that mode it costs a tenth of torch.inference_mode(False).
    """
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else _AS_IS


class OneTorchThread:
    """While it is entered, torch works in the calling thread alone."""

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
