"""Deterministic integrators: a tableau, an attitude mode, and tolerances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from simstate.base.checks import number
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.step.schemes.tableau import Tableau
from simstate.step.schemes.tolerances import Tolerance, check_tolerance

AttitudeMode = Literal["lie", "high_order", "manifold"]
ATTITUDE_MODES: tuple[AttitudeMode, ...] = ("lie", "high_order", "manifold")


@dataclass(frozen=True)
class Explicit:
    """A Runge-Kutta scheme with fixed steps of the model's time step.

    It advances positions, velocities, activations, flowing masses and processes
    together: all of them are of the same instant at every stage, and force models are
    evaluated at each. What is written between calls of `step` (controls, applied
    forces, parameters) holds for all stages. After a step everything that
    is read is of the new state, accelerations too.

    Attitude, of every free and ball joint:

    - "lie": the stages live in the rotation vector from the step's start
      (Munthe-Kaas). Full order, unit length by construction, exact for a constant
      angular velocity. A step should turn a body by less than half a turn.
    - "high_order": the four components of the quaternion are integrated like numbers
      and normalised. Full order.
    - "manifold": one rotation by the stage-averaged rate, as MuJoCo 3's own RK4 does:
      RK4 then gives its bits (but for `filterexact` activations, which MuJoCo advances
      by a separate formula). Second order in attitude, whatever the scheme.
    """

    tableau: Tableau
    attitude: AttitudeMode = "lie"

    def __post_init__(self) -> None:
        if not isinstance(self.tableau, Tableau):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                f"tableau must be a Tableau, got {type(self.tableau).__name__}: "
                "Explicit(Tableau(name, a, b, order)), or a ready one such as RK4().",
                name="tableau",
            )
        if self.attitude not in ATTITUDE_MODES:
            raise unknown_name("attitude mode", str(self.attitude), ATTITUDE_MODES)

    @property
    def name(self) -> str:
        """The scheme's name."""
        return self.tableau.name


@dataclass(frozen=True)
class Adaptive(Explicit):
    """A Runge-Kutta pair whose steps, world by world, meet a tolerance.

    `sim.step(n)` ends at exactly n time steps later and takes as many internal steps
    as the tolerances ask for; the solution of higher order is accepted, and the step
    size is remembered from call to call. The error of an attitude is a rotation
    vector [rad].

    A contact or a limit that begins within a step is located: the step ends there, to
    1e-11 s, and the next one starts in contact. Steps are also short enough that no
    geom passes through another. Where nothing can touch, neither has a cost.

    Args:
        tableau: a scheme with an embedded one (`b_error`).
        attitude: "lie" or "high_order"; the error of "manifold" cannot be seen by an
            embedded scheme.
        atol: absolute tolerance: one for every number in its own unit, or by what the
            numbers are: {"position": 1e-3, "attitude": 1e-8}. Kinds are position,
            attitude, velocity and rate (of free and ball joints), joint and joint_rate
            (of hinges and slides), activation, mass, process, and processes by their
            names; qpos and qvel stand for their kinds. Those left out have the
            defaults of `simstate.step.schemes.tolerances.ABSOLUTE`.
        rtol: relative tolerance, likewise; attitudes are relative to 1 rad. 1e-6 where
            none is given.
        max_step: no step is longer than this [s].
        min_step: a step that would have to be shorter to meet the tolerance raises [s].
        contact_timestep: the time step that limits the stiffness of contacts, limits
            and other constraints [s]: MuJoCo softens a `solref` whose time constant is
            below twice this. None: the model's time step, but at most 0.002 s.
    """

    atol: Tolerance = None
    rtol: Tolerance = None
    max_step: float = math.inf
    min_step: float = 1e-12
    contact_timestep: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tableau.b_error is None:
            raise InvalidInputError(
                f"Scheme {self.name!r} has no embedded solution (b_error), so it "
                "cannot adapt its step: use Explicit(tableau), or DP54().",
                name="b_error",
            )
        if self.attitude == "manifold":
            raise InvalidInputError(
                'attitude="manifold" is second order whatever the scheme, and the '
                "embedded solution does not see its error, so a tolerance would not "
                'hold. Use attitude="lie" or "high_order".',
                name="attitude",
            )
        check_tolerance("atol", self.atol)
        check_tolerance("rtol", self.rtol)
        number("min_step", self.min_step, more_than=0, unit="s")
        number("max_step", self.max_step, finite=False, unit="s")
        if self.contact_timestep is not None:
            number("contact_timestep", self.contact_timestep, more_than=0, unit="s")
        if not self.min_step < self.max_step:
            raise InvalidInputError(
                f"min_step < max_step is needed, got min_step={self.min_step} and "
                f"max_step={self.max_step}.",
                name="min_step",
            )
