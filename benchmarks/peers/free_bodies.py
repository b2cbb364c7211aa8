"""Free bodies under loads: one by Ptera Software's MuJoCoModel, 1024 by FreeFlight.

Prints (world-)steps per second; the first argument is "peer" or "simstate".
"""

from __future__ import annotations

import sys

from free_body import INERTIA, MASS, TIMESTEP, VELOCITY, model_of, rate

WORLDS = 1024


def fleet_rate() -> float:
    """World-steps per second; FreeFlight has the same calls as Ptera's class."""
    from simstate.flight import FreeFlight

    flight = FreeFlight(
        MASS,
        INERTIA,
        WORLDS,
        timestep=TIMESTEP,
        velocity_E__E=VELOCITY,
        integrator="RK4",
        gravity=0,
    )
    return WORLDS * rate(flight, 100)


print(rate(model_of("peer"), 4000) if sys.argv[1] == "peer" else fleet_rate())
