"""Suggested randomisation in training that covers a simulator's differences."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simstate.simulators.align.findings import SimulatorAlignment

_FIELDS = {
    "mass": "body_mass",
    "centre of mass": "body_ipos",
    "inertia": "body_inertia",
    "gravity compensation": "body_gravcomp",
    "armature": "dof_armature",
    "damping": "dof_damping",
    "dry friction": "dof_frictionloss",
    "spring stiffness": "jnt_stiffness",
    "servo stiffness": "actuator_gainprm and actuator_biasprm",
    "servo damping": "actuator_biasprm",
    "force limit": "actuator_forcerange",
    "sliding friction": "geom_friction",
    "gravity": "opt.gravity",
}
"""The field of MuJoCo's model that `sim.expand` varies, by kind of parameter."""

_TERMS = {
    "how contacts are found and solved": "friction and softness of contacts: "
    "geom_friction and geom_solref",
    "how joint limits are solved": "softness of joint limits: jnt_solref",
    "how equalities are solved": "softness of equalities: eq_solref",
    "how dry friction is solved": "dry friction: dof_frictionloss",
    "how force limits act on servos": "force limits: actuator_forcerange",
}


@dataclass(frozen=True)
class Suggestion:
    """A parameter to randomise in training."""

    what: str
    """The cause that it covers."""
    elements: tuple[str, ...]
    low: float | None
    """The lower of MuJoCo's and the other's value, if the two are the same for every
    element; None: there is no common range."""
    high: float | None
    """The higher one."""
    how: str
    """Parameter to vary, in words."""

    def __str__(self) -> str:
        span = "" if self.low is None else f" over [{self.low:.4g}, {self.high:.4g}]"
        if self.low is None and self.elements:
            span = ", each from MuJoCo's value to theirs"
        where = f" of {', '.join(self.elements[:3])}" if self.elements else ""
        more = f", … {len(self.elements)} in all" if len(self.elements) > 3 else ""
        return f"{self.what}{where}{more}: vary {self.how}{span}"


def suggestions(alignment: SimulatorAlignment) -> list[Suggestion]:
    """Return a suggestion for each proven cause, the largest effect first."""
    found: list[Suggestion] = []
    causes = sorted(alignment.causes.values(), key=lambda cause: -cause.left)
    for cause in causes:
        if cause.what in _TERMS:
            how = _TERMS[cause.what]
            found.append(Suggestion(cause.what, (), None, None, how))
        elif cause.what in _FIELDS:
            low, high = _range(alignment, cause.what)
            how = _FIELDS[cause.what]
            found.append(Suggestion(cause.what, cause.elements, low, high, how))
    return found


def _range(
    alignment: SimulatorAlignment, kind: str
) -> tuple[float | None, float | None]:
    """Return the limits, if all elements have the same two finite values."""
    spans = {
        (*difference.ours, *difference.theirs)
        for difference in alignment.parameters
        if difference.kind == kind
    }
    values = next(iter(spans)) if len(spans) == 1 else ()
    if len(values) != 2 or not all(math.isfinite(value) for value in values):
        return None, None
    return min(values), max(values)
