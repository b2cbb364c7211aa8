"""The phugoid of a glider: slow swings of height and speed, at four trim speeds.

Lift is in proportion to V² and at right angles to the flight path; there is no drag.
Then the glider swings about level flight at its trim speed V with Lanchester's period T
= π √2 V / g, whatever its mass and wing. The four worlds are trimmed for four speeds.
"""

import math

import torch

from simstate.flight import FreeFlight, Load
from simstate.integrate import RK4

MASS = 1.5  # kg
GRAVITY = 9.80665  # m/s²
SECONDS, TIMESTEP = 20.0, 0.05
TRIM = torch.tensor([8.0, 12.0, 16.0, 20.0], dtype=torch.float64)  # m/s


def lift(t, state) -> Load:
    """Weight at trim speed, V² away from it, upwards in wind axes (z is down)."""
    speed = state.velocity_E__E.norm(dim=-1)
    force = torch.zeros_like(state.velocity_E__E)
    force[:, 2] = -MASS * GRAVITY * (speed / TRIM) ** 2
    return Load(force=force, axes="wind")


def period(time: torch.Tensor, climb: torch.Tensor) -> float:
    """Time between the first two moments at which the climb turns positive [s]."""
    rising = ((climb[:-1] < 0) & (climb[1:] >= 0)).nonzero().flatten()
    # Where a straight line between two samples crosses zero.
    share = -climb[rising] / (climb[rising + 1] - climb[rising])
    crossings = time[rising] + share * (time[rising + 1] - time[rising])
    return float(crossings[1] - crossings[0])


def main() -> None:
    """Start each glider 2 % too fast and watch it for twenty seconds."""
    glider = FreeFlight(
        mass=MASS,
        inertia=[[0.13, 0, 0], [0, 0.1, 0], [0, 0, 0.22]],
        num_envs=len(TRIM),
        timestep=TIMESTEP,
        gravity=GRAVITY,
        integrator=RK4(),
    )
    start = torch.zeros(len(TRIM), 3, dtype=torch.float64)
    start[:, 0] = 1.02 * TRIM  # north
    glider.set_state(velocity_E__E=start)
    glider.add_load(lift)
    flown = glider.fly(round(SECONDS / TIMESTEP))
    for world, speed in enumerate(TRIM.tolist()):
        climb = -flown.velocity_E__E[:, world, 2]  # E's z is down
        measured = period(flown.time[:, world], climb)
        expected = math.pi * math.sqrt(2) * speed / GRAVITY
        swing = flown.position_E_Eo[:, world, 2]
        print(
            f"trim {speed:4.1f} m/s: period {measured:.3f} s, π√2 V/g = "
            f"{expected:.3f} s ({100 * (measured / expected - 1):+.2f} %), "
            f"height swings by {float(swing.max() - swing.min()):.2f} m"
        )


if __name__ == "__main__":
    main()
