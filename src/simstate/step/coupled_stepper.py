"""Strong coupling: loads that agree with the motion that they cause.

A load that is held over a step and computed from the motion at its start is weakly
coupled. If it grows with the acceleration, as that of the fluid around a light body
does, each step overshoots by more than the last one. `CoupledStepper` repeats each step
until the loads held over it equal those computed from the motion at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from simstate.base.checks import number, whole_number
from simstate.base.errors import CouplingError
from simstate.base.ids import int_list
from simstate.engine import Seen, Stage
from simstate.math.vector import norm
from simstate.step.divergence import Divergence
from simstate.step.forces.scene_force import ForceModel
from simstate.step.forcing import Forcing
from simstate.step.stepper import Stepper, union
from simstate.world.calls import Scope
from simstate.world.worlds import Worlds

COUPLED_INPUTS = ("xfrc_applied", "qfrc_applied")
"""The inputs that a coupled force may write."""


@dataclass(frozen=True)
class Strong:
    """Convergence criterion and iteration settings of strongly coupled loads.

    The loads w of a step are a fixed point: w = loads(step(w)). It is found by Anderson
    acceleration, which for one history entry is Aitken's relaxation.
    """

    tolerance: float = 1e-9
    """Allowed change of the loads between two trials, relative to the loads."""
    absolute: float = 1e-12
    """Change of the loads that is always small enough [N, N·m]."""
    max_iterations: int = 50
    """Maximum number of trials of one step."""
    relaxation: float = 0.5
    """Fraction of the first change that is applied, 0 < relaxation ≤ 1."""
    history: int = 8
    """Number of earlier trials that determine the next one."""

    def __post_init__(self) -> None:
        number("tolerance", self.tolerance, more_than=0, less_than=1)
        number("absolute", self.absolute, at_least=0, unit="N")
        whole_number("max_iterations", self.max_iterations, 2)
        number("relaxation", self.relaxation, more_than=0, at_most=1)
        whole_number("history", self.history, 1)


class CoupledStepper:
    """Repeats each step of another stepper until its loads have converged.

    The loads are held over the step. Worlds whose loads have converged keep the step;
    the others return to its start and repeat it.
    """

    settles = False
    chooses_steps = False
    has_dense_output = False

    def __init__(
        self,
        worlds: Worlds,
        forcing: Forcing,
        divergence: Divergence,
        inner: Stepper,
    ) -> None:
        self._worlds = worlds
        self._forcing = forcing
        self._divergence = divergence
        self.inner = inner
        """The stepper that takes the trial steps."""
        self.coupling = Strong()
        """The limits of the iteration."""
        self.models: list[ForceModel] = []
        """The force models whose loads are iterated."""
        fields = [worlds.engine.field(name) for name in COUPLED_INPUTS]
        self._shapes = [tuple(field.shape[1:]) for field in fields]
        self._widths = [field[0].numel() for field in fields]
        self._loads = worlds.ledger.memory(
            "coupling/loads", (sum(self._widths),), worlds.dtype, kind="state",
            stage=Stage.ACCELERATION, moves=True, optional=True, unit="N or N·m",
        ).tensor  # fmt: skip
        count, qvel = worlds.num_envs, worlds.engine.field("qvel")
        self.iterations = torch.zeros(count, dtype=torch.int64, device=worlds.device)
        """Trials of the last step; int64, shape (num_envs,)."""
        self.residual = torch.zeros(count, dtype=torch.float64, device=worlds.device)
        """Change of the loads in its last trial [N, N·m]; shape (num_envs,)."""
        self.mean_acc = torch.zeros_like(qvel)
        """Change of qvel over the trial step per time, qvel's axes; (num_envs, nv)."""
        self._bad: Tensor | None = None
        inner.timesteps()  # registers each world's time step, which a step cannot do
        forcing.add_force(self._add_loads, (), COUPLED_INPUTS)

    def add(self, model: ForceModel, coupling: Strong | None) -> None:
        """Iterate the loads of a model, too; None keeps the limits in use."""
        self.models.append(model)
        if coupling is not None:
            self.coupling = coupling

    def _add_loads(self, t: Any, *inputs: Any) -> None:
        """Add the held loads to the inputs; a force model on views."""
        del t
        loads: Any = self._loads.data
        if not isinstance(inputs[0], Tensor):
            loads = loads.numpy()
        first = 0
        for view, width in zip(inputs, self._widths, strict=True):
            view += loads[:, first : first + width].reshape(view.shape)
            first += width

    # The stepper interface.

    @property
    def scope(self) -> Scope:
        """The memory that a step may change."""
        return self.inner.scope

    @property
    def current_through(self) -> Stage:
        """The last stage whose values are current after a step."""
        return self.inner.current_through

    @property
    def can_cut(self) -> bool:
        """True if a step may be taken in parts."""
        return self.inner.can_cut

    @property
    def evaluations(self) -> Tensor | None:
        """Number of evaluations so far, where they are counted; (num_envs,)."""
        return self.inner.evaluations

    def timesteps(self) -> Tensor:
        """Return the time step of each world [s], float64; (num_envs,)."""
        return self.inner.timesteps()

    def bad(self) -> Tensor | None:
        """Return the mask of worlds that the last step could not advance, or None."""
        return self._bad

    def advance(self, n: int, rows: Tensor | None) -> int:
        """Advance worlds by n time steps; None: all. Return flags of `Seen`."""
        seen, self._bad = 0, None
        span = self.inner.timesteps()
        for _ in range(n):
            seen |= self._converge(
                span, rows, lambda ids: self.inner.advance(1, ids), self.inner.bad
            )
        return seen

    def attempt(self, limit: Tensor, going: Tensor) -> tuple[Tensor, Tensor]:
        """Advance the worlds of a mask by `limit` [s], with loads that converge."""
        rows = going.nonzero().flatten()
        self.move(limit[rows], rows)
        stuck = torch.zeros_like(going) if self._bad is None else self._bad & going
        return torch.where(going & ~stuck, limit, 0.0), stuck

    def move(self, h: Tensor, rows: Tensor) -> None:
        """Advance each of these worlds by exactly h [s]; shape (n,)."""
        self._bad = None
        span = torch.ones(self._worlds.num_envs, dtype=h.dtype, device=h.device)
        span[rows] = h

        def trial(ids: Tensor | None) -> int:
            chosen = rows if ids is None else ids
            self.inner.move(span[chosen], chosen)
            return 0

        self._converge(span, rows, trial, self._worlds.engine.find_bad)

    # The iteration.

    def _converge(
        self,
        span: Tensor,
        rows: Tensor | None,
        trial: Callable[[Tensor | None], int],
        find_bad: Callable[[], Tensor | None],
    ) -> int:
        """Take a step of `span` [s] in some worlds until their loads have converged."""
        worlds = self._worlds
        saved = worlds.ledger.backup("step", "coupling")
        saved.save()
        start = worlds.engine.field("qvel").clone()
        ids = torch.arange(worlds.num_envs, device=worlds.device)
        ids, seen = ids if rows is None else rows, 0
        path = Anderson(self.coupling)
        for count in range(1, self.coupling.max_iterations + 1):
            everywhere = len(ids) == worlds.num_envs
            seen |= trial(None if everywhere else ids)
            failed = find_bad()
            if failed is not None:
                self._bad = union(self._bad, failed)
                fine = ~failed[ids]
                ids = ids[fine]
                path.keep(fine)
            change = worlds.engine.field("qvel") - start
            self.mean_acc.copy_(change / span[:, None].to(change))
            held = self._loads.data[ids].double()
            found = self._forcing.measure(self.models, COUPLED_INPUTS)[ids].double()
            size = norm(found - held)[:, 0]
            limit = self.coupling.tolerance * norm(found)[:, 0]
            apart = ~(size <= limit + self.coupling.absolute)
            self.iterations[ids] = count
            self.residual[ids] = size
            if not bool(apart.any()):
                return seen
            path.keep(apart)
            ids, held, found = ids[apart], held[apart], found[apart]
            if count < self.coupling.max_iterations:
                saved.restore(ids)
                worlds.fresh.write(Stage.POSITION, ids, "a trial of a coupled step")
                following = path.follow(held, found - held)
                self._loads.data[ids] = following.to(self._loads.dtype)
        return seen | self._give_up(ids)

    def _give_up(self, ids: Tensor) -> int:
        """Raise for worlds whose loads do not converge, or mark them as stuck."""
        stuck = torch.zeros(
            self._worlds.num_envs, dtype=torch.bool, device=ids.device
        ).index_fill(0, ids, True)
        if self._divergence.mode == "mask":
            self._bad = union(self._bad, stuck)
            return int(Seen.STUCK)
        world = int(ids[0])
        time = float(self._worlds.engine.field("time")[world])
        raise CouplingError(
            f"The loads of {len(ids)} of {self._worlds.num_envs} worlds did not "
            f"converge in {self.coupling.max_iterations} trials of a step, first in "
            f"world {world} before t = {time:g} s: they still change by "
            f"{float(self.residual[world]):.3g} N or N·m per trial. Reduce the time "
            "step, raise `max_iterations` or lower `relaxation`. The state from before "
            "the call was restored.",
            int_list(ids),
        )


class Anderson:
    """Anderson acceleration of one fixed-point iteration per world."""

    def __init__(self, coupling: Strong) -> None:
        self._relaxation = coupling.relaxation
        self._most = coupling.history
        self._values: list[Tensor] = []
        self._residuals: list[Tensor] = []

    def keep(self, worlds: Tensor) -> None:
        """Keep the history of the worlds of a mask only."""
        self._values = [x[worlds] for x in self._values]
        self._residuals = [x[worlds] for x in self._residuals]

    def follow(self, value: Tensor, residual: Tensor) -> Tensor:
        """Return the next values, from these and their residuals; (worlds, width)."""
        moved = value + self._relaxation * residual
        values, residuals = self._values, self._residuals
        if residuals:
            steps = torch.stack([residual - x for x in residuals], dim=2)
            ways = torch.stack([value - x for x in values], dim=2)
            # Least squares over the differences, which may be nearly parallel.
            # GPUs have no solver for rank-deficient systems, so the host solves.
            share = _least_squares(steps.cpu(), residual[..., None].cpu()).to(steps)
            moved = moved - ((ways + self._relaxation * steps) @ share)[..., 0]
        self._values = [*values, value][-self._most :]
        self._residuals = [*residuals, residual][-self._most :]
        return moved


def _least_squares(matrix: Tensor, right: Tensor) -> Tensor:
    linalg = cast("Any", torch.linalg)  # whose signatures are incomplete
    return linalg.lstsq(matrix, right, rcond=1e-12, driver="gelsd").solution
