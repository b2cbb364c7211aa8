"""The Ptera class alone, against plain MuJoCo; `make test-ptera` flies the real one."""

import inspect

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.raised import raises

from simstate.base.errors import (
    InvalidInputError,
    ModelError,
    ShapeError,
    UnknownNameError,
)
from simstate.interop.ptera import MuJoCoModel

INERTIA = np.array([[0.2, 0.01, -0.02], [0.01, 0.3, 0.0], [-0.02, 0.0, 0.4]])
ATTITUDE = Rotation.from_euler("ZYX", [30, -20, 10], degrees=True)


def transform(rotation: Rotation) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = rotation.as_matrix()
    return matrix


def make(**change):
    given = {
        "name": "glider",
        "mass": 2.5,
        "omegas_BP1__E": np.array([20.0, -10.0, 5.0]),
        "T_pas_BP1_CgP1_to_E_CgP1": transform(ATTITUDE),
        "vCg_E__E": np.array([12.0, 1.0, -0.5]),
        "I_BP1_CgP1": INERTIA,
        "delta_time": 0.01,
    }
    return MuJoCoModel(**{**given, **change})


def test_constructor_is_the_documents():
    names = list(inspect.signature(MuJoCoModel).parameters)
    assert names == [
        "name",
        "mass",
        "omegas_BP1__E",
        "T_pas_BP1_CgP1_to_E_CgP1",
        "vCg_E__E",
        "I_BP1_CgP1",
        "delta_time",
        "integrator",
        "extra_xml",
        "mujoco_assets",
        "position_E_Eo",
    ]
    for name in ("apply_loads", "step", "get_state", "reset", "save_state"):
        assert callable(getattr(MuJoCoModel, name))


def test_start():
    model = make()
    state = model.get_state()
    assert list(state) == [
        "position_E_Eo", "R_pas_E_to_BP1", "velocity_E__E", "omegas_BP1__E", "time",
    ]  # fmt: skip
    assert np.allclose(state["position_E_Eo"], 0)
    assert np.allclose(state["R_pas_E_to_BP1"], ATTITUDE.as_matrix().T, atol=1e-15)
    assert np.allclose(state["velocity_E__E"], [12.0, 1.0, -0.5])
    assert np.allclose(state["omegas_BP1__E"], [20.0, -10.0, 5.0])
    assert state["time"] == 0.0
    # qpos is the active rotation from Earth to body axes, scalar first.
    quat = ATTITUDE.as_quat(scalar_first=True)
    assert np.allclose(model.initial_qpos[3:], quat * np.sign(quat[0]))
    assert np.allclose(model.initial_qvel[3:], np.deg2rad([20, -10, 5]))
    assert not model.initial_qpos.flags.writeable
    assert model.body_id == 1
    assert model.initial_key_frame_id == 0


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicit", "implicitfast"])
def test_flies_like_mujoco_and_is_of_one_instant(integrator):
    """The state is bit for bit MuJoCo's; R is that of the same qpos, not older."""
    model = make(integrator=integrator)
    plain = mujoco.MjModel.from_xml_string(model.xml_str)
    data = mujoco.MjData(plain)
    mujoco.mj_resetDataKeyframe(plain, data, model.initial_key_frame_id)
    force, moment = np.array([3.0, -2.0, 9.0]), np.array([0.1, 0.3, -0.2])
    for _ in range(50):
        model.apply_loads(force, moment)
        data.xfrc_applied[model.body_id] = [*force, *moment]
        model.step()
        mujoco.mj_step(plain, data)
    state = model.get_state()
    assert np.array_equal(state["position_E_Eo"], data.qpos[:3])
    assert np.array_equal(state["velocity_E__E"], data.qvel[:3])
    assert np.allclose(state["omegas_BP1__E"], np.rad2deg(data.qvel[3:]), rtol=1e-15)
    quat = Rotation.from_quat(data.qpos[3:7], scalar_first=True)
    now = quat.as_matrix().T
    assert np.abs(state["R_pas_E_to_BP1"] - now).max() < 1e-14
    stale = data.xmat[1].reshape(3, 3).T
    # What a reader of xmat gets is older by a step, or a stage.
    older = np.abs(stale - now).max()
    assert older > (1e-3 if integrator != "RK4" else 0)
    assert state["time"] == data.time


def test_loads_persist_until_overwritten():
    model = make(omegas_BP1__E=np.zeros(3))
    model.apply_loads([2.5, 0.0, 0.0], [0.0, 0.0, 0.0])
    for _ in range(100):
        model.step()
    gain = model.get_state()["velocity_E__E"] - [12.0, 1.0, -0.5]
    assert np.allclose(gain, [1.0, 0.0, 0.0])  # a = 1 m/s² for 1 s, gravity off


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_loads_that_are_not_finite_raise(bad):
    model = make()
    before = model.save_state()
    with raises(InvalidInputError, name="forces_E"):
        model.apply_loads([0.0, bad, 0.0], np.zeros(3))
    with raises(InvalidInputError, name="moments_E_CgP1"):
        model.apply_loads(np.zeros(3), [0.0, bad, 0.0])
    assert np.array_equal(model.save_state(), before)


def test_the_position_at_the_start_is_honoured():
    model = make(position_E_Eo=(100.0, -20.0, -300.0))
    assert model.get_state()["position_E_Eo"].tolist() == [100.0, -20.0, -300.0]
    model.step()
    model.reset()
    assert model.get_state()["position_E_Eo"].tolist() == [100.0, -20.0, -300.0]


def test_restored_again_and_again():
    model = make()
    model.apply_loads([1.0, 2.0, 3.0], [0.1, 0.0, 0.2])
    model.step()
    saved = model.save_state()
    kept = saved.copy()
    model.step()
    after = model.get_state()
    for _ in range(4):
        model.apply_loads([9.0, 9.0, 9.0], [1.0, 1.0, 1.0])
        model.step()
        model.restore_state(saved)
        model.step()
        again = model.get_state()
        assert all(np.array_equal(again[name], after[name]) for name in after)
        assert np.array_equal(saved, kept)


def test_reset_takes_the_loads_off():
    model = make()
    start = model.get_state()
    model.apply_loads([5.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    model.step()
    model.reset()
    state = model.get_state()
    assert all(np.array_equal(state[name], start[name]) for name in start)
    model.step()
    assert np.allclose(model.get_state()["velocity_E__E"], [12.0, 1.0, -0.5])


def test_extra_xml_with_joints_of_its_own():
    """Injected bodies before and in the airplane; the state stays the airplane's."""
    ball = '<body pos="0 0 9"><joint type="ball"/><geom size=".1"/></body>'
    flap = '<body><joint axis="0 1 0"/><geom size=".05" mass=".01"/></body>'
    model = make(extra_xml={"worldbody": ball, "body": flap})
    assert model.body_id == 2
    assert np.allclose(model.get_state()["velocity_E__E"], [12.0, 1.0, -0.5])
    model.apply_loads([0.0, 0.0, 1.0], np.zeros(3))
    model.step()
    assert model.get_state()["position_E_Eo"][0] == pytest.approx(0.12, rel=1e-3)


def test_a_name_that_xml_must_escape():
    assert make(name='A "1" <glider> & co').body_id == 1


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"integrator": "rk4"}, UnknownNameError, "RK4"),
        ({"extra_xml": {"option": ""}}, UnknownNameError, "worldbody"),
        ({"extra_xml": {"body": "<gem/>"}}, ModelError, "gem"),
        ({"delta_time": 0.0}, InvalidInputError, "delta_time"),
        ({"mass": -1.0}, InvalidInputError, "mass must be > 0"),
        ({"I_BP1_CgP1": np.diag([1.0, 1.0, 3.0])}, InvalidInputError, "larger than"),
        ({"I_BP1_CgP1": np.triu(np.ones((3, 3)))}, InvalidInputError, "symmetric"),
        ({"vCg_E__E": [np.nan, 0, 0]}, InvalidInputError, "vCg_E__E must be finite"),
        ({"T_pas_BP1_CgP1_to_E_CgP1": 2 * np.eye(4)}, InvalidInputError, "orthonormal"),
        ({"T_pas_BP1_CgP1_to_E_CgP1": [np.eye(4)] * 2}, ShapeError, "(2, 4, 4)"),
        ({"vCg_E__E": np.zeros((2, 3))}, ShapeError, "vCg_E__E describes one body"),
        ({"I_BP1_CgP1": [np.eye(3)] * 2}, ShapeError, "I_BP1_CgP1"),
        ({"mass": [1.0, 2.0]}, ShapeError, "mass describes one body"),
        ({"delta_time": "0.1"}, InvalidInputError, "delta_time must be real numbers"),
        ({"name": ""}, InvalidInputError, "name must not be empty"),
    ],
)
def test_refused(change, error, message):
    with pytest.raises(error) as caught:
        make(**change)
    assert message in str(caught.value)


def test_loads_of_a_wrong_shape_raise():
    model = make()
    with raises(ShapeError, name="forces_E"):
        model.apply_loads(np.zeros((2, 3)), np.zeros(3))
