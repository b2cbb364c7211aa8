"""The built-in deterministic schemes: a class and its coefficients each.

A scheme is data: one loop (`runge_kutta_stepper.py`, in C `engine/core/`) runs them
all. To add one, write its tableau, which is checked when it is created, and a class
next to it; or use `Explicit(Tableau(…))` and `Adaptive(Tableau(…))` directly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from simstate.base.checks import instance_of
from simstate.base.errors import InvalidInputError, unknown_name
from simstate.engine.tableau import Tableau
from simstate.step.schemes import dop853
from simstate.step.schemes.schemes import Adaptive, AttitudeMode, Explicit

# Fixed steps.


@dataclass(frozen=True)
class Euler(Explicit):
    """Forward Euler: order 1, one stage.

    For comparison: it gains energy, and halving the step only halves the error.
    MuJoCo's own stepper (`integrator=None`) is semi-implicit, and stable where this one
    is not.
    """

    tableau: Tableau = field(
        default=Tableau("Euler", a=((),), b=(1.0,), order=1), init=False
    )


_HEUN = Tableau("Heun", a=((), (1.0,)), b=(1 / 2, 1 / 2), order=2)


@dataclass(frozen=True)
class Heun(Explicit):
    """Heun's scheme: order 2, two stages; also the explicit trapezoid, RK2.

    Evaluates the loads at the start and at the end of the step.
    """

    tableau: Tableau = field(default=_HEUN, init=False)


_MIDPOINT = Tableau("Midpoint", a=((), (1 / 2,)), b=(0.0, 1.0), order=2)


@dataclass(frozen=True)
class Midpoint(Explicit):
    """The explicit midpoint scheme: order 2, two stages; also modified Euler.

    Loads are applied as of the middle of the step, which suits jumps at its ends.
    """

    tableau: Tableau = field(default=_MIDPOINT, init=False)


_RK4 = Tableau(
    "RK4",
    a=((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)),
    b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
    order=4,
)


@dataclass(frozen=True)
class RK4(Explicit):
    """The classical Runge-Kutta scheme: order 4, four stages.

    The usual choice for smooth dynamics with a fixed step. Contacts and friction are
    not smooth: there MuJoCo's own stepper is as good and four times as cheap.
    """

    tableau: Tableau = field(default=_RK4, init=False)


# Adaptive steps. The solution of the first order named is accepted, the second
# estimates the error.


def _less(b: tuple[float, ...], embedded: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(x - y for x, y in zip(b, embedded, strict=True))


_BS32_B = (2 / 9, 1 / 3, 4 / 9, 0.0)
_BS32 = Tableau(
    "BS32",
    a=((), (1 / 2,), (0.0, 3 / 4), (2 / 9, 1 / 3, 4 / 9)),
    b=_BS32_B,
    order=3,
    b_error=_less(_BS32_B, (7 / 24, 1 / 4, 1 / 3, 1 / 8)),
    error_order=2,
)


@dataclass(frozen=True)
class BS32(Adaptive):
    """Bogacki and Shampine's pair: order 3 with 2, four stages.

    The last stage is the first of the next step, so that a step costs three
    evaluations. For tolerances of 1e-4 and looser; others call it ode23 or RK23.
    """

    tableau: Tableau = field(default=_BS32, init=False)


_RKF45_B = (16 / 135, 0.0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55)
_RKF45 = Tableau(
    "RKF45",
    a=(
        (),
        (1 / 4,),
        (3 / 32, 9 / 32),
        (1932 / 2197, -7200 / 2197, 7296 / 2197),
        (439 / 216, -8.0, 3680 / 513, -845 / 4104),
        (-8 / 27, 2.0, -3544 / 2565, 1859 / 4104, -11 / 40),
    ),
    b=_RKF45_B,
    order=5,
    b_error=_less(_RKF45_B, (25 / 216, 0.0, 1408 / 2565, 2197 / 4104, -1 / 5, 0.0)),
    error_order=4,
)


@dataclass(frozen=True)
class RKF45(Adaptive):
    """Fehlberg's pair: order 5 with 4, six stages.

    For comparison with Basilisk, which accepts the solution of order 4. DP54 has a
    smaller error for the same number of evaluations.
    """

    tableau: Tableau = field(default=_RKF45, init=False)


_DP54_B = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0)
_DP54 = Tableau(
    "DP54",
    a=(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        _DP54_B[:-1],
    ),
    b=_DP54_B,
    order=5,
    b_error=_less(
        _DP54_B,
        (
            5179 / 57600,
            0.0,
            7571 / 16695,
            393 / 640,
            -92097 / 339200,
            187 / 2100,
            1 / 40,
        ),
    ),
    error_order=4,
)


@dataclass(frozen=True)
class DP54(Adaptive):
    """Dormand and Prince's pair: order 5 with 4, seven stages.

    The last stage is the first of the next step, so that a step costs six evaluations.
    The usual choice for tolerances of 1e-4 to 1e-8; others call it ode45, RK45 or
    dopri5.
    """

    tableau: Tableau = field(default=_DP54, init=False)


_0 = 0.0
_RKF78_7 = (
    *(41 / 840, _0, _0, _0, _0, 34 / 105, 9 / 35, 9 / 35, 9 / 280, 9 / 280, 41 / 840),
    *(_0, _0),
)
_RKF78_8 = (
    *(_0, _0, _0, _0, _0, 34 / 105, 9 / 35, 9 / 35, 9 / 280, 9 / 280, _0),
    *(41 / 840, 41 / 840),
)
_RKF78 = Tableau(
    "RKF78",
    a=(
        (),
        (2 / 27,),
        (1 / 36, 1 / 12),
        (1 / 24, _0, 1 / 8),
        (5 / 12, _0, -25 / 16, 25 / 16),
        (1 / 20, _0, _0, 1 / 4, 1 / 5),
        (-25 / 108, _0, _0, 125 / 108, -65 / 27, 125 / 54),
        (31 / 300, _0, _0, _0, 61 / 225, -2 / 9, 13 / 900),
        (2.0, _0, _0, -53 / 6, 704 / 45, -107 / 9, 67 / 90, 3.0),
        (
            *(-91 / 108, _0, _0, 23 / 108, -976 / 135, 311 / 54, -19 / 60, 17 / 6),
            -1 / 12,
        ),
        (
            *(2383 / 4100, _0, _0, -341 / 164, 4496 / 1025, -301 / 82, 2133 / 4100),
            *(45 / 82, 45 / 164, 18 / 41),
        ),
        (
            *(3 / 205, _0, _0, _0, _0, -6 / 41, -3 / 205, -3 / 41, 3 / 41, 6 / 41),
            _0,
        ),
        (
            *(-1777 / 4100, _0, _0, -341 / 164, 4496 / 1025, -289 / 82, 2193 / 4100),
            *(51 / 82, 33 / 164, 12 / 41, _0, 1.0),
        ),
    ),
    b=_RKF78_8,
    order=8,
    b_error=_less(_RKF78_8, _RKF78_7),
    error_order=7,
)


@dataclass(frozen=True)
class RKF78(Adaptive):
    """Fehlberg's pair: order 8 with 7, thirteen stages.

    For comparison with other tools; DOP853 estimates its error better. If a load
    depends only on time, the two solutions coincide and no error is detected.
    """

    tableau: Tableau = field(default=_RKF78, init=False)


_DOP853 = Tableau(
    "DOP853",
    a=dop853.A,
    b=dop853.B,
    order=8,
    b_error=dop853.E5,
    error_order=5,
    b_error_low=dop853.E3,
)


@dataclass(frozen=True)
class DOP853(Adaptive):
    """Dormand and Prince's scheme: order 8 with 5 and 3, twelve stages.

    The error estimate combines two embedded solutions. Use it for tolerances of 1e-9
    and tighter: orbits and reference solutions.
    """

    tableau: Tableau = field(default=_DOP853, init=False)


SCHEMES: dict[str, type[Explicit]] = {
    scheme.__name__.lower(): scheme
    for scheme in (Euler, Heun, Midpoint, RK4, BS32, RKF45, DP54, RKF78, DOP853)
}
"""The built-in deterministic schemes by name in lower case."""


def scheme(name: str, attitude: AttitudeMode = "lie", **options: Any) -> Explicit:
    """Return the built-in scheme of a name ("rk4", "dp54", …), ignoring case."""
    instance_of("The name of a scheme", name, str)
    found = SCHEMES.get(name.lower())
    if found is None:
        raise unknown_name("integration scheme", name.lower(), SCHEMES)
    if options and not issubclass(found, Adaptive):
        adaptive = [x.__name__ for x in SCHEMES.values() if issubclass(x, Adaptive)]
        raise InvalidInputError(
            f"{found.__name__} has fixed steps and no option {', '.join(options)}; "
            f"adaptive schemes are {', '.join(adaptive)}.",
            name=found.__name__,
        )
    return found(attitude=attitude, **options)
