"""What users get wrong: each a clear error of ours, and the state stays as it was."""

import pytest
import torch
from tests.raised import raises

from simstate import (
    EntityCfg,
    InitialStateCfg,
    InvalidInputError,
    ModelError,
    SceneCfg,
    SimStateError,
    Simulation,
    UnknownNameError,
)
from simstate.cli import main


def scene(timestep=None, **models):
    entities = {
        name: model if isinstance(model, EntityCfg) else EntityCfg(model=model)
        for name, model in models.items()
    }
    return SceneCfg(entities=entities, timestep=timestep)


@pytest.fixture
def sim():
    return Simulation(scene(0.004, robot="quadruped", arm="arm"), num_envs=4)


@pytest.mark.parametrize("name", ["default_joint_pos", "default_joint_vel"])
def test_a_bad_default_is_found_before_the_reset_writes(sim, name):
    sim.step(3)
    getattr(sim.scene["arm"].data, name)[2, 0] = torch.nan
    before = sim.state.clone()
    with raises(InvalidInputError, name=f"arm.data.{name}"):
        sim.reset()
    assert torch.equal(sim.state, before)


def test_a_zero_default_quaternion_is_found_before_the_reset_writes(sim):
    sim.step(3)
    sim.scene["robot"].data.default_root_state[1, 3:7] = 0.0
    before = sim.state.clone()
    with raises(InvalidInputError, name="robot.data.default_root_state"):
        sim.reset([0, 1])
    assert torch.equal(sim.state, before)


def test_writing_nothing_leaves_everything_fresh(monkeypatch):
    sim = Simulation(scene(robot="quadruped"), num_envs=4, freshness="strict")
    robot = sim.scene["robot"]
    robot.write_joint_position_to_sim(torch.zeros(0, 12), env_ids=[])
    robot.write_joint_position_to_sim(torch.zeros(4, 0), joint_ids=[])
    sim.reset([])
    assert robot.data.body_link_pos_w.isfinite().all()


def test_a_new_simulation_can_be_read_in_every_mode():
    heights = {
        mode: Simulation(scene(robot="quadruped"), freshness=mode)
        .scene["robot"]
        .data.root_link_pos_w[0, 2]
        .item()
        for mode in ("auto", "strict", "off")
    }
    assert len(set(heights.values())) == 1
    assert heights["off"] > 0.1


@pytest.mark.parametrize("column", ["mocap_pos", "mocap_quat"])
def test_a_bad_mocap_pose_is_a_divergence(column, engine):
    sim = Simulation(scene(target="mocap_target", cube="cube"), 2, engine=engine)
    getattr(sim.data, column)[1, 0, 0] = torch.nan
    with raises(SimStateError, worlds=[1]) as caught:
        sim.step()
    assert f"{column}[0]" in str(caught.value)


def test_typos_on_assignment_raise(sim):
    with raises(UnknownNameError, name="ctrll"):
        sim.data.ctrll = 1.0
    with raises(UnknownNameError, name="joint_poss"):
        sim.scene["robot"].data.joint_poss = 1.0
    with raises(UnknownNameError, name="joint_poss"):
        sim.scene["robot"].data.read("joint_poss")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("body_mass", "body_mass"),
        ("default_joint_pos", "default_joint_pos"),
        ("root_link_pos_w", "root_link_pos_w"),
        ("root_com_lin_vel_w", "root_com_lin_vel_w"),
        ("heading_w", "heading_w"),
    ],
)
def test_assigning_to_a_quantity_says_what_to_do(sim, name, remedy):
    with raises(InvalidInputError, name=remedy):
        setattr(sim.scene["robot"].data, name, 1.0)


def test_sensors_are_found_by_their_whole_name(sim):
    assert sim.scene["robot"].sensor("imu_gyro").shape == (4, 3)
    with raises(UnknownNameError, name="imu_.*"):
        sim.scene["robot"].sensor("imu_.*")


def test_names_that_look_like_regular_expressions_are_found():
    xml = """<mujoco><worldbody><body name="b[0]"><joint name="a(1)"/><geom size=".1"/>
    </body></worldbody></mujoco>"""
    robot = Simulation(scene(robot=xml)).scene["robot"]
    assert robot.find_bodies("b[0]") == ([0], ["b[0]"])
    assert robot.find_joints("a(1)") == ([0], ["a(1)"])


@pytest.mark.parametrize("value", [[[True]], torch.tensor([[True]]), [[1.0]]])
def test_equalities_are_switched_by_truth_values(value):
    robot = Simulation(scene(arm="arm"), num_envs=1).scene["arm"]
    robot.write_equality_active_to_sim([[False]])
    assert robot.data.equality_active.tolist() == [[0.0]]
    robot.write_equality_active_to_sim(value)
    assert robot.data.equality_active.tolist() == [[1.0]]


def test_targets_follow_gears_that_differ_between_worlds(engine):
    xml = """<mujoco><worldbody><body><joint name="h" axis="0 1 0"/>
    <geom size=".1" mass="1"/></body></worldbody>
    <actuator><motor joint="h" gear="2"/></actuator></mujoco>"""
    sim = Simulation(scene(robot=xml), 2, engine=engine)
    sim.expand("actuator_gear")[1, 0, 0] = 4.0
    robot = sim.scene["robot"]
    robot.set_joint_effort_target([[6.0]])
    sim.forward()
    assert robot.data.qfrc_actuator.flatten().tolist() == [6.0, 6.0]
    assert robot.data.joint_effort_target.flatten().tolist() == [6.0, 6.0]


@pytest.mark.parametrize(
    ("build", "error", "name"),
    [
        (lambda: Simulation("quadruped"), ModelError, "scene"),
        (lambda: Simulation(scene(c="quadrupd")), ModelError, "quadrupd"),
        (lambda: Simulation(SceneCfg(entities={"c": "cube"})), ModelError, "c"),
        (lambda: Simulation(SceneCfg(entities=["cube"])), ModelError, "entities"),
        (lambda: Simulation(scene(c="cube"), 2.5), InvalidInputError, "num_envs"),
        (lambda: Simulation(scene(c="cube")).step(1.5), InvalidInputError, "n"),
        (
            lambda: Simulation(scene(c="cube"), device="gpu"),
            InvalidInputError,
            "device",
        ),
        (lambda: Simulation(scene(c="cube"), freshness=None), UnknownNameError, "None"),
        (lambda: Simulation(scene(c="cube")).scene[0], UnknownNameError, "0"),
        (
            lambda: Simulation(scene(c="cube"), engine="warp", device="cuda"),
            InvalidInputError,
            "device",
        ),
        (
            lambda: Simulation(SceneCfg(entities={}, options={"integrator": "RK5"})),
            UnknownNameError,
            "RK5",
        ),
        (
            lambda: Simulation(SceneCfg(entities={}, gravity=(0.0, 0.0, torch.nan))),
            InvalidInputError,
            "gravity",
        ),
        (
            lambda: Simulation(
                scene(
                    c=EntityCfg(
                        model="cube", init_state=InitialStateCfg(pos=("a", 1, 2))
                    )
                )
            ),
            InvalidInputError,
            "init_state.pos",
        ),
    ],
)
def test_wrong_constructions(build, error, name):
    if name == "device" and torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with raises(error, name=name):
        build()


def test_interrupting_the_laws_ends_cleanly(monkeypatch, capsys):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("simstate.study.oracles.check", interrupt)
    assert main(["run", "cube", "--envs", "2", "--seconds", "0.01"]) == 130
    assert "interrupted" in capsys.readouterr().err
