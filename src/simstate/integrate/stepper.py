"""Stepper: one loop over the stages of any scheme, for all worlds at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from simstate.engine import OneTorchThread
from simstate.errors import InvalidInputError, ModelError
from simstate.integrate.compiled import CompiledSteps
from simstate.integrate.compiled_models import CompiledModels
from simstate.integrate.flat_state import FlatState
from simstate.integrate.qpos_state import QPosState
from simstate.integrate.schemes import Explicit
from simstate.integrate.stages import Stages
from simstate.worlds import Worlds

if TYPE_CHECKING:
    from simstate.integrate.integration import Integration

StateBlock = QPosState | FlatState


class Stepper:
    """Steps the worlds of a simulation by a Runge-Kutta scheme of fixed step.

    The state is qpos, qvel, act, body mass when it flows, and one block for each
    process: how many blocks there are does not depend on the model.
    """

    def __init__(self, integration: Integration, scheme: Explicit) -> None:
        self.integration = integration
        self.sim = sim = integration.sim
        check_model(sim)
        self.scheme = scheme
        self.timestep = sim.timestep
        """The step [s]: the model's, unless somebody measures an order."""
        self.stages = Stages(scheme.tableau, sim.num_envs, sim.device)
        self.evaluations: Tensor = self.counter("evaluations")
        """Evaluations of the dynamics so far; shape (num_envs,)."""
        on_host = self.evaluations.device.type == "cpu"
        self._counted = self.evaluations.numpy() if on_host else self.evaluations
        """The same memory: NumPy's calls cost less than torch's."""
        self._activation = activation_range(sim)
        self._blocks: list[StateBlock] | None = None
        self._compiled: CompiledSteps | None = None
        self.has_refreshed = False
        """Whether the last step left positions and velocities current: the core's."""

    @property
    def blocks(self) -> list[StateBlock]:
        """The blocks of the state."""
        if self._blocks is None:
            with torch.inference_mode(False):
                self._blocks = self._make_blocks()
        return self._blocks

    def forget_blocks(self) -> None:
        """Make the blocks anew at the next step: a process or mass flow was added."""
        self._blocks = None

    def _make_blocks(self) -> list[StateBlock]:
        sim, stages = self.sim, self.stages
        engine = sim.internals.engine
        qpos = QPosState(engine.field("qpos").data, self.scheme.attitude)
        qpos.configure(sim.model)
        qpos.plan(engine.field("qvel").data, stages)
        blocks: list[StateBlock] = [qpos]
        for name, rate in (("qvel", "qacc"), ("act", "act_dot")):
            if engine.field(name).numel():
                value, rate = engine.field(name).data, engine.field(rate).data
                blocks.append(FlatState(name, value, rate, stages))
        integration = self.integration
        if integration.mass_flow is not None:
            blocks.append(integration.mass_flow.block(stages))
        blocks += [process.block(stages) for process in integration.processes]
        return blocks

    def counter(self, name: str) -> Tensor:
        """A count for each world, int64, in the ledger; shape (num_envs,)."""
        return self.sim.internals.ledger.memory(
            f"integrator/{name}", dtype=torch.int64, reset=None, moves=True,
            optional=True,
        ).tensor  # fmt: skip

    def counts(self) -> dict[str, Tensor]:
        """Evaluations and steps so far; each of shape (num_envs,)."""
        return {
            "evaluations": self.evaluations,
            "accepted": self.evaluations // self.scheme.tableau.num_stages,
            "rejected": torch.zeros_like(self.evaluations),
        }

    def prescribe(self, increments: Tensor, integrals: Tensor | None = None) -> None:
        """Refuse: there is no noise in a deterministic scheme."""
        raise InvalidInputError(
            f"{self.scheme.name} is deterministic and takes no noise; use a stochastic "
            "scheme, such as integrate.SRIW1()."
        )

    def compiled(self, span: float) -> CompiledSteps | None:
        """The scheme in the compiled core for some time [s]; None: it is Python's."""
        models = self.compiled_models(span)
        if models is None:
            return None
        if self._compiled is None or self._compiled.models is not models:
            worlds = self.sim.internals.engine.compiled
            assert worlds is not None
            self._compiled = CompiledSteps(self, worlds, models)
        return self._compiled

    def compiled_models(self, span: float = 0.0) -> CompiledModels | None:
        """The simulation's models in the core for some time from now on [s], or None.

        Their numbers are the present ones.

        Observers see every evaluation, which Python must then make.
        """
        engine = self.sim.internals.engine
        self.has_refreshed = False
        if engine.compiled is None or engine.observers:
            return None
        models = self.integration.compiled_models(span)
        if models is None or not models.update():
            return None
        self.has_refreshed = True
        return models

    def step(self, n: int, env_ids: Tensor | None) -> Tensor | None:
        """Advance by n time steps; returns worlds that could not be, or None."""
        compiled = self.compiled(n * self.timestep)
        if compiled is not None:
            compiled.step(n, env_ids)
            self._count(n * self.scheme.tableau.num_stages, env_ids)
            return self.out_of_mass()
        with OneTorchThread():
            self._set_steps(env_ids)
            for _ in range(n):
                self._step(env_ids)
            return self.out_of_mass()

    def out_of_mass(self) -> Tensor | None:
        """The worlds that ran out of mass, or None; raises unless they are masked."""
        flow = self.integration.mass_flow
        if flow is None or not bool(flow.empty.any()):
            return None
        if self.sim.on_divergence == "raise":
            raise flow.out_of_mass_error()
        return flow.empty.any(dim=1)

    def move(self, h: Tensor, env_ids: Tensor) -> None:
        """Take one step of each world's own size [s]; 0: it stays; (num_envs,)."""
        compiled = self.compiled(float(h.max()))
        if compiled is not None:
            compiled.move(h, env_ids)
            self._count(self.scheme.tableau.num_stages, env_ids)
            return
        self.stages.set_steps(h)
        self._step(env_ids)

    def _set_steps(self, env_ids: Tensor | None) -> None:
        if env_ids is None:
            self.stages.set_steps(self.timestep)
            return
        steps = torch.zeros_like(self.stages.h)
        steps[env_ids] = self.timestep
        self.stages.set_steps(steps)

    def _step(self, env_ids: Tensor | None) -> None:
        blocks, tableau = self.blocks, self.scheme.tableau
        time = self.sim.internals.engine.field("time").data
        start = time.clone()
        h = self.stages.steps(time.dtype)
        for block in blocks:
            block.begin()
        for stage, c in enumerate(tableau.c):
            if self.integration.has_readers:
                torch.add(start, h, alpha=c, out=time)
            self.integration.evaluate(env_ids)
            for block in blocks:
                block.advance(stage)
        torch.add(start, h, out=time)
        self._count(tableau.num_stages, env_ids)
        self.finish(env_ids)

    def _count(self, evaluations: int, env_ids: Tensor | None) -> None:
        """Take note of evaluations in these worlds; None: all."""
        if env_ids is not None:
            self.evaluations[env_ids] += evaluations
        else:
            self._counted += evaluations

    def displace(self, stage: int) -> None:
        """Move all blocks to a stage, or to the end of the step."""
        for block in self.blocks:
            block.displace(stage)

    def clamp_activations(self) -> None:
        """Keep activations in their range, as MuJoCo does after each step."""
        if self._activation is not None:
            act = self.sim.internals.engine.field("act").data
            torch.clamp(act, *self._activation, out=act)

    def finish(self, env_ids: Tensor | None, n: int = 1) -> None:
        """Do at the end of n steps what MuJoCo does, and let observers take note.

        It clamps activations and keeps a warm start.
        """
        engine = self.sim.internals.engine
        self.clamp_activations()
        warmstart = engine.field("qacc_warmstart").data
        if env_ids is None:
            warmstart.copy_(engine.field("qacc"))
        else:
            warmstart[env_ids] = engine.field("qacc")[env_ids]
        engine.note_steps(n, env_ids)


def check_model(sim: Worlds) -> None:
    """Raise if the model has a state that only MuJoCo's own stepper advances."""
    reasons = {
        "delayed controls or sensors (history)": sim.model.nhistory,
        "plugins with a state": sim.model.npluginstate,
    }
    found = [text for text, count in reasons.items() if count]
    if found:
        raise ModelError(
            f"The model has {' and '.join(found)}, which only MuJoCo's own stepper "
            "advances: use integrator=None. Controls of the past may also be kept in "
            "sim.memory, and the one that is due written before each step."
        )


def activation_range(sim: Worlds) -> tuple[Tensor, Tensor] | None:
    """The least and greatest value of each activation; None: none is limited."""
    model = sim.model
    if not model.na or not np.any(model.actuator_actlimited):
        return None
    low, high = np.full(model.na, -np.inf), np.full(model.na, np.inf)
    for actuator in np.flatnonzero(model.actuator_actlimited):
        first = model.actuator_actadr[actuator]
        if first >= 0:
            part = slice(first, first + model.actuator_actnum[actuator])
            low[part], high[part] = model.actuator_actrange[actuator]
    like = sim.internals.engine.field("act")
    return torch.as_tensor(low).to(like), torch.as_tensor(high).to(like)
