"""Values that commands show: the quantities of a model, energies, delays, versions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from simstate import EntityCfg, SceneCfg, Simulation
from simstate.cli import bench, main, new_task
from simstate.cli.contacts import ContactsCommand
from simstate.cli.model_scene import disturb, moving_worlds, scene_of
from simstate.cli.run_tables import quantity_table, quantity_values
from simstate.cli.scheme_study import SchemeStudy
from simstate.env import tasks
from simstate.record import Recording
from simstate.state import Snapshot

MARKS = """
<mujoco><worldbody><geom name="g" size="0.1"/><site name="s"/></worldbody></mujoco>
"""
ROOT = {"root_link_pos_w", "projected_gravity_b", "heading_w", "root_com_lin_vel_b"}


@pytest.mark.parametrize("base", ["free", "fixed", "mocap", "none"])
def test_the_quantities_that_a_model_has_are_shown(base):
    """Poses in parts, joints in a table of their own, and nothing that is empty."""
    models = {
        "free": "quadruped", "fixed": "cartpole", "mocap": "mocap_target", "none": MARKS
    }  # fmt: skip
    cube = EntityCfg(model="cube")
    sim = Simulation(
        SceneCfg(entities={"it": EntityCfg(model=models[base]), "cube": cube}), 2
    )
    entity = sim.scene["it"]
    assert entity.index.base == base
    values = quantity_values(entity, 1)
    assert (values.keys() >= ROOT) == (base != "none")
    assert bool(values.keys() & ROOT) == (base != "none")
    assert {"geom_pos_w", "site_quat_w"} <= values.keys()
    assert not values.keys() & {"joint_pos", "qfrc_actuator", "root_link_pose_w"}
    assert ("body_mass" in values) == (base != "none")
    assert ("actuator_force" in values) == (entity.num_actuators > 0)
    table = quantity_table(entity, 1)
    assert list(table.columns[0].cells) == list(values)
    headers = [column.header for column in table.columns]
    assert headers == ["quantity", "value", "point", "axes", "unit"]
    wraps = [column.no_wrap for column in table.columns]
    assert wraps == [True, False, True, True, True]


def energy(sim: Simulation) -> float:
    """The energy of the first world, by MuJoCo [J]."""
    data = mujoco.MjData(sim.model)
    data.qpos[:], data.qvel[:] = sim.data.qpos[0].numpy(), sim.data.qvel[0].numpy()
    mujoco.mj_forward(sim.model, data)
    mujoco.mj_energyPos(sim.model, data)
    mujoco.mj_energyVel(sim.model, data)
    return float(data.energy.sum())


@pytest.mark.parametrize("gravity", [True, False])
def test_a_change_of_energy_is_split_into_damping_and_the_scheme(gravity):
    study = SchemeStudy(
        "cartpole", "euler", None, 0.01, None, gravity, 0.3, 2.0, 5, "native"
    )
    parts = study.to_dict()["energy"]
    assert len(parts) == 2
    removed, scheme = parts.values()
    # The same run, by hand.
    scene = replace(scene_of("cartpole"), ground=False, timestep=0.01)
    if not gravity:
        scene = replace(scene, gravity=(0.0, 0.0, 0.0))
    sim = Simulation(scene, integrator=study.integrator(), seed=5)
    sim.data.qvel[:] += 2.0 * sim.rng.normal(slice(None), 2)
    start = energy(sim)
    sim.step(30)
    total = energy(sim) - start
    assert removed + scheme == pytest.approx(total, rel=1e-6)
    assert removed < -1e-3  # friction takes energy
    alone = study.scheme_alone.energy
    assert scheme == pytest.approx(float(alone[-1] - alone[0]), rel=1e-9)
    table = study.table()
    assert table.row_count == len(study.scheme_alone.drifts()) + 2 + len(
        study.scheme_alone.order
    )


def test_a_scheme_without_losses_has_the_entire_change():
    study = SchemeStudy("cube", "euler", None, None, None, True, 0.1, 1.0, 5, "native")
    assert list(study.to_dict()["energy"]) == ["the scheme alone"]


def test_rates_have_half_of_their_spread_in_percent():
    assert bench.Rate(1000.0, 500.0, 1500.0).text == "1,000 ± 50 %"
    assert bench.Rate(50.0, 50.0, 50.0).text == "50 ± 0 %"


def test_a_report_names_the_graphics_cards_or_none(monkeypatch):
    from simstate.cli import report

    def of(names: list[str]) -> str:
        monkeypatch.setattr("torch.cuda.device_count", lambda: len(names))
        monkeypatch.setattr("torch.cuda.get_device_name", lambda k: names[k])
        return report.machine()["gpu"]

    assert of(["a", "b"]) == "a, b"
    assert of([])


ONE = """
<mujoco><worldbody><body pos="0 0 POS">JOINT<joint name="a" axis="0 1 0"/>
  <geom size="0.1"/></body></worldbody>
  <actuator><position joint="a" kp="2" ctrlrange="-1 1"/></actuator></mujoco>
"""


@pytest.mark.parametrize(
    ("pos", "joint", "low"),
    [("0", "", False), ("0", "free", False), ("0.5", "free", True)],
)
def test_a_new_task_of_one_servo(tmp_path, monkeypatch, pos, joint, low):
    monkeypatch.chdir(tmp_path)
    text = ONE.replace("POS", pos)
    if joint:  # the joint is then that of a second body
        text = text.replace(
            "JOINT", '<freejoint/><geom size="0.1"/><body pos="0 0 0.3">'
        )
        text = text.replace("</body></worldbody>", "</body></body></worldbody>")
    Path("one.xml").write_text(text.replace("JOINT", ""))
    new_task.NewTaskCommand(Path("mine.py"), "one.xml").execute()
    assert "JointPositionActionCfg(" in Path("mine.py").read_text()
    cfg = tasks.make_cfg("mine.py")
    assert ("low" in cfg.terminations) is low
    assert "joint_pos" in cfg.observations["policy"].terms
    assert cfg.decimation == 10  # 20 ms of 2 ms


def test_a_new_task_needs_a_joint_or_an_actuator(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("ball.xml").write_text(
        '<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody>'
        "</mujoco>"
    )
    assert main(["new-task", "mine.py", "ball.xml"]) == 1
    assert "neither 1-DoF joints nor actuators" in capsys.readouterr().err
    assert not Path("mine.py").exists()


def test_a_run_is_at_least_one_step_long(capsys):
    given = ["run", "cartpole", "--envs", "2", "--no-check", "--json", "--seconds"]
    for seconds, steps in (("0.001", 1), ("0.0124", 2), ("0.0126", 3)):
        assert main([*given, seconds]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["steps"], found["finished"]) == (steps, True)
        assert found["simulated_s"] == pytest.approx(0.005 * steps)
    task = ["run", "Cartpole-Balance", "--envs", "2", "--json", "--seconds", "0.1"]
    assert main(task) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["steps"] == 5  # of 20 ms
    rate = found["world_steps_per_second"] * found["elapsed_s"]
    assert rate == pytest.approx(5 * 4 * 2)  # of the physics
    np.testing.assert_allclose(found["world"], 0)


def test_a_recorded_run_has_a_sample_for_each_step(tmp_path):
    path = tmp_path / "a.simrec"
    given = ["run", "cartpole", "--envs", "2", "--seconds", "0.05", "--no-check"]
    for every, steps in ((None, 1), ("0.01", 2)):
        more = [] if every is None else ["--every", every]
        assert main([*given, "--record", str(path), *more]) == 0
        with Recording(path) as found:
            times = found.time[:, 1].numpy()
            np.testing.assert_allclose(times, 0.005 * np.arange(0, 11, steps))
            assert found.names == ("robot.joint_pos", "robot.joint_vel")
            assert [step.call["n"] for step in found.steps()] == [1] * 10


def test_a_recording_with_an_integrator_needs_a_function_to_replay(tmp_path, capsys):
    path = tmp_path / "a.simrec"
    given = ["run", "cartpole", "--envs", "1", "--seconds", "0.02", "--no-check"]
    for more, named in (([], False), (["--integrator", "rk4"], True)):
        assert main([*given, "--record", str(path), *more]) == 0
        said = capsys.readouterr().out
        assert f"simstate replay {path}" in said
        assert ("--made-by" in said) is named


BOX = """
<mujoco><option gravity="1.2 0 -7"/><worldbody>
  <geom name="floor" type="plane" size="3 3 0.1" friction="2"/>
  <body name="box" pos="0.1 0.2 0.1"><freejoint/>
    <geom name="box" type="box" size="0.3 0.2 0.1" mass="2.5" friction="2"/></body>
</worldbody></mujoco>
"""


def test_contacts_are_those_of_mujoco(tmp_path):
    (tmp_path / "box.xml").write_text(BOX)
    answer = ContactsCommand(str(tmp_path / "box.xml"), seconds=0.1).execute()
    model = mujoco.MjModel.from_xml_string(BOX)
    data = mujoco.MjData(model)
    for _ in range(50):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    wanted = []
    for k, contact in enumerate(data.contact):
        force = np.zeros(6)
        mujoco.mj_contactForce(model, data, k, force)
        across = float(np.hypot(*force[1:3]))
        world = contact.frame.reshape(3, 3).T @ force[:3]
        names = [model.geom(geom).name for geom in contact.geom]
        assert across > 0.1
        wanted.append([
            *names, words(world, 2), f"{force[0]:.2f} N", f"{across:.2f} N",
            words([1e3 * contact.dist], 3), words(contact.pos, 3),
        ])  # fmt: skip
    table = answer.shown[0]
    found = zip(*(column.cells for column in table.columns), strict=True)
    assert sorted(map(list, found)) == sorted(wanted)
    assert len(wanted) == 4


def words(values, digits: int) -> str:
    return " ".join(f"{round(float(x), digits) + 0.0:.{digits}f}" for x in values)


def test_worlds_of_a_run_start_as_stated(tmp_path):
    """By default 256, each with velocities of deviation 0.1; from a snapshot, as it."""
    first, second, third = (tmp_path / f"{name}.npz" for name in "abc")
    given = ["run", "cartpole", "--no-check", "--seconds", "0.005", "--seed", "3"]
    assert main([*given, "--save", str(first)]) == 0
    sim = moving_worlds(scene_of("cartpole"), 256, "native", "cpu", 0.1, 3)
    sim.step()
    kept = Snapshot.load(first)
    assert torch.equal(kept.slots["qvel"], sim.data.qvel)
    assert main([*given, "--snapshot", str(first), "--save", str(second)]) == 0
    sim.step()
    assert torch.equal(Snapshot.load(second).slots["qvel"], sim.data.qvel)
    sim.restore(kept)
    disturb(sim, 0.5, 3)
    sim.step()
    noise = ["--noise", "0.5"]
    assert main([*given, *noise, "--snapshot", str(first), "--save", str(third)]) == 0
    assert torch.equal(Snapshot.load(third).slots["qvel"], sim.data.qvel)


@pytest.mark.parametrize("world", ["-1", "2"])
def test_the_world_that_is_shown_is_one_of_them(world, capsys):
    given = ["run", "cartpole", "--envs", "2", "--seconds", "0.005", "--no-check"]
    assert main([*given, "--world", world]) == 1
    assert "--world must be in [0, 2)" in capsys.readouterr().err
    assert main([*given, "--world", "1"]) == 0
