"""Steps of stochastic dynamics: one loop for Rößler's schemes, and two others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from simstate.engine import Stage
from simstate.errors import InvalidInputError, ShapeError, unknown_name
from simstate.integrate.noise import NoiseStream
from simstate.integrate.processes import DrivingNoise, finite_worlds
from simstate.integrate.schemes import Explicit
from simstate.integrate.stepper import Stepper
from simstate.integrate.stochastic import EulerHeun, ItoTableau, Stochastic
from simstate.integrate.tableaus import EULER

if TYPE_CHECKING:
    from simstate.integrate.integration import Integration

Vector = list[Tensor]
"""A displacement of the state: one tensor per block, shape (num_envs, width)."""


class StochasticStepper(Stepper):
    """Steps the worlds by a stochastic scheme of fixed step.

    A displacement of the state is a list of tensors, one per block; `_move` puts the
    state to x ⊕ displacement, `_drift` and `_diffusion` give f and g there.
    """

    def __init__(self, integration: Integration, scheme: Stochastic) -> None:
        super().__init__(integration, Explicit(EULER, scheme.attitude))
        self.stochastic = scheme
        sim = self.sim
        self.stream = NoiseStream(sim)
        self._steps = self.counter("steps")
        self._prescribed: tuple[Tensor, Tensor] | None = None
        """Increments and integrals of steps to come; shape (steps, num_envs, k)."""
        self._next = sim.internals.ledger.shared(
            "integrator/prescribed", torch.zeros(1, dtype=torch.int64), owner="sim",
            moves=True, optional=True,
        ).tensor  # fmt: skip
        """How many of the prescribed steps are done."""

    @property
    def num_sources(self) -> int:
        """The number of Wiener processes in all."""
        return sum(noise.num_sources for noise in self.integration.noises)

    def counts(self) -> dict[str, Tensor]:
        """Evaluations and steps so far; each of shape (num_envs,)."""
        return {
            "evaluations": self.evaluations,
            "accepted": self._steps,
            "rejected": torch.zeros_like(self._steps),
        }

    def prescribe(self, increments: Tensor, integrals: Tensor | None = None) -> None:
        """Use these increments for the next steps instead of random ones.

        Args:
            increments: W of each source over each step [√s]; shape (steps, num_envs,
                sources).
            integrals: the time integral of W over each step [s^1.5], likewise; drawn
                at random if a scheme needs it and it is left out.
        """
        wanted = (self.sim.num_envs, self.num_sources)
        given = [increments] if integrals is None else [increments, integrals]
        for tensor in given:
            fits = tensor.ndim == 3 and tuple(tensor.shape[1:]) == wanted
            if not fits or not tensor.shape[0]:
                raise ShapeError(
                    f"Noise must have shape (steps, {wanted[0]}, {wanted[1]}): steps, "
                    f"worlds, sources; got {tuple(tensor.shape)}."
                )
            if not bool(tensor.isfinite().all()) or tensor.shape != increments.shape:
                raise InvalidInputError(
                    "Noise must be finite, increments and integrals of one shape."
                )
        increments = increments.to(self.sim.device, torch.float64)
        if integrals is None:
            integrals = torch.full_like(increments, math.nan)
        self._prescribed = increments, integrals.to(increments)
        self._next.zero_()

    def _step(self, env_ids: Tensor | None) -> None:
        time = self.sim.internals.engine.field("time").data
        self._start, self._ids = time.clone(), env_ids
        for block in self.blocks:
            block.begin()
        h = self.timestep
        increments, integrals = self._increments(h, env_ids)
        tableau = self.stochastic.tableau
        if tableau is not None:
            move = self._ito(tableau, h, increments, integrals)
        elif isinstance(self.stochastic, EulerHeun):
            move = self._stratonovich(h, increments)
        else:
            move = self._weak(h, increments, env_ids)
        self._move(move)
        torch.add(self._start, self.stages.steps(time.dtype), out=time)
        self._steps += 1
        self.finish(env_ids)

    def _increments(self, h: float, env_ids: Tensor | None) -> tuple[Tensor, Tensor]:
        """W and its time integral for each source; shapes (num_envs, sources)."""
        sources = self.num_sources
        normal = self.stream.draw(2 * sources, env_ids) * math.sqrt(h)
        increments, other = normal[:, :sources], normal[:, sources:]
        step = int(self._next)
        if self._prescribed is not None and step < self._prescribed[0].shape[0]:
            given, integrals = self._prescribed
            if given.shape[2] != sources:
                raise InvalidInputError(
                    f"The prescribed noise is for {given.shape[2]} sources, by now "
                    f"there are {sources}: prescribe it anew."
                )
            self._next += 1
            increments = given[step]
            if not bool(integrals[step].isnan().any()):
                return increments, integrals[step]
        return increments, 0.5 * h * (increments + other / math.sqrt(3.0))

    def _ito(self, tableau: ItoTableau, h: float, w: Tensor, z: Tensor) -> Vector:
        """The displacement of one step of a scheme in Rößler's form."""
        root, sources = math.sqrt(h), range(self.num_sources)
        drifts: list[Vector] = []
        noises: list[list[Vector]] = []  # by stage and source
        for i in range(len(tableau.alpha)):
            at = self._sum(tableau.a0[i], drifts, h)
            for k in sources:
                parts = [stage[k] for stage in noises]
                _add(at, self._sum(tableau.b0[i], parts, z[:, k] / h))
            same = i and not any(tableau.a0[i]) and not any(tableau.b0[i])
            if same and tableau.c0[i] == tableau.c0[0]:
                drifts.append(drifts[0])
            else:
                drifts.append(self._drift(at, tableau.c0[i]))
            noises.append(self._noise_stage(tableau, i, h, drifts[:-1], noises))
        move = self._sum(tableau.alpha, drifts, h)
        double, triple = (w**2 - h) / (2 * root), (w**3 - 3 * h * w) / (6 * h)
        for k in sources:
            for i, stage in enumerate(noises):
                weight = tableau.beta1[i] * w[:, k] + tableau.beta2[i] * double[:, k]
                weight += tableau.beta3[i] * z[:, k] / h
                weight += tableau.beta4[i] * triple[:, k]
                _add(move, _scaled(stage[k], weight))
        return move

    def _noise_stage(
        self,
        tableau: ItoTableau,
        i: int,
        h: float,
        drifts: list[Vector],
        noises: list[list[Vector]],
    ) -> list[Vector]:
        """g_k at stage i, for each source k at a place of its own."""
        start = self._sum(tableau.a1[i], drifts, h)
        if not any(tableau.b1[i]):  # the same place for all
            return self._diffusion(start, tableau.c1[i])
        result: list[Vector] = []
        for k in range(self.num_sources):
            at = _copy(start)
            parts = [stage[k] for stage in noises]
            _add(at, self._sum(tableau.b1[i], parts, math.sqrt(h)))
            result.append(self._diffusion(at, tableau.c1[i])[k])
        return result

    def _stratonovich(self, h: float, w: Tensor) -> Vector:
        """Heun's scheme over drift and noise together."""
        start = self._increment(None, 0.0, h, w)
        end = self._increment(start, 1.0, h, w)
        return [(x + y) / 2 for x, y in zip(start, end, strict=True)]

    def _increment(self, at: Vector | None, c: float, h: float, w: Tensor) -> Vector:
        """f h + Σ g_k W_k at a displaced state."""
        total = _scaled(self._drift(at, c), h)
        for k, part in enumerate(self._diffusion(at, c)):
            _add(total, _scaled(part, w[:, k]))
        return total

    def _weak(self, h: float, w: Tensor, env_ids: Tensor | None) -> Vector:
        """Platen's scheme of weak order 2 for several sources."""
        root, sources = math.sqrt(h), range(self.num_sources)
        drift, noise = self._drift(None, 0.0), self._diffusion(None, 0.0)
        euler = _scaled(drift, h)
        at = _copy(euler)
        for k in sources:
            _add(at, _scaled(noise[k], w[:, k]))
        end = self._drift(at, 1.0)
        move = [h * (x + y) / 2 for x, y in zip(drift, end, strict=True)]
        mixed = self._mixed_areas(h, env_ids)
        for r in sources:
            sides: list[list[Vector]] = []
            for sign in (root, -root):
                own = _scaled(noise[r], sign)
                with_drift = _copy(euler)
                _add(with_drift, own)
                at_own = self._diffusion(with_drift, 1.0)[r]
                others = self._diffusion(own, 0.0) if len(sources) > 1 else noise
                sides.append([at_own if k == r else others[k] for k in sources])
            for k in sources:
                double = w[:, r] ** 2 - h if k == r else w[:, k] * w[:, r] + mixed[r, k]
                for sign, side in zip((1.0, -1.0), sides, strict=True):
                    weight = w[:, k] / 4 + sign * double / (4 * root)
                    _add(move, _scaled(side[k], weight))
                centre = w[:, k] / 2 if k == r else -w[:, k] / 2
                _add(move, _scaled(noise[k], centre))
        return move

    def _mixed_areas(self, h: float, env_ids: Tensor | None) -> Tensor:
        """Platen's two-point variables V, ±h and antisymmetric; (m, m, num_envs)."""
        m = self.num_sources
        if not m:
            return torch.zeros(0, 0, self.sim.num_envs, device=self.sim.device)
        signs = self.stream.draw(m * m, env_ids).sign().T.reshape(m, m, -1)
        upper = signs * signs.new_ones(m, m).triu(1)[..., None]
        return h * (upper - upper.transpose(0, 1))

    def _sum(
        self, weights: Sequence[float], parts: list[Vector], factor: Tensor | float
    ) -> Vector:
        """factor · Σ weights · parts, in all blocks."""
        total = [torch.zeros_like(block.rates[0]) for block in self.blocks]
        for weight, part in zip(weights, parts, strict=False):
            if weight:
                _add(total, _scaled(part, weight * factor))
        return total

    def _move(self, move: Vector | None, c: float = 0.0) -> None:
        """Put the state to x ⊕ move, at the time of part c of the step."""
        time = self.sim.internals.engine.field("time").data
        h = self.stages.steps(time.dtype)
        torch.add(self._start, h, alpha=c, out=time)
        moving = (h != 0).to(torch.float64)
        for n, block in enumerate(self.blocks):
            part = torch.zeros_like(block.rates[0]) if move is None else move[n]
            block.displace_by(part, moving.to(part.dtype))
        self.sim.internals.fresh.write(Stage.POSITION, None, "a stage of a step")

    def _drift(self, at: Vector | None, c: float) -> Vector:
        """f at x ⊕ at, as rates of the coordinates."""
        self._move(at, c)
        self.integration.evaluate(self._ids)
        self.evaluations += 1
        return [block.rate_now().clone() for block in self.blocks]

    def _diffusion(self, at: Vector | None, c: float) -> list[Vector]:
        """g_k at x ⊕ at for each source k, as rates of the coordinates."""
        self._move(at, c)
        result: list[Vector] = []
        time = self.sim.internals.engine.field("time")
        for noise in self.integration.noises:
            given = noise.diffusion(time, self.sim)
            self._check(noise, given)
            for k in range(noise.num_sources):
                result.append(
                    [
                        block.as_rate(given[block.name][:, k])
                        if block.name in given
                        else torch.zeros_like(block.rates[0])
                        for block in self.blocks
                    ]
                )
        return result

    def _check(self, noise: DrivingNoise, given: Mapping[str, Tensor]) -> None:
        """Raise unless a diffusion has known blocks, right shapes, finite numbers."""
        widths = {block.name: block.num_dofs for block in self.blocks}
        kind = getattr(noise, "name", type(noise).__name__)
        for name, values in given.items():
            if name not in widths:
                raise unknown_name(f"block in the diffusion of {kind}", name, widths)
            wanted = (self.sim.num_envs, noise.num_sources, widths[name])
            if tuple(values.shape) != wanted:
                raise ShapeError(
                    f"The diffusion of {kind} for {name} must have shape {wanted} "
                    f"(worlds, sources, width), got {tuple(values.shape)}."
                )
            bad = ~values.isfinite().flatten(1).all(dim=1)
            if bool(bad.any()) and bool((bad & finite_worlds(self.sim)).any()):
                raise InvalidInputError(
                    f"The diffusion of {kind} for {name} is not finite, first in world "
                    f"{int(bad.nonzero()[0])}. The state is as it was before the step."
                )


def _scaled(vector: Vector, factor: Tensor | float) -> Vector:
    """The vector times a number, or a number per world."""
    if isinstance(factor, Tensor):
        return [part * factor[:, None].to(part.dtype) for part in vector]
    return [part * factor for part in vector]


def _add(total: Vector, other: Vector) -> None:
    """total += other, in all blocks."""
    for x, y in zip(total, other, strict=True):
        x += y


def _copy(vector: Vector) -> Vector:
    return [part.clone() for part in vector]
