"""Linear models by derivatives: MuJoCo's own where they are exact, else differences."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import mujoco
import numpy as np
import torch
from torch import Tensor

from simstate.base.checks import has_shape, instance_of, one_of
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.engine.engine import model_value
from simstate.record import reads_of
from simstate.simulation import Simulation
from simstate.step.history import Read, Recorded
from simstate.step.stepping_host import forcing_of
from simstate.study.linear.coordinates import StateVector
from simstate.study.linear.linear_model import LinearModel
from simstate.study.linear.linear_units import units_of
from simstate.world.worlds import worlds_of

Inputs: TypeAlias = "Sequence[str] | Mapping[str, Tensor]"
"""Names of controls; or views of live tensors by name, (num_envs,) each, such as
{"wind": air.parameters["wind"][:, 0]}."""
Outputs: TypeAlias = Recorded
"""As `sim.record` takes them: names of quantities, or names of one's own with a
function of the simulation, (num_envs,) or (num_envs, k), and maybe its unit."""
Time: TypeAlias = Literal["continuous", "discrete"]

_STEP = 1e-5
"""Of central differences, in each number's unit."""


def linearise(
    sim: Simulation,
    inputs: Inputs | None = None,
    outputs: Outputs | None = None,
    *,
    time: Time = "continuous",
    step: float = _STEP,
) -> LinearModel:
    """The linear model of every world about its present state; the state is kept.

    States are displacements of positions, velocities, activations and processes:
    `<joint>.x`, `.rx` (a rotation vector along body axes), `.vx`, `.wx`, … In
    continuous time A and B are derivatives of the dynamics with all force models. In
    discrete time they are those of one time step of whatever steps: by
    `mjd_transitionFD` where MuJoCo's own stepper runs alone, else by central
    differences through the integrator.

    About a state that moves, x is the difference from the motion that the state begins:
    it is a constant model if that motion is steady (straight flight, rest, a spin).

    Args:
        sim: the simulation, at the state (see `trim`); native engine.
        inputs: names of controls, as in the model; or tensors by name. None: all
            controls.
        outputs: what to observe, as in `sim.record`; None: the states.
        time: whether the model is in continuous or in discrete time.
        step: of the differences, in each number's own unit.
    """
    one_of("time of a linear model", time, get_args(Time))
    instance_of("sim", sim, Simulation)
    if sim.dtype != torch.float64:
        raise InvalidInputError(
            "Differences of float32 have no more than three digits: linearise with "
            'engine="native".'
        )
    if forcing_of(sim).mass_flow is not None:
        raise InvalidInputError(
            "linearise has no states for masses that flow (sim.mass_rate, Thruster): "
            "linearise a simulation without them."
        )
    views = _input_views(sim, inputs)
    observed = {} if outputs is None else reads_of(sim, outputs, "outputs")
    units = {} if outputs is None else units_of(sim, outputs)
    return _Derivatives(sim, views, observed, units, step).model(time)


class _Derivatives:
    """The differences of one simulation about its present state."""

    def __init__(
        self,
        sim: Simulation,
        inputs: dict[str, Tensor],
        outputs: dict[str, tuple[Read, str]],
        units: dict[str, list[str]],
        step: float,
    ) -> None:
        self.sim, self.inputs, self.outputs, self.step = sim, inputs, outputs, step
        self._units = units
        self.vector = StateVector(sim)
        self.start = sim.snapshot()
        self._end: tuple[Tensor, ...] = ()

    def model(self, time: Time) -> LinearModel:
        """The whole model; the simulation is as it was afterwards."""
        sim, size = self.sim, self.vector.size
        try:
            observed, _ = self._observe()
            names, units = ([one[k] for one in observed] for k in (0, 1))
            if time == "continuous":
                a, b = self._columns(self.vector.rate)
                self._restore()
                self.vector.kinematics(a)
            elif self._is_mujocos():
                a, b = self._transition()
            else:
                sim.step()
                self._end = self.vector.read()
                a, b = self._columns(self._stepped)
            c, d = (
                self._columns(lambda: self._observe()[1])
                if self.outputs
                else (
                    torch.eye(size, dtype=a.dtype).expand(len(a), -1, -1).clone(),
                    None,
                )
            )
        finally:
            self._restore()
        if d is None:
            d = torch.zeros(len(a), size, len(self.inputs), dtype=a.dtype)
        states = [c.name for c in self.vector.coordinates]
        own = [c.unit for c in self.vector.coordinates]
        return LinearModel(
            a, b, c, d,
            states=tuple(states),
            units=tuple(own),
            inputs=tuple(self.inputs),
            outputs=tuple(names if self.outputs else states),
            output_units=tuple(units if self.outputs else own),
            timestep=sim.timestep if time == "discrete" else None,
        )  # fmt: skip

    def _restore(self) -> None:
        self.sim.restore(self.start)

    def _columns(self, observe: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
        """Derivatives of what is observed by states and by inputs."""
        by_state = [
            self._central(lambda by, k=k: self.vector.displace(k, by), observe)
            for k in range(self.vector.size)
        ]
        by_input = [
            self._central(lambda by, view=view: view.add_(by), observe, view)
            for view in self.inputs.values()
        ]
        a = torch.stack(by_state, dim=-1)
        empty = a.new_zeros(*a.shape[:2], 0)
        return a, torch.stack(by_input, dim=-1) if by_input else empty

    def _central(
        self,
        move: Callable[[float], object],
        observe: Callable[[], Tensor],
        view: Tensor | None = None,
    ) -> Tensor:
        """(f(x + h) − f(x − h)) / 2h; (num_envs, observed)."""
        seen: list[Tensor] = []
        for by in (self.step, -self.step):
            self._restore()
            kept = None if view is None else view.clone()
            try:
                move(by)
                seen.append(observe())
            finally:
                if view is not None and kept is not None:
                    view.copy_(kept)  # a parameter is not in every snapshot
        return (seen[0] - seen[1]) / (2 * self.step)

    def _stepped(self) -> Tensor:
        """Where a step leads, from where the undisturbed one leads."""
        self.sim.step()
        return self.vector.difference(self.vector.read(), self._end)

    def _observe(self) -> tuple[list[tuple[str, str]], Tensor]:
        """Name and unit of each output, and their values; (num_envs, outputs)."""
        names: list[tuple[str, str]] = []
        values: list[Tensor] = []
        for name, (function, unit) in self.outputs.items():
            value = function(self.sim)
            many = ("num_envs", "k")
            has_shape(f"Output {name!r}", value, ("num_envs",), many)
            value = torch.as_tensor(value).clone()
            if value.ndim == 1:
                names.append((name, unit))
                values.append(value[:, None])
            else:
                count = value.shape[1]
                each = self._units.get(name) or [unit] * count
                names += [(f"{name}[{k}]", each[k]) for k in range(count)]
                values.append(value)
        return names, torch.cat(values, dim=1) if values else torch.zeros(0)

    def _is_mujocos(self) -> bool:
        """Whether MuJoCo's stepper runs alone, by a scheme that it differentiates."""
        sim = self.sim
        alone = sim.integration is None and not forcing_of(sim).models
        rk4 = sim.model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4.value
        ctrl = worlds_of(sim).engine.field("ctrl")
        plain = all(_column(ctrl, view) is not None for view in self.inputs.values())
        return alone and not rk4 and plain

    def _transition(self) -> tuple[Tensor, Tensor]:
        """A and B of one step, by MuJoCo's mjd_transitionFD; world by world."""
        sim = self.sim
        ctrl = worlds_of(sim).engine.field("ctrl")
        columns = [_column(ctrl, view) for view in self.inputs.values()]
        size, nu = self.vector.size, int(sim.model.nu)
        a = np.zeros((sim.num_envs, size, size))
        b = np.zeros((sim.num_envs, size, nu))
        rows = sim.state.double().cpu().numpy()
        for world in range(sim.num_envs):
            model = _model_of(sim, world)
            data = mujoco.MjData(model)
            kind = mujoco.mjtState.mjSTATE_INTEGRATION.value
            mujoco.mj_setState(model, data, rows[world], kind)
            mujoco.mjd_transitionFD(
                model, data, self.step, True, a[world], b[world], None, None
            )
        return torch.as_tensor(a), torch.as_tensor(b)[:, :, columns]


def _model_of(sim: Simulation, world: int) -> mujoco.MjModel:
    """The model with one world's parameters."""
    model = copy.copy(sim.model)
    for name in worlds_of(sim).engine.expanded:
        model_value(model, name)[:] = (
            worlds_of(sim).engine.parameter(name)[world].cpu().numpy()
        )
    return model


def _column(ctrl: Tensor, view: Tensor) -> int | None:
    """Which column of ctrl a view is; None: none."""
    if not ctrl.numel() or view.untyped_storage().data_ptr() != (
        ctrl.untyped_storage().data_ptr()
    ):
        return None
    for k in range(ctrl.shape[1]):
        if view.data_ptr() == ctrl[:, k].data_ptr():
            return k
    return None


def _input_views(sim: Simulation, inputs: Inputs | None) -> dict[str, Tensor]:
    """The inputs by name, as live views; (num_envs,) each."""
    ctrl = sim.data.ctrl
    model = sim.model
    names = [model.actuator(k).name or f"ctrl[{k}]" for k in range(int(model.nu))]
    if inputs is None:
        inputs = names
    if isinstance(inputs, Mapping):
        for name, view in inputs.items():
            has_shape(f"Input {name!r}, a view,", view, (sim.num_envs,))
        return dict(inputs)
    found: dict[str, Tensor] = {}
    for name in inputs:
        if name not in names:
            raise unknown_name("control of the model", name, names)
        found[name] = ctrl[:, names.index(name)]
    return found
