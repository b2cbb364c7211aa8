"""QPosState: the complete position vector of a scene, integrated as one block."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import mujoco
import torch
from torch import Tensor

from simstate.base.checks import argument, has_shape
from simstate.base.errors import (
    InvalidInputError,
    ShapeError,
    UnknownNameError,
    unknown_name,
)
from simstate.engine.field_layout import joint_layout
from simstate.math import quaternion
from simstate.step import kernels
from simstate.step.schemes.schemes import ATTITUDE_MODES, AttitudeMode
from simstate.step.stages import Launch, Stages, int_array, start, weighted

_MODES: dict[str, Any] = {
    "manifold": kernels.MANIFOLD,
    "high_order": kernels.HIGH_ORDER,
    "lie": kernels.LIE,
}


_OTHER_NAMES = {
    "setDerivative": "set_derivative(rate)",
    "propagateState": "propagate(h, pseudo_step)",
    "getQuaternionBlocks": "quaternion_blocks",
    "quaternionBlocks": "quaternion_blocks",
    "highOrderIntegration": 'attitude, which is "high_order" for True',
    "euclideanQpos": "euclidean_qpos",
    "euclideanQvel": "euclidean_qvel",
    "mujocoModel": "model",
    "qposAdr": "qpos_adr",
    "qvelAdr": "qvel_adr",
}
"""Basilisk's names of attributes, and the corresponding ones of simstate."""


class _OtherNames:
    """An object that names simstate's attribute if one of Basilisk's is used."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            kind = type(self).__name__
            if name not in _OTHER_NAMES:
                raise AttributeError(f"{kind!r} object has no attribute {name!r}")
            raise UnknownNameError(
                f"{kind} has no {name!r}: use {_OTHER_NAMES[name]}.",
                name=name,
                known=tuple(_OTHER_NAMES.values()),
            )

        def __setattr__(self, name: str, value: object) -> None:
            if name in _OTHER_NAMES:
                getattr(self, name)
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class QuaternionBlock(_OtherNames):
    """Columns of one orientation in qpos, and of its angular velocity in qvel."""

    qpos_adr: int
    """Index of w in qpos; x, y, z follow."""
    qvel_adr: int
    """Index of the angular velocity, body axes [rad/s], in qvel: three components."""


class QPosState(_OtherNames):
    """The positions of all worlds: Euclidean coordinates and unit quaternions.

    An integrator displaces it by rates of its coordinates. The rate of a Euclidean
    coordinate is its velocity. The rate of an orientation depends on the attitude mode:
    the angular velocity in body axes ("manifold"), the components of q̇ ("high_order"),
    or the rate of the rotation vector since the start of the step ("lie").
    `set_derivative` computes it from qvel. To write a Runge-Kutta scheme, at each stage
    clone the state, propagate the clone and set its derivative there; then combine the
    derivatives, set the sum with `combined=True`, and propagate the state itself.

    Args:
        value: qpos, displaced in place; shape (num_envs, nq).
        attitude: "manifold", "high_order" or "lie"; see `integrate.Explicit`.
        name: the name of the state and of its clones.
    """

    def __init__(
        self, value: Tensor, attitude: AttitudeMode = "lie", *, name: str = "qpos"
    ) -> None:
        if not isinstance(value, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                "value must be a tensor of positions, got "
                f"{type(value).__name__}; pass the name as a keyword, name=….",
                name="value",
            )
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                f"name must be a non-empty string, got {name!r}.", name="name"
            )
        self.name = name
        if attitude not in ATTITUDE_MODES:
            raise unknown_name("attitude mode", str(attitude), ATTITUDE_MODES)
        if value.ndim != 2 or not value.dtype.is_floating_point:
            raise ShapeError(
                "value must be qpos of all worlds, floating point, shape (num_envs, "
                f"nq); got {value.dtype} of shape {tuple(value.shape)}.",
                name="value",
                shape=value.shape,
            )
        self.value = value
        self.attitude: AttitudeMode = attitude
        self.quaternion_blocks: list[QuaternionBlock] = []
        self.euclidean_qpos: list[int] = []
        """Indices in qpos of the Euclidean coordinates."""
        self.euclidean_qvel: list[int] = []
        """The matching indices in qvel."""
        self.model: mujoco.MjModel | None = None
        self._is_stage = False

    def configure(self, model: mujoco.MjModel) -> None:
        """Size the state and its derivative, and find every quaternion in qpos."""
        if self.value.shape[1] != model.nq:
            raise ShapeError(
                f"The state has {self.value.shape[1]} positions per world, the model "
                f"{model.nq}.",
                name="value",
                shape=self.value.shape,
            )
        self.model = model
        layout = joint_layout(model)
        self.quaternion_blocks = [QuaternionBlock(q, v) for q, v in layout.quats]
        self.euclidean_qpos = [q for q, _ in layout.flat]
        self.euclidean_qvel = [v for _, v in layout.flat]
        self._allocate()

    def _allocate(self) -> None:
        """Create the buffers and the indices of the kernels."""
        num_envs = self.value.shape[0]
        blocks = self.quaternion_blocks
        self.origin = torch.empty_like(
            self.value, memory_format=torch.contiguous_format
        )
        self.rotation = self.value.new_zeros(num_envs, max(3 * len(blocks), 1))
        """Rotation vectors since the step's start, body axes [rad]."""
        high = self.attitude == "high_order"
        self.width = self.value.shape[1] if high else self._configured().nv
        self.derivative = self.value.new_zeros(num_envs, self.width)
        """The rate that `propagate` moves along; shape (num_envs, nv), or nq in
        high-order mode."""
        self._diffusion: Tensor | None = None
        self._layout = self._make_layout(high)
        self._prepare()

    def _make_layout(self, high: bool) -> Any:
        """Return the indices in the kernels' format."""
        layout: Any = kernels.StateLayout()
        layout.mode = _MODES[self.attitude]
        quats = [block.qpos_adr for block in self.quaternion_blocks]
        turns = [block.qvel_adr for block in self.quaternion_blocks]
        layout.flat_qpos = self._ids(self.euclidean_qpos)
        layout.flat_qvel = self._ids(self.euclidean_qvel)
        layout.flat_rate = layout.flat_qpos if high else layout.flat_qvel
        layout.quat_qpos, layout.quat_qvel = self._ids(quats), self._ids(turns)
        layout.quat_rate = layout.quat_qpos if high else layout.quat_qvel
        return layout

    def _prepare(self) -> None:
        """Create the launches that need no scheme."""
        value, num_envs = self.value, self.value.shape[0]
        everywhere = torch.ones(num_envs, dtype=torch.bool, device=value.device)
        self._tangent = value.new_zeros(num_envs, self._configured().nv)
        self._converted = torch.zeros_like(self.derivative)
        self._convert = self._record_launch(self._tangent, everywhere, self._converted)
        self._whole = torch.zeros_like(self.derivative)[None]
        self._whole_h = value.new_zeros(num_envs)
        self._displace_whole = self._displace_launch(
            self._whole, value.new_ones(1), self._whole_h
        )

    def _configured(self) -> mujoco.MjModel:
        if self.model is None:
            raise InvalidInputError("Call configure(model) first.", name="configure")
        return self.model

    def _ids(self, ids: list[int]) -> Any:
        return int_array(ids, self.value.device)

    def clone(self) -> QPosState:
        """Return a separate state with the same values and derivative, for a stage.

        After propagation its rates are still relative to the value at which it was
        cloned, so they may be combined with those of the state and of other clones.
        """
        model = self._configured()
        other = QPosState(self.value.clone(), self.attitude, name=self.name)
        other.configure(model)
        other._is_stage = True
        other.derivative.copy_(self.derivative)
        if self._diffusion is not None:
            other._diffusion = self._diffusion.clone()
        return other

    def set_derivative(self, rate: Tensor, combined: bool = False) -> None:
        """Set the rate at the current value; shape (num_envs, nv), or (num_envs, nq).

        A rate of length nv is qvel, and is converted to the rate of the coordinates. A
        rate of length nq (in high-order mode), and any with `combined=True`, is a sum
        of converted rates and is used unchanged.
        """
        self._configured()
        self.derivative.copy_(self._as_rate("rate", rate, combined))

    def set_diffusion(self, diffusion: Tensor) -> None:
        """Set the effect of each noise source, by dof as qvel; (num_envs, k, nv)."""
        has_shape("diffusion", diffusion, ("num_envs", "sources", "nv"))
        parts = [
            self._as_rate("diffusion", diffusion[:, k], False)
            for k in range(diffusion.shape[1])
        ]
        self._diffusion = torch.stack(parts, dim=1)

    def _as_rate(self, what: str, rate: Tensor, combined: bool) -> Tensor:
        """Return a checked rate of the coordinates, converted from qvel if needed."""
        model = self._configured()
        num_envs = self.value.shape[0]
        whole = (num_envs, self.width)
        is_rate = combined or self.width != model.nv
        if is_rate and tuple(rate.shape) == whole:
            return rate
        if tuple(rate.shape) != (num_envs, model.nv):
            raise ShapeError(
                f"{what} must have shape {(num_envs, model.nv)} (as qvel)"
                + (f" or {whole} (rates of qpos)" if whole[1] != model.nv else "")
                + f", got {tuple(rate.shape)}.",
                name=argument(what),
                shape=rate.shape,
            )
        return self.as_rate(rate)

    def as_rate(self, tangent: Tensor) -> Tensor:
        """Return a rate by dof at the current value as a rate of the coordinates."""
        self._tangent.copy_(tangent)
        self._convert()
        return self._converted.clone()

    def propagate(self, h: Tensor | float, pseudo_step: Tensor | None = None) -> None:
        """Advance the value of each world by its h [s] times the derivative.

        Args:
            h: the step; a number, or shape (num_envs,).
            pseudo_step: the random increment of each noise source, which multiplies
                its diffusion; shape (num_envs, k).
        """
        num_envs = self.value.shape[0]
        steps = torch.as_tensor(h, dtype=self.value.dtype, device=self.value.device)
        has_shape("h", steps, (), (num_envs,))
        self._configured()
        if pseudo_step is None:
            self._propagate_by(self.derivative, steps.expand(num_envs))
            return
        noise = self._diffusion
        if noise is None or tuple(pseudo_step.shape) != tuple(noise.shape[:2]):
            sources = "no diffusion is set" if noise is None else tuple(noise.shape[:2])
            raise ShapeError(
                "pseudo_step must have one increment per world and noise source "
                f"({sources}), got shape {tuple(pseudo_step.shape)}.",
                name="pseudo_step",
                shape=pseudo_step.shape,
            )
        move = self.derivative * steps.expand(num_envs)[:, None]
        move = move + (noise * pseudo_step.to(noise)[..., None]).sum(dim=1)
        self._propagate_by(move, torch.ones_like(move[:, 0]))

    def _propagate_by(self, move: Tensor, h: Tensor) -> None:
        self.begin()
        self.displace_by(move, h)
        if not self._is_stage:  # the next step's rates are relative to this value
            self.rotation.zero_()

    def begin(self, chosen: Tensor | None = None) -> None:
        """Start a step at the current state, in the chosen worlds (None: all)."""
        start(self.origin, self.value, chosen)
        if chosen is None:
            self.rotation.zero_()
        else:
            self.rotation[chosen] = 0.0

    def displace_by(self, move: Tensor, h: Tensor) -> None:
        """Set value = origin ⊕ h · move where h is not 0; move: (num_envs, width)."""
        self._whole[0].copy_(move)
        self._whole_h.copy_(h)
        self._displace_whole()

    def plan(self, qvel: Tensor, stages: Stages) -> None:
        """Prepare for the stages of a scheme; `qvel` is the live velocity."""
        self._qvel = qvel
        self.rates = self.value.new_zeros(
            stages.tableau.num_stages, self.value.shape[0], self.width
        )
        h = stages.steps(self.value.dtype)
        self._moves = [
            self._displace_launch(self.rates, weights, h)
            for weights in stages.weights(self.value.dtype)
        ]
        self._advances = [
            self._advance_launch(weights, h, qvel, rate)
            for weights, rate in zip(
                stages.weights(self.value.dtype)[1:], self.rates, strict=True
            )
        ]
        self._records = [
            self._record_launch(qvel, stages.chosen, rate) for rate in self.rates
        ]

    def displace(self, stage: int) -> None:
        """Move to a stage, or with the number of stages to the end of the step."""
        self._moves[stage]()

    def advance(self, stage: int) -> None:
        """Record the rates of a stage in all worlds, and move to the next one."""
        self._advances[stage]()

    def record(self, stage: int, chosen: Tensor | None) -> None:
        """Record the rates at the current values, in the worlds `stages.chosen`."""
        del chosen
        self._records[stage]()

    @property
    def num_dofs(self) -> int:
        """Number of degrees of freedom of a world: nv."""
        return self._configured().nv

    def rate_now(self) -> Tensor:
        """Return the rates of the coordinates at the current value and velocity."""
        return self.as_rate(self._qvel)

    def combined(self, weights: Tensor) -> Tensor:
        """Return Σ weights · rates over the stages; shape (num_envs, width)."""
        return weighted(weights, self.rates)

    def scale(self) -> Tensor:
        """Return the reference of a relative tolerance by dof: 1 rad for attitudes."""
        model = self._configured()
        scale = self.value.new_ones(self.value.shape[0], model.nv)
        largest = torch.maximum(self.origin.abs(), self.value.abs())
        scale[:, self.euclidean_qvel] = largest[:, self.euclidean_qpos]
        return scale

    def error(self, rates: Tensor) -> Tensor:
        """Return an error by dof: attitudes as rotation vectors [rad]."""
        if self.attitude != "high_order":
            return rates
        model = self._configured()
        error = rates.new_zeros(rates.shape[0], model.nv)
        error[:, self.euclidean_qvel] = rates[:, self.euclidean_qpos]
        for block in self.quaternion_blocks:
            part = slice(block.qpos_adr, block.qpos_adr + 4)
            turn = quaternion.multiply(
                quaternion.conjugate(self.origin[:, part]), rates[:, part]
            )
            error[:, block.qvel_adr : block.qvel_adr + 3] = 2 * turn[:, 1:]
        return error

    def _displace_launch(self, rates: Tensor, weights: Tensor, h: Tensor) -> Launch:
        inputs = self._displace_inputs(rates, weights, h)
        return Launch(kernels.displace_position, self.value.shape[0], inputs)

    def _advance_launch(
        self, weights: Tensor, h: Tensor, qvel: Tensor, rate: Tensor
    ) -> Launch:
        inputs = [*self._displace_inputs(self.rates, weights, h), qvel, rate]
        return Launch(kernels.advance_position, self.value.shape[0], inputs)

    def _displace_inputs(self, rates: Tensor, weights: Tensor, h: Tensor) -> list[Any]:
        inputs: list[Any] = [self.origin, rates, weights, h, self._layout]
        return [*inputs, self.rotation, self.value]

    def _record_launch(self, qvel: Tensor, chosen: Tensor, rate: Tensor) -> Launch:
        inputs: list[Any] = [qvel, self.value, self.rotation, self._layout]
        inputs += [chosen, rate]
        return Launch(kernels.record_position, self.value.shape[0], inputs)
