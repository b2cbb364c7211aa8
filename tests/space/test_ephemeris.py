"""Epochs, the Earth's rotation, Sun and Moon, against ERFA and SPICE."""

from __future__ import annotations

import erfa
import numpy as np
import pytest
import spiceypy as spice
import torch
from tests.raised import raises

from simstate.base.errors import InvalidInputError, ShapeError
from simstate.space import EarthRotation, Ephemeris, Epoch, moon, spice_body, sun

F64 = torch.float64
EPOCH = Epoch.utc("2024-03-20T06:30:15.25", dut1=-0.01)
TIMES = torch.tensor([0.0, 100.0, 4.1e4, 8.64e4 * 3.3, -5e4], dtype=F64)


def test_an_epoch_is_terrestrial_time():
    utc = erfa.dtf2d("UTC", 2024, 3, 20, 6, 30, 15.25)
    tt = erfa.taitt(*erfa.utctai(*utc))
    assert EPOCH.tt_days + EPOCH.tt_fraction == pytest.approx(sum(tt), abs=1e-9)
    assert EPOCH.ut1_minus_tt == pytest.approx(-37 - 32.184 - 0.01, abs=1e-6)
    for wrong in ("tomorrow", "2024-03-20T06:30:15+02:00"):
        with raises(InvalidInputError, name="date"):
            Epoch.utc(wrong)


def test_polynomials_are_fitted_once_for_the_times_to_come():
    asked = []

    def source(times: np.ndarray) -> np.ndarray:
        asked.append((float(times.min()), float(times.max())))
        return np.stack([times, times**2, 3.0 + 0 * times], axis=1)

    body = Ephemeris(source, segment=10.0, degree=4)
    times = torch.tensor([95.0, 102.0], dtype=F64)
    want = torch.stack([times, times**2, 3.0 + 0 * times], dim=1)
    torch.testing.assert_close(body(times), want)
    fitted = len(asked)
    body(torch.tensor([120.0, 170.0], dtype=F64))
    assert len(asked) == fitted  # eight more segments were fitted
    for t in (300.0, 20.0):
        asked.clear()
        found = float(body(torch.tensor([t], dtype=F64))[0, 1])
        assert found == pytest.approx(t * t)
        assert asked


def test_spices_time():
    seconds = EPOCH.tdb_seconds(np.array([0.0]))
    tt = (EPOCH.tt_days - 2451545.0 + EPOCH.tt_fraction) * 86400
    apart = erfa.dtdb(EPOCH.tt_days, EPOCH.tt_fraction, 0.0, 0.0, 0.0, 0.0)
    assert seconds[0] - tt == pytest.approx(apart, abs=6e-5)


def test_the_earths_rotation_is_that_of_erfa():
    rotation = EarthRotation(EPOCH)
    got = rotation(TIMES)
    for k, t in enumerate(TIMES.tolist()):
        tt = EPOCH.tt_days, EPOCH.tt_fraction + t / 86400
        ut1 = tt[0], tt[1] + EPOCH.ut1_minus_tt / 86400
        want = erfa.c2t06a(*tt, *ut1, 0.0, 0.0)
        np.testing.assert_allclose(got[k], want, atol=2e-9)  # ω times ERFA's rounding
        # Without the rotation angle, whose argument ERFA rounds: the pole alone.
        np.testing.assert_allclose(got[k, 2], want[2], atol=1e-12)
    pole = rotation.rate(TIMES)[0].tolist()
    assert pole == pytest.approx([0, 0, 7.292115e-5], rel=1e-6)


def test_the_rotations_rate_is_its_derivative():
    rotation = EarthRotation(EPOCH)
    t = torch.tensor([999.0, 1000.0, 1001.0], dtype=F64)
    rot = rotation(t)
    spin = rot[1] @ ((rot[2] - rot[0]) / 2).T  # R dRᵀ/dt is the cross product's matrix
    got = torch.stack([spin[2, 1], spin[0, 2], spin[1, 0]])
    np.testing.assert_allclose(got, rotation.rate(t)[0], rtol=1e-7, atol=1e-11)


def test_sun_and_moon_are_those_of_erfa():
    au = 149597870700.0
    moons, suns = moon(EPOCH)(TIMES), sun(EPOCH)(TIMES)
    for k, t in enumerate(TIMES.tolist()):
        when = EPOCH.tt_days, EPOCH.tt_fraction + t / 86400
        want = erfa.moon98(*when)["p"] * au
        np.testing.assert_allclose(moons[k], want, atol=2e-2)
        heliocentric, _ = erfa.epv00(*when)
        np.testing.assert_allclose(suns[k], -heliocentric["p"] * au, atol=1.0)
    # The Sun is at the vernal equinox: the epoch is three hours after it.
    direction = suns[0] / suns[0].norm()
    assert float(direction[0]) > 0.9999
    assert 3.5e8 < float(moons[0].norm()) < 4.1e8


def test_spice_kernels(tmp_path):
    """A kernel of two states that SPICE itself writes and interpolates."""
    path = tmp_path / "body.bsp"
    seconds = EPOCH.tdb_seconds(np.array([0.0]))[0]
    times = seconds + np.linspace(-1e6, 1e6, 401)
    angle = 2.66e-6 * (times - seconds)
    states = np.stack(
        [
            3.8e5 * np.cos(angle), 3.8e5 * np.sin(angle), 0 * angle,
            -1.0108 * np.sin(angle), 1.0108 * np.cos(angle), 0 * angle,
        ],
        axis=1,
    )  # fmt: skip
    handle = spice.spkopn(str(path), "test", 0)
    spice.spkw13(
        handle, -1001, 399, "J2000", times[0], times[-1], "test", 7, len(times), states,
        times,
    )  # fmt: skip
    spice.spkcls(handle)
    body = spice_body("-1001", "399", EPOCH, [path])
    t = torch.tensor([0.0, 1.23e5, -4e5], dtype=F64)
    turn = 2.66e-6 * t.numpy()
    want = 3.8e8 * np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=-1)
    np.testing.assert_allclose(body(t), want, atol=1e-1)
    # The kernel ends after 11.57 days: no polynomial beyond it is needed before.
    late = torch.tensor([9.9e5 - 3600.0], dtype=F64)
    edge = spice_body("-1001", "399", EPOCH, [], segment=3600.0)
    turn = 2.66e-6 * late.numpy()
    want = 3.8e8 * np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=-1)
    np.testing.assert_allclose(edge(late), want, atol=1e-1)
    for t in (-1.2e6, 1.2e6):
        with raises(InvalidInputError, name="kernels"):
            body(torch.tensor([t], dtype=F64))
    spice.kclear()
    with raises(InvalidInputError, file="none.bsp"):
        spice_body("MOON", "EARTH", EPOCH, [tmp_path / "none.bsp"])


def test_an_ephemeris_of_any_function():
    calls = []

    def spiral(t):
        calls.append(len(t))
        return np.stack([np.cos(t / 50), np.sin(t / 70), t / 1e3], axis=-1) * 1e7

    path = Ephemeris(spiral, segment=40.0, degree=12)
    t = torch.linspace(-500.0, 900.0, 77, dtype=F64)
    np.testing.assert_allclose(path(t), spiral(t.numpy()), atol=1e-6)
    alone = Ephemeris(spiral, segment=40.0)(torch.zeros(1, dtype=F64))
    np.testing.assert_allclose(alone, [[1e7, 0, 0]], atol=1e-6)
    asked = len(calls)
    path(t)
    assert len(calls) == asked  # what is fitted stays
    path.fit(-5000.0, 2000.0)
    np.testing.assert_allclose(path(t), spiral(t.numpy()), atol=1e-6)
    assert path.start <= -5000
    for wrong, name in (
        (lambda: Ephemeris(spiral, 0.0), "segment"),
        (lambda: Ephemeris(lambda t: t, 10.0)(t), "source"),
        (
            lambda: Ephemeris(lambda t: np.full((len(t), 3), np.nan), 9.0)(t),
            "source",
        ),
        (lambda: path.fit(0.0, 1e9), "segments"),
    ):
        with raises((InvalidInputError, ShapeError), name=name):
            wrong()
