"""Gyro and star tracker: what they read without noise, and how their noise spreads."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from tests.raised import raises

from simstate import Simulation
from simstate.base.errors import InvalidInputError
from simstate.integrate import RK4, SRA1, EulerMaruyama
from simstate.space import Gyro, StarTracker

F64 = torch.float64
BODY = """<mujoco><option timestep="0.05" gravity="0 0 0"/><worldbody>
<body name="craft"><freejoint/><inertial pos="0.05 -0.02 0.1" mass="12"
 diaginertia="9 14 18"/></body></worldbody></mujoco>"""
MOUNT = np.array([0.6, 0.2, -0.5, 0.3]) / np.linalg.norm([0.6, 0.2, -0.5, 0.3])
SPIN = np.array([0.02, -0.05, 0.03])


def craft(num_envs=3, integrator=None, **options):
    model = mujoco.MjModel.from_xml_string(BODY)
    sim = Simulation(model, num_envs, integrator=integrator or SRA1(), **options)
    quat = torch.tensor([0.5, -0.3, 0.4, 0.7], dtype=F64)
    sim.data.qpos[:, 3:7] = quat / quat.norm()
    sim.data.qvel[:, 3:6] = torch.as_tensor(SPIN)
    return sim


def mount():
    return Rotation.from_quat(MOUNT, scalar_first=True)


def test_without_noise_they_tell_the_truth():
    sim = craft()
    bias = np.array([[1e-3, 2e-3, 3e-3], [0, 0, 0], [-1e-3, 0, 5e-3]])
    gyro = Gyro(
        "gyro", "model", "craft", noise_density=0.0, bias=bias, rot=MOUNT,
        scale_factor=[0, 0.1, 0],
    )  # fmt: skip
    tracker = StarTracker("stars", "model", "craft", noise=(0, 0, 0), rot=MOUNT)
    sim.add_process(gyro)
    sim.add_process(tracker)
    sim.step(4)
    rate = mount().inv().apply(sim.data.qvel[0, 3:6].numpy())
    want = rate * np.array([[1], [1.1], [1]]) + bias
    np.testing.assert_allclose(gyro.sample(sim), want, atol=1e-12)
    quat = Rotation.from_quat(sim.data.qpos[0, 3:7].numpy(), scalar_first=True)
    seen = (quat * mount()).as_quat(canonical=True, scalar_first=True)
    np.testing.assert_allclose(tracker.sample(sim)[0], seen, atol=1e-12)
    assert bool((tracker.sample(sim)[:, 0] >= 0).all())


@pytest.mark.parametrize("steps", [1, 5])
def test_the_gyros_noise_goes_with_the_sampling_rate(steps):
    """Deviation noise_density / √T over an interval T, whatever the steps are."""
    sim = craft(num_envs=400, integrator=EulerMaruyama())
    density = 2e-3
    sim.add_process(gyro := Gyro("gyro", "model", "craft", noise_density=density))
    errors = []
    for _ in range(6):
        sim.step(steps)
        errors.append(gyro.sample(sim) - sim.data.qvel[:, 3:6])
    errors = torch.stack(errors)
    spread = float(errors.std())
    want = density / np.sqrt(0.05 * steps)
    assert spread == pytest.approx(want, rel=0.05)  # of 7200 numbers: 0.8 %
    one, two = errors[2].flatten(), errors[3].flatten()
    assert abs(float((one * two).mean()) / want**2) < 0.12  # white


def test_the_bias_walks():
    sim = craft(num_envs=500, integrator=EulerMaruyama())
    gyro = Gyro("gyro", "model", "craft", noise_density=0.0, bias_walk=1e-4,
                bias=(1e-2, 0, 0))  # fmt: skip
    sim.add_process(gyro)
    sim.step(40)
    walked = gyro.bias - torch.tensor([1e-2, 0, 0], dtype=F64)
    assert float(walked.std()) == pytest.approx(1e-4 * np.sqrt(2.0), rel=0.08)
    sim.reset([3, 1])
    assert gyro.bias[3].tolist() == [1e-2, 0, 0]
    assert float(gyro.bias[0, 1]) != 0


def test_the_star_trackers_noise_is_about_its_own_axes():
    sim = craft(num_envs=600, integrator=EulerMaruyama())
    noise = np.array([2e-4, 3e-4, 2e-3])
    sim.add_process(tracker := StarTracker("stars", "model", "craft", noise=noise,
                                           rot=MOUNT))  # fmt: skip
    sim.step(3)
    seen = Rotation.from_quat(tracker.sample(sim).numpy(), scalar_first=True)
    quat = Rotation.from_quat(sim.data.qpos[:, 3:7].numpy(), scalar_first=True)
    error = ((quat * mount()).inv() * seen).as_rotvec()
    np.testing.assert_allclose(error.std(axis=0), noise, rtol=0.12)
    assert np.abs(error.mean(axis=0) / noise).max() < 0.17


def test_the_same_reading_twice_and_after_a_snapshot():
    sim = craft()
    gyro = Gyro("gyro", "model", "craft", noise_density=1e-3, bias_walk=1e-4)
    tracker = StarTracker("stars", "model", "craft", noise=(1e-3, 1e-3, 1e-3))
    sim.add_process(gyro)
    sim.add_process(tracker)
    sim.step(3)
    first = gyro.sample(sim), tracker.sample(sim)
    again = gyro.sample(sim), tracker.sample(sim)
    for a, b in zip(first, again, strict=True):
        assert torch.equal(a, b)
    saved = sim.snapshot()
    sim.step(4)
    want = gyro.sample(sim)
    sim.restore(saved)
    sim.step(4)
    assert torch.equal(gyro.sample(sim), want)
    assert not torch.equal(want[0], want[1])


def test_a_world_reads_the_same_in_any_batch():
    readings = []
    for count in (2, 5):
        sim = craft(num_envs=count)
        sim.add_process(gyro := Gyro("gyro", "model", "craft", noise_density=1e-3))
        sim.step(4)
        readings.append(gyro.sample(sim)[:2])
    torch.testing.assert_close(readings[0], readings[1], rtol=0, atol=1e-14)


def test_noise_needs_a_stochastic_scheme():
    sim = craft(integrator=RK4())
    with raises(InvalidInputError, name="gyro"):
        sim.add_process(Gyro("gyro", "model", "craft", noise_density=1e-3))
    with raises(InvalidInputError, name="noise_density"):
        Gyro("gyro", "model", "craft", noise_density=-1.0)
