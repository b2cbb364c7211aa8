"""Dense output: states within a step, interpolated between its ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from simstate.engine.field_layout import joint_layout
from simstate.world.memory import memory_of
from simstate.world.worlds import Worlds

_SKEW = [[0, 2, 1], [2, 0, 0], [1, 0, 0]]
_SKEW_SIGNS = [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]
"""Components and signs of the matrix of a cross product's left factor."""
_LEFT = [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]]
_LEFT_SIGNS = [[1, -1, -1, -1], [1, 1, -1, 1], [1, 1, 1, -1], [1, -1, 1, 1]]
"""Components and signs of the matrix of a quaternion product's left factor."""


class DenseOutput:
    """Positions and velocities within a step, of third order.

    Positions are cubic polynomials that have the positions and velocities of both ends,
    velocities their derivatives; attitudes are interpolated as rotation vectors from
    the start. Everything else keeps its value at the end of the step.

    On the host the arrays are NumPy's, whose calls cost less than torch's.
    """

    def __init__(self, worlds: Worlds) -> None:
        fields = [worlds.engine.field(name).data for name in ("qpos", "qvel", "time")]

        def array(values: Any, dtype: torch.dtype = torch.int64) -> Any:
            return memory_of(torch.tensor(values, dtype=dtype, device=worlds.device))

        self._live = [memory_of(field) for field in fields]
        self._start = [memory_of(field.clone()) for field in fields]
        self._end = [memory_of(field.clone()) for field in fields]
        self._xp: Any = np if isinstance(self._live[0], np.ndarray) else torch
        flat, quats = joint_layout(worlds.model)
        self._flat = array([q for q, _ in flat]), array([v for _, v in flat])
        self._num_quats = len(quats)
        self._quats = array([[q + k for k in range(4)] for q, _ in quats])
        self._turns = array([[v + k for k in range(3)] for _, v in quats])
        dtype = fields[0].dtype
        self._left = array(_LEFT), array(_LEFT_SIGNS, dtype)
        self._skew = array(_SKEW), array(_SKEW_SIGNS, dtype)

    def begin(self) -> None:
        """Use the current states as the start of a step."""
        for copy, live in zip(self._start, self._live, strict=True):
            copy[...] = live

    def end(self) -> None:
        """Use the current states as its end."""
        for copy, live in zip(self._end, self._live, strict=True):
            copy[...] = live

    def go_to(self, share: Tensor, h: Tensor, ids: Tensor | None) -> None:
        """Move worlds to a fraction of their step of h [s]; (num_envs,) both.

        None: all worlds.
        """
        some: Any = slice(None) if ids is None else memory_of(ids)
        q0, v0, t0 = (x[some] for x in self._start)
        q1, v1, _ = (x[some] for x in self._end)
        s, span = (
            self._xp.asarray(memory_of(x)[some, None], dtype=q0.dtype)
            for x in (share, h)
        )
        (fq, fv), turns = self._flat, self._turns
        way, last = self._xp.empty_like(v1), 1.0 * v1
        way[:, fv] = (q1 - q0)[:, fq]
        left = None
        if self._num_quats:
            places, signs = self._left
            left = q0[:, self._quats][..., places] * signs
            turn = self._turn((q1[:, self._quats][..., None, :] @ left)[..., 0, :])
            way[:, turns] = turn
            last[:, turns] += 0.5 * self._cross(turn, v1[:, turns])
        part, rate = _hermite(way, v0, last, s, span)
        qpos = self._xp.empty_like(q1)
        qpos[:, fq] = q0[:, fq] + part[:, fv]
        if left is not None:
            turn = part[:, turns]
            qpos[:, self._quats] = (left @ self._quaternion(turn)[..., None])[..., 0]
            rate[:, turns] -= 0.5 * self._cross(turn, rate[:, turns])
        for live, value in zip(
            self._live, (qpos, rate, t0 + (s * span)[:, 0]), strict=True
        ):
            live[some] = value

    def restore(self, ids: Tensor | None) -> None:
        """Move worlds back to the end of their step; None: all."""
        some: Any = slice(None) if ids is None else memory_of(ids)
        for live, value in zip(self._live, self._end, strict=True):
            live[some] = value[some]

    def _cross(self, one: Any, two: Any) -> Any:
        """Return the cross product; (..., 3)."""
        places, signs = self._skew
        return ((one[..., places] * signs) @ two[..., None])[..., 0]

    def _turn(self, quat: Any) -> Any:
        """Return the shortest rotation vector [rad] of a unit quaternion; (..., 3)."""
        xp = self._xp
        quat = xp.where(quat[..., :1] < 0, -quat, quat)
        imag = quat[..., 1:]
        length = xp.sqrt((imag * imag).sum(-1))
        angle = 2.0 * xp.arctan2(length, quat[..., 0])
        return imag * (angle / (length + (length == 0)))[..., None]

    def _quaternion(self, turn: Any) -> Any:
        """Return the unit quaternion of a rotation vector [rad]; (..., 4)."""
        xp = self._xp
        angle = xp.sqrt((turn * turn).sum(-1))
        imag = turn * (xp.sin(0.5 * angle) / (angle + (angle == 0)))[..., None]
        return xp.concatenate([xp.cos(0.5 * angle)[..., None], imag], -1)


def _hermite(way: Any, first: Any, last: Any, s: Any, h: Any) -> tuple[Any, Any]:
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
    return position, (way + change) / (h + (h == 0))
