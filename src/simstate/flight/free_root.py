"""FreeRoot: position, motion and held loads of an aircraft in all worlds.

The compiled core computes them in one call. Without it, and for roots that are not
free, a conversion between conventions takes some hundred calls of torch.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from simstate.base.ids import Values
from simstate.engine import Stage
from simstate.engine.core import CoreBatch, free_bodies
from simstate.entity import Entity
from simstate.flight.aircraft import EARTH
from simstate.math.conventions.presets import PTERA
from simstate.world.worlds import Worlds, worlds_of

Array = np.ndarray[Any, Any]


class FreeBody:
    """A body with a free joint in all worlds, by the compiled core.

    Args:
        worlds: the worlds.
        core: the worlds in the core.
        body: the id of the body in the model.
        q: the address of its joint in qpos.
        v: the address of its joint in qvel.
    """

    def __init__(
        self, worlds: Worlds, core: CoreBatch, body: int, q: int, v: int
    ) -> None:
        self._worlds = worlds
        self._body = body
        self._columns = slice(body, body + 1)
        self._wrenches = worlds.ledger["xfrc_applied"]
        self._wrench = np.zeros((worlds.num_envs, 1, 6))
        self._com: tuple[int | None, Array] = (None, self._wrench)
        qpos, qvel = (worlds.engine.columns[name].start for name in ("qpos", "qvel"))
        self._qpos = core.state[:, qpos + q : qpos + q + 7]
        self._qvel = core.state[:, qvel + v : qvel + v + 6]
        self._time = core.state[:, worlds.engine.columns["time"].start]

    def describe(self) -> Array:
        """Return the result of `free_bodies.describe`; (num_envs, 18), a copy."""
        self._worlds.fresh.ensure(Stage.STATE, None, "the motion of a free body")
        engine = self._worlds.engine
        if self._com[0] != engine.num_differing:
            places = engine.parameter("body_ipos").numpy()
            self._com = (engine.num_differing, places[:, self._body])
        return free_bodies.describe(self._qpos, self._qvel, self._com[1])

    def times(self) -> Array:
        """Return the time of each world [s]; (num_envs,), a copy."""
        return self._time.copy()

    def hold(self, force: Values, moment: Values, turned: bool) -> bool:
        """Hold a load on it: a force at the COM [N] and a moment about it [N·m].

        Along body axes if `turned`, else along the world's; (3,), (1, 3) or
        (num_envs, 3). Return False, without effect, if the values must be checked.
        """
        count = len(self._qpos)
        forces, moments = _vectors(force, count), _vectors(moment, count)
        if forces is None or moments is None:
            return False
        ledger, out = self._worlds.ledger, self._wrench
        if ledger.open:
            ledger.calls.recover()
        if not free_bodies.to_world(self._qpos, forces, moments, turned, out):
            return False
        ledger.write_array(self._wrenches, self._columns, out)
        return True


class FreeRoot:
    """The airframe of an aircraft in all worlds, in Earth axes."""

    def __init__(self, entity: Entity) -> None:
        self._entity = entity
        worlds, index = worlds_of(entity), entity.index
        core = worlds.engine.compiled
        self.compiled: FreeBody | None = None
        """The body in the core; None if it is not in use or the root is not free."""
        if core is not None and index.base == "free":
            k = index.free_body_ids.index(index.root_body_id)
            q, v = index.free_qpos_adr[k], index.free_dof_adr[k]
            self.compiled = FreeBody(worlds, core, index.root_body_id, q, v)

    def read(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return copies of the Cg's position, attitude, velocity and angular velocity.

        Shapes (num_envs, 3), (num_envs, 3, 3), (num_envs, 3), (num_envs, 3).
        """
        if self.compiled is None:
            parts = self._entity.state_in(PTERA, EARTH).parts
            return parts[0], parts[1], parts[2], parts[3]
        found = self.compiled.describe()
        return (
            _tensor(found[:, :3]),
            _tensor(found[:, 9:].reshape(-1, 3, 3)),
            _tensor(found[:, 3:6]),
            _tensor(found[:, 6:9]),
        )

    def time(self) -> Tensor:
        """Return the time of each world [s]; (num_envs,), a copy."""
        if self.compiled is None:
            return worlds_of(self._entity).engine.field("time").clone()
        return _tensor(self.compiled.times())


def _tensor(array: Array) -> Tensor:
    return torch.from_numpy(array)  # pyright: ignore[reportUnknownMemberType]


def _vectors(values: object, count: int) -> Array | None:
    """Return vectors for n worlds unchanged; None if they must be checked.

    Shape (1 or count, 3), float64.
    """
    if isinstance(values, Tensor):
        is_array = values.device.type == "cpu" and values.layout == torch.strided
        if not is_array or values.dtype != torch.float64 or values.is_neg():
            return None
        values = values.detach().numpy()
    if not isinstance(values, np.ndarray):
        return None
    array: Array = np.ascontiguousarray(cast("Array", values))
    if array.dtype != np.float64:
        return None
    if array.shape == (3,):
        return array[None]
    return array if array.shape in ((count, 3), (1, 3)) else None
