"""Deterministic integrators: a tableau, an attitude mode, and tolerances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from simstate.base.checks import number
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.engine.tableau import Tableau
from simstate.step.schemes.tolerances import Tolerance, check_tolerance

AttitudeMode = Literal["lie", "high_order", "manifold"]
ATTITUDE_MODES: tuple[AttitudeMode, ...] = ("lie", "high_order", "manifold")


@dataclass(frozen=True)
class Explicit:
    """A Runge-Kutta scheme with fixed steps of the model's time step.

    It advances positions, velocities, activations, variable masses and processes
    together: at every stage all of them have the same time, and force models are
    evaluated. Values written between calls of `step` (controls, applied forces,
    parameters) hold for all stages. After a step all reads, including accelerations,
    are those of the new state.

    Attitude modes, for all free and ball joints:

    - "lie": the stages are rotation vectors relative to the start of the step
      (Munthe-Kaas). Full order, unit norm by construction, exact for a constant
      angular velocity. A step should rotate a body by less than half a turn.
    - "high_order": the four components of the quaternion are integrated separately
      and normalised. Full order.
    - "manifold": one rotation by the stage-averaged rate, as in MuJoCo 3's own RK4:
      RK4 is then bit-identical (except for `filterexact` activations, which MuJoCo
      advances by a separate formula). Second order in attitude for every scheme.
    """

    tableau: Tableau
    attitude: AttitudeMode = "lie"

    def __post_init__(self) -> None:
        if not isinstance(self.tableau, Tableau):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(
                f"tableau must be a Tableau, got {type(self.tableau).__name__}: "
                "use Explicit(Tableau(name, a, b, order)), or a built-in one, RK4().",
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
    """A Runge-Kutta pair that adapts the steps of each world to a tolerance.

    `sim.step(n)` ends exactly n time steps later and takes as many internal steps as
    the tolerances require. The solution of higher order is accepted, and the step size
    is kept between calls. The error of an attitude is a rotation vector [rad].

    The start of a contact or of an active limit within a step is located: the step
    ends there, to 1e-11 s, and the next one starts in contact. Steps are also short
    enough that no geom passes through another. This is free if nothing can touch.

    Args:
        tableau: a scheme with an embedded one (`b_error`).
        attitude: "lie" or "high_order"; an embedded scheme cannot estimate the error
            of "manifold".
        atol: absolute tolerance: one for all values in their units, or by kind:
            {"position": 1e-3, "attitude": 1e-8}. The kinds are position, attitude,
            velocity and rate (of free and ball joints), joint and joint_rate (of
            hinges and slides), activation, mass, process, and processes by their
            names; qpos and qvel denote all of their kinds. Other kinds have the
            defaults of `simstate.step.schemes.tolerances.ABSOLUTE`.
        rtol: relative tolerance, likewise; attitudes are relative to 1 rad. The default
            is 1e-6.
        max_step: the maximum step [s].
        min_step: the minimum step [s]; a tolerance that requires less raises an error.
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
                'attitude="manifold" is second order in every scheme, and the embedded '
                "solution cannot estimate its error, so a tolerance would not hold. "
                'Use attitude="lie" or "high_order".',
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
                f"min_step must be less than max_step, got min_step={self.min_step} "
                f"and max_step={self.max_step}.",
                name="min_step",
            )
