"""CoreSeconds: CPU time of a training run, by part."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from simstate.env import Env, EnvCfg


class CoreSeconds:
    """CPU time of all threads of this process, by part [s]."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._inner = 0.0

    @contextmanager
    def __call__(self, part: str) -> Generator[None]:
        """Context manager that adds its time to a part, minus that of inner blocks."""
        outer, self._inner = self._inner, 0.0
        begin = time.process_time()
        try:
            yield
        finally:
            took = time.process_time() - begin
            self.spent[part] = self.spent.get(part, 0.0) + took - self._inner
            self._inner = outer + took

    def table(self) -> dict[str, float]:
        """Return the time of each part, and the rest since the process started [s]."""
        rest = time.process_time() - sum(self.spent.values())
        return {**self.spent, "imports and other": rest}


class TimedEnv(Env):
    """An Env whose physics is timed."""

    def __init__(self, cfg: EnvCfg, num_envs: int, spent: CoreSeconds, **more: Any):
        self._spent = spent
        super().__init__(cfg, num_envs, **more)

    def _advance(self, action: Any, moving: Tensor | None) -> None:
        with self._spent("physics"):
            super()._advance(action, moving)
