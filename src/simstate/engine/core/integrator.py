"""Runge-Kutta schemes in C: all stages of a world in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from simstate.base import compiled_core
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.engine.core.batch import Array, CoreBatch
from simstate.engine.core.load_tables import CoreLoad, CoreProcess
from simstate.engine.core.scheme import (
    ATTITUDES,
    MassArrays,
    layout_entries,
    mass_entries,
    optional_row,
    tableau_arrays,
)
from simstate.engine.stage import Seen
from simstate.engine.tableau import Tableau

if TYPE_CHECKING:
    from simstate.engine.core import _core

_MECHANICS = ("qpos", "qvel", "act", "mass")
_FAILED = Seen.FAILED.value
_BUDGET = 20_000
"""Maximum number of evaluations of a world before Python checks for Ctrl-C."""


@dataclass(frozen=True)
class Failure:
    """The step at which a world could not meet its tolerance."""

    time: float
    """Time that was reached [s]."""
    step: float
    """Size of the last attempted step [s]."""
    error: float
    """The error of that step in units of the tolerance."""
    block: str
    """The block of the state with that error."""
    element: int
    """Its index in the block, by dof."""


@dataclass(frozen=True, eq=False)
class EvaluationCalls:
    """A Python function that is called before each evaluation of the dynamics."""

    function: Callable[[int, int, int], None]
    """`function(segment, problem, world)`. For segments 0 to `count` − 1, it writes the
    inputs of all worlds; for segment `count`, after an evaluation, the rates of
    processes, and no part of the state. The problem is 0 at first. If the inputs that
    it wrote in a world are not finite (1), or if it wrote any other part of the state
    (2), the state is restored and it is called again: it should raise, or return if
    the world has diverged."""
    inputs: slice
    """Columns of the state that it may write; restored after each evaluation."""
    count: int
    """Number of calls at each evaluation; loads are evaluated between them, by their
    `segment`."""


class Integrator:
    """A fixed-step scheme for qpos, qvel, act, masses and processes.

    It does what the stepper of `simstate.integrate` does without Python force models:
    activations are clamped and the warm start is stored at the end of each step.

    Args:
        batch: the worlds.
        tableau: the scheme.
        attitude: "lie", "high_order" or "manifold".
        loads: force models that are evaluated at each stage.
        processes: additional state variables, including moving frames.
        masses: arrays of the masses, if masses change.
        contacts: observers of the contacts of each evaluation and of each step.
        evaluations: counters of evaluations, (num_worlds,); None: new ones.

    With `calls`, the steps run one evaluation of all worlds at a time, and Python is
    called before each. If Python writes rates, derived fields are afterwards those of
    the last evaluation, else as documented for `step`.
    """

    def __init__(
        self,
        batch: CoreBatch,
        tableau: Tableau,
        attitude: str = "lie",
        *,
        loads: Sequence[CoreLoad] = (),
        processes: Sequence[CoreProcess] = (),
        masses: MassArrays | None = None,
        contacts: tuple[_core.Contacts, ...] = (),
        evaluations: NDArray[np.int64] | None = None,
    ) -> None:
        if attitude not in ATTITUDES:
            raise unknown_name("attitude mode", attitude, ATTITUDES)
        self.batch = batch
        if evaluations is None:
            evaluations = np.zeros(batch.nsim, np.int64)
        self.evaluations = evaluations
        """Evaluations of the dynamics so far; shape (num_worlds,)."""
        self._keep = (loads, processes, masses)
        description = {
            **tableau_arrays(tableau, attitude),
            **layout_entries(batch.model),
            **mass_entries(batch, masses),
            "evaluations": self.evaluations,
            "processes": tuple((one.value, one.rate) for one in processes),
            "loads": tuple(load.row() for load in loads),
            "contacts": contacts,
            **self._control(),
        }
        try:
            make = compiled_core.module().Integrator
            self._core: _core.Integrator = make(batch.core, description)
        except ValueError as error:
            raise InvalidInputError(str(error), name="integrator") from None

    def _control(self) -> dict[str, Any]:
        """Return the additional entries of an adaptive scheme."""
        return {"b_error": None, "b_error_low": None}

    def step(
        self,
        n: int,
        h: float,
        ids: Array | None = None,
        calls: EvaluationCalls | None = None,
    ) -> int:
        """Advance by n steps of h seconds; return flags of `Seen`.

        Writes time, qpos, qvel, act and qacc_warmstart of the worlds' rows, processes,
        masses and the parameters that depend on them, `evaluations`, and the bound
        fields: positions and velocities at the new state, the others of the
        last stage. A mass that would run out is kept, and marked in `masses.empty`.
        """
        if ids is not None:
            ids = self.batch.ids(ids)
        seen = self._core.step(ids, n, h, _row(calls))
        if seen & _FAILED:
            self.batch.check(ids, 1)
        return seen

    def move(
        self,
        h: Array,
        ids: Array | None = None,
        calls: EvaluationCalls | None = None,
    ) -> None:
        """Take one step of size h in each world [s]; float64, (num_worlds,).

        Writes what `step` writes.
        """
        ids = self.batch.ids(ids)
        self.batch.check(ids, self._core.run(ids, 0.0, h, 0, _row(calls)))


class AdaptiveIntegrator(Integrator):
    """An embedded pair with adaptive steps in each world, to meet tolerances.

    Args:
        batch: the worlds.
        tableau: the pair; it has `b_error`.
        attitude: "lie" or "high_order".
        atol: absolute tolerances by block: "qpos", "qvel", "act", "mass", and the names
            of processes; each a number, or one for each dof.
        rtol: relative tolerances, likewise.
        min_step: minimum step [s]; a world that needs a smaller one is stuck.
        max_step: maximum step [s].
        touching: pairs of geoms that can touch, int32, (n, 2).
        can_touch: True if a contact or a limit may become active within a step.
        loads: as in `Integrator`.
        processes: as in `Integrator`.
        masses: as in `Integrator`.
        contacts: as in `Integrator`; a call of `advance` counts as one step.
        slots: arrays to use as `step_size`, `accepted`, `rejected` and `evaluations`,
            by name; new ones where left out.
    """

    def __init__(
        self,
        batch: CoreBatch,
        tableau: Tableau,
        attitude: str = "lie",
        *,
        atol: Mapping[str, ArrayLike],
        rtol: Mapping[str, ArrayLike],
        min_step: float = 1e-12,
        max_step: float = np.inf,
        touching: NDArray[np.int32] | None = None,
        can_touch: bool = False,
        loads: Sequence[CoreLoad] = (),
        processes: Sequence[CoreProcess] = (),
        masses: MassArrays | None = None,
        contacts: tuple[_core.Contacts, ...] = (),
        slots: Mapping[str, Array] = MappingProxyType({}),
    ) -> None:
        if tableau.b_error is None:
            raise InvalidInputError(
                "An adaptive scheme needs b_error in its tableau.", name="b_error"
            )
        widths = {one.name: one.value.shape[1] for one in processes}
        self.blocks = (*_MECHANICS, *widths)
        """The blocks of the state with separate tolerances."""
        n = batch.nsim
        self.step_size = slots.get("step_size", np.zeros(n))
        """Size of the next step to attempt in each world [s]; 0: unknown."""
        self.accepted = slots.get("accepted", np.zeros(n, np.int64))
        """Steps taken so far; shape (num_worlds,)."""
        self.rejected = slots.get("rejected", np.zeros(n, np.int64))
        """Steps rejected so far; shape (num_worlds,)."""
        self.stuck = np.zeros(n, bool)
        """Worlds that could not meet their tolerance in the last call."""
        self._start, self._elapsed = np.zeros(n), np.zeros(n)
        self._unfinished = np.zeros(n, bool)
        self._failure = np.zeros((n, 3))
        self._failure_at = np.zeros((n, 2), np.int32)
        self._settings = {
            "b_error": np.array(tableau.b_error, np.float64),
            "b_error_low": optional_row(tableau.b_error_low),
            "atol": self._by_dof("atol", atol, batch.model, widths),
            "rtol": self._by_dof("rtol", rtol, batch.model, widths),
            "min_step": float(min_step),
            "max_step": float(max_step),
            "touching_geoms": np.ascontiguousarray(
                np.zeros(0) if touching is None else touching, np.int32
            ),
            "can_touch": int(can_touch),
        }
        super().__init__(
            batch,
            tableau,
            attitude,
            loads=loads,
            processes=processes,
            masses=masses,
            contacts=contacts,
            evaluations=slots.get("evaluations"),
        )

    def _by_dof(
        self,
        what: str,
        given: Mapping[str, ArrayLike],
        model: mujoco.MjModel,
        widths: Mapping[str, int],
    ) -> Array:
        """Return the concatenated tolerances of all blocks, float64."""
        for name in given:
            if name not in self.blocks:
                raise unknown_name(
                    "block of the state with a tolerance", name, self.blocks
                )
        sizes = {"qpos": model.nv, "qvel": model.nv, "act": model.na}
        sizes |= {"mass": model.nbody, **widths}
        parts: list[Array] = []
        for name in self.blocks:
            size = sizes[name]
            value = given.get(name, 1.0 if name == "mass" else np.nan)
            part = np.broadcast_to(np.asarray(value, np.float64), (size,))
            if not (part > 0).all():
                raise InvalidInputError(f"{what} must be > 0 for {name}.", name=name)
            parts.append(part)
        return np.concatenate(parts)

    def _control(self) -> dict[str, Any]:
        return {
            **self._settings,
            "step_size": self.step_size,
            "start": self._start,
            "elapsed": self._elapsed,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "stuck": self.stuck,
            "unfinished": self._unfinished,
            "failure": self._failure,
            "failure_at": self._failure_at,
        }

    def advance(
        self,
        span: float,
        ids: Array | None = None,
        calls: EvaluationCalls | None = None,
    ) -> NDArray[np.bool_] | None:
        """Advance by `span` seconds; return the mask of worlds that are stuck, or None.

        Writes what `step` writes, and `step_size`, `accepted`, `rejected`, `stuck`. A
        stuck world has advanced by a part of the span: the caller must restore it.
        """
        self._run(ids, span, None, calls)
        return self.stuck if self.stuck.any() else None

    def attempt(
        self,
        limit: Array,
        ids: Array | None = None,
        calls: EvaluationCalls | None = None,
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Take one step in each world that meets its tolerance, at most `limit` [s].

        Return the sizes of the steps [s] and the mask of worlds that are stuck,
        (num_worlds,) each. Writes what `advance` writes.
        """
        self._elapsed[:] = 0.0
        self._run(ids, 0.0, limit, calls)
        return self._elapsed, self.stuck

    def _run(
        self,
        ids: Array | None,
        span: float,
        limit: Array | None,
        calls: EvaluationCalls | None,
    ) -> None:
        """Call the core until all worlds are finished or stuck."""
        budget, row = _budget(calls), _row(calls)
        ids = self.batch.ids(ids)
        rows = slice(None) if ids is None else ids
        self._start[rows] = self.batch.bind("time")[rows]
        self._elapsed[rows] = 0.0
        self._unfinished[:] = False
        self.stuck[:] = False
        while True:
            failed = self._core.run(ids, span, limit, budget, row)
            self.batch.check(ids, failed)
            if not self._unfinished.any():
                break
            ids = np.flatnonzero(self._unfinished).astype(np.int32)

    def failure(self, world: int) -> Failure:
        """Return the reason why a world is stuck."""
        time, step, error = (float(x) for x in self._failure[world])
        block, element = (int(x) for x in self._failure_at[world])
        return Failure(time, step, error, self.blocks[block], element)


def _row(calls: EvaluationCalls | None) -> _core.Calls | None:
    """Return the arguments for the compiled module."""
    if calls is None:
        return None
    first, end = calls.inputs.start, calls.inputs.stop
    return calls.function, first, end - first, calls.count


def _budget(calls: EvaluationCalls | None) -> int:
    """Return the number of evaluations per C call; unlimited if it calls Python."""
    return _BUDGET if calls is None else 2**62
