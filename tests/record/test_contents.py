"""Snapshots, names of components and inputs: what a recording holds."""

from __future__ import annotations

import pytest
import torch
from tests.raised import raises
from tests.record.conftest import ARM, PUCK

from simstate import EntityCfg, SceneCfg, Simulation, UnknownNameError, integrate
from simstate.record import Recording, columns_of


@pytest.mark.parametrize(
    ("every", "wanted"),
    [(0.004, [0, 1, 2, 3, 4, 5, 6]), (0.008, [0, 2, 4, 6]), (0.02, [0, 5]),
     (9.0, [0]), (None, [0])],
)  # fmt: skip
def test_snapshots_are_taken_before_steps_at_an_interval(
    make_sim, tmp_path, every, wanted
):
    sim = make_sim(2)
    with sim.record(tmp_path / "a.simrec", fields=["qpos"], snapshot_every=every):
        for _ in range(7):
            sim.step()
    with Recording(tmp_path / "a.simrec") as found:
        assert found.snapshot_steps == wanted


def test_components_have_the_names_of_elements(make_sim):
    quantities = ["arm.joint_pos", "arm.body_link_lin_vel_w", "puck.root_link_quat_w"]
    columns = columns_of(make_sim(2), quantities, ["ctrl"])
    names = [list(column.names) for column in columns]
    assert names[0] == ["shoulder", "elbow"]
    assert names[1] == [f"{body}.{k}" for body in ("upper", "lower") for k in "xyz"]
    assert names[2] == ["w", "x", "y", "z"]
    assert [name.rpartition("/")[2] for name in names[3]] == ["shoulder'", "elbow'"]


def test_the_entity_may_be_left_out_if_there_is_one(make_sim):
    arm = SceneCfg(entities={"arm": EntityCfg(model=ARM.replace("KP", "3"))})
    (column,) = columns_of(Simulation(arm, 2), ["joint_pos"], ())
    assert column.name == "arm.joint_pos"
    with raises(UnknownNameError, name="joint_poss") as caught:
        columns_of(Simulation(arm, 2), ["joint_poss"], ())
    assert {"joint_pos", "arm.joint_pos", "qpos"} <= set(caught.value.known)
    with raises(UnknownNameError, name="joint_pos") as caught:
        columns_of(make_sim(2), ["joint_pos"], ())
    assert "arm.joint_pos" in caught.value.known
    assert "joint_pos" not in caught.value.known


def test_a_goal_that_is_changed_after_the_step_is_recorded_as_it_was(tmp_path):
    puck = SceneCfg(entities={"puck": EntityCfg(model=PUCK)}, timestep=None)
    sim = Simulation(puck, 2, integrator=integrate.RK4())
    goal = torch.tensor([0.001, 0.003], dtype=torch.float64)
    with sim.record(tmp_path / "a.simrec", fields=["qpos"]):
        sim.step(until=goal)
        goal.fill_(9.0)
    with Recording(tmp_path / "a.simrec") as found:
        (step,) = found.steps()
        assert step.arrays["until"].tolist() == [0.001, 0.003]
        assert found["time"][-1].tolist() == [0.001, 0.003]
