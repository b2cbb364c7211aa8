"""IntegratedWorlds: worlds that force models, processes and integrators drive."""

from __future__ import annotations

import mujoco
import torch
from torch import Tensor

from simstate.engine import EngineCfg
from simstate.freshness import Mode
from simstate.integrate.forces import ForceModel
from simstate.integrate.integration import Integration, Integrator
from simstate.integrate.processes import DrivingNoise, Process
from simstate.scene import SceneCfg
from simstate.worlds import OnDivergence, Worlds


class IntegratedWorlds(Worlds):
    """Worlds with an integrator of simstate's own, or with force models."""

    def __init__(
        self,
        scene: SceneCfg | mujoco.MjModel,
        num_envs: int,
        engine: EngineCfg,
        device: str | torch.device,
        integrator: Integrator | None,
        freshness: Mode,
        on_divergence: OnDivergence,
        seed: int,
        first_world: int,
    ) -> None:
        super().__init__(
            scene, num_envs, engine, device, freshness, on_divergence, seed, first_world
        )
        self.integration: Integration | None = None
        """Force models, processes and the integrator, once there are any."""
        if integrator is not None:
            self.integration = Integration(self, integrator)

    def add_force(self, model: ForceModel) -> None:
        """Call `model(t, sim)` at every evaluation of the dynamics, to write loads.

        It reads quantities and writes wrenches, controls, applied forces or mass rates
        for all worlds, and must give the same for the same time and state: see
        `simstate.integrate.forces`. With MuJoCo's own stepper (integrator=None) it is
        evaluated once a time step, and its loads are held.
        """
        self._integration().add_force(model)

    def add_process(self, process: Process) -> None:
        """Integrate extra numbers of each world with its mechanics."""
        self._integration().add_process(process)

    def add_noise(self, noise: DrivingNoise) -> None:
        """Let noise sources drive the state; needs a stochastic integrator."""
        self._integration().add_noise(noise)

    @property
    def mass_rate(self) -> Tensor:
        """How fast each body's mass changes [kg/s]; (num_envs, nbody), to be written.

        Inertias scale with the masses. The masses are `sim.expand("body_mass")`.
        """
        return self._integration().enable_mass_flow().rate

    def _integration(self) -> Integration:
        if self.integration is None:
            self.integration = Integration(self, None)
        return self.integration
