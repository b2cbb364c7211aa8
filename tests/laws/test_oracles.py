"""The oracle suite on every shipped model, on awkward entities, and on broken code."""

import math
from dataclasses import replace

import mujoco
import pytest
import torch
from tests.laws import zoo

from simstate import EntityCfg, InitialStateCfg, SceneCfg
from simstate.entity import data as entity_data
from simstate.entity import frame_quantities
from simstate.scene import models
from simstate.study import oracles
from simstate.study.oracles import LAWS, Check, Report, check, relative_error

SIDEWAYS = (3.0, -4.0, 1.0)


def alone(source: str) -> SceneCfg:
    return SceneCfg(entities={"robot": EntityCfg(model=source)}, timestep=None)


def everything() -> SceneCfg:
    """All awkward entities in one scene, one of them twice, gravity to the side."""
    entities = {
        name: EntityCfg(model=xml, init_state=InitialStateCfg(pos=(3.0 * k, 0.0, 1.0)))
        for k, (name, xml) in enumerate(zoo.ENTITIES.items())
    }
    entities["again"] = EntityCfg(
        model=zoo.SECOND_TREE,
        init_state=InitialStateCfg(pos=(0.0, 5.0, 1.0), rot=(0.5, 0.5, -0.5, 0.5)),
    )
    return SceneCfg(entities=entities, gravity=SIDEWAYS, ground=False)


@pytest.mark.parametrize("name", models.NAMES)
def test_laws_hold_on_shipped_models(name, engine):
    report = oracles.check(alone(name), engine)
    assert report.passed, str(report)


@pytest.mark.parametrize("name", zoo.ENTITIES)
def test_laws_hold_on_awkward_entities(name):
    report = oracles.check(alone(zoo.ENTITIES[name]), num_envs=8, seed=3)
    assert report.passed, str(report)


def test_mujoco_takes_nearly_aligned_frames_for_aligned_ones():
    """Else the entity of that name would test nothing."""
    model = mujoco.MjModel.from_xml_string(zoo.NEARLY_ALIGNED)
    same = mujoco.mjtSameFrame
    assert model.body("block").sameframe == same.mjSAMEFRAME_BODYROT
    assert model.geom("as_body").sameframe == same.mjSAMEFRAME_BODY
    assert model.geom("as_turned").sameframe == same.mjSAMEFRAME_BODYROT
    assert model.geom("as_inertia").sameframe == same.mjSAMEFRAME_INERTIA
    assert model.site("as_body").sameframe == same.mjSAMEFRAME_BODY
    assert model.site("as_inertia").sameframe == same.mjSAMEFRAME_INERTIAROT


def test_laws_hold_on_all_of_them_in_one_scene(engine):
    report = oracles.check(everything(), engine)
    assert report.passed, str(report)
    assert {check.entity for check in report.checks} >= {*zoo.ENTITIES, "again"}


def test_a_compiled_model_can_be_checked():
    model = models.spec("quadruped").compile()
    report = oracles.check(model)
    assert report.passed
    assert {check.entity for check in report.checks} == {"model", "scene"}


def test_the_entity_roots_subtree_com_is_caught(monkeypatch):
    """The field's commonest bug: the root's point used for every tree."""
    correct = frame_quantities.Picks.resolve

    def wrong(frame, index, model, device):
        picks = correct(frame, index, model, device)
        roots = (
            picks.roots
            if isinstance(picks.roots, int)
            else slice(index.root_body_id, index.root_body_id + 1)
        )
        return frame_quantities.Picks(picks.elements, picks.bodies, roots)

    monkeypatch.setattr(frame_quantities.Picks, "resolve", staticmethod(wrong))
    report = oracles.check(alone(zoo.SECOND_TREE))
    failed = {(check.law, check.quantity) for check in report.failures}
    assert ("mj_objectVelocity", "body_link_vel_w") in failed
    assert ("Δpose/Δt = velocity", "body_com_vel_w") in failed
    assert oracles.check(alone("quadruped")).passed  # one tree: nothing to get wrong


def test_a_dropped_coriolis_term_is_caught(monkeypatch):
    def without(pos, subtree_com, cvel, cacc):
        linear = cacc[..., 3:] + torch.linalg.cross(cacc[..., :3], pos - subtree_com)
        return torch.cat([linear, cacc[..., :3].expand_as(linear)], dim=-1)

    monkeypatch.setattr(frame_quantities, "acceleration_from_cacc", without)
    report = oracles.check(alone("quadruped"))
    laws = {check.law for check in report.failures}
    assert laws == {"mj_objectAcceleration", "Δvelocity/Δt = acceleration"}


def test_a_nan_fails_a_law(monkeypatch):
    def broken(data):
        return data.raw("xipos")[:, data.columns("body_ids")] * torch.nan

    quantity = entity_data.EntityData.quantities["body_com_pos_w"]
    monkeypatch.setattr(quantity, "compute", broken)
    failed = oracles.check(alone("cartpole"), num_envs=1)
    assert not failed.passed
    assert "body_com_pos_w" in str(failed)


def test_report_as_data():
    report = oracles.check(alone("cube"), num_envs=2)
    plain = report.to_dict()
    assert plain["passed"] is True
    assert plain["engine"] == "native"
    assert len(plain["checks"]) == len(report.checks) > 50


def test_every_quantity_is_in_a_law_but_a_few():
    names = ("humanoid", "finger", "arm", "mocap_target")
    reports = [oracles.check(alone(name), num_envs=2) for name in names]
    covered = {check.quantity for report in reports for check in report.checks}
    left = set(entity_data.EntityData.quantities) - covered
    assert left == {
        # kept by the entity itself, or by rule from what is covered
        "default_root_state",
        "default_joint_pos",
        "default_joint_vel",
        "encoder_bias",
        "joint_pos_biased",
        "soft_joint_pos_limits",
        # views of what is covered
        "body_external_force",
        "body_external_torque",
        "body_com_pose_w",
        "geom_pose_w",
        "site_pose_w",
        "act",
    }


def test_every_law_is_checked_and_allows_little():
    """Rounding of float64 and its differences, and of float32: no real mistake."""
    report = check(models.spec("quadruped").compile())
    assert {law.name for law in LAWS} <= {one.law for one in report.checks}
    for law in LAWS:
        assert 0 < law.native <= 1e-7
        assert law.warp is None or law.native < law.warp <= 5e-3
    allowed = {one.law: one.tolerance for one in report.checks}
    assert all(allowed[law.name] == law.native for law in LAWS)


def checks(*errors: float, tolerance: float = 1e-3) -> list[Check]:
    return [Check("law", "robot", f"q{k}", e, tolerance) for k, e in enumerate(errors)]


def test_a_report_names_the_worst_and_what_failed():
    fine = Report("native", checks(1e-4, 1e-3, 5e-4))
    assert fine.passed
    assert [one.quantity for one in fine.worst()] == ["q1"]
    nan = Report("native", checks(1e-4, math.nan, 5e3))
    assert [one.quantity for one in nan.failures] == ["q1", "q2"]
    assert [one.quantity for one in nan.worst()] == ["q1"]
    exact = Report("native", checks(0.0, 1e-300, 0.0, tolerance=0.0))
    assert [one.quantity for one in exact.worst()] == ["q1"]
    assert not exact.passed
    assert "FAILED law: robot.q1, error 1.000e-300 > 0e+00" in str(exact)
    assert not Report("native").passed
    noted = Report("native", [replace(checks(0.0)[0], note="n")] * 2, ["why", "n"])
    assert noted.notes == ["n", "why"]
    assert str(noted).endswith("n\nwhy")


def test_errors_are_relative_to_the_greatest_value_or_to_one():
    value = torch.tensor([[3.0, -8.0], [1.0, 0.5]])
    off = value + torch.tensor([[0.0, 0.4], [-0.2, 0.0]])
    assert relative_error(off, value) == pytest.approx(0.4 / 8)
    assert relative_error(off / 100, value / 100) == pytest.approx(0.004)
    assert relative_error(torch.zeros(0), torch.zeros(0)) == 0.0
    assert math.isnan(relative_error(torch.zeros(2), torch.zeros(3)))
