"""Dense output: states within a step, interpolated between its ends."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from simstate.engine.field_layout import joint_layout
from simstate.math.quaternion import (
    conjugate,
    from_rotation_vector,
    multiply,
    to_rotation_vector,
)
from simstate.math.vector import cross
from simstate.world.worlds import Worlds


class DenseOutput:
    """Positions and velocities within a step, of third order.

    Positions are cubic polynomials that have the positions and velocities of both ends,
    velocities their derivatives; attitudes are interpolated as rotation vectors from
    the start. Everything else keeps its value at the end of the step.
    """

    def __init__(self, worlds: Worlds) -> None:
        self._qpos = worlds.engine.field("qpos").data
        self._qvel = worlds.engine.field("qvel").data
        self._time = worlds.engine.field("time").data
        flat, quats = joint_layout(worlds.model)
        self._quats = [(slice(q, q + 4), slice(v, v + 3)) for q, v in quats]
        self._flat_q = torch.tensor([q for q, _ in flat], device=worlds.device).long()
        self._flat_v = torch.tensor([v for _, v in flat], device=worlds.device).long()
        self._start = self._end = self._copy()

    def _copy(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._qpos.clone(), self._qvel.clone(), self._time.clone()

    def begin(self) -> None:
        """Use the current states as the start of a step."""
        self._start = self._copy()

    def end(self) -> None:
        """Use the current states as its end."""
        self._end = self._copy()

    def go_to(self, share: Tensor, h: Tensor, ids: Tensor | None) -> None:
        """Move worlds to a fraction of their step of h [s]; (num_envs,) both.

        None: all worlds.
        """
        some: Any = slice(None) if ids is None else ids
        s, h = (x[some, None].to(self._qpos.dtype) for x in (share, h))
        q0, v0, t0 = (x[some] for x in self._start)
        q1, last = self._end[0][some], self._end[1][some].clone()
        fq, fv = self._flat_q, self._flat_v
        way = torch.empty_like(last)
        way[:, fv] = (q1 - q0)[:, fq]
        for q, v in self._quats:
            turn = to_rotation_vector(multiply(conjugate(q0[:, q]), q1[:, q]))
            last[:, v] += 0.5 * cross(turn, last[:, v])
            way[:, v] = turn
        part, rate = _hermite(way, v0, last, s, h)
        qpos = torch.empty_like(q1)
        qpos[:, fq] = q0[:, fq] + part[:, fv]
        for q, v in self._quats:
            qpos[:, q] = multiply(q0[:, q], from_rotation_vector(part[:, v]))
            rate[:, v] -= 0.5 * cross(part[:, v], rate[:, v])
        self._qpos[some], self._qvel[some] = qpos, rate
        self._time[some] = t0 + (s * h)[:, 0].to(t0.dtype)

    def restore(self, ids: Tensor | None) -> None:
        """Move worlds back to the end of their step; None: all."""
        some: Any = slice(None) if ids is None else ids
        for field, value in zip(
            (self._qpos, self._qvel, self._time), self._end, strict=True
        ):
            field[some] = value[some]


def _hermite(
    way: Tensor, first: Tensor, last: Tensor, s: Tensor, h: Tensor
) -> tuple[Tensor, Tensor]:
    """Return displacement and velocity at a fraction s of a step.

    Args:
        way: the displacement from the start to the end.
        first: the velocity at the start.
        last: the velocity at the end.
        s: the fraction, 0 to 1.
        h: the step [s].
    """
    bend, twist = first * h - way, way - last * h
    position = way * s + s * (1 - s) * ((1 - s) * bend + s * twist)
    change = (1 - s) * (1 - 3 * s) * bend + s * (2 - 3 * s) * twist
    return position, (way + change) / h.clamp(min=1e-300)
