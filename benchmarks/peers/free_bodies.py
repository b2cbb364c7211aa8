"""Free bodies under loads: one by Ptera Software's MuJoCoModel, 1024 by FreeFlight.

Prints (world-)steps per second; the first argument is "peer" or "simstate".
"""

from __future__ import annotations

import sys

import free_body

WORLDS = 1024


class Fleet:
    """1024 bodies behind the calls that Ptera's class has."""

    def __init__(self) -> None:
        from simstate.flight import FreeFlight

        self.flight = FreeFlight(
            free_body.MASS,
            free_body.INERTIA,
            WORLDS,
            timestep=free_body.TIMESTEP,
            velocity_E__E=free_body.VELOCITY,
            integrator="RK4",
            gravity=0,
        )
        self.step, self.get_state = self.flight.step, self.flight.get_state

    def apply_loads(self, force: object, moment: object) -> None:
        """The same loads on all."""
        self.flight.apply_loads(force, moment)


if sys.argv[1] == "peer":
    print(free_body.rate(free_body.model_of("peer"), 4000))
else:
    print(WORLDS * free_body.rate(Fleet(), 100))
