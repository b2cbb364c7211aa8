"""simstate next to Basilisk, JSBSim, brahe, ambiance and DE421: `make test-peers`.

Each runs in the peers' environment by a script of this folder; here the same case is
run by simstate, the greatest differences are printed, and too great ones fail.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import torch
from scipy.spatial.transform import Rotation

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.docs.line_by_line import columns, run

from simstate import Simulation
from simstate.flight import ExponentialAtmosphere, StandardAtmosphere
from simstate.integrate import DOP853, Drag, MovingFrame
from simstate.space import (
    EARTH,
    Epoch,
    HarmonicGravity,
    Planet,
    PlanetAir,
    UniformRotation,
    earth_coefficients,
    elements_from_state,
    moon,
    sun,
    zonal_coefficients,
)
from simstate.step.forces import point_mass

FOLDER = Path(__file__).parent
PEERS = FOLDER.parents[1] / "build" / "peers" / "bin" / "python"
F64 = torch.float64
BRAHES_MU = 3.986004415e14
results: list[bool] = []


def ask(script: str, case: dict) -> dict:
    """What a peer's script says of a case."""
    done = subprocess.run(
        [str(PEERS), str(FOLDER / script)], input=json.dumps(case), text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def tell(what: str, difference: float, allowed: float, unit: str = "") -> None:
    """Print a difference, and record whether it is within its limit."""
    good = difference <= allowed
    results.append(good)
    mark = "ok " if good else "BAD"
    print(f"{mark} {what:62} {difference:9.2e} ≤ {allowed:.0e} {unit}", flush=True)


class PointGradient(HarmonicGravity):
    """Basilisk's gravity gradient is that of the central term alone."""

    def acceleration(self, t, pos):
        """The field with J2."""
        return super().acceleration(t, pos)

    def difference(self, t, pos, offset):
        """The field's difference."""
        return HarmonicGravity.difference(self, t, pos, offset)

    def gradient(self, t, pos):
        """The central term's."""
        return point_mass.gradient(self._mu(), pos)


BODY = """<mujoco><option timestep="{dt}" gravity="0 0 0"/><worldbody>
<body name="craft"><freejoint align="false"/><inertial pos="0 0 0" mass="{mass}"
 fullinertia="{inertia}"/></body></worldbody></mujoco>"""


def craft(case: dict, dt: float, gravity: HarmonicGravity, air: PlanetAir):
    """One body in a moving frame, with drag."""
    m = np.array(case["inertia"])
    entries = (m[0, 0], m[1, 1], m[2, 2], m[0, 1], m[0, 2], m[1, 2])
    text = BODY.format(dt=dt, mass=case["mass"], inertia=" ".join(map(str, entries)))
    model = mujoco.MjModel.from_xml_string(text)
    sim = Simulation(model, 1, integrator=DOP853(atol=1e-9, rtol=1e-11))
    frame = MovingFrame(gravity, case["position"], case["velocity"])
    sim.add_process(frame)
    sim.add_force(Drag("model", "craft", case["area"], air.density, air.wind))
    sim.data.qpos[0, 3:7] = torch.tensor(case["quat"], dtype=F64)
    sim.data.qvel[0, 3:6] = torch.tensor(case["ang_vel_b"], dtype=F64)
    return sim, frame


def low_orbit() -> None:
    """Ten orbits with J2, drag and gravity gradient, in Basilisk's spacecraft."""
    quat = np.array([0.5, -0.3, 0.4, 0.7])
    case = {
        "mu": EARTH.mu, "radius": EARTH.radius, "j2": EARTH.j2, "mass": 120.0,
        "inertia": [[9, 0.5, -0.3], [0.5, 14, 0.2], [-0.3, 0.2, 18]],
        "position": [6.75e6, 2e5, 3e5], "velocity": [-350.0, 5400.0, 5450.0],
        "quat": (quat / np.linalg.norm(quat)).tolist(),
        "ang_vel_b": [1e-3, -8e-4, 6e-4], "density": 4e-9, "scale_height": 55000.0,
        "area": 6.0, "step": 1.0, "every": 1100.0, "seconds": 55000.0,
    }  # fmt: skip
    theirs = ask("basilisk_leo.py", case)
    # Basilisk's air is still and its planet is round.
    ball = Planet("ball", EARTH.mu, EARTH.radius, 0.0, 0.0, EARTH.j2)
    air = PlanetAir(ball, ExponentialAtmosphere(4e-9, 55000.0), turns=False)
    gravity = PointGradient(zonal_coefficients(EARTH))
    sim, frame = craft(case, 1100.0, gravity, air)
    apart, turned = [], []
    for k in range(len(theirs["time"])):
        if k:
            sim.step()
        place = frame.body_com_pos_w(sim.scene["model"])[0, 0].numpy()
        apart.append(float(np.linalg.norm(place - theirs["position"][k])))
        one, two = (
            Rotation.from_quat(q, scalar_first=True)
            for q in (sim.data.qpos[0, 3:7].numpy(), theirs["quat"][k])
        )
        turned.append((one.inv() * two).magnitude())
    ten = len(apart) - 1
    tell(
        "Basilisk: low orbit, J2, drag: position after ten orbits", apart[ten], 1.0, "m"
    )
    tell(
        "Basilisk: gravity gradient: attitude after two orbits", turned[10], 1e-5, "rad"
    )


def fall() -> None:
    """A sphere that falls from 9 km through turning air, in JSBSim."""
    case = {
        "mass": 200.0, "area": 0.2, "step": 0.002, "height": 9144.0, "latitude": 20.0,
        "seconds": 40, "altitudes": [0.0, 5e3, 11e3, 15e3, 25e3, 4e4, 5e4, 6e4, 7.5e4],
    }  # fmt: skip
    theirs = ask("jsbsim_drop.py", case)
    rows = np.array(theirs["rows"])
    body = {
        "mass": 200.0, "inertia": np.diag([10.0, 10, 10]), "area": 0.2,
        "position": rows[0, :3], "velocity": rows[0, 3:], "quat": [1.0, 0, 0, 0],
        "ang_vel_b": [0.0, 0.0, 0.0],
    }  # fmt: skip
    sim, frame = craft(
        body, 1.0, HarmonicGravity(zonal_coefficients(EARTH)), PlanetAir()
    )
    gap = 0.0
    for row in rows[1:]:
        sim.step()
        place = frame.body_com_pos_w(sim.scene["model"])[0, 0].numpy()
        gap = max(gap, float(np.linalg.norm(place - row[:3])))
    fell = float(np.linalg.norm(rows[-1, :3]) - np.linalg.norm(rows[0, :3]))
    tell(f"JSBSim: fall by {-fell:.0f} m on a turning Earth", gap, 0.5, "m")
    air = StandardAtmosphere().at(torch.tensor(case["altitudes"], dtype=F64))
    own = torch.stack(
        [air.temperature, air.pressure, air.density, air.speed_of_sound], dim=-1
    )
    off = np.abs(own.numpy() / np.array(theirs["air"]) - 1).max()
    tell("JSBSim: standard atmosphere to 75 km, relative", off, 1e-3)


def oracles() -> None:
    """Harmonics, elements, air, Sun and Moon."""
    rng = np.random.default_rng(7)
    places = rng.normal(size=(50, 3))
    places *= rng.uniform(6.5e6, 9e6, 50)[:, None] / np.linalg.norm(
        places, axis=1, keepdims=True
    )
    states = np.concatenate([places, rng.normal(size=(50, 3)) * 4e3], axis=1)
    epoch = Epoch.utc("2021-01-01T00:00:00")
    times = np.linspace(0, 3 * 365.25 * 86400, 200)
    dates = epoch.tt_days + epoch.tt_fraction + times / 86400
    heights = np.linspace(0, 80e3, 161)
    said = ask(
        "oracles.py",
        {
            "gravity": {"places": places.tolist(), "degree": [20, 20]},
            "elements": {"states": states.tolist()},
            "air": {"altitudes": heights.tolist()},
            "planets": {"dates": dates.tolist()},
        },
    )
    field = HarmonicGravity(earth_coefficients(20), UniformRotation(0.0))
    own = field.acceleration(torch.zeros(1, dtype=F64), torch.as_tensor(places)[None])[
        0
    ]
    off = np.abs(own.numpy() - said["gravity"]).max()
    tell("brahe: EGM2008 to degree and order 20, acceleration", off, 1e-14, "m/s²")
    found = elements_from_state(states[:, :3], states[:, 3:], BRAHES_MU)
    theirs = np.array(said["elements"])
    closed = (found.eccentricity < 1).numpy()
    ratio = found.semi_major_axis.numpy()[closed] / theirs[closed, 0] - 1
    tell("brahe: semi-major axis, relative", np.abs(ratio).max(), 1e-11)
    angles = np.stack([found.inclination, found.node, found.periapsis], axis=1)[closed]
    gap = np.remainder(angles - theirs[closed, 2:5] + np.pi, 2 * np.pi) - np.pi
    tell("brahe: inclination, node, periapsis", np.abs(gap).max(), 1e-9, "rad")
    air = StandardAtmosphere().at(torch.as_tensor(heights))
    own = torch.stack(
        [air.temperature, air.pressure, air.density, air.speed_of_sound, air.viscosity],
        dim=-1,
    )
    off = np.abs(own.numpy() / np.array(said["air"]) - 1).max()
    tell("ambiance: standard atmosphere to 80 km, relative", off, 1e-4)
    t = torch.as_tensor(times)
    for name, source, most in (("sun", sun, 1e4), ("moon", moon, 2e4)):
        apart = source(epoch)(t).numpy() - np.array(said["planets"][name])
        gap = np.linalg.norm(apart, axis=1).max()
        tell(f"DE421: the {name} over three years", gap, most, "m")


def line_by_line() -> None:
    """The two columns of docs/from-basilisk.md, each where it belongs."""
    theirs = ask("basilisk_lines.py", {})
    limits = {"place": 1.0, "sigma": 1e-5, "quat": 1e-9, "rate": 1e-9, "times": 1e-9}
    for heading, (_, right) in columns("from-basilisk").items():
        own = run(right, heading)
        for name, values in theirs[heading].items():
            off = np.abs(np.asarray(own[name]).reshape(-1) - values).max()
            tell(f"Basilisk: {heading}: {name}", off, limits[name])


if __name__ == "__main__":
    line_by_line()
    oracles()
    fall()
    low_orbit()
    print(f"{len(results)} comparisons, {results.count(False)} beyond their limits")
    sys.exit(not all(results))
