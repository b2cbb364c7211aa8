"""SymmetryCfg: the plane of symmetry of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from simstate.base.checks import all_of, instance_of, one_of
from simstate.base.errors import InvalidInputError


@dataclass(kw_only=True)
class SymmetryCfg:
    """Which mirror image a task has; a learner uses it by `TrainCfg.symmetric`."""

    normal: Literal["x", "y", "z"] = "y"
    """Normal of the plane of symmetry through the root links, which are their own
    mirror images."""
    joints: Mapping[str, str] = field(default_factory=dict[str, str])
    """Pairs of joints of the robots that geometry does not give; {"left": "-right"} if
    their positions have opposite signs."""
    phase_shift: float | None = None
    """Share of a period by which a mirrored gait is later: 0.5 where left and right
    take turns, 0 where they move together; None: not declared."""

    def check(self) -> None:
        """Raise unless every setting is one of those that there are."""
        one_of("symmetry.normal", self.normal, ("x", "y", "z"))
        instance_of("symmetry.joints", self.joints, Mapping)
        all_of("symmetry.joints", [*self.joints, *self.joints.values()], str)
        if self.phase_shift not in (None, 0.0, 0.5):
            raise InvalidInputError(
                f"symmetry.phase_shift is {self.phase_shift!r}: it must be 0, 0.5 or "
                "None.",
                name="phase_shift",
            )
