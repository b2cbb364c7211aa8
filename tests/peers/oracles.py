"""What brahe, ambiance and JPL's DE421 say; runs in the peers' environment.

Reads a case from the standard input and prints JSON.
"""

from __future__ import annotations

import json
import sys

import ambiance
import brahe
import de421
import numpy as np
from jplephem import Ephemeris


def gravity(case: dict) -> list[list[float]]:
    """Accelerations of EGM2008 at places in fixed axes [m/s²]."""
    model = brahe.GravityModel.from_model_type(brahe.GravityModelType.EGM2008_120)
    return [
        model.compute_spherical_harmonics(np.array(place), *case["degree"]).tolist()
        for place in case["places"]
    ]


def elements(case: dict) -> list[list[float]]:
    """a, e, i, Ω, ω, M of states about the Earth (rad, m)."""
    return [
        brahe.state_eci_to_koe(np.array(state), brahe.AngleFormat.RADIANS).tolist()
        for state in case["states"]
    ]


def air(case: dict) -> list[list[float]]:
    """Temperature, pressure, density, sound, viscosity by geometric altitude."""
    found = ambiance.Atmosphere(np.array(case["altitudes"]))
    parts = (
        found.temperature, found.pressure, found.density, found.speed_of_sound,
        found.dynamic_viscosity,
    )  # fmt: skip
    return np.stack(parts, axis=-1).tolist()


def planets(case: dict) -> dict[str, list[list[float]]]:
    """Sun and Moon from the Earth [m], by DE421, at Julian dates (TDB)."""
    tables = Ephemeris(de421)
    share = 1 / (1 + tables.EMRAT)
    sun, moon = [], []
    for date in case["dates"]:
        centre = tables.position("earthmoon", date)[:, 0]
        lunar = tables.position("moon", date)[:, 0]
        earth = centre - share * lunar
        sun.append((1e3 * (tables.position("sun", date)[:, 0] - earth)).tolist())
        moon.append((1e3 * lunar).tolist())
    return {"sun": sun, "moon": moon}


if __name__ == "__main__":
    given = json.loads(sys.stdin.read())
    jobs = {"gravity": gravity, "elements": elements, "air": air, "planets": planets}
    print(json.dumps({name: job(given[name]) for name, job in jobs.items()}))
