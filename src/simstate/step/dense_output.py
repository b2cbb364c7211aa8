"""Dense output: states within a step, interpolated between its ends."""

from __future__ import annotations

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

    def go_to(self, share: Tensor, h: Tensor, ids: Tensor) -> None:
        """Move worlds to a fraction of their step of h [s]; (num_envs,) both."""
        s, h = share[ids, None].to(self._qpos.dtype), h[ids, None].to(self._qpos.dtype)
        (q0, v0, t0), (q1, v1, _) = self._start, self._end
        q0, v0, q1, v1 = q0[ids], v0[ids], q1[ids], v1[ids]
        qpos, qvel = q1.clone(), v1.clone()
        fq, fv = self._flat_q, self._flat_v
        move, qvel[:, fv] = _hermite(q1[:, fq] - q0[:, fq], v0[:, fv], v1[:, fv], s, h)
        qpos[:, fq] = q0[:, fq] + move
        for q, v in self._quats:
            turn = to_rotation_vector(multiply(conjugate(q0[:, q]), q1[:, q]))
            last = v1[:, v] + 0.5 * cross(turn, v1[:, v])
            part, rate = _hermite(turn, v0[:, v], last, s, h)
            qpos[:, q] = multiply(q0[:, q], from_rotation_vector(part))
            qvel[:, v] = rate - 0.5 * cross(part, rate)
        self._qpos[ids], self._qvel[ids] = qpos, qvel
        self._time[ids] = t0[ids] + (s * h)[:, 0].to(t0.dtype)

    def restore(self, ids: Tensor) -> None:
        """Move worlds back to the end of their step."""
        for field, value in zip(
            (self._qpos, self._qvel, self._time), self._end, strict=True
        ):
            field[ids] = value[ids]


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
