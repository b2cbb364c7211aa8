"""Derivatives of simulations, each column with an estimate of its error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import mujoco
import torch
from torch import Tensor

from simstate.base.checks import check_finite, instance_of, number, whole_number
from simstate.base.errors import InvalidInputError, listed, unknown_name
from simstate.base.ids import int_list
from simstate.record import reads_of
from simstate.simulation import Simulation
from simstate.step.history import Recorded
from simstate.step.mujoco_stepper import MujocoStepper
from simstate.step.stepping_host import forcing_of, stepper_of
from simstate.study.differences import (
    DerivativeColumns,
    QuantityTarget,
    StateTarget,
    columns,
)
from simstate.study.perturbations import (
    By,
    ControlPerturbation,
    Perturbation,
    StatePerturbation,
    perturbations,
)
from simstate.study.quantity_units import units_of
from simstate.study.tangent_state import StateVector
from simstate.world.worlds import worlds_of


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Derivatives of rows by columns in every world, with an error for each column."""

    matrix: Tensor
    """All derivatives, float64; (num_envs, rows, columns)."""
    wider: Tensor | None = field(repr=False)
    """The same by differences of twice the width; None if no error was requested."""
    switched: Tensor
    """Columns in which the set of contacts, limits, friction states or saturated
    actuators differs between the perturbed worlds; bool, (num_envs, columns)."""
    tolerance: float
    """The largest error of a trusted column."""
    names_of_rows: tuple[str, ...]
    units_of_rows: tuple[str, ...]
    names_of_columns: tuple[str, ...]
    columns: dict[str, slice]
    """The columns of each name in `by`."""
    shapes: dict[str, tuple[int, ...]] = field(repr=False)
    """The shape of one world's values of each name in `by`."""

    @cached_property
    def error(self) -> Tensor:
        """Estimated error of each column relative to its largest entry.

        Shape (num_envs, columns). It is the largest difference between the results for
        the widths h and 2 h. By Richardson's extrapolation, that is three times the
        truncation error, so it also covers rounding. Infinite if it was not requested.
        """
        values = self.matrix
        if self.wider is None:
            return torch.full_like(self.switched, torch.inf, dtype=values.dtype)
        if not values.shape[1]:
            return torch.zeros_like(self.switched, dtype=values.dtype)
        apart = (self.wider - values).abs().amax(dim=1)
        size = values.abs().amax(dim=1)
        relative = torch.where(size > 0.0, apart / size, apart)
        return relative.nan_to_num(nan=torch.inf, posinf=torch.inf)

    @property
    def trusted(self) -> Tensor:
        """Columns with an error ≤ `tolerance` in which nothing switched; bool.

        Shape (num_envs, columns).
        """
        return (self.error <= self.tolerance) & ~self.switched

    @property
    def by(self) -> dict[str, Tensor]:
        """The derivatives by each name, (num_envs, rows, *shape of the values)."""
        return {
            name: self.matrix[:, :, place].unflatten(2, self.shapes[name])
            if self.shapes[name]
            else self.matrix[:, :, place.start]
            for name, place in self.columns.items()
        }

    @property
    def A(self) -> Tensor:  # noqa: N802
        """Derivatives by the tangent state; (num_envs, rows, 2 nv + na)."""
        return self._block("state")

    @property
    def B(self) -> Tensor:  # noqa: N802
        """Derivatives by the controls; (num_envs, rows, nu)."""
        return self._block("ctrl")

    def _block(self, name: str) -> Tensor:
        if name not in self.columns:
            raise unknown_name("name that was differentiated by", name, self.columns)
        return self.matrix[:, :, self.columns[name]]

    def explain(self, env_id: int = 0) -> str:
        """Return which columns of a world are not trusted, and why, one line each."""
        lines: list[str] = []
        for k in int_list((~self.trusted[env_id]).nonzero().flatten()):
            size = float(self.matrix[env_id, :, k].abs().max())
            error = float(self.error[env_id, k])
            why = f"estimated error {error:.1e} of the largest entry, {size:.1e}"
            if bool(self.switched[env_id, k]):
                why += ", a contact, limit, friction state or actuator limit switched"
            lines.append(f"{self.names_of_columns[k]}: {why}")
        return "\n".join(lines) or "all columns are trusted"

    def __repr__(self) -> str:
        worlds, rows, count = self.matrix.shape
        return (
            f"Derivatives of {rows} rows by {listed(self.columns)} ({count} columns) "
            f"in {worlds} worlds; {int(self.trusted.sum())} of {worlds * count} "
            "columns trusted"
        )


def derivatives(
    sim: Simulation,
    of: str | Recorded = "state",
    by: By = ("state", "ctrl"),
    steps: int = 1,
    *,
    step: float = 1e-6,
    error: bool = True,
    tolerance: float = 1e-4,
) -> Derivatives:
    """Return the derivatives of the result of some time steps, in each world.

    They are central differences between perturbed worlds, which are stepped with
    everything that acts on the simulation: its integrator, force models, processes,
    events and per-world parameters. All slots of the simulation, including random
    streams, are restored bit for bit. Parameters named in `by` become per-world
    parameters, as by `sim.expand`, with unchanged values.

    States are tangent: displacements of positions (orientations by rotation vectors
    along body axes), velocities and activations, 2 nv + na in MuJoCo's order, then the
    values of processes. For MuJoCo's own steps, derivatives of the state by state and
    controls equal those of `mjd_transitionFD` and cost the same. At a limit of its
    range a control is only displaced inwards.

    Args:
        sim: the simulation, on the native engine.
        of: "state", or quantities as in `sim.record`: names
            ("robot.root_link_pos_w", "qpos"), or a dictionary with functions of the
            simulation. Quaternions among them are differentiated by component.
        by: "state", inputs ("ctrl", "xfrc_applied", …) and model parameters
            ("body_mass"); or names with live tensors, (num_envs, …).
        steps: number of time steps; 0: derivatives at the current state.
        step: width of the differences in the unit of states and inputs; parameters are
            displaced by 10 × `step` times their value.
        error: False omits the second width, and the error estimate with it.
        tolerance: the largest relative error of a trusted column.
    """
    check_differentiable(sim, of)
    steps = whole_number("steps", steps, 0, 2**31 - 1)
    number("step", step, more_than=0)
    number("tolerance", tolerance, more_than=0)
    vector = StateVector(sim)
    blocks = perturbations(sim, by, vector)
    if isinstance(of, str) and of != "state":
        of = (of,)
    if not of:
        raise InvalidInputError("of must name at least one quantity.", name="of")
    target = (
        StateTarget(vector)
        if isinstance(of, str)
        else QuantityTarget(sim, reads_of(sim, of, "of"), units_of(sim, of))
    )
    in_core = isinstance(target, StateTarget) and steps > 0 and steps_plainly(sim)
    found = [
        _by_core(sim, group, steps, step, error)
        if in_core and isinstance(group[0], StatePerturbation | ControlPerturbation)
        else _in_general(sim, target, group, steps, step, error)
        for group in _groups(blocks.values())
    ]
    return _assembled(blocks, found, target, tolerance)


def _groups(blocks: Iterable[Perturbation]) -> list[list[Perturbation]]:
    """Return blocks one by one, but controls that follow the state together with it."""
    groups: list[list[Perturbation]] = []
    for block in blocks:
        is_next = isinstance(block, ControlPerturbation) and groups
        if is_next and [type(one) for one in groups[-1]] == [StatePerturbation]:
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def check_differentiable(sim: Simulation, of: object) -> None:
    """Raise if a simulation, or its current state, has no derivatives."""
    instance_of("sim", sim, Simulation)
    if sim.dtype != torch.float64:
        raise InvalidInputError(
            "Differences in float32 have at most three significant digits: use "
            'engine="native" for derivatives.',
            name="engine",
        )
    if of == "state" and forcing_of(sim).mass_flow is not None:
        raise InvalidInputError(
            "The tangent state has no rows for variable masses (sim.mass_rate, "
            "Thruster): differentiate quantities, or a simulation without mass flow."
        )
    if not math.isfinite(float(worlds_of(sim).engine.state.sum())):  # in one pass
        for name in ("qpos", "qvel", "act", "ctrl"):
            check_finite(getattr(sim.data, name), name, after=" Nothing was computed.")


def steps_plainly(sim: Simulation) -> bool:
    """Return True if only MuJoCo's own steps advance the worlds, in the core."""
    model, forcing = sim.model, forcing_of(sim)
    flags = int(model.opt.enableflags)
    return (
        worlds_of(sim).engine.compiled is not None
        and type(stepper_of(sim)) is MujocoStepper
        and not forcing.models
        and forcing.mass_flow is None
        and not model.nhistory
        and not model.nplugin
        and not flags & mujoco.mjtEnableBit.mjENBL_SLEEP.value
    )


def _by_core(
    sim: Simulation,
    group: list[Perturbation],
    steps: int,
    step: float,
    with_error: bool,
) -> DerivativeColumns:
    """Return derivatives by the state, the controls, or both, by the compiled core."""
    worlds = worlds_of(sim)
    compiled = worlds.engine.compiled
    assert compiled is not None, "steps_plainly() is True"
    worlds.ledger.observe()
    worlds.fresh.refresh_constants()
    values, flags = compiled.differentiate(
        steps,
        step,
        1 + with_error,
        isinstance(group[0], StatePerturbation),
        isinstance(group[-1], ControlPerturbation),
    )
    matrices, switched = torch.as_tensor(values), torch.as_tensor(flags)
    if sim.divergence.any:
        matrices[:, sim.diverged] = torch.nan
    return DerivativeColumns(matrices[0], matrices[1] if with_error else None, switched)


def _in_general(
    sim: Simulation,
    target: StateTarget | QuantityTarget,
    group: list[Perturbation],
    steps: int,
    step: float,
    with_error: bool,
) -> DerivativeColumns:
    """Return derivatives by all values of a group: (num_envs, rows, columns)."""
    parts = [
        part
        for block in group
        for part in columns(sim, target, block, steps, step, with_error)
    ]
    if not parts:
        empty = torch.zeros(sim.num_envs, len(target.names), 0, dtype=torch.float64)
        wider = empty if with_error else None
        return DerivativeColumns(empty, wider, empty[:, 0].bool())
    return _combined(parts, torch.stack, -1)


def _combined(
    parts: Sequence[DerivativeColumns],
    combine: Callable[[list[Tensor], int], Tensor],
    dim: int,
) -> DerivativeColumns:
    """Return columns side by side."""
    wider = [part.wider for part in parts if part.wider is not None]
    return DerivativeColumns(
        combine([part.values for part in parts], dim),
        combine(wider, dim) if wider else None,
        combine([part.switched for part in parts], dim),
    )


def _assembled(
    blocks: dict[str, Perturbation],
    found: list[DerivativeColumns],
    target: StateTarget | QuantityTarget,
    tolerance: float,
) -> Derivatives:
    places: dict[str, slice] = {}
    labels: list[str] = []
    for name, block in blocks.items():
        places[name] = slice(len(labels), len(labels) + len(block.labels))
        labels += block.labels
    whole = found[0] if len(found) == 1 else _combined(found, torch.cat, -1)
    return Derivatives(
        matrix=whole.values,
        wider=whole.wider,
        switched=whole.switched,
        tolerance=tolerance,
        names_of_rows=target.names,
        units_of_rows=target.units,
        names_of_columns=tuple(labels),
        columns=places,
        shapes={name: block.shape for name, block in blocks.items()},
    )
