"""AircraftWorlds: an aircraft in all worlds, and the loads that act on it there."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from simstate.entity import Entity
from simstate.flight.aerodynamics import VARIABLES
from simstate.flight.air import Air
from simstate.flight.controls import Controls
from simstate.flight.flight_state import FlightState, Taken, TakenState
from simstate.flight.flight_table import AircraftForm, CompilableLoad
from simstate.flight.free_root import FreeRoot
from simstate.flight.loads import LoadModel, resolve
from simstate.flight.turbulence import Turbulence
from simstate.simulation import Simulation
from simstate.step.forces.compiled_force import CompiledForce


class AircraftWorlds:
    """The airframe of one aircraft, its controls and the air around it.

    Args:
        entity: the aircraft.
        controls: its controls.
        air: the air that it flies in.
    """

    def __init__(self, entity: Entity, controls: Controls, air: Air) -> None:
        self.entity, self.controls, self.air = entity, controls, air
        self.root = FreeRoot(entity)
        self.turbulence: Turbulence | None = None
        """The turbulence around it; None if there is none."""
        self._memo: tuple[Tensor, FlightState] | None = None

    def state(self, t: Tensor | None = None) -> FlightState:
        """Return the state at a time [s]; None: the current one of each world."""
        root, controls, turbulence = self.root, self.controls, self.turbulence
        body, wind = root.compiled, self.air.steady_wind
        if body is not None and wind is not None and turbulence is None:
            motion = body.describe()
            time = body.times() if t is None else t
            taken = Taken(motion, time, wind.copy(), controls, *controls.take())
            return TakenState.of(taken, self.air)
        position, attitude, *_ = parts = root.read()
        if t is None:
            t = root.time()
        wind = self.air.wind(t, position)
        if wind.dtype != position.dtype:
            wind = wind.to(position.dtype)
        wind = wind.clone()  # parameters are live
        spin = torch.zeros_like(wind)
        if turbulence is not None:
            gust = attitude.mT @ turbulence.velocity_b.to(wind)[..., None]
            wind = wind + gust[..., 0]
            spin = turbulence.ang_vel_b.to(wind)
        present = controls.present()
        places, rates = controls.positions(*present), controls.rates(*present)
        return FlightState(*parts, t, wind, spin, places, rates, self.air)

    def state_of_stage(self, t: Tensor) -> FlightState:
        """Return the state at an evaluation, the same one for all load models."""
        known = self._memo
        if known is None or known[0] is not t:  # every evaluation has a separate time
            known = self._memo = (t, self.state(t))
        return known[1]

    def compiled(self, model: object) -> CompiledForce | None:
        """Return a load model for the compiled core; None if Python evaluates it."""
        air, controls = self.air.compiled(), self.controls
        is_free = self.root.compiled is not None
        if not isinstance(model, CompilableLoad) or air is None or not is_free:
            return None
        if self.turbulence is not None:
            return None
        root, variables = self.entity.index.root_body_id, (*VARIABLES, *controls.names)
        form = AircraftForm(root, controls.names, controls.rows, variables)
        load = model.compiled(form)
        return None if load is None else form.force(air, load)


class AircraftForce:
    """The force model by which a load model acts on an aircraft."""

    def __init__(self, aircraft: AircraftWorlds, model: LoadModel) -> None:
        self._aircraft, self._model = aircraft, model
        self.__qualname__ = getattr(model, "__qualname__", type(model).__name__)

    def __call__(self, t: Tensor, sim: Simulation) -> None:
        """Add the loads to those of the bodies."""
        state, entity = self._aircraft.state_of_stage(t), self._aircraft.entity
        applied = sim.data.xfrc_applied
        given = self._model(t, state)
        for load in given if isinstance(given, Iterable) else (given,):
            wrench = resolve(load, entity, state)
            body = entity.index.bodies.ids[wrench.body_id]
            applied[:, body, :3] += wrench.force_E
            applied[:, body, 3:] += wrench.moment_E_com

    def compiled(self, start: float, end: float) -> CompiledForce | None:
        """Return the loads for the core, if the model describes itself."""
        del start, end
        return self._aircraft.compiled(self._model)
