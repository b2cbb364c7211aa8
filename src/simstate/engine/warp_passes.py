"""WarpPasses: MuJoCo Warp's computations for all worlds, captured as CUDA graphs."""

# Warp and MuJoCo Warp come without type information.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import torch
import warp as wp

from simstate.engine.fields import EVALUATED_FIELDS
from simstate.engine.model_repairs import ZeroQuats

import mujoco_warp as mjw  # isort: skip
from mujoco_warp._src.smooth import tendon_armature  # isort: skip

_LINKS = (mujoco.mjtEq.mjEQ_CONNECT.value, mujoco.mjtEq.mjEQ_WELD.value)


class WarpPasses:
    """Passes over all worlds, one per method; on CUDA, repeated calls replay a graph.

    Args:
        model: the compiled scene.
        arrays: Warp's model and data.
        device: the torch device.
        zero_quats: the quaternions that MuJoCo treats as the identity.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        arrays: tuple[Any, Any],
        device: torch.device,
        zero_quats: ZeroQuats,
    ) -> None:
        self._model, self._data = arrays
        self._device, self._warp_device = device, wp.device_from_torch(device)
        self._zero_quats = zero_quats
        self._has_links = bool(np.isin(model.eq_type, _LINKS).any())
        self._has_sensors = model.nsensordata > 0
        self._is_rk4 = model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4.value
        self._graphs: dict[str, Any] = {}
        self.fourth: dict[str, Any] = {}
        """Kept accelerations and forces of the fourth stage of RK4."""
        self.needs_mass_matrix = False
        """True if `refresh` computes the mass matrix."""

    def forget(self) -> None:
        """Discard the graphs, because an array was replaced or more is computed."""
        self._graphs.clear()

    def compute_mass_matrix(self) -> None:
        """Compute the mass matrix in `refresh` from now on."""
        self.needs_mass_matrix = True
        self.forget()

    def keep_fourth(self, name: str) -> None:
        """Keep a field of the fourth stage, if the integrator is RK4."""
        if name in EVALUATED_FIELDS and self._is_rk4:
            with wp.ScopedDevice(self._warp_device):
                self.fourth[name] = wp.clone(getattr(self._data, name))

    # Passes.

    def step(self) -> None:
        """Advance by one time step."""
        self._run("step", self._step)

    def forward(self) -> None:
        """Evaluate the dynamics at the current state."""
        self._run("forward", self._forward)

    def refresh(self) -> None:
        """Compute positions, velocities and their sensors at the current state."""
        self._run("refresh", self._refresh)

    def set_const(self) -> None:
        """Compute the constants that depend on parameters."""
        self._run("set_const", lambda: mjw.set_const(self._model, self._data))

    def kinematics(self) -> None:
        """Compute the positions of bodies, geoms and sites."""
        self._run("kinematics", lambda: mjw.kinematics(self._model, self._data))

    def _step(self) -> None:
        self._prepare_constraints()
        if not self._is_rk4:
            mjw.step(self._model, self._data)
            return
        # Accelerations and sensors are those of the state before the step, as with
        # the other integrators, not of the fourth stage.
        mjw.forward(self._model, self._data)
        arrays = {name: getattr(self._data, name) for name in EVALUATED_FIELDS}
        first = {name: wp.clone(array) for name, array in arrays.items()}
        mjw.rungekutta4(self._model, self._data)
        for name, array in arrays.items():
            if name in self.fourth:
                wp.copy(self.fourth[name], array)
            wp.copy(array, first[name])

    def _forward(self) -> None:
        self._prepare_constraints()
        mjw.forward(self._model, self._data)

    def _prepare_constraints(self) -> None:
        """Update the velocities that connect and weld constraints read.

        MuJoCo Warp builds those constraints before it computes the velocities, so
        their right-hand side would be that of the previous evaluation.
        """
        if self._has_links:
            mjw.kinematics(self._model, self._data)
            mjw.com_pos(self._model, self._data)
            mjw.com_vel(self._model, self._data)

    def _refresh(self) -> None:
        model, data = self._model, self._data
        mjw.fwd_kinematics(model, data)
        mjw.transmission(model, data)
        if self.needs_mass_matrix:
            mjw.crb(model, data)
            tendon_armature(model, data)
        if self._has_sensors:
            data.sensordata.zero_()
            mjw.sensor_pos(model, data)
        mjw.fwd_velocity(model, data)
        if self._has_sensors:
            mjw.sensor_vel(model, data)

    def _run(self, key: str, compute: Callable[[], None]) -> None:
        """Run on the engine's device, with zero quaternions treated as in MuJoCo."""
        if not len(self._zero_quats):
            self._launch(key, compute)
            return
        self._zero_quats.fill()
        try:
            self._launch(key, compute)
        finally:
            self._zero_quats.put_back(moved=key == "step")

    def _launch(self, key: str, compute: Callable[[], None]) -> None:
        """Run; on CUDA capture once and replay the graph."""
        with wp.ScopedDevice(self._warp_device):
            if not self._warp_device.is_cuda:
                compute()
                return
            stream = wp.stream_from_torch(torch.cuda.current_stream(self._device))
            if key in self._graphs:
                wp.capture_launch(self._graphs[key], stream=stream)
                return
            with wp.ScopedStream(stream):
                compute()  # compiles and loads the kernels that the capture records
            # CUDA does not capture on the default stream, which torch's may be.
            own = wp.ScopedStream(wp.Stream(self._warp_device))
            with own, wp.ScopedCapture() as capture:
                compute()
            self._graphs[key] = capture.graph
