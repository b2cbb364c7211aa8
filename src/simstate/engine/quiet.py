"""MuJoCo's own messages: warnings that its counters tell, errors that are ours."""

from __future__ import annotations

from types import TracebackType

import mujoco
from mujoco import batch

from simstate.errors import ModelError


class Quiet:
    """Keeps MuJoCo from printing what its counters say anyway; its errors are ours."""

    def __enter__(self) -> None:
        self._handler = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(_ignore)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        mujoco.set_mju_user_warning(self._handler)
        if isinstance(error, batch.SimulationError):
            raise model_error(error) from error


class CoreErrors:
    """Makes MuJoCo's errors ours; the compiled core keeps MuJoCo quiet itself."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, batch.SimulationError):
            raise model_error(error) from error


def model_error(error: batch.SimulationError) -> ModelError:
    """What an error that MuJoCo raised in some worlds is to a user."""
    enough = "memory" not in str(error)
    hint = "" if enough else ' Give the model more: <size memory="…"/>.'
    return ModelError(f"{str(error).rstrip('.')}.{hint}")


def _ignore(message: str) -> None:
    del message
