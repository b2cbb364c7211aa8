"""The names that readers of the reference documents type, and what they mean."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from tests.inside import names_of_others
from tests.raised import raises

import simstate.math
from simstate import (
    ContactCfg,
    EntityCfg,
    EntityData,
    InvalidInputError,
    RayCastCfg,
    SceneCfg,
    Simulation,
    UnknownNameError,
)
from simstate.entity.quantity import Quantity
from simstate.flight import FreeFlight
from simstate.integrate import QPosState
from simstate.math import compute_velocity_from_cvel
from simstate.math.conventions import R_to_quat_wxyz

XBODY = mujoco.mjtObj.mjOBJ_XBODY


# Entity data: velocities from cvel


def test_compute_velocity_from_cvel_is_mujocos(small_model, random_rows, load_row):
    for row in random_rows(small_model, 3, seed=5):
        data = load_row(small_model, row)
        mujoco.mj_forward(small_model, data)
        for body in range(1, small_model.nbody):
            root = small_model.body_rootid[body]
            got = compute_velocity_from_cvel(
                torch.as_tensor(data.xpos[body]),
                torch.as_tensor(data.subtree_com[root]),
                torch.as_tensor(data.cvel[body]),
            )
            six = np.zeros(6)
            mujoco.mj_objectVelocity(small_model, data, XBODY, body, six, 0)
            want = np.concatenate([six[3:], six[:3]])
            np.testing.assert_allclose(got, want, atol=1e-14)


# Free flight: attitudes and rates


def test_the_quaternion_of_a_passive_orientation_is_mujocos_qpos():
    """The document's lines, from R_pas_BP1_to_E to qpos[3:7] and to xmat."""
    T_pas_BP1_CgP1_to_E_CgP1 = np.eye(4)
    turn = Rotation.from_euler("ZYX", [200.0, -35.0, 100.0], degrees=True)
    T_pas_BP1_CgP1_to_E_CgP1[:3, :3] = turn.as_matrix()
    R_pas_BP1_to_E = T_pas_BP1_CgP1_to_E_CgP1[:3, :3]
    R_act_BP1_to_E = np.linalg.inv(R_pas_BP1_to_E)
    R_act_E_to_BP1 = R_act_BP1_to_E.T
    quat_act_E_to_BP1_wxyz = R_to_quat_wxyz(R_act_E_to_BP1)
    want = turn.as_quat(scalar_first=True, canonical=True)
    np.testing.assert_allclose(quat_act_E_to_BP1_wxyz, want, atol=1e-15)
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body><freejoint/><geom size=".1"/></body></worldbody>
        </mujoco>"""
    )
    data = mujoco.MjData(model)
    data.qpos[3:7] = quat_act_E_to_BP1_wxyz
    mujoco.mj_kinematics(model, data)
    np.testing.assert_allclose(data.xmat[1].reshape(3, 3), R_pas_BP1_to_E, atol=1e-15)


def flying(**start):
    given = {
        "angles_E_to_BP1_izyx": (100.0, -20.0, 30.0),
        "velocity_E__E": (15.0, 2.0, -1.0),
        "omegas_BP1__E": (40.0, -25.0, 60.0),
    }
    inertia = np.diag([0.2, 0.3, 0.4])
    flight = FreeFlight(2.5, inertia, 3, com=(-0.3, 0.05, 0.1), **(given | start))
    flight.sim.data.qvel[1, 3:] *= -0.5
    flight.sim.data.qvel[2, 3:] += 1.0
    flight.step(25)
    return flight


def test_a_flight_states_other_names_are_mujocos():
    flight = flying()
    state = flight.get_state()
    sim = flight.sim
    body = sim.model.body_dofnum.nonzero()[0][0]
    for world in range(3):
        data = mujoco.MjData(sim.model)
        data.qpos[:], data.qvel[:] = sim.data.qpos[world], sim.data.qvel[world]
        mujoco.mj_forward(sim.model, data)
        xmat = data.xmat[body].reshape(3, 3)
        omegas_E__E = np.rad2deg(xmat @ data.qvel[3:6])
        six = np.zeros(6)
        mujoco.mj_objectVelocity(sim.model, data, XBODY, body, six, 0)
        np.testing.assert_allclose(omegas_E__E, np.rad2deg(six[:3]), atol=1e-10)
        np.testing.assert_allclose(state.omegas_E__E[world], omegas_E__E, atol=1e-10)
        np.testing.assert_allclose(state.R_pas_BP1_to_E[world], xmat, atol=1e-13)
        np.testing.assert_allclose(state.R_pas_B_to_E[world], xmat, atol=1e-13)
        rates = np.rad2deg(data.qvel[3:6])
        np.testing.assert_allclose(state.omegas_B__E[world], rates, atol=1e-10)
        centre = data.xipos[body]
        np.testing.assert_allclose(state.position_E_E[world], centre, atol=1e-10)
        quat = data.qpos[3:7] * np.sign(data.qpos[3])
        got = state.quat_act_E_to_BP1_wxyz[world]
        np.testing.assert_allclose(got, quat, atol=1e-13)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(state.omegas_E__E, state.omegas_BP1__E, atol=1.0)


# Bulk state: the name


def test_a_qpos_state_has_a_name_and_so_do_its_clones():
    model = simstate.scene.models.spec("satellite").compile()
    qpos = torch.as_tensor(model.qpos0)[None]
    state = QPosState(qpos, "high_order", name="hub")
    state.configure(model)
    assert state.name == "hub"
    assert state.clone().name == "hub"
    assert state.clone().attitude == "high_order"
    assert QPosState(qpos).name == "qpos"


@pytest.mark.parametrize("name", ["", 3, None])
def test_a_name_is_a_text(name):
    with raises(InvalidInputError, name="name"):
        QPosState(torch.zeros(1, 7), name=name)


def test_the_documents_order_of_arguments_says_ours():
    with raises(InvalidInputError, name="value"):
        QPosState("hub", torch.zeros(1, 7))


BULK_NAMES = {
    "setDerivative": "set_derivative",
    "propagateState": "propagate",
    "getQuaternionBlocks": "quaternion_blocks",
    "highOrderIntegration": "attitude",
    "euclideanQpos": "euclidean_qpos",
    "euclideanQvel": "euclidean_qvel",
}


@pytest.mark.parametrize("name", BULK_NAMES)
def test_names_of_the_bulk_state_document_lead_to_ours(name):
    state = QPosState(torch.tensor([[1.0, 2, 3, 1, 0, 0, 0]]))
    ours = BULK_NAMES[name]
    assert hasattr(state, ours)
    assert not hasattr(state, name)
    with raises(UnknownNameError, name=name):
        getattr(state, name)
    with raises(UnknownNameError, name=name) as caught:
        setattr(state, name, True)
    assert ours in str(caught.value)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = state.nothing


@pytest.mark.parametrize("name", ["qposAdr", "qvelAdr"])
def test_a_quaternion_block_has_our_names(name):
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body><joint axis="1 0 0"/><geom size="1"/><body>'
        '<joint type="ball"/><geom size=".1"/></body></body></worldbody></mujoco>'
    )
    state = QPosState(torch.as_tensor(model.qpos0)[None])
    state.configure(model)
    (block,) = state.quaternion_blocks
    assert (block.qpos_adr, block.qvel_adr) == (1, 1)
    with raises(UnknownNameError, name=name) as caught:
        getattr(block, name)
    assert name.lower().replace("adr", "_adr") in str(caught.value)


def test_generalized_forces_of_free_joints_and_of_all_dofs():
    sim = simulation_of_quadrupeds()
    robot, other = sim.scene["robot"], sim.scene["other"]
    values = torch.arange(sim.data.qfrc_applied.numel()).to(sim.dtype)
    sim.data.qfrc_applied[:] = values.view_as(sim.data.qfrc_applied)
    nv = sim.model.nv // 2
    assert robot.data.generalized_force.shape == (2, 6)
    assert robot.dynamics.applied_generalized_force.shape == (2, nv)
    for entity, first in ((robot, 0), (other, nv)):
        own = sim.data.qfrc_applied[:, first : first + nv]
        assert torch.equal(entity.dynamics.applied_generalized_force, own)
        assert torch.equal(entity.data.generalized_force, own[:, :6])
    assert torch.equal(sim.dynamics.applied_generalized_force, sim.data.qfrc_applied)


def simulation_of_quadrupeds():
    entities = {name: EntityCfg(model="quadruped") for name in ("robot", "other")}
    return Simulation(SceneCfg(entities=entities, ground=True), num_envs=2)


# Other libraries' names on entity.data


@pytest.fixture(scope="module")
def sim():
    scene = SceneCfg(
        entities={"robot": EntityCfg(model="quadruped")},
        contacts={"FL_hip": ContactCfg(of="robot/.*_foot", kind="geom")},
        rays={"FL_hip": RayCastCfg(body="robot/trunk")},
    )
    return Simulation(scene, 2)


@pytest.fixture(scope="module")
def robot(sim):
    return sim.scene["robot"]


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("root_pos_w", "root_link_pos_w"),
        ("root_quat_w", "root_link_quat_w"),
        ("root_pose_w", "root_link_pose_w"),
        ("root_vel_w", "root_com_vel_w"),
        ("root_lin_vel_w", "root_com_lin_vel_w"),
        ("root_ang_vel_w", "root_com_ang_vel_w"),
        ("root_lin_vel_b", "root_com_lin_vel_b"),
        ("root_ang_vel_b", "root_com_ang_vel_b"),
        ("body_pos_w", "body_link_pos_w"),
        ("body_quat_w", "body_link_quat_w"),
        ("body_lin_vel_w", "body_com_lin_vel_w"),
        ("body_ang_vel_w", "body_com_ang_vel_w"),
        ("body_acc_w", "body_com_acc_w"),
        ("body_lin_acc_w", "body_com_lin_acc_w"),
    ],
)
def test_a_name_without_its_point_is_answered_with_isaac_labs(robot, name, ours):
    with pytest.raises(AttributeError) as caught:
        getattr(robot.data, name)
    assert ours in EntityData.quantities
    assert f"Isaac Lab's is {ours}." in str(caught.value)
    assert name in str(caught.value)
    other = ours.replace("_link_", "_com_") if "link" in ours else None
    other = other or ours.replace("_com_", "_link_")
    assert other in str(caught.value)
    assert not hasattr(robot.data, name)


@pytest.mark.parametrize("name", names_of_others())
def test_other_spellings_are_answered_with_what_there_is(sim, robot, name):
    with pytest.raises(AttributeError) as caught:
        getattr(robot.data, name)
    said = names_of_others()[name].split(",")[0]
    assert f"robot.data has no {name!r}: here it is {said}" in str(caught.value)
    for ours in said.split(" and "):
        if ours.startswith(("entity.", "sim.")):
            eval(ours, {"sim": sim, "entity": robot, "name": robot.body_names[1]})
        else:
            assert ours in EntityData.quantities
    assert name not in EntityData.quantities


@pytest.mark.parametrize("name", ["cvel", "subtree_com", "qvel", "xfrc_applied"])
def test_mujocos_own_fields_are_reported_as_the_scenes(sim, robot, name):
    with pytest.raises(AttributeError, match=rf"whole scene, is sim\.data\.{name}\."):
        getattr(robot.data, name)
    assert len(getattr(sim.data, name)) == sim.num_envs


def test_a_misspelt_name_gets_the_nearest(robot):
    with raises(AttributeError, name="joint_poss"):
        robot.data.joint_poss  # noqa: B018
    with pytest.raises(AttributeError):
        robot.data.root_lin_acc_b  # noqa: B018  # there is none of either point


def test_an_error_inside_a_quantity_is_not_hidden(sim, robot, monkeypatch):
    """Python asks for the attribute again when computing it raised AttributeError."""

    def broken(data):
        return data.read("joint_pos").no_such_method()

    monkeypatch.setattr(EntityData.quantities["joint_vel"], "compute", broken)
    sim.step()
    with pytest.raises(AttributeError, match="no_such_method"):
        robot.data.joint_vel  # noqa: B018
    assert isinstance(EntityData.joint_vel, Quantity)
