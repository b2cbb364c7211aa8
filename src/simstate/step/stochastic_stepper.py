"""Steps of stochastic dynamics, with random or prescribed noise."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping

import torch
from torch import Tensor

from simstate.base.checks import check_finite, has_shape
from simstate.base.errors import InvalidInputError, unknown_name, warn
from simstate.base.ids import int_list
from simstate.engine import Stage
from simstate.step.divergence import Divergence
from simstate.step.forcing import Forcing
from simstate.step.processes import DrivingNoise, finite_worlds
from simstate.step.runge_kutta_stepper import RungeKuttaStepper
from simstate.step.schemes.runge_kutta_schemes import Euler
from simstate.step.stepper import StepCounts
from simstate.step.stochastic.sde_loop import StochasticStep, Vector
from simstate.step.stochastic.sde_variables import VARIABLES
from simstate.step.stochastic.stochastic import Stochastic
from simstate.world.worlds import Worlds

_KINDS = {
    "additive": (1, "additive noise (g depends only on time)"),
    "diagonal": (2, "one source, or sources that do not mix"),
    "paired": (3, "two sources, or more that do not mix"),
}
"""The smallest number of sources with which noise may be of another kind, and text."""


class StochasticStepper(RungeKuttaStepper):
    """Advances worlds by a stochastic scheme of fixed step.

    It provides the dynamics for the loop over the stages (`StochasticStep`): it
    displaces the state to x ⊕ displacement, and returns f and g there.
    """

    can_cut = False
    has_dense_output = False

    def __init__(
        self,
        worlds: Worlds,
        forcing: Forcing,
        divergence: Divergence,
        scheme: Stochastic,
    ) -> None:
        super().__init__(worlds, forcing, divergence, Euler(attitude=scheme.attitude))
        self.scheme = self._stochastic = scheme
        self._steps = self._counter("steps")
        self._prescribed: tuple[Tensor, Tensor] | None = None
        """Increments and integrals of steps to come; shape (steps, num_envs, k)."""
        self._progress = worlds.ledger.shared(
            "integrator/prescribed", torch.zeros(3, dtype=torch.int64), owner="sim",
            moves=True, optional=True,
        ).tensor  # fmt: skip
        """Number of prescribed steps taken, their total number, and their checksum."""
        self._known_checksum: tuple[object, int] = (None, 0)
        self._num_checked = 0

    def _compiled(self, span: float) -> None:
        """Return None: the compiled core has no noise."""

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Take one time step, which cannot be cut: its noise is that of all of it."""
        step = self.timesteps()
        if bool((going & (limit < (1 - 1e-6) * step)).any()):
            raise InvalidInputError(
                f"{self._stochastic.name} cannot divide a time step, since its parts "
                "would have different noise: schedule tasks at multiples of the time "
                f"step, {self.timestep:g} s."
            )
        return super().attempt(step, going)

    @property
    def num_sources(self) -> int:
        """Total number of Wiener processes."""
        return sum(noise.num_sources for noise in self._forcing.noises)

    @property
    def statistics(self) -> StepCounts:
        """Number of evaluations and steps of each world so far."""
        return StepCounts(self._evaluations, self._steps, torch.zeros_like(self._steps))

    def prescribe_noise(
        self, increments: Tensor, integrals: Tensor | None = None
    ) -> None:
        """Use these increments for the next steps instead of random ones.

        A scheme that follows a path uses them directly. A scheme with discrete
        variables computes these from W and from Z = √3 (2 integral/h − W), the second
        of two independent increments: ±√(3h) for W in an outer sixth of its
        distribution, else 0, and signs of Z, + for Z > 0. (`PlatenWeak2` draws the
        signs of its pairs.) StochasticDiffEq.jl calls the two dW and dZ;
        `brownian_integrals(dW, dZ, h)` returns the integrals.

        A snapshot stores the number of steps taken, but not the noise of the remaining
        ones: prescribe those again when it is restored elsewhere.

        Args:
            increments: W of each source over each step [√s]; shape (steps, num_envs,
                sources).
            integrals: the time integral of W over each step, from 0 at its start
                [s^1.5], likewise; random if omitted.
        """
        wanted = (self._worlds.num_envs, self.num_sources)
        given = [increments] if integrals is None else [increments, integrals]
        for tensor in given:
            has_shape("Noise", tensor, ("steps", *wanted), means=" (worlds, sources)")
            check_finite(tensor, "Noise", after="")
            if not tensor.shape[0] or tensor.shape != increments.shape:
                raise InvalidInputError(
                    "Noise must have at least one step, and integrals the same shape "
                    f"as the increments, {tuple(increments.shape)}; got "
                    f"{tuple(tensor.shape)}.",
                    name="Noise",
                    shape=tensor.shape,
                )
        increments = increments.to(self._worlds.device, torch.float64)
        if integrals is None:
            integrals = torch.full_like(increments, math.nan)
        self._prescribed = increments, integrals.to(increments)
        self._progress.copy_(torch.tensor([0, len(increments), self._checksum()]))

    def _checksum(self) -> int:
        """Return a checksum that distinguishes prescribed noise."""
        if self._prescribed is None:
            return 0
        if self._known_checksum[0] is not self._prescribed:
            parts = [part.cpu().numpy().tobytes() for part in self._prescribed]
            self._known_checksum = (self._prescribed, zlib.crc32(b"".join(parts)))
        return self._known_checksum[1]

    def _step_blocks(self, rows: Tensor | None) -> None:
        time = self._engine.field("time").data
        self._start, self._ids = time.clone(), rows
        for block in self.blocks:
            block.begin()
        h, tableau = self.timestep, self._stochastic.tableau
        w, z = self._increments(h, rows)
        variables = VARIABLES[tableau.variables](
            w, z, h, lambda count: self._draw(count, rows)
        )
        if self._num_checked != len(self._forcing.noises):
            self._check_kind(h)
        self._displace_to(StochasticStep(tableau, h, variables, self).displacement())
        torch.add(self._start, self.stages.steps(time.dtype), out=time)
        self._steps[slice(None) if rows is None else rows] += 1
        self._finish(rows, self.stages.h)

    def _draw(self, count: int, env_ids: Tensor | None) -> Tensor:
        """Return `count` normal samples of each world, float64; (num_envs, count).

        The streams of worlds that are not in `env_ids` do not advance; they get zeros.
        """
        rng = self._worlds.rng
        if env_ids is None:
            return rng.normal(slice(None), count)
        samples = self.stages.h.new_zeros(len(self.stages.h), count)
        samples[env_ids] = rng.normal(env_ids, count)
        return samples

    def _increments(self, h: float, env_ids: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return W and the second increment Z of each source; (num_envs, sources)."""
        sources = self.num_sources
        normal = self._draw(2 * sources, env_ids) * math.sqrt(h)
        w, z = normal[:, :sources], normal[:, sources:]
        step, count, checksum = (int(number) for number in self._progress)
        if step < count:
            if self._prescribed is None or self._checksum() != checksum:
                raise InvalidInputError(
                    f"These worlds were saved after {step} of {count} steps of "
                    "prescribed noise, which this simulation does not have: prescribe "
                    f"the noise of the remaining {count - step} steps.",
                    name="noise",
                )
            given, integrals = self._prescribed
            if given.shape[2] != sources:
                raise InvalidInputError(
                    f"The prescribed noise has {given.shape[2]} sources, but there are "
                    f"now {sources}: prescribe it again."
                )
            self._progress[0] += 1
            w = given[step]
            if not bool(integrals[step].isnan().any()):
                z = math.sqrt(3.0) * (2.0 * integrals[step] / h - w)
        return w, z

    def _check_kind(self, h: float) -> None:
        """Warn once if the noise is not of the scheme's kind."""
        self._num_checked = len(self._forcing.noises)
        kind = self._stochastic.noise
        if kind == "any" or self.num_sources < _KINDS[kind][0]:
            return
        try:
            found = self._find_dependence(h, kind == "additive")
        except InvalidInputError:  # at a state that the step itself may not reach
            return
        if found:
            scheme = self._stochastic
            fall = "its strong order drops to 0.5 and its weak order to 1"
            better = "EulerMaruyama(), which is cheaper, or W2Ito1() for expectations"
            if not scheme.strong_order:
                fall, better = "its weak order drops to 1", "W2Ito1()"
            warn(
                f"{scheme.name} attains its order for {_KINDS[kind][1]}, but {found}: "
                f"{fall}. Use {better}."
            )

    def _find_dependence(self, h: float, on_all: bool) -> str:
        """Return why the noise is not additive (`on_all`) or not diagonal; else ""."""
        start = self._given_diffusion(self.zero(), 0.0)
        n, rounding = self._worlds.num_envs, torch.finfo(self._worlds.dtype).eps ** 0.5

        def differ(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
            return _differ(one, other, rounding)

        for k, g in enumerate(self.diffusion(self.zero(), 0.0)):
            place = [math.sqrt(h) * part for part in g]
            there = self._given_diffusion(place, 0.0)
            for source in range(self.num_sources):
                if (on_all or source != k) and differ(start[source], there[source]):
                    return f"source {k} changes the diffusion of source {source}"
        if on_all:  # the drift may lead where no source does: displace all dofs
            self._displace_to(self.zero())
            place = [
                block.as_rate(block.value.new_full((n, block.num_dofs), 0.01))
                for block in self.blocks
            ]
            if any(map(differ, start, self._given_diffusion(place, 0.0))):
                return "the diffusion depends on the state"
        return ""

    def _displace_to(self, move: Vector, c: float = 0.0) -> None:
        """Set the state to x ⊕ move, and the time to fraction c of the step."""
        time = self._engine.field("time").data
        h = self.stages.steps(time.dtype)
        torch.add(self._start, h, alpha=c, out=time)
        moving = (h != 0).to(torch.float64)
        for block, part in zip(self.blocks, move, strict=True):
            block.displace_by(part, moving.to(part.dtype))
        self._fresh.write(Stage.POSITION, None, "a stage of a step")

    def zero(self) -> Vector:
        """Return a displacement of zero for all blocks."""
        return [torch.zeros_like(block.rates[0]) for block in self.blocks]

    def drift(self, at: Vector, c: float) -> Vector:
        """Return f at x ⊕ at, as rates of the coordinates."""
        self._displace_to(at, c)
        self._forcing.evaluate_stage(self._ids)
        self._count(1, self._ids)
        return [block.rate_now().clone() for block in self.blocks]

    def diffusion(self, at: Vector, c: float) -> list[Vector]:
        """Return g_k at x ⊕ at for each source k, as rates of the coordinates."""
        return [
            [
                block.as_rate(given[block.name])
                if block.name in given
                else torch.zeros_like(block.rates[0])
                for block in self.blocks
            ]
            for given in self._given_diffusion(at, c)
        ]

    def _given_diffusion(self, at: Vector, c: float) -> list[dict[str, Tensor]]:
        """Return g_k at x ⊕ at for each source k, by block and dof."""
        self._displace_to(at, c)
        time = self._engine.field("time")
        result: list[dict[str, Tensor]] = []
        for noise in self._forcing.noises:
            given = noise.diffusion(time, self._forcing.sim)
            self._check(noise, given)
            for k in range(noise.num_sources):
                # A copy: the noise may reuse the tensor at its next evaluation.
                result.append({name: g[:, k].clone() for name, g in given.items()})
        return result

    def _check(self, noise: DrivingNoise, given: Mapping[str, Tensor]) -> None:
        """Raise unless a diffusion has known blocks, valid shapes and finite values."""
        widths = {block.name: block.num_dofs for block in self.blocks}
        kind = getattr(noise, "name", type(noise).__name__)
        for name, values in given.items():
            if name not in widths:
                raise unknown_name(f"block in the diffusion of {kind}", name, widths)
            wanted = (self._worlds.num_envs, noise.num_sources, widths[name])
            what = f"The diffusion of {kind} for {name}"
            has_shape(what, values, wanted, means=" (worlds, sources, width)")
            bad = ~values.isfinite().flatten(1).all(dim=1)
            if bool(bad.any()) and bool(
                (bad & finite_worlds(self._worlds.ledger)).any()
            ):
                raise InvalidInputError(
                    f"{what} is not finite, first in world {int(bad.nonzero()[0])}. "
                    "The state from before the step was restored.",
                    name="diffusion",
                    worlds=int_list(bad.nonzero()[:, 0]),
                )


def _differ(
    one: Mapping[str, Tensor], other: Mapping[str, Tensor], rounding: float
) -> bool:
    """Return True if two diffusions differ by more than rounding."""
    if one.keys() != other.keys():
        return True
    pairs = [(x.double(), other[name].double()) for name, x in one.items()]
    return any(
        bool((x - y).abs().amax() > rounding * x.abs().amax())
        for x, y in pairs
        if x.numel()
    )
