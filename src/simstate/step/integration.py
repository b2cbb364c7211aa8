"""The stepper of an integrator, chosen by its scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from simstate.base.errors import InvalidInputError
from simstate.step.divergence import Divergence
from simstate.step.forcing import Forcing
from simstate.step.schemes.schemes import Adaptive, Explicit
from simstate.step.stochastic.stochastic import Integrator, Stochastic
from simstate.world.worlds import Worlds

if TYPE_CHECKING:  # it loads Warp
    from simstate.step.runge_kutta_stepper import RungeKuttaStepper


def make_integration(
    worlds: Worlds,
    forcing: Forcing,
    divergence: Divergence,
    scheme: Integrator | None,
) -> RungeKuttaStepper | None:
    """Return the stepper of a scheme; None: MuJoCo's own stepper is used."""
    if scheme is None:
        return None
    from simstate.step.adaptive_stepper import AdaptiveStepper  # these load Warp
    from simstate.step.runge_kutta_stepper import RungeKuttaStepper
    from simstate.step.stochastic_stepper import StochasticStepper

    parts = (worlds, forcing, divergence)
    with torch.inference_mode(False):
        if isinstance(scheme, Adaptive):
            return AdaptiveStepper(*parts, scheme)
        if isinstance(scheme, Stochastic):
            return StochasticStepper(*parts, scheme)
        if isinstance(scheme, Explicit):  # pyright: ignore[reportUnnecessaryIsInstance]
            return RungeKuttaStepper(*parts, scheme)
    raise InvalidInputError(
        "integrator must be a scheme of simstate.integrate, such as RK4(), or None "
        f"for MuJoCo's own stepper; got {scheme!r}.",
        name="integrator",
    )
