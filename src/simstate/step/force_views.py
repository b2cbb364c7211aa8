"""Force models on views: functions of arrays instead of the simulation.

    def drag(t, qvel, qfrc_applied):
        qfrc_applied -= 0.1 * qvel

    sim.add_force(drag, reads=("qvel",), writes=("qfrc_applied",))

The views are resolved once: NumPy arrays on the host, tensors on a device, a row for
each world. They are live, so a model must not keep them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from simstate.base.checks import check_called_as
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.engine import FIELDS, Engine, Stage
from simstate.world.freshness import Freshness, ReadOwner

WRITABLE = ("ctrl", "qfrc_applied", "xfrc_applied")
"""The inputs that a force model may write."""


class ForceOnViews(ReadOwner):
    """A force model called as `model(t, *reads, *writes)`.

    Args:
        engine: the engine whose fields are viewed.
        fresh: the freshness of derived fields.
        model: the function. `t` is the time of each world [s], a copy.
        reads: raw fields of `sim.data` up to the velocity stage.
        writes: inputs, from `WRITABLE`.
    """

    def __init__(
        self,
        engine: Engine,
        fresh: Freshness,
        model: Callable[..., None],
        reads: Sequence[str],
        writes: Sequence[str],
    ) -> None:
        reads, writes = _names("reads", reads), _names("writes", writes)
        for name in reads:
            check_read(name)
        for name in writes:
            if name not in WRITABLE:
                raise unknown_name("input that a force model may write", name, WRITABLE)
        check_called_as(
            "A force model on views", model, "t", *reads, *writes, name="model"
        )
        self._model = model
        self._fresh = fresh
        self._time = engine.field("time")
        stages = [FIELDS[x].stage for x in reads if not FIELDS[x].is_state]
        self._stage = max(stages, default=None)
        for name in reads:
            fresh.watch_derived(name)
        self._on_host = engine.device.type == "cpu"
        self._views = [_view(engine.field(name), False) for name in reads]
        self._views += [_view(engine.field(name).data, True) for name in writes]
        self.__qualname__ = str(getattr(model, "__qualname__", type(model).__name__))

    def __call__(self, t: Tensor, sim: Any) -> object:
        """Update the fields that it reads, and call the function."""
        if self._stage is not None:
            self._fresh.ensure(self._stage, self, self.__qualname__)
        return self._model(t.numpy() if self._on_host else t, *self._views)

    def label_of(self, name: str) -> str:
        """Return the name of the model in error messages."""
        return f"Force model {name!r}"


def _names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InvalidInputError(
            f"{what} must be a sequence of names, such as ({names!r},); got {names!r}.",
            name=what,
        )
    return tuple(names)


def check_read(name: str) -> None:
    """Raise unless a force model may read a field: not an acceleration or a force."""
    if name not in FIELDS:
        raise unknown_name("field that a force model may read", name, FIELDS)
    if not FIELDS[name].is_state and FIELDS[name].stage > Stage.VELOCITY:
        raise InvalidInputError(
            f"{name} is an acceleration or a force, which depends on what the model is "
            "about to write: read positions and velocities only.",
            name=name,
        )


def _view(tensor: Tensor, writable: bool) -> Any:
    """Return a NumPy view of a tensor on the host; on a device, the tensor."""
    if tensor.device.type != "cpu":
        return tensor
    array = tensor.detach().numpy().view()
    if not writable:
        array.flags.writeable = False
    return array
