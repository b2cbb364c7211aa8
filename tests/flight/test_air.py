"""The air: published values, wind as a field, and quantities against the local air."""

from __future__ import annotations

import ambiance
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from tests.raised import raises

from simstate.base.errors import InvalidInputError, ShapeError, UnknownNameError
from simstate.flight import (
    Air,
    AirState,
    ExponentialAtmosphere,
    FreeFlight,
    Load,
    StandardAtmosphere,
    WindField,
)
from simstate.integrate import DP54

F64 = torch.float64

# U.S. Standard Atmosphere, 1976, table I: geometric altitude [m], temperature [K],
# pressure [Pa], density [kg/m³].
PUBLISHED = [
    (-1000, 294.651, 1.1393e5, 1.3470),
    (0, 288.150, 1.01325e5, 1.2250),
    (5000, 255.676, 5.4048e4, 7.3643e-1),
    (10000, 223.252, 2.6499e4, 4.1351e-1),
    (15000, 216.650, 1.2111e4, 1.9476e-1),
    (20000, 216.650, 5.5293e3, 8.8910e-2),
    (30000, 226.509, 1.1970e3, 1.8410e-2),
    (40000, 250.350, 2.8714e2, 3.9957e-3),
    (50000, 270.650, 7.9779e1, 1.0269e-3),
    (60000, 247.021, 2.1958e1, 3.0968e-4),
    (70000, 219.585, 5.2209, 8.2829e-5),
    (80000, 198.639, 1.0524, 1.8458e-5),
    (86000, 186.87, 3.7338e-1, 6.958e-6),
]
HIGH = [
    (92e3, 186.96, 1.2887e-1, 2.393e-6),
    (144e3, 591.24, 5.938e-4, 2.958e-9),
    (300e3, 976.01, 8.7704e-6, 1.916e-11),
    (100e3, 195.08, 3.2011e-2, 5.604e-7),
    (115e3, 300.00, 4.0096e-3, 4.289e-8),
    (120e3, 360.00, 2.5382e-3, 2.222e-8),
    (150e3, 634.39, 4.5422e-4, 2.076e-9),
    (200e3, 854.56, 8.4736e-5, 2.541e-10),
    (400e3, 995.83, 1.4518e-6, 2.803e-12),
    (500e3, 999.24, 3.0236e-7, 5.215e-13),
    (1000e3, 1000.0, 7.5138e-9, 3.561e-15),
]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row[0]} m")
def test_the_published_table_to_86_km(row):
    height, *want = row
    air = StandardAtmosphere().at(torch.tensor([height], dtype=F64))
    got = [float(x) for x in (air.temperature, air.pressure, air.density)]
    np.testing.assert_allclose(got, want, rtol=1e-4)


@pytest.mark.parametrize("row", HIGH, ids=lambda row: f"{row[0]:g} m")
def test_the_published_table_above(row):
    height, temperature, pressure, density = row
    air = StandardAtmosphere().at(torch.tensor([height], dtype=F64))
    rough = 0.02 if height in (92e3, 144e3) else 1e-9  # between points of the table
    assert float(air.temperature) == pytest.approx(temperature, abs=6e-3)
    assert float(air.pressure) == pytest.approx(pressure, rel=rough)
    assert float(air.density) == pytest.approx(density, rel=rough)


@pytest.mark.parametrize("other", [5000.0, 200e3])
def test_the_air_at_no_altitude_is_nan(other):
    found, known = (StandardAtmosphere().at(x) for x in ([np.nan, other], other))
    for name in ("temperature", "pressure", "density"):
        got = getattr(found, name)
        assert got.isnan().tolist() == [True, False]
        assert float(got[1]) == float(getattr(known, name))


def test_molecules_get_lighter_from_80_km_on():
    """Temperature over its molecular-scale one is M/M₀, table 8 of the standard."""
    for height, ratio in (
        (79.9e3, 1.0), (80.5e3, 0.999996), (82.5e3, 0.999909),
        (83.25e3, (0.999870 + 0.999829) / 2), (85.5e3, 0.999641), (86e3, 0.999579),
    ):  # fmt: skip
        air = StandardAtmosphere().at(torch.tensor([height], dtype=F64))
        geopotential = 6356766.0 * height / (6356766.0 + height)
        scale = 214.65 - 2e-3 * (geopotential - 71e3)
        assert float(air.temperature) / scale == pytest.approx(ratio, abs=1e-9)


def test_density_is_an_exponential_between_and_beyond_the_points_of_the_table():
    air = StandardAtmosphere().at(torch.tensor([102.5e3, 1100e3, 2500e3], dtype=F64))
    for found, low, high, last, top in (
        (air.pressure, 3.2011e-2, 1.4477e-2, 1.0873e-8, 7.5138e-9),
        (air.density, 5.604e-7, 2.325e-7, 5.759e-15, 3.561e-15),
    ):
        fall = top / last  # over 100 km
        want = [(low * high) ** 0.5, top * fall, top * fall**15]
        np.testing.assert_allclose(found, want, rtol=1e-9)


def test_every_altitude_is_ambiances():
    heights = np.linspace(-4e3, 80e3, 337)
    truth = ambiance.Atmosphere(heights)
    air = StandardAtmosphere().at(torch.as_tensor(heights))
    np.testing.assert_allclose(air.temperature, truth.temperature, rtol=1e-5)
    np.testing.assert_allclose(air.pressure, truth.pressure, rtol=1e-5)
    np.testing.assert_allclose(air.density, truth.density, rtol=1e-5)
    np.testing.assert_allclose(air.speed_of_sound, truth.speed_of_sound, rtol=1e-5)


def test_geopotential_altitude_by_name():
    """What half of all programs get wrong: 11 km is one thing and 11 km another."""
    heights = torch.tensor([11e3, 20e3], dtype=F64)
    by_name = {
        "geopotential": [0.36391, 0.088035],
        "geometric": [0.36480, 0.08891],
    }
    for name, want in by_name.items():
        got = StandardAtmosphere(name).at(heights).density
        np.testing.assert_allclose(got, want, rtol=3e-5)
    with raises(UnknownNameError, name="pressure"):
        StandardAtmosphere("pressure")


def test_sound_and_viscosity():
    air = StandardAtmosphere().at(torch.tensor([0.0, 20e3], dtype=F64))
    np.testing.assert_allclose(air.speed_of_sound, [340.294, 295.069], rtol=3e-6)
    np.testing.assert_allclose(air.viscosity, [1.7894e-5, 1.4216e-5], rtol=3e-5)


def test_nothing_jumps_and_molecules_get_lighter():
    heights = torch.linspace(-2e3, 1.2e6, 200001, dtype=F64)
    air = StandardAtmosphere().at(heights)
    for part in (air.temperature, air.pressure, air.density):
        assert float(part.log().diff().abs().max()) < 3e-3  # over 6 m
    assert bool((air.density.diff() < 0).all())
    places = torch.tensor([86e3, 120e3, 150e3, 200e3, 500e3, 1000e3], dtype=F64)
    air = StandardAtmosphere().at(places)
    mass = air.density * 8314.32 * air.temperature / air.pressure
    np.testing.assert_allclose(
        mass, [28.95, 26.20, 24.10, 21.30, 14.33, 3.94], atol=0.02
    )


def test_a_hot_day_and_thin_air_of_each_world():
    hot = StandardAtmosphere(temperature_offset=[0.0, 20.0], density_factor=[1.1, 1.0])
    sim_air = hot.at(torch.tensor([3e3, 3e3], dtype=F64))
    usual = StandardAtmosphere().at(torch.tensor([3e3], dtype=F64))
    assert torch.equal(sim_air.pressure, usual.pressure.expand(2))
    want = [1.1 * float(usual.density), 0]
    want[1] = float(usual.pressure) / (287.05287 * (float(usual.temperature) + 20))
    np.testing.assert_allclose(sim_air.density, want, rtol=1e-6)
    thin = ExponentialAtmosphere(2.0, [5e3, 1e4], base=1e3)
    got = thin.at(torch.tensor([6e3, 11e3], dtype=F64)).density
    np.testing.assert_allclose(got, 2 * np.exp(-1) * np.ones(2), rtol=1e-14)


ANGLES, VELOCITY = np.array([10.0, -20.0, 30.0]), np.array([15.0, 2.0, -1.0])


def flying(num_envs=2, **change):
    given = {"angles_E_to_BP1_izyx": ANGLES, "velocity_E__E": VELOCITY}
    given |= {"com": (-0.3, 0.05, 0.1), "gravity": 0.0}
    given |= {"position_E_Eo": (100.0, -50.0, -2000.0)}
    return FreeFlight(2.5, np.diag([0.2, 0.3, 0.4]), num_envs, **{**given, **change})


def turn():
    """Body components of Earth's."""
    return Rotation.from_euler("ZYX", ANGLES[::-1], degrees=True).as_matrix().T


class Sealed:
    """Air of one density up to 3 km, and none above; without parameters by world."""

    def at(self, altitude):
        density = torch.where(altitude < 3e3, 1.1, 0.0).to(altitude)
        return AirState(0 * altitude + 280, 9e4 * density, density)


def test_an_atmosphere_of_ones_own_only_has_the_air_at_altitudes():
    state = flying(air=Air(Sealed(), elevation=[500.0, 1500.0])).get_state()
    np.testing.assert_allclose(state.density, [1.1, 0.0])
    for wrong in (StandardAtmosphere, 1.225, lambda height: 1.225):
        with raises(InvalidInputError, name="atmosphere"):
            Air(wrong)


def test_quantities_are_against_the_local_air():
    wind = np.array([[3.0, -4.0, 1.0], [-8.0, 2.0, 0.0]])
    state = flying(air=Air(wind=wind, elevation=[500.0, 0.0])).get_state()
    for world in range(2):
        u, v, w = turn() @ (VELOCITY - wind[world])
        speed = np.sqrt(u * u + v * v + w * w)
        assert float(state.airspeed[world]) == pytest.approx(speed, rel=1e-12)
        assert float(state.alpha[world]) == pytest.approx(np.arctan2(w, u), rel=1e-12)
        assert float(state.beta[world]) == pytest.approx(np.arcsin(v / speed))
        alpha, beta = state.wind_angles("ptera_5_1")
        assert float(alpha[world]) == pytest.approx(np.rad2deg(np.arcsin(w / speed)))
        assert float(beta[world]) == pytest.approx(np.rad2deg(np.arctan2(v, u)))
        height = (2500.0, 2000.0)[world]
        assert float(state.altitude[world]) == pytest.approx(height, rel=1e-12)
        air = StandardAtmosphere().at(torch.tensor([height], dtype=F64))
        rho = float(air.density)
        pressure = 0.5 * rho * speed**2
        assert float(state.dynamic_pressure[world]) == pytest.approx(pressure)
        assert float(state.mach[world]) == pytest.approx(
            speed / float(air.speed_of_sound)
        )
    picked = state[torch.tensor([1])]
    assert torch.equal(picked.density, state.density[1:])
    assert torch.equal(picked.altitude, state.altitude[1:])


@pytest.mark.parametrize("axes", ["wind", "stability"])
def test_a_load_in_wind_axes_is_along_the_air_not_the_ground(axes):
    wind = np.array([3.0, -14.0, 6.0])
    flight = flying(air=Air(wind=wind))
    flight.add_load(lambda t, s: Load(force=(-5.0, 0, 0), axes=axes))
    got = flight.sim.scene["aircraft"].data.body_com_lin_acc_w[1, 0].numpy()
    seen = turn() @ (VELOCITY - wind)
    if axes == "stability":
        seen[1] = 0.0
    drag = turn().T @ (-5.0 * seen / np.linalg.norm(seen))
    np.testing.assert_allclose(got, drag / 2.5, atol=1e-12)
    flight.apply_loads((-5.0, 0, 0), (0, 0, 0), axes=axes)
    np.testing.assert_allclose(flight.sim.data.xfrc_applied[0, 1, :3], drag, atol=1e-12)


def test_one_default_for_the_axes_of_loads():
    one, other = flying(), flying()
    one.add_load(lambda t, s: Load(force=(1.0, -2.0, 3.0)))
    other.apply_loads((1.0, -2.0, 3.0), (0.0, 0.0, 0.0))
    got, want = (
        flight.sim.scene["aircraft"].data.body_com_lin_acc_w for flight in (one, other)
    )
    torch.testing.assert_close(got, want, rtol=0, atol=1e-14)
    body = turn().T @ [1.0, -2.0, 3.0] / 2.5
    np.testing.assert_allclose(want[1, 0], body, atol=1e-14)


def test_still_air_carries_a_drifting_balloon_along():
    """v' = −k (v − wind): the drift is approached exponentially."""
    flight = flying(air=Air(wind=[[3.0, -4.0, 1.0], [0.0, 6.0, 0.0]]),
                    integrator=DP54(atol=1e-10, rtol=1e-10), timestep=0.5)  # fmt: skip
    flight.add_load(lambda t, s: Load(force=-2.5 * s.air_vel_b))
    flight.step(4)
    want = [3.0, -4.0, 1.0] + np.exp(-2.0) * (VELOCITY - [3.0, -4.0, 1.0])
    np.testing.assert_allclose(flight.get_state().velocity_E__E[0], want, atol=1e-8)


def test_wind_as_a_field_of_place_and_time():
    heights, times = [0.0, 1000.0, 3000.0], [0.0, 10.0]
    grid = np.zeros((3, 2, 3))
    grid[:, :, 0] = np.array([[2.0, 4.0], [10.0, 12.0], [20.0, 0.0]])
    grid[:, :, 1] = 5.0
    field = WindField({"height": heights, "time": times}, grid)
    flight = flying(air=Air(wind=field))
    flight.sim.data.time[:] = torch.tensor([2.5, 25.0], dtype=F64)
    wind = flight.get_state().wind_e  # at 2000 m, halfway between two heights
    north = 0.5 * (10 + 20) * 0.75 + 0.5 * (12 + 0) * 0.25
    np.testing.assert_allclose(wind, [[north, 5, 0], [6, 5, 0]], atol=1e-12)
    sheared = flying(air=Air(wind=lambda t, p: 0.01 * p[:, [2, 0, 1]]))
    want = 0.01 * np.array([-2000.0, 100.0, -50.0])
    np.testing.assert_allclose(sheared.get_state().wind_e[0], want, atol=1e-12)
    for wrong, name in (
        (lambda: WindField({"hight": heights}, grid[:, 0]), "hight"),
        (
            lambda: WindField({"height": heights[::-1]}, grid[:, 0]),
            "breakpoints",
        ),
        (lambda: WindField({"height": heights}, grid), "values"),
        (lambda: flying(air=Air(wind=lambda t, p: t)).get_state(), "wind(t, position)"),
        (lambda: flying(air=Air(wind=np.zeros((3, 3)))), "wind"),
    ):
        with raises((InvalidInputError, ShapeError, UnknownNameError), name=name):
            wrong()


def test_recorded_states_know_their_air():
    flight = flying(air=Air(elevation=[100.0, 0.0]))
    path = flight.fly(4, every=2)
    assert tuple(path.density.shape) == (3, 2)
    torch.testing.assert_close(path.density[2], flight.get_state().density)
    torch.testing.assert_close(path[1].airspeed, path.airspeed[1])


def test_an_altitude_may_be_a_number():
    for air in (StandardAtmosphere(), ExponentialAtmosphere(1.3, 7e3, 100.0)):
        found = vars(air.at(1234.5))
        want = vars(air.at(torch.tensor([500.0, 1234.5], dtype=torch.float64)))
        for name, value in found.items():
            torch.testing.assert_close(value.reshape(()), want[name][1])


def test_thin_air_is_denser_in_a_day_of_more_density():
    height = torch.tensor([4e3, 2e5, 6e5], dtype=torch.float64)
    mean, half = (StandardAtmosphere(density_factor=x).at(height) for x in (1.0, 0.5))
    torch.testing.assert_close(half.density, 0.5 * mean.density)
    assert float(StandardAtmosphere(density_factor=0.0).at(height).density.max()) == 0


def test_density_falls_smoothly_to_the_top():
    """Scale heights of the standard rise from 5 to 270 km, slowly above 86 km."""
    height = torch.arange(0.0, 1001e3, 1e3, dtype=torch.float64)
    air = StandardAtmosphere().at(height)
    for values in (air.density, air.pressure):
        scale = -1e3 / values.log().diff()
        assert float(scale.min()) > 4.7e3
        assert float(scale.max()) < 290e3
        above = scale[87:]
        assert float((above[1:] / above[:-1]).max()) < 1.45
        assert float((above[1:] / above[:-1]).min()) > 0.9
