"""The pitfalls of the conventions' page, each true on both engines."""

import mujoco
import numpy as np
import pytest

from docs import pitfalls

pytestmark = pytest.mark.fast

COM = np.array([-0.3791, 0.0, 0.008])
"""Of the glider, from its nose."""


@pytest.fixture
def tol(engine):
    return 1e-12 if engine == "native" else 2e-6


def test_columns_of_xmat_are_the_body_axes(engine, tol):
    vectors = pitfalls.orientation_matrix(engine).vectors
    assert np.allclose(vectors["column 0 of xmat"], [0, 0, -1], atol=tol)
    assert np.allclose(vectors["row 0 of xmat"], [0, 0, 1], atol=tol)
    ahead = np.zeros(3)
    mujoco.mju_rotVecQuat(ahead, np.array([1.0, 0, 0]), vectors["quat"])
    assert np.allclose(vectors["body x axis"], ahead, atol=1e-15)


def test_angular_velocity_in_qvel_is_in_body_axes(engine, tol):
    run = pitfalls.angular_velocity_axes(engine)
    assert np.allclose(run.vectors["qvel[3:6]"], [1, 0, 0], atol=tol)
    world = run.vectors["angular velocity, world axes"]
    assert np.allclose(world, [0, 0, -1], atol=tol)
    (turned,) = run.curves.values()
    want = np.zeros_like(turned)
    want[:, 2] = -np.sin(run.times)
    assert np.allclose(turned, want, atol=1e2 * tol)


def test_a_force_is_along_world_axes_whatever_the_attitude(engine, tol):
    run = pitfalls.force_axes(engine)
    (velocity,) = run.curves.values()
    want = np.zeros_like(velocity)
    want[:, 0] = run.times
    assert np.allclose(velocity, want, atol=10 * tol)


def test_a_torque_is_along_world_axes_and_qvel_is_not(engine, tol):
    run = pitfalls.torque_axes(engine)
    world, body = run.curves.values()
    about_x, about_z = np.zeros_like(world), np.zeros_like(world)
    about_x[:, 0] = run.times
    about_z[:, 2] = run.times  # the body's z axis points along world +x
    assert np.allclose(world, about_x, atol=1e2 * tol)
    assert np.allclose(body, about_z, atol=1e2 * tol)


@pytest.mark.parametrize("rot", [(1, 0, 0, 0), (0.5, 0.1, -0.7, 0.5), (0, 0, 1, 0)])
def test_a_torque_of_ten_about_world_x(engine, tol, rot):
    """Angular acceleration about world +x, regardless of the orientation."""
    sim = pitfalls.simulate(engine, "cube", rot=rot)
    body = sim.scene["body"]
    body.write_external_wrench_to_sim([[[0, 0, 0]]], [[[10, 0, 0]]])
    acc = pitfalls.row(body.data.body_com_ang_acc_w)[0]
    inertia = float(body.data.body_inertia[0, 0, 0])
    assert np.allclose(acc * inertia, [10, 0, 0], atol=1e2 * tol)


def test_quaternions_are_scalar_first(engine, tol):
    vectors = pitfalls.quaternion_order(engine).vectors
    assert np.allclose(vectors["read as wxyz"], vectors["body x axis"], atol=tol)
    assert np.allclose(vectors["read as xyzw"], [0, 0, 1], atol=tol)


def test_the_origin_is_not_the_centre_of_mass(engine, tol):
    run = pitfalls.velocity_point(engine)
    origin, com = run.curves.values()
    # No force acts, so the centre of mass moves evenly, up to the step's error.
    assert np.abs(com - com[0]).max() < 5e-3
    assert np.allclose(com[0] - origin[0], np.cross([0, 0, 2], COM), atol=10 * tol)
    assert np.abs(origin[-1] - origin[0]).max() > 0.5


def test_rates_are_in_radians(engine, tol):
    curves = pitfalls.angle_units(engine).curves
    assert curves["np.deg2rad(90)"][-1] == pytest.approx(18, abs=1e3 * tol)
    turns = np.deg2rad(90.0 * 180 / np.pi * 0.2 - curves["90"][-1]) / (2 * np.pi)
    assert turns == pytest.approx(round(turns), abs=1e3 * tol)
    assert round(turns) == 3


def test_what_is_read_after_a_step_is_of_the_new_state(engine, tol):
    angle = {k: v[0] for k, v in pitfalls.stale_matrix(engine).vectors.items()}
    assert angle["sim.data.xmat"] == pytest.approx(angle["qpos after it"], abs=tol)
    assert angle["qpos after it"] - angle["before the step"] == pytest.approx(
        0.025, abs=1e-5
    )
    assert angle["mj_step's xmat"] == pytest.approx(angle["before the step"], abs=tol)


def test_every_run_is_on_the_page_with_its_figure():
    from pathlib import Path

    page = (Path(pitfalls.__file__).parent / "conventions.md").read_text()
    for name in pitfalls.RUNS:
        assert f"figures/{name}.svg" in page
        assert (Path(pitfalls.__file__).parent / "figures" / f"{name}.svg").is_file()
